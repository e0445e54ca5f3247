"""What EECC measures of outputs: their variance, their words, and whether they follow culture.

The paper measures two texts against each other and has five outputs a prompt. How these become one
distance between two nationalities it does not say; as in the authors' scripts it is the mean over
all pairs of an output of one and an output of the other, and 0 from a nationality to itself. BLEU,
a similarity, becomes the distance 1 - BLEU.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from judge.evaluation.benchmark import Result
from judge.evaluation.eecc_culture import Culture, read_cultures
from judge.evaluation.eecc_text import telling, words_of
from judge.stats.bleu import corpus_bleu, symmetric_bleu
from judge.stats.bootstrap import Resamples, mean_estimate
from judge.stats.intervals import Estimate
from judge.stats.significance import kendall_tau_c
from judge.stats.text import (
    Rule,
    lexical_variance,
    lexical_variance_estimate,
    top_words,
    word_edit_distances,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Metric = Literal["WED", "BLEU"]
METRICS: tuple[Metric, ...] = ("WED", "BLEU")

Words = list[str]
Taus = Mapping[str, float | None]
"""tau-c of each anchor by its nationality."""

EVERY_TOPIC = "all"


@dataclass(frozen=True, slots=True)
class Measured:
    """One concept under one metric.

    `across` is the variance across nationalities, `within` the mean over nationalities of the
    variance of one's outputs; `taus` are by measure of culture.
    """

    across: Estimate
    within: Estimate
    taus: Mapping[str, Taus]


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept of a condition, under each metric."""

    topic: str
    name: str
    measured: Mapping[str, Measured]


@dataclass(frozen=True, slots=True)
class Study:
    """All outputs of one condition for one kind of identity.

    `words` are by topic and identity, best first; stories are one topic. `matched` says how many
    identities each measure of culture knows, of those whose files are in the folder.
    """

    condition: str
    kind: str
    results: Sequence[Result]
    identities: tuple[str, ...]
    concepts: tuple[Concept, ...]
    words: Mapping[tuple[str, str], Sequence[tuple[str, float]]]
    matched: Mapping[str, int]
    folder: Path


def studies(results: Sequence[Result], *, rule: Rule = "paper") -> list[Study]:
    """The studies that the results make up, in their order.

    Raises:
        UsageError: a file of cultural values cannot be read; where the folder or the file is not
            there at all, the study is made without it.
    """
    groups: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        fields = result.fields
        groups[fields["condition"], fields["kind"], fields["data"]].append(result)
    return [
        _study(condition, kind, Path(data), group, rule)
        for (condition, kind, data), group in groups.items()
    ]


def _study(condition: str, kind: str, folder: Path, results: Sequence[Result], rule: Rule) -> Study:
    cultures = read_cultures(folder, rule=rule)
    identities = tuple(dict.fromkeys(result.fields["identity"] for result in results))
    by_concept: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_concept[result.fields["concept"]].append(result)
    concepts = []
    documents: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for name, asked in by_concept.items():
        topic = asked[0].fields["topic"]
        texts = _texts(asked)
        concepts.append(Concept(topic, name, _measured(texts, len(identities), cultures, rule)))
        # The paper takes stories together, QA by topic (section 5.2).
        corpus = documents[EVERY_TOPIC if condition == "stories" else topic]
        for identity, outputs in texts.items():
            for words in outputs:
                corpus[identity].update(telling(words))
    known = {name: set(one.demonyms) for name, one in cultures.items()}
    return Study(
        condition,
        kind,
        results,
        identities,
        tuple(concepts),
        {
            (topic, identity): best
            for topic, by_identity in documents.items()
            for identity, best in top_words(by_identity).items()
        },
        {name: len(demonyms & set(identities)) for name, demonyms in known.items()},
        folder,
    )


def _texts(results: Iterable[Result]) -> dict[str, list[Words]]:
    """Each identity's outputs as words, those without a word left out."""
    found: dict[str, list[Words]] = {}
    for result in results:
        words = words_of(result.answer) if result.outcome == "answered" else []
        if words:
            found.setdefault(result.fields["identity"], []).append(words)
    return found


def _measured(
    texts: Mapping[str, list[Words]], of: int, cultures: Mapping[str, Culture], rule: Rule
) -> dict[str, Measured]:
    identities = tuple(texts)
    owners = [place for place, name in enumerate(identities) for _ in texts[name]]
    flat = list(chain.from_iterable(texts.values()))
    found: dict[str, Measured] = {}
    for metric in METRICS:
        across, within = distances(flat, owners, metric, rule=rule)
        found[metric] = Measured(
            lexical_variance_estimate(across, of=of, rule=rule),
            _within(within, of, rule),
            {
                name: taus(identities, across, one, metric, rule=rule)
                for name, one in cultures.items()
            },
        )
    return found


def _within(blocks: Sequence[NDArray[np.float64]], of: int, rule: Rule) -> Estimate:
    """The mean variance of a nationality's own outputs, over those that have two or more."""
    found = mean_estimate(
        [lexical_variance(block, rule=rule) for block in blocks], Resamples(range(len(blocks)))
    )
    return Estimate(found.value, found.low, found.high, found.n, of)


def distances(
    texts: Sequence[Words], owners: Sequence[int], metric: Metric, *, rule: Rule = "paper"
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Between identities, (identities, identities); and between each identity's own texts.

    By the rule `released`, BLEU is the authors' scripts': all outputs of one identity are the
    candidates and all of another its references, and of the two directions only the one with the
    earlier as candidate is taken.

    Args:
        texts: as words, none empty.
        owners: each text's identity, from 0, in ascending order.
    """
    import numpy as np

    count = max(owners, default=-1) + 1
    owner = np.array(owners, dtype=np.intp)
    pairs: NDArray[np.float64]
    if metric == "WED":
        pairs = word_edit_distances(texts)
    elif rule == "released":
        pairs = 1 - _one_direction(corpus_bleu(texts, range(len(texts))))
    else:
        pairs = 1 - symmetric_bleu(texts)
    if metric == "BLEU" and rule == "released":
        across = 1 - _one_direction(corpus_bleu(texts, owners))
    else:
        share = (owner == np.arange(count)[:, None]) / np.bincount(owner, minlength=count)[:, None]
        across = share @ pairs @ share.T
    np.fill_diagonal(across, 0.0)
    starts = np.searchsorted(owner, np.arange(count + 1))
    blocks = [pairs[a:b, a:b] for a, b in pairwise(starts)]
    return across, blocks


def _one_direction(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    upper = np.triu(scores)
    return upper + np.triu(scores, 1).T


def taus(
    identities: Sequence[str],
    across: NDArray[np.float64],
    culture: Culture,
    metric: Metric,
    *,
    rule: Rule = "paper",
) -> dict[str, float | None]:
    """tau-c of each identity that the culture knows, as the anchor (section 3.1, appendix C.2).

    The other identities are ordered by how far their outputs are from the anchor's, and by how far
    their values are; tau-c is above 0 where the nearer in values write more alike.
    """
    import numpy as np

    places = {name: place for place, name in enumerate(culture.demonyms)}
    known = [place for place, name in enumerate(identities) if name in places]
    rows = [places[identities[place]] for place in known]
    names = [identities[place] for place in known]
    by_text = across[np.ix_(known, known)]
    by_values = culture.distances[np.ix_(rows, rows)]
    found: dict[str, float | None] = {}
    for place, name in enumerate(names):
        others = ~np.isnan(by_values[place])
        others[place] = False
        text, values = by_text[place][others], by_values[place][others]
        if rule == "released":
            left = [other for other, there in zip(names, others, strict=True) if there]
            found[name] = listed_tau(left, text, values, metric)
        else:
            found[name] = kendall_tau_c(text, values)
    return found


def listed_tau(
    names: Sequence[str],
    text: NDArray[np.float64],
    values: NDArray[np.float64],
    metric: Metric,
) -> float | None:
    """What the authors' script computes in place of a rank correlation.

    It gives `scipy.stats.kendalltau` the two lists of names, each in its own order and without its
    first name, and so correlates the alphabet's ranks of names that stand in the same place.
    Farthest first for BLEU, nearest first for WED.
    """
    order = sorted(names)
    sign = -1 if metric == "BLEU" else 1
    by_text = sorted(range(len(names)), key=lambda place: (sign * text[place], names[place]))
    by_values = sorted(range(len(names)), key=lambda place: sign * values[place])
    first, second = (
        [float(order.index(names[place])) for place in places[1:]]
        for places in (by_values, by_text)
    )
    return kendall_tau_c(first, second)

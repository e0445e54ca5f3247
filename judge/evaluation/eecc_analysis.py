"""What EECC measures of outputs: their variance, their words, and whether they follow culture.

The paper measures two texts against each other and has five outputs a prompt. How these become one
distance between two nationalities it does not say; as in the authors' scripts it is the mean over
all pairs of an output of one and an output of the other, and 0 from a nationality to itself. BLEU,
a similarity, becomes the distance 1 - BLEU.

Countries are as far apart in culture as the vectors of their values (section 4.3.2): Hofstede's
dimensions and the World Values Survey. Many countries lack values (`#NULL!`), of which the paper
says nothing. Here the sum of squares over the dimensions that both have is scaled up to all
dimensions, so that missing values do not make countries alike.
"""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from judge.errors import UsageError, why_unread
from judge.evaluation.benchmark import Result
from judge.stats.bleu import symmetric_bleu
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

FILES = {
    "Hofstede": "distances_hofstede_raw_with_demonymns.csv",
    "WVS": "wvs_250_dims_with_demonyms.csv",
}
"""The measures of culture, and the file of the released folder that each is read from."""

NOMINAL = frozenset(("Q91", "Q92", "Q93", "Q152", "Q153", "Q154", "Q155", "Q156", "Q157", "Q223"))
"""Questions of the WVS (wave 7) about organisations, aims of the country, and the party.

The released file has 259 questions, the paper 249: it leaves out those without an order, and does
not name them. The questionnaire has these ten whose answers are neither ordered nor two. Q223, the
party, is the mean of codes that begin with the country's own number, up to 804,188 where no other
question goes beyond 10: with it the distance between two countries is that of their numbers.
"""

MISSING = "#NULL!"
EVERY_TOPIC = "all"
_DEMONYM = "Demonym"
_BESIDE_VALUES = ("ctr", "country", _DEMONYM)
_WORD = re.compile(
    r"""
    n't\b | '(?:s|re|ve|ll|d|m)\b                # a clitic, after what it is split from
    | (?:(?!n't\b)\w)+                            # a word, up to n't
      (?:(?!'(?:s|re|ve|ll|d|m)\b)(?:[-.,'/]|(?<=\d):(?=\d))(?!n't\b)\w(?:(?!n't\b)\w)*)*
    | \.{2,} | -{2,} | [^\w\s]
    """,
    re.VERBOSE,
)
_QUOTES = str.maketrans({"’": "'", "‘": "'"})

Words = list[str]
Taus = Mapping[str, float | None]
"""tau-c of each anchor by its nationality."""


def words_of(text: str) -> Words:
    """The lower-cased text's words and punctuation marks, in order.

    The paper takes NLTK's `word_tokenize`, which needs a model that must be downloaded. Here one
    pattern follows its rules: punctuation marks are words of their own, clitics ('s, n't, 'll) are
    split off, hyphens and marks inside a word are kept.
    """
    return _WORD.findall(unicodedata.normalize("NFC", text).lower().translate(_QUOTES))


# ------------------------------------------------------------ culture


@dataclass(frozen=True, slots=True)
class Culture:
    """Countries by demonym, and their distances, (countries, countries); nan where unknown."""

    demonyms: tuple[str, ...]
    distances: NDArray[np.float64]


def read_cultures(folder: Path) -> dict[str, Culture]:
    """The measures whose files are in the folder. Raises UsageError as `read_vectors`."""
    return {
        name: culture(read_vectors(folder / file))
        for name, file in FILES.items()
        if (folder / file).is_file()
    }


def read_vectors(path: Path) -> dict[str, list[float]]:
    """Each country's values by its demonym, nan for what is missing; `NOMINAL` ones left out.

    Args:
        path: a CSV file with a header.

    Raises:
        UsageError: a demonym that is missing or was there before, or a value that is neither a
            number nor `#NULL!`; with file and line.
    """
    vectors: dict[str, list[float]] = {}
    place = str(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            for row in rows:
                place = f"{path}:{rows.line_num}"
                demonym = (row.get(_DEMONYM) or "").strip()
                if not demonym or demonym in vectors:
                    raise ValueError(f"{_DEMONYM} {demonym!r} is missing, or was there before")
                vectors[demonym] = [
                    float("nan") if text.strip() == MISSING else float(text)
                    for name, text in row.items()
                    if name not in _BESIDE_VALUES and name not in NOMINAL
                ]
                if any(map(math.isinf, vectors[demonym])):
                    raise ValueError("a value is infinite")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {why_unread(error)}") from error
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{place}: no line of numbers and {MISSING}: {error}") from error
    return vectors


def culture(vectors: Mapping[str, Sequence[float]]) -> Culture:
    """The distances between countries; nan for two that share no dimension."""
    import numpy as np

    values = np.array(list(vectors.values()), dtype=np.float64)
    there = (~np.isnan(values)).astype(np.float64)
    filled = np.nan_to_num(values)
    common = there @ there.T
    squares = np.stack(
        [
            ((row - filled) ** 2 * at * there).sum(axis=1)
            for row, at in zip(filled, there, strict=True)
        ]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = np.sqrt(squares * values.shape[1] / common)
    distances[common == 0] = np.nan
    return Culture(tuple(vectors), distances)


# ------------------------------------------------------------ studies


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
    return [_study(*key, group, rule) for key, group in groups.items()]


def _study(condition: str, kind: str, data: str, results: Sequence[Result], rule: Rule) -> Study:
    cultures = read_cultures(Path(data))
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
                corpus[identity].update(w for w in words if len(w) > 1 and any(map(str.isalpha, w)))
    best = {
        (topic, identity): words
        for topic, by_identity in documents.items()
        for identity, words in top_words(by_identity).items()
    }
    known = {name: len(set(one.demonyms) & set(identities)) for name, one in cultures.items()}
    return Study(condition, kind, results, identities, tuple(concepts), best, known, Path(data))


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
        across, blocks = distances(flat, owners, metric)
        # Over nationalities that have two outputs or more.
        own = [lexical_variance(block, rule=rule) for block in blocks]
        found[metric] = Measured(
            lexical_variance_estimate(across, of=of, rule=rule),
            replace(mean_estimate(own, Resamples(range(len(own)))), of=of),
            {name: taus(identities, across, one) for name, one in cultures.items()},
        )
    return found


def distances(
    texts: Sequence[Words], owners: Sequence[int], metric: Metric
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Between identities, (identities, identities); and between each identity's own texts.

    Args:
        texts: as words, none empty.
        owners: each text's identity, from 0, in ascending order.
    """
    import numpy as np

    count = max(owners, default=-1) + 1
    owner = np.array(owners, dtype=np.intp)
    pairs = word_edit_distances(texts) if metric == "WED" else 1 - symmetric_bleu(texts)
    share = (owner == np.arange(count)[:, None]) / np.bincount(owner, minlength=count)[:, None]
    across: NDArray[np.float64] = share @ pairs @ share.T
    np.fill_diagonal(across, 0.0)
    starts = np.searchsorted(owner, np.arange(count + 1))
    return across, [pairs[a:b, a:b] for a, b in pairwise(starts)]


def taus(
    identities: Sequence[str],
    across: NDArray[np.float64],
    culture: Culture,
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
        found[name] = kendall_tau_c(by_text[place][others], by_values[place][others])
    return found

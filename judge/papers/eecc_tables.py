"""EECC's tables: variance (figure 1, table 3), words (tables 1 and 2), tau-c (figure 2).

As in the authors' scripts, the distance of two nationalities is the mean over all pairs of an
output of one and an output of the other; BLEU becomes the distance 1 - BLEU. The cultural distance
of two countries is the Euclidean distance of their vectors of values (section 4.3.2), with the sum
of squares over the dimensions that both have scaled up to all dimensions. docs/papers/protocols.md
has the reasons.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise, product
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError
from judge.papers.rows import head_of
from judge.papers.tables import ResultSample, grouped
from judge.papers.tasks import MeasuredAnswer
from judge.records import read
from judge.records.words import UNSEEN, UNSPACED, marks
from judge.report.table import Cell, Table, TableRow
from judge.stats.bootstrap import FEWEST, Resamples, mean_estimate
from judge.stats.intervals import Estimate, Quartiles
from judge.stats.significance import kendall_p, kendall_tau_c, one_way_anova
from judge.stats.text import lexical_variance, symmetric_bleu, top_words, word_edit_distances
from judge.verdict import AnswerOutcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

METRICS = ("WED", "BLEU")
SIDES = ("across", "within")

FILES = {
    "Hofstede": "distances_hofstede_raw_with_demonymns.csv",
    "WVS": "wvs_250_dims_with_demonyms.csv",
}
"""The paper's measures of culture, and the file of each in the released folder."""

NOMINAL = frozenset(("Q91", "Q92", "Q93", "Q152", "Q153", "Q154", "Q155", "Q156", "Q157", "Q223"))
"""Questions of the WVS (wave 7) whose answers are neither ordered nor binary. The paper leaves them
out, but does not name them. Q223, the party, is the mean of codes that begin with the country's own
number."""

_MISSING = "#NULL!"
_DEMONYM = "Demonym"
_BESIDE_VALUES = ("ctr", "country", _DEMONYM)
_LETTER = rf"[^\W{UNSPACED}]"
# The joiners of Persian and Hindi, which are invisible, stand inside words.
_LETTERS = rf"{_LETTER}(?:(?!n't\b)(?:{_LETTER}|{marks().pattern}|[\u200c\u200d]))*"
_WORD = re.compile(
    rf"""
    (?!\W)[{UNSPACED}](?:(?!\w)[{UNSPACED}])*     # a letter of a script without spaces, its marks
    | n't\b | '(?:s|re|ve|ll|d|m)\b              # a clitic, after what it is split from
    | (?!n't\b){_LETTERS}                         # a word, up to n't
      (?:(?!'(?:s|re|ve|ll|d|m)\b)(?:[-.,'/]|(?<=\d):(?=\d))
         (?!n't\b){_LETTERS})*
    | \.{{2,}} | -{{2,}} | [^\w\s]
    """,
    re.VERBOSE,
)
_TELLING = re.compile(rf"(?=.*[^\W\d_])(?:..|[{UNSPACED}])")
_PLAIN = str.maketrans({"’": "'", "‘": "'"}) | UNSEEN

Tokens = list[str]


def words_of(text: str) -> Tokens:
    """The lower-cased text's words and punctuation marks, in order.

    One pattern follows the rules of NLTK's `word_tokenize`: punctuation marks are words of their
    own, clitics ('s, n't, 'll) are split off, hyphens and marks inside a word are kept. Scripts
    without spaces, which NLTK does not split into words, are cut into letters.
    """
    return _WORD.findall(unicodedata.normalize("NFC", text).lower().translate(_PLAIN))


def read_vectors(path: Path) -> dict[str, list[float]]:
    """Each country's values by its demonym, nan for missing ones; without `NOMINAL` questions.

    Raises:
        UsageError: a demonym is missing or repeated, or a value is neither a number nor `#NULL!`;
            with file and line.
    """
    vectors: dict[str, list[float]] = {}
    for item in read(str(path)):
        try:
            row = item.usable().visible
            demonym = str(row.get(_DEMONYM) or "").strip()
            if not demonym or demonym in vectors:
                raise ValueError(f"{_DEMONYM} {demonym!r} is missing, or was there before")
            vectors[demonym] = [
                float("nan") if text.strip() == _MISSING else float(text)
                for name, text in row.items()
                if name not in _BESIDE_VALUES and name not in NOMINAL
            ]
        except ValueError as error:
            message = f"no line of numbers and {_MISSING}: {error}"
            raise UsageError(f"{path}, line {item.line}: {message}") from error
    return vectors


def measures(folder: Path) -> dict[str, Path]:
    """The measures of culture in a folder, and their files: the paper's two, and any other CSV file
    with a column `Demonym`, named after the file."""
    names = {file: name for name, file in FILES.items()}
    found = {}
    for path in sorted(folder.glob("*.csv")):
        head: Mapping[str, Any] = {}
        with suppress(UsageError):  # The user's other files may not be tables.
            head = head_of(str(path))
        if path.name in names or _DEMONYM in head:
            found[names.get(path.name, path.stem)] = path
    return found


Measure = Callable[["NDArray[np.float64]", "NDArray[np.float64]"], float | None]


def culture_distances(
    vectors: Mapping[str, Sequence[float]], identities: Sequence[str]
) -> NDArray[np.float64]:
    """The distances between identities, a square matrix; nan for two that share no dimension."""
    import numpy as np
    from sklearn.metrics.pairwise import nan_euclidean_distances

    unknown = [float("nan")] * max(map(len, vectors.values()), default=1)
    values = np.array([vectors.get(name, unknown) for name in identities], dtype=np.float64)
    size = (len(identities), len(identities))
    distances: NDArray[np.float64] = (
        nan_euclidean_distances(values) if identities else np.empty(size)
    )
    return distances


def taus(
    by_text: NDArray[np.float64], by_values: NDArray[np.float64], measure: Measure = kendall_tau_c
) -> list[float | None]:
    """tau-c of each identity as the anchor (section 3.1, appendix C.2), from two matrices of
    distances; None for one whose values are unknown.

    The other identities are ordered by the distance of their outputs from the anchor's, and by that
    of their values; tau-c is above 0 if identities nearer in values have more similar outputs.
    `measure`: another measure of the two orders, such as tau's p.
    """
    import numpy as np

    # Sums of the same numbers in another order are ties, although their last digits may differ.
    by_text, by_values = by_text.round(9), by_values.round(9)
    distances = []
    for place, values in enumerate(by_values):
        present = ~np.isnan(values)
        present[place] = False
        distances.append(measure(by_text[place][present], values[present]))
    return distances


class CultureStudy:
    """All outputs of one condition for one kind of identity.

    `values` are, by metric and measure, one for each concept, None where it has too few outputs:
    `across` is the variance across nationalities, `within` the mean over nationalities of the
    variance of each one's outputs, and each measure of culture has the mean of tau-c over its
    countries. With a country as third key they are its tau-c, with `p` as fourth the p of that.
    `words` are the words of highest TF-IDF by topic and identity; stories are one topic.

    Raises:
        UsageError: a file of cultural values cannot be read; a missing one is left out.
    """

    def __init__(self, results: Sequence[MeasuredAnswer]) -> None:
        condition, kind, data = itemgetter("condition", "kind", "data")(results[0].fields)
        self.labels, self.folder, self.results = (condition, kind), Path(data), results
        self.identities = list(dict.fromkeys(item.fields["identity"] for item in results))
        self.cultures = {name: read_vectors(path) for name, path in measures(self.folder).items()}
        self.values: dict[tuple[str, ...], list[float | None]] = defaultdict(list)
        by_concept = grouped(results, lambda result: result.fields["concept"])
        documents: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for results_of_concept in by_concept.values():
            by_template = grouped(results_of_concept, lambda item: item.fields.get("template"))
            texts_by_template = [*map(_texts, by_template.values())]
            # A mean over templates has no p.
            tested = len(texts_by_template) == 1
            measured = [self._measured(texts, tested=tested) for texts in texts_by_template]
            for key in measured[0]:
                self.values[key].append(_plain_mean(values[key] for values in measured))
            # The paper treats all stories as one topic, QA by topic (section 5.2).
            topic = "all" if condition == "stories" else results_of_concept[0].fields["topic"]
            for identity, outputs in chain(*(texts.items() for texts in texts_by_template)):
                documents[topic][identity].update(filter(_TELLING.match, chain(*outputs)))
        self.concepts = Resamples(range(len(by_concept)), fewest=FEWEST)
        self.words = {
            (topic, identity): [word for word, _ in words]
            for topic, by_identity in documents.items()
            for identity, words in top_words(by_identity).items()
        }

    def _measured(
        self, texts: Mapping[str, list[Tokens]], *, tested: bool
    ) -> dict[tuple[str, ...], float | None]:
        """One concept's values, from the outputs of one template by identity."""
        owners = [place for place, outputs in enumerate(texts.values()) for _ in outputs]
        outputs = list(chain.from_iterable(texts.values()))
        values: dict[tuple[str, ...], float | None] = {}
        for metric in METRICS:
            across, blocks = distances(outputs, owners, metric)
            values[metric, "across"] = lexical_variance(across)
            values[metric, "within"] = _plain_mean(map(lexical_variance, blocks))
            for name, vectors in self.cultures.items():
                by_values = culture_distances(vectors, [*texts])
                anchors = dict(zip(texts, taus(across, by_values), strict=True))
                tests = taus(across, by_values, kendall_p) if tested else []
                p_of = dict(zip(texts, tests, strict=tested))
                values[metric, name] = _plain_mean(anchors.values())
                for identity in self.identities:
                    values[metric, name, identity] = anchors.get(identity)
                    values[metric, name, identity, "p"] = p_of.get(identity)
        return values

    def culture_notes(self) -> Iterator[str]:
        for name in dict.fromkeys((*FILES, *self.cultures)):
            if (vectors := self.cultures.get(name)) is None:
                path = self.folder / FILES[name]
                yield f"{self.labels[0]}: no {name} values, {path} is not there."
                continue
            count, of = len(vectors.keys() & {*self.identities}), len(self.identities)
            yield (
                f"{self.labels[0]}: {name} values for {count} of {of} nationalities, matched by "
                f"demonym; the other {of - count} are left out."
            )


def _texts(results: Iterable[MeasuredAnswer]) -> dict[str, list[Tokens]]:
    """Each identity's outputs as words, those without a word left out."""
    answered = (result for result in results if result.outcome is AnswerOutcome.ANSWERED)
    pairs = ((result.fields["identity"], words_of(result.answer)) for result in answered)
    by_identity = grouped((pair for pair in pairs if pair[1]), itemgetter(0))
    return {name: [words for _, words in texts] for name, texts in by_identity.items()}


def distances(
    texts: Sequence[Tokens], owners: Sequence[int], metric: str
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """The distances between identities, a square matrix; and those between each identity's own
    texts.

    Args:
        texts: texts as words, none empty.
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


_HEADS = ("condition", "identities")
_VARIANCE = "EECC: lexical variance across and within nationalities (figure 1)"
_ANOVA = "EECC: variance within against across nationalities, one-way ANOVA (table 3)"
_TOP_WORDS = "EECC: the 15 words of highest TF-IDF (tables 1 and 2)"
_TAU = "EECC: Kendall's tau-c of text and cultural values, over countries (figure 2)"
_TAU_OF = "EECC: Kendall's tau-c by country as the anchor (figure 3)"
_LEFT_OUT = "Items without an answer, and answers without a word, are left out elsewhere."
_RULE = (
    "Variance by appendix B.1; BLEU between two outputs, in both directions; tau-c of the two "
    "orders, countries' distances over the values that both have, scaled up. Of scripts without "
    "spaces each letter is a word."
)
_OVER_CONCEPTS = (
    f"Means over concepts; intervals are 95%, bootstrapped over {FEWEST} concepts or more. Outputs "
    "of one template are compared with one another; of several, a concept's value is the mean."
)
_ABOVE = (
    "Above 0 where countries nearer in values have outputs more alike. A concept's value is the "
    "mean over countries, each in turn the anchor."
)
_TESTED = (
    f"Means over concepts, with intervals over {FEWEST} or more; in how many of the concepts tau "
    "differs from 0 (two-sided, by scipy's test)."
)
_FEWER = (
    "Each concept gives one value to either group. The variance within k outputs is (k - 1) / k of "
    "what it would be among many, and that alone makes F larger."
)
_WORDS = (
    "All outputs for a nationality are one document. A word scores its count times ln(N / m) where "
    "m of N nationalities have it; one that all have is not listed."
)


def tables(results: Sequence[MeasuredAnswer]) -> list[Table]:
    """All tables of the results. Raises UsageError as `CultureStudy`."""
    key = itemgetter("condition", "kind", "data")
    studies = [*map(CultureStudy, grouped(results, lambda item: key(item.fields)).values())]
    by_metric = list(product(studies, METRICS))
    variance = [
        TableRow((*study.labels, metric, side), _spread(study, metric, side))
        for study, metric in by_metric
        for side in SIDES
    ]
    replies = [TableRow(study.labels, _counts(study)) for study in studies]
    anova = [
        TableRow((*study.labels, metric), _anova(study, metric)) for study, metric in by_metric
    ]
    words = [
        TableRow((*study.labels, *key), {"words": ", ".join(best)})
        for study in studies
        for key, best in study.words.items()
    ]
    tau = [
        TableRow((*study.labels, culture, metric), _spread(study, metric, culture))
        for study, metric in by_metric
        for culture in study.cultures
    ]
    countries = [
        TableRow((*study.labels, culture, metric, name), cells)
        for study, metric in by_metric
        for culture, name in product(study.cultures, study.identities)
        if (cells := _of_country(study, metric, culture, name))
    ]
    about_culture = [note for study in studies for note in study.culture_notes()]
    # Without any values there is no table of tau-c, and the first one says why.
    first_notes = (_RULE, _OVER_CONCEPTS, *([] if tau else about_culture))
    tau_notes = (_RULE, _OVER_CONCEPTS, _ABOVE, *about_culture)
    of_variance = (*_HEADS, "metric", "variance")
    of_words, of_tau = (*_HEADS, "topic", "nationality"), (*_HEADS, "values", "metric")
    return [
        Table("eecc-variance", _VARIANCE, of_variance, variance, first_notes),
        Table("eecc-replies", "EECC: outputs that were asked for", _HEADS, replies, (_LEFT_OUT,)),
        Table("eecc-anova", _ANOVA, (*_HEADS, "metric"), anova, (_RULE, _FEWER)),
        Table("eecc-words", _TOP_WORDS, of_words, words, (_WORDS,)),
        Table("eecc-tau", _TAU, of_tau, tau, tau_notes),
        Table("eecc-tau-countries", _TAU_OF, (*of_tau, "country"), countries, (_RULE, _TESTED)),
    ]


def _of_country(study: CultureStudy, *key: str) -> dict[str, Cell]:
    mean = mean_estimate(study.values[key], study.concepts)
    tests = [p for p in study.values[*key, "p"] if p is not None]
    significant = f"{sum(p < 0.05 for p in tests)} of {len(tests)}" if tests else None
    return {"mean": mean, "p < 0.05": significant} if mean.n else {}


def _counts(study: CultureStudy) -> dict[str, Cell]:
    """The outcomes of the items, and the number of nationalities and concepts."""
    concepts = {result.fields["concept"] for result in study.results}
    size = {"nationalities": len(study.identities), "concepts": len(concepts)}
    return {**ResultSample(study.results).counts(), **size}


def _anova(study: CultureStudy, metric: str) -> dict[str, Cell]:
    values = [study.values[metric, side] for side in SIDES]
    groups = [[value for value in group if value is not None] for group in values]
    anova = one_way_anova(groups)
    n, of = sum(map(len, groups)), sum(map(len, values))
    rejected = None if anova.p is None else "yes" if anova.p < 0.05 else "no"
    return {
        "F": Estimate(anova.f, n=n, of=of),
        "p": anova.p,
        "degrees of freedom": f"{anova.between}, {anova.within}",
        "equal means rejected": rejected,
    }


def _plain_mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return fmean(there) if there else None


def _spread(study: CultureStudy, *key: str) -> dict[str, Cell]:
    """The mean over the concepts, and the box of figures 1 and 2."""
    values = study.values[key]
    box = Quartiles.of([value for value in values if value is not None])
    mean: dict[str, Cell] = {"mean": mean_estimate(values, study.concepts)}
    return mean if box is None else {**mean, "median (quartiles)": box}

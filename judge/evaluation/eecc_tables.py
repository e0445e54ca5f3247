"""EECC's tables: variance (figure 1, table 3), words (tables 1 and 2), tau-c (figures 2 and 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from judge.evaluation.benchmark import Result
from judge.evaluation.eecc_analysis import METRICS, Concept, Study, studies
from judge.evaluation.eecc_culture import FILES
from judge.evaluation.measuring import COUNTS, counted
from judge.evaluation.tables import Cell, Row, Table
from judge.stats.bootstrap import Resamples, mean_estimate
from judge.stats.intervals import Estimate
from judge.stats.significance import one_way_anova
from judge.stats.text import Rule

_HEADS = ("condition", "identities")
_SIDES = ("across", "within")
_SPREAD = ("median", "lower quartile", "upper quartile")
_BOTH = tuple(f"{side} {metric}" for metric in METRICS for side in _SIDES)
_TAUS = tuple(f"{culture} {metric}" for culture in FILES for metric in METRICS)

_RULES: Mapping[Rule, str] = {
    "paper": (
        "Rule `paper`: variance by appendix B.1; BLEU between two outputs, in both directions; "
        "tau-c of the two orders, countries' distances over the values that both have, scaled up."
    ),
    "released": (
        "Rule `released`, as the authors' scripts: variance without the 1/2; BLEU of all outputs "
        "against all, in one direction; tau-c of two lists of names; all columns of the WVS."
    ),
    "distinct": (
        "Rule `distinct`: as `paper`, but variance over pairs of different outputs only, so that "
        "five outputs and many can be compared."
    ),
}
_OVER_CONCEPTS = "Means over concepts; intervals are 95 %, bootstrapped over concepts."
_OVER_IDENTITIES = "Intervals are 95 %, bootstrapped over nationalities."


def tables(results: Sequence[Result], *, rule: Rule = "paper") -> list[Table]:
    """All tables of the results. Raises UsageError as `eecc_analysis.studies`."""
    found = studies(results, rule=rule)
    culture = tuple(note for study in found for note in _culture_notes(study))
    return [
        _replies(found),
        _variance(found, rule),
        _variance_of_topics(found, rule),
        _variance_of_concepts(found, rule),
        _anova(found, rule),
        _words(found),
        _tau(found, rule, culture),
        _tau_of_concepts(found, rule, culture),
        _tau_of_countries(found, rule, culture),
    ]


def _replies(found: Sequence[Study]) -> Table:
    rows = []
    for study in found:
        cells = counted((), study.results)
        cells |= {"nationalities": len(study.identities), "concepts": len(study.concepts)}
        rows.append(Row((study.condition, study.kind), cells))
    return Table(
        "eecc-replies",
        "EECC: outputs that were asked for",
        _HEADS,
        (*COUNTS, "nationalities", "concepts"),
        rows,
        notes=("What is not answered, and an answer without a word, is left out everywhere else.",),
    )


def _variance(found: Sequence[Study], rule: Rule) -> Table:
    rows = [
        _spread((study.condition, study.kind, metric, side), _side(study.concepts, metric, side))
        for study in found
        for metric in METRICS
        for side in _SIDES
    ]
    return Table(
        "eecc-variance",
        "EECC: lexical variance across and within nationalities (figure 1)",
        (*_HEADS, "metric", "variance"),
        ("mean", *_SPREAD),
        rows,
        figure="boxes",
        notes=(_RULES[rule], _OVER_CONCEPTS, "A box has one value for each concept."),
    )


def _variance_of_topics(found: Sequence[Study], rule: Rule) -> Table:
    rows = []
    for study in found:
        topics: dict[str, list[Concept]] = defaultdict(list)
        for concept in study.concepts:
            topics[concept.topic].append(concept)
        for topic, concepts in topics.items():
            cells: dict[str, Cell] = {
                f"{side} {metric}": _mean(_side(concepts, metric, side))
                for metric in METRICS
                for side in _SIDES
            }
            rows.append(Row((study.condition, study.kind, topic), cells))
    return Table(
        "eecc-variance-topics",
        "EECC: lexical variance by topic",
        (*_HEADS, "topic"),
        _BOTH,
        rows,
        notes=(_RULES[rule], _OVER_CONCEPTS),
    )


def _variance_of_concepts(found: Sequence[Study], rule: Rule) -> Table:
    rows = []
    for study in found:
        for concept in study.concepts:
            cells: dict[str, Cell] = {}
            for metric, measured in concept.measured.items():
                cells |= {
                    f"across {metric}": measured.across,
                    f"within {metric}": measured.within,
                }
            rows.append(Row((study.condition, study.kind, concept.topic, concept.name), cells))
    return Table(
        "eecc-variance-concepts",
        "EECC: lexical variance by concept",
        (*_HEADS, "topic", "concept"),
        _BOTH,
        rows,
        notes=(_RULES[rule], _OVER_IDENTITIES),
    )


def _anova(found: Sequence[Study], rule: Rule) -> Table:
    rows = []
    for study in found:
        for metric in METRICS:
            groups = [
                [value for value in _side(study.concepts, metric, side) if value is not None]
                for side in _SIDES
            ]
            result = one_way_anova(groups)
            cells: dict[str, Cell] = {
                "F": Estimate(
                    result.f, n=sum(map(len, groups)), of=len(_SIDES) * len(study.concepts)
                ),
                "p": None if result.p is None else f"{result.p:.3g}",
                "degrees of freedom": f"{result.between}, {result.within}",
                "equal means rejected": None if result.p is None else _yes(result.p < 0.05),
            }
            rows.append(Row((study.condition, study.kind, metric), cells))
    return Table(
        "eecc-anova",
        "EECC: variance within against across nationalities, one-way ANOVA (table 3)",
        (*_HEADS, "metric"),
        ("F", "p", "degrees of freedom", "equal means rejected"),
        rows,
        notes=(
            _RULES[rule],
            "Each concept gives one value to either group. By all rules but `distinct` the "
            "variance within k outputs is (k - 1) / k of what it would be among many, and that "
            "alone makes F larger.",
        ),
    )


def _words(found: Sequence[Study]) -> Table:
    rows = []
    for study in found:
        for (topic, identity), best in study.words.items():
            shown = ", ".join(word for word, _ in best)
            rows.append(Row((study.condition, study.kind, topic, identity), {"words": shown}))
    return Table(
        "eecc-words",
        "EECC: the 15 words of highest TF-IDF (tables 1 and 2)",
        (*_HEADS, "topic", "nationality"),
        ("words",),
        rows,
        notes=(
            "All outputs for a nationality are one document. A word scores its count times ln(N / "
            "m) where m of N nationalities have it; one that all have is not listed.",
        ),
    )


def _tau(found: Sequence[Study], rule: Rule, notes: Sequence[str]) -> Table:
    rows = [
        _spread(
            (study.condition, study.kind, culture, metric),
            [_anchors(concept, culture, metric).value for concept in study.concepts],
        )
        for study in found
        for culture in study.matched
        for metric in METRICS
    ]
    return Table(
        "eecc-tau",
        "EECC: Kendall's tau-c of text and cultural values, over countries (figure 2)",
        (*_HEADS, "values", "metric"),
        ("mean", *_SPREAD),
        rows,
        figure="boxes",
        notes=(
            _RULES[rule],
            _OVER_CONCEPTS,
            "Above 0 where countries nearer in values have outputs more alike. A box has one value "
            "for each concept, the mean over countries.",
            *notes,
        ),
    )


def _tau_of_concepts(found: Sequence[Study], rule: Rule, notes: Sequence[str]) -> Table:
    rows = [
        Row(
            (study.condition, study.kind, concept.topic, concept.name),
            {
                f"{culture} {metric}": _anchors(concept, culture, metric)
                for culture in study.matched
                for metric in METRICS
            },
        )
        for study in found
        for concept in study.concepts
    ]
    return Table(
        "eecc-tau-concepts",
        "EECC: Kendall's tau-c by concept, mean over countries",
        (*_HEADS, "topic", "concept"),
        _TAUS,
        rows,
        notes=(_RULES[rule], _OVER_IDENTITIES, *notes),
    )


def _tau_of_countries(found: Sequence[Study], rule: Rule, notes: Sequence[str]) -> Table:
    rows = []
    for study in found:
        resamples = Resamples(range(len(study.concepts)))
        for identity in study.identities:
            cells: dict[str, Cell] = {}
            for culture in study.matched:
                for metric in METRICS:
                    taus = [concept.measured[metric].taus[culture] for concept in study.concepts]
                    if any(identity in by_anchor for by_anchor in taus):
                        values = [by_anchor.get(identity) for by_anchor in taus]
                        cells[f"{culture} {metric}"] = mean_estimate(values, resamples)
            if cells:
                rows.append(Row((study.condition, study.kind, identity), cells))
    return Table(
        "eecc-tau-countries",
        "EECC: Kendall's tau-c by country, mean over concepts (figure 3)",
        (*_HEADS, "nationality"),
        _TAUS,
        rows,
        figure="bars",
        drawn=_TAUS,
        notes=(_RULES[rule], _OVER_CONCEPTS, *notes),
    )


def _culture_notes(study: Study) -> Iterator[str]:
    for culture, file in FILES.items():
        count = study.matched.get(culture)
        if count is None:
            yield f"{study.condition}: no {culture} values, {study.folder / file} is not there."
        else:
            yield (
                f"{study.condition}: {culture} values for {count} of {len(study.identities)} "
                f"nationalities, matched by demonym; the other {len(study.identities) - count} are "
                "left out."
            )


def _side(concepts: Sequence[Concept], metric: str, side: str) -> list[float | None]:
    return [
        (measured.across if side == "across" else measured.within).value
        for concept in concepts
        for measured in (concept.measured[metric],)
    ]


def _anchors(concept: Concept, culture: str, metric: str) -> Estimate:
    """The mean tau-c over the countries of one concept, each in turn the anchor."""
    values = list(concept.measured[metric].taus[culture].values())
    return mean_estimate(values, Resamples(range(len(values))))


def _mean(values: Sequence[float | None]) -> Estimate:
    return mean_estimate(values, Resamples(range(len(values))))


def _spread(labels: tuple[str, ...], values: Sequence[float | None]) -> Row:
    """A row of the mean, the median and the quartiles of one value for each concept."""
    import numpy as np

    there = [value for value in values if value is not None]
    cells: dict[str, Cell] = {"mean": _mean(values)}
    for name, share in zip(_SPREAD, (0.5, 0.25, 0.75), strict=True):
        value = float(np.quantile(there, share)) if there else None
        cells[name] = Estimate(value, n=len(there), of=len(values))
    return Row(labels, cells, tuple(there))


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"

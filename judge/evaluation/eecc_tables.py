"""EECC's tables: variance (figure 1, table 3), words (tables 1 and 2), tau-c (figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judge.evaluation.benchmark import Choices, Options, Result
from judge.evaluation.eecc_analysis import FILES, METRICS, Concept, Study, studies
from judge.evaluation.measuring import Sample
from judge.evaluation.tables import Cell, Row, Table, bars
from judge.stats.bootstrap import Resamples, mean_estimate
from judge.stats.intervals import Estimate
from judge.stats.significance import one_way_anova
from judge.stats.text import Rule

_HEADS = ("condition", "identities")
_SIDES = ("across", "within")
_SPREAD = {"median": 0.5, "lower quartile": 0.25, "upper quartile": 0.75}
_TAUS = tuple(f"{culture} {metric}" for culture in FILES for metric in METRICS)

_RULES: Mapping[Rule, str] = {
    "paper": (
        "Rule `paper`: variance by appendix B.1; BLEU between two outputs, in both directions; "
        "tau-c of the two orders, countries' distances over the values that both have, scaled up."
    ),
    "distinct": (
        "Rule `distinct`: as `paper`, but variance over pairs of different outputs only, so that "
        "five outputs and many can be compared."
    ),
}
_OVER_CONCEPTS = "Means over concepts; intervals are 95 %, bootstrapped over concepts."
_OVER_IDENTITIES = "Intervals are 95 %, bootstrapped over nationalities."
_BOX = "A box has one value for each concept."
_ABOVE = "Above 0 where countries nearer in values have outputs more alike."
_FEWER = (
    "Each concept gives one value to either group. By all rules but `distinct` the variance within "
    "k outputs is (k - 1) / k of what it would be among many, and that alone makes F larger."
)
_WORDS = (
    "All outputs for a nationality are one document. A word scores its count times ln(N / m) where "
    "m of N nationalities have it; one that all have is not listed."
)


class Variance(Options):
    """The paper's definition of variance, or the same over pairs of different texts only."""

    rule: Rule = "paper"


def tables(results: Sequence[Result], choices: Choices) -> list[Table]:
    """All tables of the results. Raises UsageError as `eecc_analysis.studies`."""
    rule = choices.options.rule if isinstance(choices.options, Variance) else "paper"
    found = studies(results, rule=rule)
    head, culture = _RULES[rule], tuple(note for study in found for note in _culture_notes(study))
    over_concepts = (head, _OVER_CONCEPTS)
    variance = [
        _spread((*_of(study), metric, side), [_side(one, metric, side) for one in study.concepts])
        for study in found
        for metric in METRICS
        for side in _SIDES
    ]
    tau = [
        _spread(
            (*_of(study), culture, metric), [_tau(one, culture, metric) for one in study.concepts]
        )
        for study in found
        for culture in study.matched
        for metric in METRICS
    ]
    return [
        bars(
            "eecc-replies",
            "EECC: outputs that were asked for",
            _HEADS,
            [(_of(study), study) for study in found],
            lambda study: {
                **Sample(study.results).counts(),
                "nationalities": len(study.identities),
                "concepts": len(study.concepts),
            },
            notes=("Items without an answer, and answers without a word, are left out elsewhere.",),
        ),
        Table(
            "eecc-variance",
            "EECC: lexical variance across and within nationalities (figure 1)",
            (*_HEADS, "metric", "variance"),
            rows=variance,
            figure="boxes",
            notes=(*over_concepts, _BOX),
        ),
        bars(
            "eecc-concepts",
            "EECC: lexical variance, and mean tau-c over countries, by concept",
            (*_HEADS, "topic", "concept"),
            [
                ((*_of(study), concept.topic, concept.name), concept)
                for study in found
                for concept in study.concepts
            ],
            _by_concept,
            notes=(head, _OVER_IDENTITIES, *culture),
        ),
        bars(
            "eecc-anova",
            "EECC: variance within against across nationalities, one-way ANOVA (table 3)",
            (*_HEADS, "metric"),
            [((*_of(study), metric), (study, metric)) for study in found for metric in METRICS],
            lambda part: _anova(*part),
            notes=(head, _FEWER),
        ),
        bars(
            "eecc-words",
            "EECC: the 15 words of highest TF-IDF (tables 1 and 2)",
            (*_HEADS, "topic", "nationality"),
            [((*_of(study), *key), best) for study in found for key, best in study.words.items()],
            lambda best: {"words": ", ".join(word for word, _ in best)},
            notes=(_WORDS,),
        ),
        Table(
            "eecc-tau",
            "EECC: Kendall's tau-c of text and cultural values, over countries (figure 2)",
            (*_HEADS, "values", "metric"),
            rows=tau,
            figure="boxes",
            notes=(*over_concepts, _ABOVE, f"{_BOX} It is the mean over countries.", *culture),
        ),
        Table(
            "eecc-tau-countries",
            "EECC: Kendall's tau-c by country, mean over concepts (figure 3)",
            (*_HEADS, "nationality"),
            _TAUS,
            [row for study in found for row in _countries(study)],
            figure="bars",
            drawn=_TAUS,
            notes=(*over_concepts, *culture),
        ),
    ]


def _of(study: Study) -> tuple[str, str]:
    return study.condition, study.kind


def _estimate(concept: Concept, metric: str, side: str) -> Estimate:
    measured = concept.measured[metric]
    return measured.across if side == "across" else measured.within


def _side(concept: Concept, metric: str, side: str) -> float | None:
    return _estimate(concept, metric, side).value


def _anova(study: Study, metric: str) -> dict[str, Cell]:
    values = [[_side(one, metric, side) for one in study.concepts] for side in _SIDES]
    groups = [[value for value in group if value is not None] for group in values]
    found = one_way_anova(groups)
    n, of = sum(map(len, groups)), sum(map(len, values))
    rejected = None if found.p is None else "yes" if found.p < 0.05 else "no"
    return {
        "F": Estimate(found.f, n=n, of=of),
        "p": None if found.p is None else f"{found.p:.3g}",
        "degrees of freedom": f"{found.between}, {found.within}",
        "equal means rejected": rejected,
    }


def _tau(concept: Concept, culture: str, metric: str) -> float | None:
    return _anchors(concept, culture, metric).value


def _anchors(concept: Concept, culture: str, metric: str) -> Estimate:
    """The mean tau-c over the countries of one concept, each in turn the anchor."""
    return _mean(list(concept.measured[metric].taus[culture].values()))


def _by_concept(concept: Concept) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        f"{side} {metric}": _estimate(concept, metric, side)
        for metric in METRICS
        for side in _SIDES
    }
    return cells | {
        f"{culture} {metric}": _anchors(concept, culture, metric)
        for metric in METRICS
        for culture in concept.measured[metric].taus
    }


def _countries(study: Study) -> Iterator[Row]:
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
            yield Row((*_of(study), identity), cells)


def _culture_notes(study: Study) -> Iterator[str]:
    for culture, file in FILES.items():
        count, of = study.matched.get(culture), len(study.identities)
        if count is None:
            yield f"{study.condition}: no {culture} values, {study.folder / file} is not there."
        else:
            yield (
                f"{study.condition}: {culture} values for {count} of {of} nationalities, matched "
                f"by demonym; the other {of - count} are left out."
            )


def _mean(values: Sequence[float | None]) -> Estimate:
    return mean_estimate(values, Resamples(range(len(values))))


def _spread(labels: tuple[str, ...], values: Sequence[float | None]) -> Row:
    """A row of the mean, the median and the quartiles of one value for each concept."""
    import numpy as np

    there = [value for value in values if value is not None]
    cells: dict[str, Cell] = {"mean": _mean(values)}
    for name, share in _SPREAD.items():
        value = float(np.quantile(there, share)) if there else None
        cells[name] = Estimate(value, n=len(there), of=len(values))
    return Row(labels, cells, tuple(there))

"""NormAd's tables: accuracy and macro scores by context and slice, and the set's own counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from judge.evaluation.benchmark import Choices, Result
from judge.evaluation.countries import CLUSTERS
from judge.evaluation.measuring import NOTE, Sample, class_scores, field, label_scores
from judge.evaluation.tables import NOT_SAID, Cell, Row, Table, bars, grouped

LABELS = ("yes", "no", "neutral")
"""The answers there are (section 4.1), in the order in which they are asked for."""

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "country": ("country",),
    "country+value": ("country", "value"),
    "rule-of-thumb": ("rule_of_thumb",),
}
"""The contexts (section 5.2; `none` is the baseline of appendix C), and what each shows."""

NO_CLUSTER = "(no cluster)"
"""Stands for the cluster of a row without a country, or of one outside the 75."""

_PAPER_ORDER = ("neutral", "no", "yes")
_CONTEXT = field("condition")
_KNOWN = tuple(CONDITIONS)
_CLUSTER = field("cluster", NO_CLUSTER)

Counted = tuple[str | None, str | None, str | None, str | None]
"""Of one row: cluster, axis, subcategory, label."""


def tables(results: Sequence[Result], choices: Choices) -> list[Table]:
    """All tables of the benchmark; contexts that were not run have no rows."""
    contexts = grouped(results, _CONTEXT, known=[_KNOWN])
    rows = {
        result.row: tuple(
            result.fields.get(name) for name in ("cluster", "axis", "subcategory", "gold")
        )
        for result in results
    }

    def in_context(here: Sequence[Result]) -> dict[str, Cell]:
        missing = len(rows) - len({result.row for result in here})
        return {**class_scores(here, LABELS), "rows not asked": missing}

    return [
        bars(
            "normad-contexts",
            "Accuracy and macro scores by context",
            ("context",),
            contexts,
            in_context,
            drawn=("accuracy", "F1"),
            notes=(NOTE, "A row is not asked in a context that shows what the row does not have."),
        ),
        bars(
            "normad-labels",
            "Recall, precision and F1 of each label by context",
            ("context", "label"),
            (
                ((context, label), (here, label))
                for (context,), here in contexts
                for label in LABELS
            ),
            lambda part: label_scores(*part),
            drawn=("recall",),
            notes=(NOTE, "Recall is the accuracy over the label's own stories."),
        ),
        bars(
            "normad-clusters",
            "Accuracy and macro scores by context and Inglehart-Welzel cluster",
            ("context", "cluster"),
            grouped(results, _CONTEXT, _CLUSTER, known=[_KNOWN, CLUSTERS]),
            lambda here: class_scores(here, LABELS),
            drawn=("accuracy",),
            notes=(NOTE,),
        ),
        bars(
            "normad-subcategories",
            "Accuracy and macro scores by context and subcategory",
            ("context", "axis", "subcategory"),
            grouped(results, _CONTEXT, field("axis"), field("subcategory"), known=[_KNOWN]),
            lambda here: class_scores(here, LABELS),
            drawn=("accuracy",),
            notes=(NOTE,),
        ),
        bars(
            "normad-confusion",
            "What was answered, by context and gold label",
            ("context", "label"),
            grouped(results, _CONTEXT, field("gold"), known=[_KNOWN, LABELS]),
            _confusion,
        ),
        bars(
            "normad-released-rule",
            "By the released script's rule: what cannot be read counts as neutral",
            ("context",),
            contexts,
            _by_script,
            notes=(
                "Refusals and unreadable answers are taken as neutral. The precision of a label "
                "that is never answered is 0 here, as in the figures of appendix C; elsewhere it "
                "is undefined.",
            ),
        ),
        *statistics_of(list(rows.values())),  # type: ignore[arg-type]
    ]


def statistics_of(rows: Sequence[Counted]) -> list[Table]:
    """Table 2 of the paper for these rows, and the same by subcategory."""
    labels: list[str | None] = [*_PAPER_ORDER]
    labels += [None] if any(row[3] is None for row in rows) else []

    def tally(some: Sequence[Counted]) -> dict[str, Cell]:
        counts = Counter(label for _, _, _, label in some)
        cells: dict[str, Cell] = {label or "no label": counts[label] for label in labels}
        return {**cells, "all": len(some)}

    def clusters() -> Iterator[Row]:
        found = dict(grouped(rows, lambda row: row[0] or NO_CLUSTER, known=[CLUSTERS]))
        for name in dict.fromkeys([*((cluster,) for cluster in CLUSTERS), *found]):
            yield Row(name, tally(found.get(name, [])))
        yield Row(("Total",), tally(rows))

    kinds = grouped(rows, lambda row: row[1] or NOT_SAID, lambda row: row[2] or NOT_SAID)
    title = "The set: stories by cluster and label (as table 2 of the paper)"
    return [
        Table("normad-set-clusters", title, ("cluster",), rows=list(clusters())),
        bars(
            "normad-set-subcategories",
            "The set: stories by subcategory and label",
            ("axis", "subcategory"),
            kinds,
            tally,
        ),
    ]


def _confusion(results: Sequence[Result]) -> dict[str, Cell]:
    answers = Counter(result.answer for result in results if result.outcome == "answered")
    cells: dict[str, Cell] = {label: answers[label] for label in LABELS}
    return {**cells, **Sample(results).counts()}


def _by_script(results: Sequence[Result]) -> dict[str, Cell]:
    taken = [
        replace(
            result, outcome="answered", answer="neutral", score=result.fields["gold"] == "neutral"
        )
        if result.outcome in ("refused", "unreadable")
        else result
        for result in results
    ]
    before, sample = Sample(results).counts(), Sample(taken)
    return {
        "asked": len(results),
        "taken as neutral": len(sample.there) - int(str(before["answered"])),
        "error": before["error"],
        "accuracy": sample.accuracy(),
        **sample.classes(LABELS, never_answered=0.0),
    }

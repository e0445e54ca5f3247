"""NormAd's tables: accuracy and macro scores by context and slice, and the set's own counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from judge.evaluation.benchmark import Result
from judge.evaluation.clusters import CLUSTERS
from judge.evaluation.measuring import ACCURACY, CLASSES, COUNTS, NOTE, counted, measured, resampled
from judge.evaluation.tables import Cell, Row, Table
from judge.stats.bootstrap import share_estimate
from judge.stats.classification import macro_f1s, macro_recalls, precisions, ratio

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
"""Stands for the cluster of a row whose country is not there or not among the 75."""

_NOT_SAID = "(not said)"
_PAPER_ORDER = ("neutral", "no", "yes")
_SCRIPT = ("accuracy", "precision", "recall", "F1")

Counted = tuple[str | None, str | None, str | None, str | None]
"""Of one row: cluster, axis, subcategory, label."""


def tables(results: Sequence[Result]) -> list[Table]:
    """All tables of the benchmark; contexts that nobody was asked in have no rows."""
    by_context = {
        condition: found
        for condition in CONDITIONS
        if (found := [one for one in results if one.fields["condition"] == condition])
    }
    rows = {str(one.fields["row"]): _counted_row(one) for one in results}
    return [
        _contexts(by_context, len(rows)),
        _labels(by_context),
        _clusters(by_context),
        _subcategories(by_context),
        _confusion(by_context),
        _released_rule(by_context),
        *statistics_of(list(rows.values())),
    ]


def statistics_of(rows: Sequence[Counted]) -> list[Table]:
    """Table 2 of the paper for these rows, and the same by subcategory."""
    unlabelled = any(label is None for _, _, _, label in rows)
    columns = (*_PAPER_ORDER, *(("no label",) if unlabelled else ()), "all")
    clusters = _in_order((cluster or NO_CLUSTER for cluster, _, _, _ in rows), CLUSTERS)
    kinds = sorted({_kind(axis, subcategory) for _, axis, subcategory, _ in rows})
    return [
        Table(
            "normad-set-clusters",
            "The set: stories by cluster and label (as table 2 of the paper)",
            ("cluster",),
            columns,
            [
                *(
                    Row((name,), _tally(row for row in rows if (row[0] or NO_CLUSTER) == name))
                    for name in dict.fromkeys((*CLUSTERS, *clusters))
                ),
                Row(("Total",), _tally(rows)),
            ],
        ),
        Table(
            "normad-set-subcategories",
            "The set: stories by subcategory and label",
            ("axis", "subcategory"),
            columns,
            [Row(kind, _tally(row for row in rows if _kind(*row[1:3]) == kind)) for kind in kinds],
        ),
    ]


def _contexts(by_context: Mapping[str, Sequence[Result]], rows: int) -> Table:
    def row(condition: str, results: Sequence[Result]) -> Row:
        base = _measured((condition,), results)
        asked = len({one.fields["row"] for one in results})
        return Row(base.labels, {**base.cells, "rows not asked": rows - asked})

    return Table(
        "normad-contexts",
        "Accuracy and macro scores by context",
        ("context",),
        (*CLASSES, "rows not asked"),
        [row(condition, results) for condition, results in by_context.items()],
        figure="bars",
        drawn=("accuracy", "F1"),
        notes=(NOTE, "A row is not asked in a context that shows what the row does not have."),
    )


def _labels(by_context: Mapping[str, Sequence[Result]]) -> Table:
    def row(condition: str, label: str, results: Sequence[Result]) -> Row:
        of_label = [one for one in results if one.fields["gold"] == label]
        base = measured((condition, label), of_label, cluster=_story)
        return Row(base.labels, {**base.cells, **_of_class(label, results)})

    return Table(
        "normad-labels",
        "Accuracy by context and gold label",
        ("context", "label"),
        (*ACCURACY, "precision", "F1"),
        [
            row(condition, label, results)
            for condition, results in by_context.items()
            for label in LABELS
        ],
        figure="bars",
        drawn=("accuracy",),
        notes=(NOTE, "Accuracy is the label's recall; precision and F1 are the label's own."),
    )


def _clusters(by_context: Mapping[str, Sequence[Result]]) -> Table:
    return Table(
        "normad-clusters",
        "Accuracy and macro scores by context and Inglehart-Welzel cluster",
        ("context", "cluster"),
        CLASSES,
        [
            _measured((condition, name), [one for one in results if _cluster(one) == name])
            for condition, results in by_context.items()
            for name in _in_order((_cluster(one) for one in results), CLUSTERS)
        ],
        figure="bars",
        drawn=("accuracy",),
        notes=(NOTE,),
    )


def _subcategories(by_context: Mapping[str, Sequence[Result]]) -> Table:
    return Table(
        "normad-subcategories",
        "Accuracy and macro scores by context and subcategory",
        ("context", "axis", "subcategory"),
        CLASSES,
        [
            _measured((condition, *kind), [one for one in results if _kind_of(one) == kind])
            for condition, results in by_context.items()
            for kind in sorted({_kind_of(one) for one in results})
        ],
        figure="bars",
        drawn=("accuracy",),
        notes=(NOTE,),
    )


def _confusion(by_context: Mapping[str, Sequence[Result]]) -> Table:
    def row(condition: str, label: str, results: Sequence[Result]) -> Row:
        of_label = [one for one in results if one.fields["gold"] == label]
        answers = Counter(one.answer for one in of_label if one.outcome == "answered")
        cells: dict[str, Cell] = {given: answers[given] for given in LABELS}
        return Row((condition, label), {**counted((condition, label), of_label), **cells})

    return Table(
        "normad-confusion",
        "What was answered, by context and gold label",
        ("context", "label"),
        (*LABELS, *COUNTS),
        [
            row(condition, label, results)
            for condition, results in by_context.items()
            for label in LABELS
        ],
    )


def _released_rule(by_context: Mapping[str, Sequence[Result]]) -> Table:
    return Table(
        "normad-released-rule",
        "By the released script's rule: what cannot be read counts as neutral",
        ("context",),
        ("asked", "taken as neutral", "error", *_SCRIPT),
        [
            Row((condition,), _scored_by_script(results))
            for condition, results in by_context.items()
        ],
        notes=(
            "Refusals and unreadable answers are taken as neutral. The precision of a label that "
            "is never answered is 0 here, as in the figures of appendix C; elsewhere it is "
            "undefined.",
        ),
    )


def _scored_by_script(results: Sequence[Result]) -> dict[str, Cell]:
    import numpy as np

    there = [one for one in results if one.outcome != "error"]
    answers = [one.answer if one.outcome == "answered" else "neutral" for one in there]
    golds = [one.fields["gold"] for one in there]
    resamples = resampled([_story(one) for one in there])
    cells = np.zeros((len(there), len(LABELS) ** 2))
    for number, (gold, given) in enumerate(zip(golds, answers, strict=True)):
        cells[number, LABELS.index(gold) * len(LABELS) + LABELS.index(given)] = 1.0
    stack = resamples.sums(cells).reshape(-1, len(LABELS), len(LABELS))
    occurs = (stack.sum(axis=-2) + stack.sum(axis=-1) > 0).sum(axis=-1).astype(np.float64)
    values = {
        "precision": ratio(np.nansum(precisions(stack), axis=-1), occurs),
        "recall": macro_recalls(stack),
        "F1": macro_f1s(stack),
    }
    right = [float(gold == given) for gold, given in zip(golds, answers, strict=True)]
    return {
        "asked": len(results),
        "taken as neutral": sum(one.outcome != "answered" for one in there),
        "error": len(results) - len(there),
        "accuracy": replace(share_estimate(right, resamples), of=len(results)),
        **{
            name: resamples.estimate(found, n=len(there), of=len(results))
            for name, found in values.items()
        },
    }


def _of_class(label: str, results: Sequence[Result]) -> dict[str, Cell]:
    """Precision and F1 of one label among all results of a context, errors left out."""
    import numpy as np

    there = [one for one in results if one.outcome != "error"]
    true = np.array([one.fields["gold"] == label for one in there], dtype=np.float64)
    given = np.array([one.outcome == "answered" and one.answer == label for one in there])
    resamples = resampled([_story(one) for one in there])
    sums = resamples.sums(np.column_stack([true * given, true, given.astype(np.float64)]))
    hits, trues, givens = sums.T
    return {
        name: resamples.estimate(found, n=len(there), of=len(results))
        for name, found in (
            ("precision", ratio(hits, givens)),
            ("F1", ratio(2 * hits, trues + givens)),
        )
    }


def _measured(labels: tuple[str, ...], results: Sequence[Result]) -> Row:
    return measured(labels, results, classes=LABELS, cluster=_story)


def _story(result: Result) -> str:
    return str(result.fields["row"])


def _cluster(result: Result) -> str:
    return result.fields.get("cluster") or NO_CLUSTER


def _kind_of(result: Result) -> tuple[str, str]:
    return _kind(result.fields.get("axis"), result.fields.get("subcategory"))


def _kind(axis: str | None, subcategory: str | None) -> tuple[str, str]:
    return axis or _NOT_SAID, subcategory or _NOT_SAID


def _counted_row(result: Result) -> Counted:
    fields = result.fields
    return (
        fields.get("cluster"),
        fields.get("axis"),
        fields.get("subcategory"),
        fields["gold"],
    )


def _tally(rows: Iterable[Counted]) -> dict[str, Cell]:
    labels = Counter(label for _, _, _, label in rows)
    return {
        **{label: labels[label] for label in _PAPER_ORDER},
        "no label": labels[None],
        "all": labels.total(),
    }


def _in_order(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Those of the known names that are there, in their order, then the others."""
    there = set(names)
    return [*(name for name in known if name in there), *sorted(there.difference(known))]

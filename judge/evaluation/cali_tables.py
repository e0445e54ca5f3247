"""CALI's tables 2, 3 and 4, of one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from judge.evaluation.benchmark import Choices, Result
from judge.evaluation.cali_rows import (
    CONDITIONS,
    EQUAL,
    GROUPS,
    LABEL_SETS,
    NOT_ENTAIL,
    classes_of,
)
from judge.evaluation.measuring import FEWEST, NOTE, Sample, class_scores, field
from judge.evaluation.tables import Cell, Row, Table, bars, grouped
from judge.stats.bootstrap import Resamples, share_estimate
from judge.stats.intervals import Estimate

GRADED = ("knowledge", "context")
"""Conditions whose answers are texts, which judges grade."""

_HEADS = {"all": "All", "us": "US", "in": "IN"}
_LEVELS = ("Knowledge US", "Knowledge IN", "Context", "Inference")
_MEASURES = {"entailment": "F1", "percentage": "F1", "alternatives": "accuracy"}

_MEASURED = (
    "Entailment, by answer or by percentage: macro F1 of entail and not entail. Alternatives: "
    "accuracy. Labels are majorities over all ratings, those of the US, those of India."
)
_PAPERS_PAIRS = (
    "Of pairs on which one group at least agrees by 75 %, and both have a majority (3.6). All: "
    "those of them where both groups' ratings together have one."
)
_EVERY_PAIR = (
    "Where ratings have no majority, their majority is not entailment, and neither hypothesis is "
    "clearly preferred: so each column speaks of the same pairs (5.1)."
)
_GRADING = (
    "Knowledge and context answers are graded by judges; without judges, and where they did not "
    "settle it, an answer counts not at all. A norm credited in part is not covered."
)
_TOGETHER = (
    "Items about one premise are drawn together; in rows of all items, those about one behavior."
)

GoldRule = Callable[[Result, str], str | None]


def tables(results: Sequence[Result], choices: Choices) -> list[Table]:
    """Table 2 on the paper's pairs, and on all pairs; tables 3 and 4."""
    by_condition = grouped(results, field("condition"), known=[CONDITIONS])
    compared = [
        ((condition, _MEASURES[_task(here)]), here)
        for (condition,), here in by_condition
        if _task(here) in _MEASURES
    ]

    def labels_table(name: str, title: str, rule: GoldRule, note: str) -> Table:
        def cells(here: Sequence[Result]) -> dict[str, Cell]:
            each = {_HEADS[labels]: _measure(here, labels, rule) for labels in LABEL_SETS}
            return {**_counted(here), **each}

        notes, drawn = (_MEASURED, note, NOTE), tuple(_HEADS.values())
        heads = ("condition", "measure")
        return bars(name, title, heads, compared, cells, drawn=drawn, notes=notes)

    return [
        labels_table(
            "cali-labels",
            "Entailment and plausible alternatives against three sets of labels (CALI, table 2)",
            papers_gold,
            _PAPERS_PAIRS,
        ),
        labels_table(
            "cali-all-pairs",
            "The same of every pair, whether or not its raters agree",
            any_gold,
            _EVERY_PAIR,
        ),
        _diagnostics([one for one in results if one.condition in (*GRADED, "inference")]),
        _categories(results),
    ]


def papers_gold(result: Result, labels: str) -> str | None:
    """The gold of these labels; None for what section 3.6 leaves out, and without a majority."""
    golds: dict[str, str | None] = {name: result.fields[f"gold_{name}"] for name in LABEL_SETS}
    if not result.fields["kept"] or any(golds[group] is None for group in GROUPS):
        return None
    return golds[labels]


def any_gold(result: Result, labels: str) -> str | None:
    """The gold of these labels, with an answer for ratings that have no majority."""
    gold: str | None = result.fields[f"gold_{labels}"]
    return gold or (EQUAL if "hypotheses" in result.fields else NOT_ENTAIL)


def _against(results: Sequence[Result], labels: str, rule: GoldRule) -> list[Result]:
    """The results that have a gold by the rule, with it in place of theirs, and scored by it."""
    return [
        replace(result, fields={**result.fields, "gold": gold}, score=float(result.answer == gold))
        for result in results
        if (gold := rule(result, labels)) is not None
    ]


def _measure(results: Sequence[Result], labels: str, rule: GoldRule) -> Cell:
    """The task's measure over the results that have a gold, out of all."""
    held, task = _against(results, labels, rule), _task(results)
    cell = class_scores(held, classes_of(task))[_MEASURES[task]]
    return replace(cell, of=len(results)) if isinstance(cell, Estimate) else None


def _diagnostics(results: Sequence[Result]) -> Table:
    """Table 3: a row a behavior; the mean over behaviors, as the paper's last row; all items."""
    named = [result for result in results if result.fields.get("behavior")]
    order = list(dict.fromkeys(map(field("behavior"), named)))
    rows = [
        Row(labels, _levels(here, lambda result: result.row))
        for labels, here in grouped(named, field("behavior"), known=[order])
    ]
    if len(rows) > 1:
        rows.append(Row(("mean over behaviors",), {name: _mean(rows, name) for name in _LEVELS}))
    if results:
        counts = Sample(results).counts()
        rows.append(Row(("all items",), {**_levels(results, _behavior), **counts}))
    return Table(
        "cali-diagnostics",
        "Knowledge and inference (accuracy), context (recall) by behavior (CALI, table 3)",
        ("behavior",),
        (*_LEVELS, "asked", "answered", "refused", "unreadable", "error"),
        rows,
        figure="bars",
        drawn=_LEVELS,
        notes=(_GRADING, "The mean's n counts behaviors.", _TOGETHER, NOTE),
    )


def _levels(results: Sequence[Result], cluster: Callable[[Result], str]) -> dict[str, Cell]:
    def level(result: Result) -> str:
        name = result.condition.capitalize()
        return f"{name} {_HEADS[result.fields['country']]}" if name == "Knowledge" else name

    return {name: _share(part, cluster) for (name,), part in grouped(results, level)}


def _share(results: Sequence[Result], cluster: Callable[[Result], str]) -> Estimate:
    """The mean score. A missing answer is 0, where something would have been right, and any answer
    of these was scored."""
    answered = [result for result in results if result.outcome == "answered"]
    any_scored = not answered or any(result.score is not None for result in answered)

    def value(result: Result) -> float | None:
        if result.outcome == "answered":
            return result.score
        return 0.0 if any_scored and result.fields["gold"] is not None else None

    return Sample(results, cluster=cluster).share(value)


def _mean(rows: Sequence[Row], column: str) -> Cell:
    cells = [row.cells.get(column) for row in rows]
    values = [cell.value if isinstance(cell, Estimate) else None for cell in cells]
    return share_estimate(values, Resamples(range(len(rows)), fewest=FEWEST))


def _categories(results: Sequence[Result]) -> Table:
    """Table 4: entailment with a culture's indicator against the same culture's labels."""
    wanted = {f"entailment+{group}": group for group in GROUPS}
    held = [r for r in results if r.condition in wanted and "category" in r.fields]

    def cells(here: Sequence[Result]) -> dict[str, Cell]:
        found = _premises(here)
        for condition, group in wanted.items():
            part = [result for result in here if result.condition == condition]
            found[_HEADS[group]] = _measure(part, group, papers_gold) if part else None
        return found

    order = list(dict.fromkeys(map(field("category"), held)))
    return bars(
        "cali-categories",
        "Macro F1 of entailment, each culture indicated, by linguistic category (CALI, table 4)",
        ("category",),
        grouped(held, field("category"), known=[order]),
        cells,
        drawn=tuple(_HEADS[group] for group in GROUPS),
        notes=(
            "Each column: its own indicator, its own labels, the pairs of the first table.",
            NOTE,
        ),
    )


def _task(results: Sequence[Result]) -> str:
    return results[0].condition.partition("+")[0]


def _counted(results: Sequence[Result]) -> dict[str, Cell]:
    return {**Sample(results).counts(), **_premises(results)}


def _premises(results: Sequence[Result]) -> dict[str, Cell]:
    """How many premises, and behaviors, got a reply about one of their items at least."""
    behaviors = Sample(results, cluster=_behavior).rows()
    return {"premises": Sample(results).rows(), "behaviors": behaviors}


def _behavior(result: Result) -> str:
    return str(result.fields.get("behavior") or result.row)

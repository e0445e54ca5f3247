"""CALI's tables 2, 3 and 4, of one model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from judge.evaluation.benchmark import Result
from judge.evaluation.cali_items import ALTERNATIVES, CONDITIONS, ENTAIL, EQUAL, NOT_ENTAIL
from judge.evaluation.cali_rows import EFFECTS, GROUPS, LABEL_SETS
from judge.evaluation.measuring import CLASSES, COUNTS, NOTE, counted, measured, resampled
from judge.evaluation.tables import Cell, Row, Table
from judge.stats.bootstrap import share_estimate
from judge.stats.intervals import Estimate

GRADED = ("knowledge", "context")
"""Conditions whose answers are texts, which judges grade."""

_DIAGNOSTIC = (*GRADED, "inference")
_HEADS = {"all": "All", "us": "US", "in": "IN"}
_CLASSES = {
    "entailment": (ENTAIL, NOT_ENTAIL),
    "percentage": (ENTAIL, NOT_ENTAIL),
    "alternatives": ALTERNATIVES,
    "inference": EFFECTS,
}
_MEASURES = {"entailment": "F1", "percentage": "F1", "alternatives": "accuracy"}
_MEASURED = (
    "Entailment, by answer or by percentage: macro F1 of entail and not entail. Alternatives: "
    "accuracy. Labels are majorities over all ratings, those of the US, those of India."
)
_GRADING = (
    "Knowledge and context answers are graded by judges; without judges, and where they did not "
    "settle it, an answer counts not at all. A norm credited in part is not covered."
)

_COUNTS = (*COUNTS, "premises")
_TOGETHER = (
    "Items about one premise are drawn together; in rows of all items, those about one behavior."
)

_LEVELS = ("Knowledge US", "Knowledge IN", "Context", "Inference")

GoldRule = Callable[[Result, str], str | None]


def tables(results: Sequence[Result]) -> list[Table]:
    """Table 2 on the paper's pairs, and on all pairs; its scores by class; tables 3 and 4.

    Tables about conditions that were not run, or fields that no line has, are left out.
    """
    made = [
        _labels(
            "cali-labels",
            "Entailment and plausible alternatives against three sets of labels (CALI, table 2)",
            results,
            _papers,
            "Of pairs on which one group at least agrees by 75 %, and both have a majority (3.6). "
            "All: those of them where both groups' ratings together have one.",
        ),
        _labels(
            "cali-all-pairs",
            "The same of every pair, whether or not its raters agree",
            results,
            _either,
            "Where ratings have no majority, their majority is not entailment, and neither "
            "hypothesis is clearly preferred: so each column speaks of the same pairs (5.1).",
        ),
        _classes(results),
        _diagnostics(results),
        _graded(results),
        _categories(results),
    ]
    return [table for table in made if table.rows]


def _papers(result: Result, labels: str) -> str | None:
    """The gold of these labels; None for what section 3.6 leaves out, and without a majority."""
    golds: dict[str, str | None] = {name: result.fields[f"gold_{name}"] for name in LABEL_SETS}
    if not result.fields["kept"] or any(golds[group] is None for group in GROUPS):
        return None
    return golds[labels]


def _either(result: Result, labels: str) -> str | None:
    """The gold of these labels, with an answer for ratings that have no majority."""
    gold: str | None = result.fields[f"gold_{labels}"]
    return gold or (EQUAL if "hypotheses" in result.fields else NOT_ENTAIL)


def _against(results: Sequence[Result], labels: str, rule: GoldRule) -> list[Result]:
    """The results that have a gold by the rule, with it in place of theirs, and scored by it."""
    held = []
    for result in results:
        gold = rule(result, labels)
        if gold is not None:
            fields = {**result.fields, "gold": gold}
            held.append(replace(result, fields=fields, score=float(result.answer == gold)))
    return held


def _by_condition(
    results: Sequence[Result], tasks: Sequence[str]
) -> Iterator[tuple[str, str, list[Result]]]:
    """(task, condition, its results) of the conditions of these tasks that were run."""
    for condition in CONDITIONS:
        task = condition.partition("+")[0]
        found = [result for result in results if result.fields["condition"] == condition]
        if task in tasks and found:
            yield task, condition, found


def _row(labels: tuple[str, ...], results: Sequence[Result], task: str) -> Row:
    row = measured(labels, results, classes=_CLASSES[task], cluster=_premise)
    return Row(labels, {**row.cells, "premises": _premises(results)})


def _premise(result: Result) -> str:
    return str(result.fields["row"])


def _counted(results: Sequence[Result]) -> dict[str, Cell]:
    return {**counted((), results), "premises": _premises(results)}


def _premises(results: Sequence[Result]) -> int:
    """How many premises got a reply about one of their items at least."""
    return len({_premise(result) for result in results if result.outcome != "error"})


def _behavior(result: Result) -> str:
    return str(result.fields.get("behavior") or _premise(result))


def _behaviors(results: Sequence[Result]) -> int:
    """How many behaviors got a reply about one of their items at least."""
    return len({_behavior(result) for result in results if result.outcome != "error"})


def _measure(results: Sequence[Result], task: str, asked: int) -> Estimate | None:
    """The task's measure over these results, out of so many that were asked."""
    cell = _row((), results, task).cells[_MEASURES[task]]
    return replace(cell, of=asked) if isinstance(cell, Estimate) else None


def _labels(name: str, title: str, results: Sequence[Result], rule: GoldRule, note: str) -> Table:
    rows = []
    for task, condition, found in _by_condition(results, tuple(_MEASURES)):
        cells: dict[str, Cell] = {
            _HEADS[labels]: _measure(_against(found, labels, rule), task, len(found))
            for labels in LABEL_SETS
        }
        rows.append(Row((condition, _MEASURES[task]), {**_counted(found), **cells}))
    return Table(
        name,
        title,
        heads=("condition", "measure"),
        columns=(*_COUNTS, *_HEADS.values()),
        rows=rows,
        figure="bars",
        drawn=tuple(_HEADS.values()),
        notes=(_MEASURED, note, NOTE),
    )


def _classes(results: Sequence[Result]) -> Table:
    rows = []
    for task, condition, found in _by_condition(results, tuple(_CLASSES)):
        if task == "inference":
            told = [result for result in found if result.fields["gold"] is not None]
            rows.append(_row((condition, "norm's own"), told, task))
            continue
        for labels in LABEL_SETS:
            rows.append(_row((condition, _HEADS[labels]), _against(found, labels, _papers), task))
    return Table(
        "cali-classes",
        "Accuracy, and macro means over the answers",
        heads=("condition", "labels"),
        columns=(*_COUNTS, *CLASSES[len(COUNTS) :]),
        rows=rows,
        notes=("Of the pairs of the first table; of inference, all that have a label.", NOTE),
    )


def _diagnostics(results: Sequence[Result]) -> Table:
    """Table 3: a row a behavior; of all items; the mean over behaviors, as the paper's last row."""
    found = [result for result in results if result.fields["condition"] in _DIAGNOSTIC]
    behaviors = list(dict.fromkeys(str(r.fields.get("behavior") or "") for r in found))
    named = [name for name in behaviors if name]
    rows = [
        Row((name,), _columns([r for r in found if r.fields.get("behavior") == name], _premise))
        for name in named
    ]
    if len(named) > 1:
        means = {column: _mean_of(rows, column) for column in _LEVELS}
        rows.append(Row(("mean over behaviors",), means))
    if found:
        rows.append(Row(("all items",), _columns(found, _behavior)))
    return Table(
        "cali-diagnostics",
        "Knowledge and inference (accuracy), context (recall) by behavior (CALI, table 3)",
        heads=("behavior",),
        columns=_LEVELS,
        rows=rows,
        figure="bars",
        drawn=_LEVELS,
        notes=(_GRADING, "The mean's n counts behaviors.", _TOGETHER, NOTE),
    )


def _columns(results: Sequence[Result], cluster: Callable[[Result], str]) -> dict[str, Cell]:
    parts: dict[str, list[Result]] = {name: [] for name in _LEVELS}
    for result in results:
        level = str(result.fields["condition"]).capitalize()
        asked_about = _HEADS[result.fields["country"]] if level == "Knowledge" else ""
        parts[f"{level} {asked_about}".strip()].append(result)
    return {name: _share(part, cluster) for name, part in parts.items() if part}


def _share(results: Sequence[Result], cluster: Callable[[Result], str]) -> Estimate:
    """The mean score. A missing answer is 0, where any answer of these was scored at all."""
    scored = any(result.score is not None for result in results if result.outcome == "answered")
    scores = [_score(result) if scored else None for result in results]
    return share_estimate(scores, resampled([cluster(result) for result in results]))


def _score(result: Result) -> float | None:
    if result.outcome == "answered":
        return result.score
    # Nothing is right about a missing answer, where something would have been.
    lost = result.outcome != "error" and result.fields["gold"] is not None
    return 0.0 if lost else None


def _mean_of(rows: Sequence[Row], column: str) -> Cell:
    values = [
        cell.value if isinstance(cell := row.cells.get(column), Estimate) else None for row in rows
    ]
    return share_estimate(values, resampled([row.labels for row in rows]))


def _graded(results: Sequence[Result]) -> Table:
    rows = []
    for _, condition, found in _by_condition(results, _DIAGNOSTIC):
        rows.append(
            Row(
                (condition,),
                {
                    **_counted(found),
                    "behaviors": _behaviors(found),
                    "score": _share(found, _behavior),
                },
            )
        )
    return Table(
        "cali-diagnostic-counts",
        "The diagnostic tasks: what came of the questions",
        heads=("condition",),
        columns=(*_COUNTS, "behaviors", "score"),
        rows=rows,
        notes=(_GRADING, _TOGETHER, NOTE),
    )


def _categories(results: Sequence[Result]) -> Table:
    """Table 4: entailment with a culture's indicator against the same culture's labels."""
    held = {
        group: [r for r in results if r.fields["condition"] == f"entailment+{group}"]
        for group in GROUPS
    }
    names = dict.fromkeys(
        str(r.fields["category"]) for part in held.values() for r in part if "category" in r.fields
    )
    rows = []
    for name in names:
        every = [r for part in held.values() for r in part if r.fields.get("category") == name]
        cells: dict[str, Cell] = {"premises": _premises(every)}
        for group, part in held.items():
            found = [r for r in part if r.fields.get("category") == name]
            kept = _against(found, group, _papers)
            cells[_HEADS[group]] = _measure(kept, "entailment", len(found))
        rows.append(Row((name,), cells))
    return Table(
        "cali-categories",
        "Macro F1 of entailment, each culture indicated, by linguistic category (CALI, table 4)",
        heads=("category",),
        columns=("premises", *(_HEADS[group] for group in GROUPS)),
        rows=rows,
        figure="bars",
        drawn=tuple(_HEADS[group] for group in GROUPS),
        notes=(
            "Each column: its own indicator, its own labels, the pairs of the first table.",
            NOTE,
        ),
    )

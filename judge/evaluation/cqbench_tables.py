"""CQ-Bench's tables, from results: by task and setting, by category, by option, binary, released.

An answer that was refused or cannot be read counts as wholly wrong; an item without a reply (error)
counts not at all. Questions about one story are drawn together in the bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from judge.evaluation.benchmark import Result
from judge.evaluation.cqbench_conditions import CONDITIONS
from judge.evaluation.cqbench_distractors import Rule
from judge.evaluation.cqbench_options import folded, is_neutral, merged
from judge.evaluation.cqbench_rows import (
    attitude_row,
    extraction_row,
    option_row,
    released_row,
    selection_row,
)
from judge.evaluation.measuring import CLASSES, COUNTS, NOTE
from judge.evaluation.tables import Row, Table

TASKS = {
    "attitude": "attitude detection",
    "selection": "value selection",
    "extraction": "value extraction",
}
_SCORES = (*COUNTS, "stories", "score", "macro F1", "pooled")
_MEANING = (
    "score: accuracy (attitude detection), mean F1 of the items (selection), mean recall of the "
    "stories (extraction). pooled: F1 over all options given, recall over all gold values. "
    "stories: how many the questions that got a reply are about."
)
_MERGED = (
    "merged: attitudes that differ only in severity are taken as one when answers are compared; "
    "the questions are the same."
)


def tables(results: Sequence[Result]) -> list[Table]:
    """All tables that there are results for."""
    attitude, selection, extraction = (_of(results, task) for task in TASKS)
    made = [
        overview(results),
        categories(results),
        options(attitude),
        binary(attitude),
        selections(selection, "paper"),
        selections(selection, "released"),
        extractions(extraction),
    ]
    return [table for table in made if table.rows]


def overview(results: Sequence[Result]) -> Table:
    """The form of CQ-Bench's table 1: task, setting, with and without steps."""
    rows = [
        row
        for condition, own in _by(_asked_in_full(results), _condition)
        for setting, here in _by(own, lambda result: str(result.fields["setting"]))
        for row in _scored((_task(here[0]), setting, condition), here)
    ]
    return Table(
        "cqbench",
        "CQ-Bench by task and setting (table 1)",
        ("task", "setting", "condition"),
        _SCORES,
        rows,
        figure="bars",
        drawn=("score",),
        notes=(_MEANING, _MERGED, NOTE),
    )


def categories(results: Sequence[Result]) -> Table:
    """By category of the stories (CQ-Bench, section 3.3 and table 6)."""
    known = [r for r in _asked_in_full(results) if r.fields.get("category") is not None]
    rows = [
        row
        for condition, own in _by(known, _condition)
        for category, here in _by(own, lambda result: str(result.fields["category"]))
        for row in _scored((_task(here[0]), category, condition), here)
    ]
    return Table(
        "cqbench-categories",
        "CQ-Bench by category of the stories (table 6)",
        ("task", "category", "condition"),
        _SCORES,
        rows,
        figure="bars",
        drawn=("score",),
        notes=(_MEANING, _MERGED, NOTE),
    )


def options(attitude: Sequence[Result]) -> Table:
    """Attitude detection by the right attitude."""
    rows = []
    for condition, own in _by(_asked_in_full(attitude), _condition):
        plain = [_compared(result, folded) for result in own]
        for option in dict.fromkeys(result.fields["gold"] for result in plain):
            rows.append(option_row((option, condition), plain, option))
    return Table(
        "cqbench-options",
        "Attitude detection by option",
        ("option", "condition"),
        (*COUNTS, "stories", "recall", "precision", "F1"),
        rows,
        figure="bars",
        drawn=("F1",),
        notes=("Counts and recall are over the questions whose right answer it is.", NOTE),
    )


def binary(attitude: Sequence[Result]) -> Table:
    """What a neutral stance among the options costs (CQ-Bench, appendix B.1)."""
    rows = []
    for condition, own in _by(attitude, _condition):
        if CONDITIONS[condition].binary:
            rows.append(_class_row(("gold not neutral, asked without it", condition), own))
            continue
        offered = [r for r in own if any(map(is_neutral, _options(r)))]
        sided = [r for r in offered if not is_neutral(r.fields["gold"])]
        for name, chosen in (
            ("neutral among the options", offered),
            ("gold not neutral, neutral offered", sided),
        ):
            if chosen:
                rows.append(_class_row((name, condition), chosen))
    return Table(
        "cqbench-binary",
        "Attitude detection without the neutral stance (appendix B.1)",
        ("questions", "condition"),
        (*COUNTS, "stories", *CLASSES[len(COUNTS) :]),
        rows,
        figure="bars",
        drawn=("accuracy",),
        notes=("Questions that offer a neutral attitude in the value file.", NOTE),
    )


def selections(selection: Sequence[Result], rule: Rule) -> Table:
    """Value selection: per-item and pooled F1, or the released script's figure."""
    by = list(_by(selection, _condition))
    if rule == "paper":
        return Table(
            "cqbench-selection",
            "Value selection",
            ("condition",),
            (*COUNTS, "precision", "recall", "F1", "pooled F1"),
            [selection_row((condition,), own) for condition, own in by],
            figure="bars",
            drawn=("F1", "pooled F1"),
            notes=(
                "precision, recall, F1: means over items, 0 for an item without an answer. "
                "pooled F1: over all options given and right ones together.",
                NOTE,
            ),
        )
    return Table(
        "cqbench-selection-released",
        "Value selection as CQ-Bench's released script scores it",
        ("condition",),
        (*COUNTS, "left out", "precision", "recall", "F1"),
        [released_row((condition,), own) for condition, own in by],
        notes=(
            "F1 is the harmonic mean of mean precision and mean recall. Items without a readable "
            "answer are left out of all three, as that script does.",
        ),
    )


def extractions(extraction: Sequence[Result]) -> Table:
    """Value extraction: recall over all values, by category of the story and by topic."""
    rows = []
    for condition, own in _by(extraction, _condition):
        rows.append(extraction_row(("all", "", condition), own))
        known = [r for r in own if r.fields.get("category") is not None]
        for category, here in _by(known, lambda result: str(result.fields["category"])):
            rows.append(extraction_row(("category", category, condition), here))
        topics = (topic for r in own for topic in r.fields.get("gold_topics") or ())
        for topic in dict.fromkeys(topic for topic in topics if topic):
            here = [r for r in own if topic in r.fields["gold_topics"]]
            rows.append(extraction_row(("topic", topic, condition), here, topic))
    return Table(
        "cqbench-extraction",
        "Value extraction: recall",
        ("by", "group", "condition"),
        (
            *COUNTS,
            "gold values",
            "unsettled",
            "recall",
            "story recall",
            "predictions",
            "cut",
            "stories cut",
        ),
        rows,
        figure="bars",
        drawn=("recall",),
        notes=(
            "recall: the mean credit (1, 0.5, 0) over gold values; story recall: the mean of the "
            "stories' own. unsettled: gold values that no judge settled, left out of both. "
            "At most ten predictions a story are graded: cut is how many were given beyond them.",
            NOTE,
        ),
    )


def _scored(labels: tuple[str, str, str], results: Sequence[Result]) -> list[Row]:
    """One row, and for attitudes a second with severities merged."""
    condition = CONDITIONS[labels[2]]
    if condition.task == "selection":
        row = selection_row(labels, results)
        return [
            Row(labels, {**row.cells, "score": row.cells["F1"], "pooled": row.cells["pooled F1"]})
        ]
    if condition.task == "extraction":
        row = extraction_row(labels, results)
        cells = {**row.cells, "score": row.cells["story recall"], "pooled": row.cells["recall"]}
        return [Row(labels, cells)]
    together = (labels[0], f"{labels[1]}, merged", labels[2])
    return [
        _attitude_scores(labels, [_compared(result, folded) for result in results]),
        _attitude_scores(together, [_compared(result, merged) for result in results]),
    ]


def _attitude_scores(labels: tuple[str, ...], results: Sequence[Result]) -> Row:
    row = attitude_row(labels, results)
    cells = {**row.cells, "score": row.cells["accuracy"], "macro F1": row.cells["F1"]}
    return Row(labels, cells)


def _class_row(labels: tuple[str, ...], results: Sequence[Result]) -> Row:
    return attitude_row(labels, [_compared(result, folded) for result in results])


def _compared(result: Result, reading: Callable[[str], str]) -> Result:
    """The result with right answer and answer as `reading` takes them, and scored so."""
    gold = reading(result.fields["gold"])
    fields = {**result.fields, "gold": gold}
    if result.outcome != "answered":
        return replace(result, fields=fields, score=None)
    answer = reading(result.answer)
    return replace(result, fields=fields, answer=answer, score=float(answer == gold))


def _asked_in_full(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if not CONDITIONS[_condition(result)].binary]


def _of(results: Sequence[Result], task: str) -> list[Result]:
    return [result for result in results if CONDITIONS[_condition(result)].task == task]


def _by(results: Sequence[Result], key: Callable[[Result], str]) -> list[tuple[str, list[Result]]]:
    """The results by their key, keys in the order in which they first come."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    order = list(CONDITIONS)
    known = [name for name in order if name in found]
    return [(name, found[name]) for name in (*known, *(n for n in found if n not in order))]


def _condition(result: Result) -> str:
    return str(result.fields["condition"])


def _task(result: Result) -> str:
    return TASKS[CONDITIONS[_condition(result)].task]


def _options(result: Result) -> Sequence[str]:
    found: Sequence[str] = result.fields.get("options") or ()
    return found

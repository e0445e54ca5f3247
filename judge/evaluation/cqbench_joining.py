"""Predictions and gold of CQ-Bench's tasks, read from files and joined by id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from judge.errors import UsageError
from judge.evaluation.benchmark import Result
from judge.evaluation.cqbench_conditions import CONDITIONS
from judge.evaluation.cqbench_options import folded, is_neutral
from judge.evaluation.cqbench_released import (
    attitude_questions,
    is_attitude,
    is_selection,
    selection,
)
from judge.evaluation.results import OUTCOMES, result_of
from judge.evaluation.tables import Row, Table
from judge.records import RESERVED, Item, read
from judge.records.fields import LabelError, RecordNames, id_text
from judge.records.values import clip

Task = Literal["attitude", "selection"]
Gold = dict[str, dict[str, Any]]
"""What is right, and by what it is sliced, by id."""

_NAMED = 20


@dataclass(slots=True)
class Join:
    """What became of the lines: each list names those that it is about."""

    gold: int = 0
    predictions: int = 0
    scored: int = 0
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)

    def table(self) -> Table:
        """The counts; the notes name the first of each kind."""
        counts = {
            "gold items": self.gold,
            "predictions": self.predictions,
            "gold items with a prediction": self.scored,
            "predictions missing": len(self.missing),
            "predictions for no gold item": len(self.extra),
            "predictions that are none of the options": len(self.unlike),
            "prediction lines at fault": len(self.bad),
        }
        notes = [
            f"{name}: {', '.join(found[:_NAMED])}" + (" and more" if len(found) > _NAMED else "")
            for name, found in (
                ("no prediction, counted as unreadable", self.missing),
                ("no gold, left out", self.extra),
                ("none of the options", self.unlike),
            )
            if found
        ]
        return Table(
            "joined",
            "Predictions and gold, joined by id",
            ("lines",),
            ("count",),
            [Row((name,), {"count": count}) for name, count in counts.items()],
            notes=(*notes, *self.bad[:_NAMED]),
        )


def joined(pred: str, gold: str, task: Task) -> tuple[list[Result], Join]:
    """A result for each gold item in each condition that was answered, in the order of GOLD.

    A gold item without a prediction is `unreadable`. The forms of the files: see scoring.py.

    Raises:
        UsageError: a file cannot be read, or a line of GOLD is at fault, with file, line and field;
            or no prediction is of a gold item.
    """
    join = Join()
    right = read_gold(gold, task)
    found: dict[tuple[str, str], Result] = {}
    lines: dict[tuple[str, str], int] = {}
    for item, told, faulty in _predictions(pred, task, join):
        id = told.id if told.id in right else str(told.fields.get("item"))
        if id not in right:
            join.extra.append(told.id)
            continue
        condition = _condition(right[id]) or _condition(told.fields) or task
        if (id, condition) in found:
            if not faulty:
                first = lines[id, condition]
                join.bad.append(f"{_place(pred, item.line)}: id {id!r} was already on line {first}")
            continue
        lines[id, condition] = item.line
        found[id, condition] = _result(right[id], id, condition, told, task, join)
    if not found:
        raise UsageError(nothing_joined(pred, gold, join.bad))
    join.gold, join.scored = len(right), len({id for id, _ in found})
    names = list(dict.fromkeys(name for _, name in found)) or [task]
    results = []
    for id, fields in right.items():
        own = _condition(fields)
        for name in (own,) if own else (name for name in names if _is_asked(fields, name)):
            if (id, name) not in found:
                join.missing.append(id if own or len(names) == 1 else f"{id} ({name})")
            missing = Result({**fields, "id": id, "condition": name}, "unreadable")
            results.append(found.get((id, name), missing))
    return results, join


def nothing_joined(pred: str, gold: str, bad: Sequence[str]) -> str:
    """What to say where no prediction is of a gold item; `bad` are the faults of PRED's lines."""
    faulty = f"; {len(bad)} line(s) of {pred} are at fault, the first: {bad[0]}" if bad else ""
    return f"{pred} and {gold} have no id in common{faulty}"


def read_gold(path: str, task: Task) -> Gold:
    """The gold of a file by id. Raises UsageError: see `joined`."""
    found: Gold = {}
    with RecordNames() as names:
        for item in read(path):
            try:
                found |= dict(_right(item, _fields(item), task, names))
            except LabelError as error:
                raise UsageError(_fault(path, item.line, error)) from error
    if not found:
        raise UsageError(f"{path} has no gold for {task}")
    return found


def _told(fields: Mapping[str, Any]) -> Result:
    """What a line of predictions or of `judge evaluate` says was answered.

    Raises:
        LabelError: it has no id, answer or known outcome.
    """
    if id_text(fields.get("id"), "id") is None:
        raise LabelError("field 'id' is missing", "id")
    own = {**fields, "id": id_text(fields["id"], "id")}
    if RESERVED in fields:
        result = result_of(own)
        if result is None:
            raise LabelError("no answer: this line could not be asked about", RESERVED)
        return result
    if "answer" not in fields and "outcome" not in fields:
        raise LabelError("field 'answer' is missing: write null for an unreadable one", "answer")
    answer = fields.get("answer")
    outcome = fields.get("outcome", "unreadable" if answer is None else "answered")
    if outcome not in OUTCOMES:
        message = f"field 'outcome' must be one of {', '.join(OUTCOMES)}, not {clip(outcome)}"
        raise LabelError(message, "outcome")
    return Result(own, outcome, answer)


def _place(path: str, line: int) -> str:
    return f"{Path(path).name}, line {line}"


def _fault(path: str, line: int, error: LabelError) -> str:
    """A message with file, line and field."""
    named = f", field {error.problem.field!r}" if error.problem.field else ""
    return f"{_place(path, line)}{named}: {error.problem.message}"


def _right(
    item: Item, fields: dict[str, Any], task: Task, names: RecordNames
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The gold items of one line, each with its id; none for a line about another task."""
    slices = {"setting": "single", "category": fields.get("category")}
    known = CONDITIONS.get(_condition(fields) or task)
    if "gold" in fields:
        if known is not None and known.task == task:
            id = names.name(item, fields.get("id"))
            own = {name: content for name, content in fields.items() if name != RESERVED}
            right = _ANSWERS[task](fields["gold"], "gold")
            yield id, {"row": id, **slices, **own, "gold": right}
    elif task == "attitude" and is_attitude(fields):
        row = names.name(item, fields.get("id"))
        for number, question in enumerate(attitude_questions(item), 1):
            yield f"{row}/{number}", {"row": row, **slices, **question}
    elif task == "selection" and is_selection(fields):
        row = names.name(item, fields.get("id"))
        yield row, {"row": row, **slices, **selection(item)}
    else:
        raise LabelError("no gold: neither field 'gold' nor CQ-Bench's released questions", "gold")


def _predictions(path: str, task: Task, join: Join) -> Iterator[tuple[Item, Result, bool]]:
    """The lines about the task, and whether they are at fault: those are noted, and unreadable."""
    for item in read(path):
        id: str | None = None
        try:
            fields = _fields(item)
            condition = _condition(fields)
            if condition is not None and CONDITIONS[condition].task != task:
                continue
            join.predictions += 1
            id = id_text(fields.get("id"), "id")
            told = _told(fields)
            if told.outcome == "answered":
                answer = _ANSWERS[task](told.answer, "answer")
                told = Result(told.fields, told.outcome, answer, steps=told.steps)
            yield item, told, False
        except LabelError as error:
            join.bad.append(_fault(path, item.line, error))
            if id is not None:
                yield item, Result({**(item.fields or {}), "id": id}, "unreadable"), True


def _result(
    right: Mapping[str, Any], id: str, condition: str, told: Result, task: Task, join: Join
) -> Result:
    """The prediction as a result; an attitude that is none of the options is unreadable."""
    fields = {**right, "id": id, "condition": condition}
    if told.outcome != "answered" or not right.get("options"):
        return Result(fields, told.outcome, told.answer)
    offered = {folded(option) for option in right["options"]}
    given = [told.answer] if task == "attitude" else told.answer
    strange = [answer for answer in given if folded(answer) not in offered]
    if strange:
        join.unlike.append(f"{id} ({clip(strange[0], 40)})")
        if task == "attitude":
            return Result(fields, "unreadable")
    return Result(fields, told.outcome, told.answer)


def _is_asked(right: Mapping[str, Any], condition: str) -> bool:
    """Whether a gold item that says nothing of conditions is one of this condition's."""
    if not CONDITIONS[condition].binary:
        return True
    return any(map(is_neutral, right.get("options") or ())) and not is_neutral(right["gold"])


def _attitude(content: object, name: str) -> str:
    if not isinstance(content, str) or not content.strip():
        raise LabelError(f"field {name!r} must be an attitude, not {clip(content)}", name)
    return content


def _selected(content: object, name: str) -> list[str]:
    entries = content.splitlines() if isinstance(content, str) else content
    if not isinstance(entries, list) or not all(isinstance(one, str) for one in entries):
        raise LabelError(f"field {name!r} must be a list of options, not {clip(content)}", name)
    options = [entry.strip() for entry in entries if entry.strip()]
    if not options and name == "gold":
        raise LabelError("field 'gold' is empty", name)
    return options


_ANSWERS: dict[Task, Callable[[object, str], Any]] = {"attitude": _attitude, "selection": _selected}


def _fields(item: Item) -> dict[str, Any]:
    if item.fields is None:
        raise LabelError(item.problem.message if item.problem else "there is no record")
    return item.fields


def _condition(fields: Mapping[str, Any]) -> str | None:
    """The condition that a line says it is of; None where that is none of ours."""
    name = fields.get("condition")
    return name if isinstance(name, str) and name in CONDITIONS else None

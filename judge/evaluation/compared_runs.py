"""Runs that are compared: output lines of `judge evaluate`, `judge validate` or `judge score`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from judge.errors import UsageError
from judge.evaluation.results import OUTCOMES
from judge.records import RESERVED, content_hash, read
from judge.records.fields import scalar_text
from judge.records.values import clip

Kind = Literal["evaluate", "validate"]
Key = tuple[str, ...]

RECORD = "record"
"""The series of the records' own verdicts; those of checks are `check NAME`."""

RECALL = "recall"
"""The series of the recall of value extraction (CQ-Bench, section 3.1)."""

NO_SCORE = "no score"
ABSENT = "not there"
WITHOUT = "(none)"
"""The slice of items that lack the field they are sliced by."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a line says in one series: what came of it, and its score in [0, 1]; None: none."""

    outcome: str
    score: float | None

    @property
    def missing(self) -> str:
        """Why there is no score."""
        return NO_SCORE if self.outcome in ("answered", "refused", "unreadable") else self.outcome


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a run. `gold` is JSON, None where the line has no such field."""

    name: str
    line: int
    marks: Mapping[str, Mark]
    cluster: str
    part: str
    gold: str | None
    content: str


@dataclass(slots=True)
class RunFile:
    """A file of output lines, by item; `names` are its benchmarks or workflows.

    `faulty` counts lines about input that could not be read: they are no items. `sliced` says
    whether any item has the field that slices are made by.
    """

    source: str
    kind: Kind
    names: set[str] = field(default_factory=set)
    entries: dict[Key, Entry] = field(default_factory=dict)
    faulty: int = 0
    sliced: bool = False

    def series(self) -> list[str]:
        """All series, in the order in which they first appear."""
        return list(dict.fromkeys(name for e in self.entries.values() for name in e.marks))


def read_run_file(source: str, by: str | None = None) -> RunFile:
    """Read a run back.

    Items of `judge evaluate` are known by id and condition. Records are known by their id, else by
    the hash of their own content as it was before edits; the second of the same name goes with the
    second of the other run.

    Args:
        source: a file, or `-` for standard input.
        by: the own field whose value slices the items.

    Raises:
        UsageError: it cannot be read, a line is no output line, lines are of different commands,
            an item comes twice, or nothing in it is an item.
    """
    kind: Kind | None = None
    run = RunFile(source, "validate")
    seen: Counter[Key] = Counter()
    for line, fields, judgement in _lines(source):
        found = _kind(judgement)
        if found is None:
            run.faulty += 1
            continue
        if kind is not None and found != kind:
            raise UsageError(
                f"{source}, line {line}: is of judge {found}, lines before of judge {kind}"
            )
        run.kind = kind = found
        run.sliced = run.sliced or (by is not None and by in fields)
        if found == "evaluate":
            _add_answer(run, line, fields, judgement, by)
        else:
            _add_record(run, seen, line, fields, judgement, by)
    if kind is None:
        raise UsageError(f"{source}: holds no item: name an output of judge evaluate or validate")
    return run


def _lines(source: str) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Line number, own fields, and what stands under `judge`."""
    for item in read(source):
        where = f"{source}, line {item.line}"
        if item.problem is not None or item.fields is None:
            message = item.problem.message if item.problem else "there is no record"
            raise UsageError(f"{where}: {message}")
        judgement = item.fields.get(RESERVED)
        if not isinstance(judgement, dict) or not isinstance(judgement.get("verdict"), str):
            raise UsageError(
                f"{where}: field 'judge' holds no verdict: "
                "name outputs of judge evaluate, validate or score"
            )
        yield item.line, {k: v for k, v in item.fields.items() if k != RESERVED}, judgement


def _kind(judgement: Mapping[str, Any]) -> Kind | None:
    if "benchmark" in judgement:
        return "evaluate"
    return "validate" if isinstance(judgement.get("workflow"), str) else None


def _add_answer(
    run: RunFile, line: int, fields: Mapping[str, Any], judgement: Mapping[str, Any], by: str | None
) -> None:
    where = f"{run.source}, line {line}"
    id = scalar_text(fields.get("id"))
    condition = judgement.get("condition", fields.get("condition"))
    if id is None or not isinstance(condition, str):
        raise UsageError(f"{where}: an answer has an id and a condition")
    key = (condition, id)
    if key in run.entries:
        raise UsageError(
            f"{where}: item {id} ({condition}) stands on line {run.entries[key].line} already"
        )
    run.names.add(str(judgement["benchmark"]))
    mark = _answer(fields, judgement, where)
    run.entries[key] = _entry(f"{id} ({condition})", line, fields, {condition: mark}, by)


def _answer(fields: Mapping[str, Any], judgement: Mapping[str, Any], where: str) -> Mark:
    outcome, score = judgement.get("outcome"), judgement.get("score")
    if outcome not in OUTCOMES:
        raise UsageError(f"{where}: outcome {clip(outcome)} is none of {', '.join(OUTCOMES)}")
    if score is not None and not _is_share(score):
        raise UsageError(f"{where}: score {clip(score)} is no number from 0 to 1")
    if outcome == "error":
        return Mark("error", None)
    nothing_right = "gold" in fields and fields["gold"] is None
    if outcome != "answered" and score is None and not nothing_right:
        score = 0.0
    return Mark(outcome, None if score is None else float(score))


def _add_record(
    run: RunFile,
    seen: Counter[Key],
    line: int,
    fields: Mapping[str, Any],
    judgement: Mapping[str, Any],
    by: str | None,
) -> None:
    original = judgement.get("original") or {}
    before = {**fields, **original} if isinstance(original, dict) else dict(fields)
    id = scalar_text(before.get("id"))
    known = ("content", content_hash(before)) if id is None else ("id", id)
    seen[known] += 1
    run.names.add(judgement["workflow"])
    name = f"record {id}" if id is not None else f"the record on line {line}"
    run.entries[(*known, str(seen[known]))] = _entry(name, line, before, _marks(judgement), by)


def _marks(judgement: Mapping[str, Any]) -> dict[str, Mark]:
    """The verdict, each check's as it was made last, and the recall of an extraction."""
    marks = {RECORD: _verdict(judgement)}
    for check in judgement.get("checks") or ():
        marks[f"check {check['check']}"] = _verdict(check)
    extraction = judgement.get("extraction")
    if isinstance(extraction, dict):
        settled = _is_share(extraction.get("recall")) and extraction["over"] == extraction["of"]
        recall = float(extraction["recall"]) if settled else None
        marks[RECALL] = Mark("answered", recall)
    return marks


def _verdict(judged: Mapping[str, Any]) -> Mark:
    verdict = str(judged["verdict"])
    return Mark(verdict, {"pass": 1.0, "fail": 0.0}.get(verdict))


def _entry(
    name: str, line: int, fields: Mapping[str, Any], marks: Mapping[str, Mark], by: str | None
) -> Entry:
    part = WITHOUT
    if by is not None and fields.get(by) is not None:
        part = scalar_text(fields[by]) or _plain(fields[by])
    row = scalar_text(fields.get("row"))
    return Entry(
        name,
        line,
        marks,
        cluster=name if row is None else f"row {row}",
        part=part,
        gold=_plain(fields["gold"]) if "gold" in fields else None,
        content=content_hash(fields),
    )


def _plain(content: object) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def _is_share(score: object) -> bool:
    return isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1

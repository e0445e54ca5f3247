"""The output line: a record's own fields, then the judgement under `"judge"`.

This module both writes and reads lines. `Line` reads single keys without validation, so that
`--resume` can keep a million lines; `Line.judgement` validates the whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from judge.digest import digest
from judge.errors import UsageError
from judge.judgement import Failure, Judgement, Unfinished
from judge.problems import problems_of
from judge.records.base import (
    content_hash,
    has_parts,
    is_verdict,
    judgement_in,
    own_fields,
    own_id,
)
from judge.records.jsonfiles import dump_judged, shortened
from judge.records.read import MAX_LINE, read
from judge.records.record import Record
from judge.verdict import LOST, PERSON, Check, Usage, Verdict

FINISHED = frozenset(map(str, Verdict)) - {str(Verdict.ERROR), str(Verdict.SKIPPED)}
"""Verdicts of records that a run judged to the end."""

REDONE = frozenset(map(str, LOST))
"""Verdicts of records that `--resume` always judges again."""

MAX_OUTPUT_LINE = 4 * MAX_LINE
"""Most bytes of a line that is read: a line may hold its record twice, and evidence."""

_ANSWER = 300
"""Characters of a benchmark's answer that are kept in its check's reason."""


@dataclass(frozen=True, slots=True)
class Line:
    """An output line.

    Args:
        fields: the record's own fields; repaired ones have their new text.
        content: the content of `"judge"`, as JSON.
        text: the whole line; empty if only its fields are known.
        kept: whether it is kept from an earlier run.
        new_name: whether it is kept, but under another name.
        number: its line number in the file `source`, from 1; in memory its record's in the input.
        runs: in memory, how the run's lines were made, by fingerprint, as a file's description.
    """

    fields: Mapping[str, Any]
    content: Mapping[str, Any]
    text: bytes = b""
    kept: bool = False
    new_name: bool = False
    number: int = 0
    source: str = ""
    runs: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any], number: int = 0, source: str = "") -> Self | None:
        """The line of these fields; None if they hold no verdict, or one judge did not write."""
        content = judgement_in(fields)
        if not isinstance(content, dict) or "verdict" not in content or not has_parts(content):
            return None
        return cls(own_fields(fields), content, number=number, source=source)

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """The line in this text; None if judge did not write it."""
        content = judgement_in(fields := parsed(text) or {})
        sound = is_verdict(content) and has_parts(content)
        return cls(own_fields(fields), content, text) if sound else None

    # ------------------------------------------------------------ content

    @property
    def verdict(self) -> str:
        return str(self.content["verdict"])

    @property
    def first_verdict(self) -> str:
        """The verdict on the input record, before any repair."""
        return str(self.content.get("original_verdict") or self.content["verdict"])

    @property
    def fingerprint(self) -> str | None:
        return self.content.get("fingerprint")

    @property
    def workflow(self) -> str | None:
        return self.content.get("workflow")

    @property
    def benchmark(self) -> str | None:
        return self.content.get("benchmark")

    @property
    def made_by(self) -> str:
        """The workflow or benchmark that made the line."""
        return str(self.workflow or self.benchmark)

    @property
    def finished(self) -> bool:
        """Whether a run judged the record to the end."""
        return self.verdict in FINISHED and isinstance(self.fingerprint, str)

    @property
    def lacks_votes(self) -> bool:
        """Whether the record abstains for want of a vote that another reply could give, or with
        votes that cannot be read, such as after an edit by hand."""
        if self.verdict != Verdict.ABSTAIN:
            return False
        checks = (*self.last_checks.values(), *self._graded)
        parts = [read_check(c) for c in checks if c["verdict"] == Verdict.ABSTAIN]
        return any(check is None or check.lacks_votes for check in parts)

    @property
    def _graded(self) -> Sequence[Mapping[str, Any]]:
        """The checks by which judges credited a benchmark's answer."""
        steps = self.content.get("steps")
        return (isinstance(steps, dict) and has_parts(steps) and steps.get("checks")) or ()

    @property
    def asked(self) -> bool:
        """Whether a run judged the record; False for unreadable input."""
        return "fingerprint" in self.content

    @property
    def reason(self) -> str:
        return self.content.get("reason") or ""

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Type and message of the error that left the record without a verdict."""
        return self.content.get("error")

    @property
    def generated(self) -> Mapping[str, Any]:
        """The outcome of the draft (`DraftOutcome`); empty if no draft was written."""
        return self.content.get("generated") or {}

    @property
    def edits(self) -> int:
        """How often the record was rewritten."""
        return len(self.content.get("edits") or ())

    @property
    def dropped(self) -> int:
        """How many values were dropped."""
        return len(self.content.get("dropped") or ())

    @property
    def usage(self) -> Usage:
        """Replies and their tokens; a cost of null is unknown."""
        usage = self.content.get("usage") or {}
        return Usage(
            usage.get("replies") or 0,
            usage.get("input_tokens") or 0,
            usage.get("output_tokens") or 0,
            usage.get("cost_usd", 0.0),
        )

    @property
    def checks(self) -> list[Mapping[str, Any]]:
        """Every check made, in order, as JSON with the keys of `judge.verdict.Check`."""
        return self.content.get("checks") or []

    @property
    def last_checks(self) -> dict[str, Mapping[str, Any]]:
        """The last check of each name."""
        return {check["check"]: check for check in self.checks}

    @property
    def decided(self) -> bool:
        """Whether a person answered at least one of its checks."""
        return any(check.get("by") == PERSON for check in self.checks)

    @property
    def name(self) -> str:
        """The record's name for people: the name in the line, its own id, else its line number."""
        name = self.content.get("name")
        return str(name or own_id(self.fields) or f"line {self.number}")

    @property
    def original_fields(self) -> dict[str, Any]:
        """The record's input fields, before any repair."""
        return {**self.fields, **(self.content.get("original") or {})}

    @property
    def key(self) -> str:
        """The content hash of the input record, or of the draft that it was made from.

        For input that could not be judged: the hash of the line itself.
        """
        if self.fingerprint is None:
            return digest(self.text, 16)
        if draft := self.generated.get("draft"):
            return str(draft)
        return content_hash(self.original_fields)

    def judgement(self) -> Judgement:
        """The validated judgement; a benchmark's line has its answer as a check.

        Raises:
            pydantic.ValidationError: `judge validate` or `judge evaluate` did not write the line.
        """
        if self.benchmark is None:
            return Judgement.model_validate(self.content)
        verdict, score = map(self.content.get, ("verdict", "score"))
        parts = {"answer": self.content.get("answer"), "right": self.fields.get("gold")}
        told = [f"{name}: {_short(part)}" for name, part in parts.items() if part is not None]
        told += [f"score: {score:g}"] if isinstance(score, int | float) and 0 < score < 1 else []
        why = "; ".join(map(str, filter(None, [*told, self.reason])))
        answer = None if parts["answer"] is None else _short(parts["answer"])
        name = str(self.content.get("condition"))
        check = {"check": name, "verdict": verdict, "answer": answer, "reason": why}
        changes = {"workflow": self.benchmark, "reason": why, "checks": [check, *self._graded]}
        return Judgement.model_validate({**self.content, **changes})


def read_check(content: Mapping[str, Any]) -> Check | None:
    """A check of an output line; None if it cannot be read, such as after an edit by hand."""
    try:
        return Check.model_validate(content)
    except ValidationError:
        return None


def has_entries(check: Mapping[str, Any]) -> bool:
    """Whether a check, as in the output line, is on the entries of a list. A person's check has its
    answers to them without votes."""
    parts = (check, *(check.get("votes") or ()))
    return any("value" in answer for part in parts for answer in part.get("evidence") or ())


def _short(content: Any) -> str:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}…"


def parsed(text: bytes) -> dict[str, Any] | None:
    """The JSON object in `text`; None if it is anything else."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


# ---------------------------------------------------------------- files of lines


@dataclass(slots=True)
class Lines:
    """The lines among `items` that judge wrote, and a count of the others.

    Args:
        names: the inputs' names for messages.
        judged: how many lines judge wrote.
        foreign: how many other lines there are.
        first_foreign: the first of these, and what is wrong with it.
        beside: the file of lines from which a table among the inputs was made.
        file: the index in `names` of the input being read.
    """

    items: Iterable[Record]
    names: Sequence[str]
    judged: int = 0
    foreign: int = 0
    first_foreign: str = ""
    beside: str = ""
    file: int = 0

    @classmethod
    def read(cls, sources: Sequence[str]) -> Self:
        """The lines of files, or of standard input where a source is `-`.

        Raises:
            UsageError: a source cannot be opened.
        """
        if "-" in sources and sys.stdin is None:
            raise UsageError("standard input is closed: name a file, or pipe judged lines in")
        items = [read(source, format="jsonl", max_line=MAX_OUTPUT_LINE) for source in sources]
        names = ["standard input" if source == "-" else Path(source).name for source in sources]
        beside = (f"{source}.jsonl" for source in sources)
        found = next((file for file in beside if Path(file).is_file()), "")
        lines = cls((), names, beside=found)
        lines.items = lines._one_by_one(items)
        return lines

    def _one_by_one(self, files: Sequence[Iterable[Record]]) -> Iterator[Record]:
        for self.file, items in enumerate(files):
            yield from items

    def __iter__(self) -> Iterator[tuple[Line, Judgement]]:
        """Each line with its judgement.

        Raises:
            UsageError: there are lines, and judge wrote none of them.
        """
        for item in self.items:
            try:
                pair = _validated(item)
            except ValueError as error:
                self.foreign += 1
                file = f"{self.names[self.file]}, " if len(self.names) > 1 else ""
                self.first_foreign = self.first_foreign or f"{file}line {item.line}: {error}"
            else:
                self.judged += 1
                yield pair
        if self.foreign and not self.judged:
            advice = f"use {self.beside}, which is beside it" if self.beside else ""
            raise UsageError(
                f"{', '.join(self.names)}: none of the {self.foreign} lines was written by judge "
                f"validate or evaluate ({self.first_foreign}): {advice or 'name its output file'}"
            )


def _validated(item: Record) -> tuple[Line, Judgement]:
    """A line and its judgement; ValueError says why judge cannot have written the line."""
    if item.problem is not None:
        raise ValueError(item.fault)
    content = judgement_in(item.fields)
    if not isinstance(content, dict) or "verdict" not in content:
        raise ValueError("has no verdict under 'judge'")
    line = Line(own_fields(item.fields), content, number=item.line, source=item.source)
    try:
        judgement = line.judgement()
    except ValidationError as error:
        place, problem = next(problems_of(error))
        raise ValueError(f"{'.'.join(('judge', *place))}: {problem}") from None
    if judgement.verdict is Verdict.SKIPPED:
        raise ValueError(f"judge.verdict: a record cannot be {judgement.verdict}")
    return line, judgement


# ---------------------------------------------------------------- written


def written(
    fields: Mapping[str, Any], content: Mapping[str, Any], record: Record | None = None
) -> Line:
    """A line of these fields and the judgement; unchanged fields keep the text of `record`."""
    return Line(fields, content, dump_judged(fields, content, record))


def judged(
    record: Record, judgement: Judgement, changes: Mapping[str, Any], fingerprint: str
) -> Line:
    """The line of a judged record.

    Args:
        changes: the rewritten fields, by the workflow's names for them.
        fingerprint: the run's fingerprint.
    """
    update = {
        "name": _name(record),
        "original": record.originals(changes),
        "fingerprint": fingerprint,
    }
    content = judgement.model_copy(update=update).as_json()
    return written(record.with_changes(changes), content, record)


def failed(
    record: Record,
    error: tuple[str, str],
    workflow: str,
    fingerprint: str,
    unfinished: Unfinished | None = None,
) -> Line:
    """The line of a record without a verdict. Its fields are the input's, without rewrites.

    Args:
        error: type and message.
        unfinished: the checks made before the error.
    """
    kind, message = error
    unfinished = unfinished or Unfinished()
    judgement = Judgement(
        name=_name(record),
        verdict=Verdict.ERROR,
        workflow=workflow,
        reason=message,
        checks=unfinished.checks,
        usage=unfinished.usage,
        fingerprint=fingerprint,
        error=Failure(type=kind, message=message, **record.place),
    )
    return written(record.with_changes({}), judgement.as_json(), record)


def bad_input(record: Record) -> Line:
    """The line of input that cannot be judged: its fields or raw text, and its problem."""
    problem = record.problem
    assert problem is not None, "input that can be judged has no such line"
    error: dict[str, Any] = {"type": problem.type, **record.place, "message": problem.message}
    if problem.field is not None:
        error["field"] = problem.field
    fields = shortened(record.fields) if record.raw is None else {"raw": record.raw}
    name = _name(record)
    content = {**({"name": name} if name else {}), "verdict": str(Verdict.ERROR), "error": error}
    return written(own_fields(fields), content, record)


def renamed(line: Line, record: Record) -> Line | None:
    """A judged line with the record's name in this run; None if the name is unchanged.

    Of equal records with one id, all but the first are named by their place, so a name depends on
    the records' order.
    """
    name = _name(record)
    if not line.workflow or line.content.get("name") == name:
        return None
    content = {key: part for key, part in line.content.items() if key != "name"}
    line = written(line.fields, {**({"name": name} if name else {}), **content}, record)
    return replace(line, kept=True, new_name=True)


def _name(record: Record) -> str | None:
    """The record's name in its line; None if its own id is the name."""
    return None if record.called == own_id(record.fields) else record.called

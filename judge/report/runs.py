"""A run read back from its output lines, as items that other runs can be paired with.

Runs are output lines of `judge evaluate`, `judge score` or `judge validate`. Answers are paired by
id (which holds the condition); records with the same content before edits, then those of one id or
name of `--id`, in the order in which they come.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.errors import UsageError
from judge.records import RESERVED, Record, content_hash, read
from judge.records.answers import scalar_text
from judge.records.base import judgement_in, own_id
from judge.records.lines import Line, has_entries, read_check
from judge.run.description import RunDescriptions
from judge.verdict import UNDECIDED, AnswerOutcome

ItemScore = float | str
"""An item's score in one series, or why it has none. It is in [0, 1], or on its rubric's scale."""

RECORD, REPAIRED = "record", "record after repair"
"""Series: the verdicts on records before a repair; those after it, if a run repaired any."""

SCORE = "score of "
"""Begins the series of a check's scores, on its rubric's scale."""

NO_SCORE = "no score"

BENCHMARK = "benchmark "
"""Begins `Run.made_by` of a benchmark's run."""

_NUMBERED = re.compile(r" \(\d+\)$")
_PLACE = re.compile(r":\d+$")  # The name of a record without an id, or with a repeated one.


@dataclass(frozen=True, slots=True)
class RunItem:
    """One item of a run: its marks by series, the cluster that it is resampled with, its gold, for
    a benchmark the line with its answer, the fields of the record or item, and by check and entry
    (None: the record) the answer, if the question's answers have names and it is decided; and the
    number of its line."""

    marks: dict[str, ItemScore]
    cluster: str
    gold: Any = None
    answer: Line | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str | None, str | None]] = field(default_factory=dict)
    line: int = 0


@dataclass(slots=True)
class Run:
    """A file of output lines; `made_by` is its benchmark or workflow. The command is not known:
    lines of `judge score` are those of `judge evaluate`.

    `unread` counts lines about input that could not be read. `described` has the descriptions of
    runs, these lines' among them. `first` is the run, read before, whose keys items have that are
    in both.
    """

    source: str
    described: RunDescriptions = RunDescriptions()  # noqa: RUF009 (frozen)
    first: Run | None = None
    made_by: str = ""
    entries: dict[str, RunItem] = field(default_factory=dict)
    unread: int = 0
    moved: dict[int, str] = field(default_factory=dict)
    _marks: dict[str | None, None] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _contents: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def series(self) -> list[str]:
        """All series, in the order in which they first appear."""
        return list(dict.fromkeys(name for e in self.entries.values() for name in e.marks))

    @property
    def descriptions(self) -> RunDescriptions:
        """The descriptions of the runs that made these lines."""
        return self.described.among(self._marks)

    def add(self, line: Line, where: str) -> str:
        """Add a line's item, if it has one, and return the key by which runs pair the line.

        Raises:
            UsageError: the line is of another benchmark or workflow than those before, repeats an
                earlier answer, or holds no valid one; `where` names the line.
        """
        if line.benchmark is not None:
            made_by, key, entry = f"{BENCHMARK}{line.benchmark}", *_answer(line, where)
        elif line.workflow is not None:
            made_by, key, entry = f"workflow {line.workflow}", *_record(line)
        else:
            self.unread += 1
            return self._told_apart(f"unread {line.name}")
        if self.made_by not in ("", made_by):
            raise UsageError(f"{where}: is of {made_by}, earlier lines are of {self.made_by}")
        self.made_by = made_by
        self._marks[line.fingerprint] = None
        if entry.answer is None:
            key = self._paired(key, content_hash(entry.fields))
        elif key in self.entries:
            raise UsageError(f"{where}: an earlier line has item {key}")
        self.entries[key] = entry
        return key

    def _paired(self, key: str, content: str) -> str:
        """The key of the first run's record with this content, which may be one of several with an
        id; else the record's own. A record that has that key for its id alone gets another."""
        count = len(self._contents[content])
        alike = [] if self.first is None else self.first._contents.get(content, [])
        paired = alike[count] if len(alike) > count else self._told_apart(key)
        if paired in self.entries:
            key_of_other = self._told_apart(_NUMBERED.sub("", paired))
            self.entries[key_of_other] = self.entries.pop(paired)
            self.moved[self.entries[key_of_other].line] = key_of_other
        self._contents[content].append(paired)
        return paired

    def _told_apart(self, key: str) -> str:
        """The key, with a number if earlier lines have the same key, such as `a (2)`; a key that
        reads so itself always has one more."""
        while True:
            self._counts[key] += 1
            count = self._counts[key]
            name = key if count == 1 and not _NUMBERED.search(key) else f"{key} ({count})"
            if name not in self.entries:
                return name


def refuse_table(row: Record) -> None:
    """Raise UsageError for a row of a table that judge wrote, which has no whole judgement."""
    if f"{RESERVED}.verdict" in row.fields and judgement_in(row.fields) is None:
        lines = f"name the JSON lines that it was made from, such as {row.source}.jsonl"
        raise UsageError(f"{row.source} is a table of verdicts: {lines}")


def read_run(source: str, first: Run | None = None) -> Run:
    """Read a run back from a file, or `-` for standard input, and pair it with the first one.

    Raises:
        UsageError: it cannot be read, a line is no output line, lines are of different benchmarks
            or workflows, or nothing in it is an item.
    """
    run = Run(source, RunDescriptions.beside(source), first)
    for item in read(source):
        where = f"{source}, line {item.line}"
        if item.problem is not None:
            raise UsageError(f"{where}: {item.fault}")
        refuse_table(item)
        if (line := Line.of(item.fields)) is None:
            hint = "name outputs of judge evaluate, score or validate"
            raise UsageError(f"{where}: field 'judge' holds no verdict of judge: {hint}")
        run.add(line, where)
    if not run.entries:
        raise UsageError(f"{source}: holds no answers and no verdicts")
    return run


def _answer(line: Line, where: str) -> tuple[str, RunItem]:
    """The key of an output line of `judge evaluate`, and its item."""
    outcome, score = (line.content.get(name) for name in ("outcome", "score"))
    is_answer = {"id", "condition"} <= line.fields.keys() and outcome in [*AnswerOutcome]
    if not is_answer or not (score is None or (isinstance(score, int | float) and 0 <= score <= 1)):
        raise UsageError(
            f"{where}: not an answer: id, condition, outcome or score is missing or invalid"
        )
    gold = line.fields.get("gold")
    mark: ItemScore = NO_SCORE if score is None else float(score)
    if outcome == AnswerOutcome.ERROR:
        mark = "error"
    elif outcome != AnswerOutcome.ANSWERED:
        mark = NO_SCORE if gold is None else 0.0
    id, row = str(line.fields["id"]), str(line.fields.get("row", line.fields["id"]))
    return id, RunItem({str(line.fields["condition"]): mark}, row, gold, line, line.fields)


def _record(line: Line) -> tuple[str, RunItem]:
    """The key of an output line of `judge validate`, and its item.

    The marks are the verdicts on the record before and after repair, and the last verdict
    of each check, with the score of a decided one.
    """
    fields = line.original_fields
    marks = {RECORD: _mark(line.first_verdict), REPAIRED: _mark(line.verdict)}
    checks = line.last_checks.items()
    marks |= {f"check {name}": _mark(check["verdict"]) for name, check in checks}
    decided = [(name, check) for name, check in checks if check["verdict"] not in UNDECIDED]
    scores = {f"{SCORE}{name}": check.get("score") for name, check in decided}
    marks |= {name: float(score) for name, score in scores.items() if score is not None}
    name = str(line.content.get("name") or "")
    text = None if _PLACE.search(name) else name
    id = text or own_id(fields)
    key = f"id {id}" if id else f"content {content_hash(fields)}"
    answers = {name: _answers_of(check) for name, check in checks}
    cluster = scalar_text(line.fields.get("row")) or key
    return key, RunItem(marks, cluster, fields=fields, answers=answers, line=line.number)


def _answers_of(check: Mapping[str, Any]) -> dict[str | None, str | None]:
    if not has_entries(check):
        answer = check.get("answer")
        return {None: None if answer is None else str(answer)}
    content = read_check(check)
    outcomes = content.outcomes() if content else {}
    return {value: said for value, (_, said) in outcomes.items() if value is not None}


def _mark(verdict: str) -> ItemScore:
    return {"pass": 1.0, "fail": 0.0}.get(verdict, verdict)

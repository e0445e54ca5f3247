"""Two runs on the same items: which is better, by how much, and could that be chance?

Runs are output lines of `judge evaluate` or `judge validate`. Items of `judge evaluate` are paired
by id (which holds the condition), records by their id, else by the hash of their own content as it
was before edits; the second of the same name goes with the second of the other run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge.errors import UsageError
from judge.evaluation.results import result_of
from judge.evaluation.tables import Cell, Row, Table
from judge.records import RESERVED, content_hash, read
from judge.records.base import clip
from judge.records.fields import scalar_text
from judge.stats.bootstrap import Resamples, paired_difference, share_estimate
from judge.stats.significance import holm, mcnemar

Mark = float | str
"""The score of an item in one series, in [0, 1], or why it has none."""

OVERALL, RECORD, REPAIRED = "overall", "record", "record after repair"
"""The series of all conditions together; of the verdicts on records as they came in, and as they
were written where either run repaired any."""

NO_SCORE, ABSENT, MISSING = "no score", "not there", "no answer"


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a run: its marks by series, and what intervals and pairing take of its fields."""

    name: str
    marks: Mapping[str, Mark]
    cluster: str
    gold: Any = None


@dataclass(slots=True)
class Run:
    """A file of output lines, by item; `made_by` is its command with its benchmark or workflow.

    `faulty` counts lines about input that could not be read: they are no items.
    """

    source: str
    made_by: str = ""
    entries: dict[tuple[str, int], Entry] = field(default_factory=dict)
    faulty: int = 0

    @property
    def evaluated(self) -> bool:
        return self.made_by.startswith("judge evaluate")

    def series(self) -> list[str]:
        """All series, in the order in which they first appear."""
        return list(dict.fromkeys(name for e in self.entries.values() for name in e.marks))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs compared: how they are paired, the table, and what is to be known of it."""

    made_by: str
    items: Mapping[str, int]
    table: Table
    notes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        told = self.table.as_json()
        notes = [*self.table.notes, *self.notes]
        return {"made_by": self.made_by, "items": dict(self.items), **told, "notes": notes}


def compare(first: str, second: str) -> Comparison:
    """Compare two runs, each a file or `-`, on the items that are in both.

    An answer that was refused or cannot be read is not right; one without a reply or a score is
    left out with its partner. Of verdicts only pass and fail count. Differences come with a paired
    bootstrap over rows of the source; where all scores are 0 and 1, McNemar's exact test (McNemar
    1947) is made, and its p-values are adjusted (Holm 1979) over the conditions or checks.

    Raises:
        UsageError: a file is no run, the runs are of different benchmarks or workflows, no item is
            in both, or an item's gold differs.
    """
    if first == second == "-":
        raise UsageError("standard input can be one run, not both")
    a, b = read_run(first), read_run(second)
    pairs = [(entry, b.entries[key]) for key, entry in a.entries.items() if key in b.entries]
    if a.made_by != b.made_by:
        raise UsageError(f"{first} is of {a.made_by}, {second} of {b.made_by}")
    if not pairs:
        raise UsageError(f"no item is in both {first} and {second}: nothing can be compared")
    for one, other in pairs:
        if one.gold != other.gold:
            golds = f"{clip(one.gold)} in {first} and {clip(other.gold)} in {second}"
            raise UsageError(f"{one.name}: gold is {golds}: not asked the same")
    shared = [name for name in a.series() if name in b.series()]
    series = {name: _marked(pairs, name) for name in shared}
    if series.get(REPAIRED) == series.get(RECORD):
        series.pop(REPAIRED, None)
    if a.evaluated and len(shared) > 1:
        series[OVERALL] = [marked for found in series.values() for marked in found]
    rows = [_Compared(name, marked) for name, marked in series.items()]
    # The rows over all conditions, and over records, sum the others up: each is one test.
    family = [
        row for row in rows if row.p is not None and row.series not in (OVERALL, RECORD, REPAIRED)
    ]
    for row, p in zip(family, holm([row.p or 0.0 for row in family]), strict=True):
        row.cells["Holm p"] = f"{p:.3g}"
    head = "condition" if a.evaluated else "verdict of"
    cells = [Row((row.series,), row.cells) for row in rows]
    title = "A and B on the same items (95 % intervals)"
    note = (
        "Intervals draw items of one row of the source together; McNemar's test takes each alone."
    )
    both = len(pairs)
    return Comparison(
        made_by=a.made_by,
        items={"both": both, "only_a": len(a.entries) - both, "only_b": len(b.entries) - both},
        table=Table("comparison", title, (head,), rows=cells, notes=(note,)),
        notes=list(_notes(a, b, rows)),
    )


def _notes(a: Run, b: Run, rows: Sequence[_Compared]) -> Iterator[str]:
    for name, run, other in (("A", a, b), ("B", b, a)):
        if run.faulty:
            yield f"{run.faulty} lines of {name} are about input that could not be read: no items"
        yield from (f"{one} is only in {name}" for one in run.series() if one not in other.series())
    for row in rows:
        if row.left_out:
            told = ", ".join(f"{count} {reason}" for reason, count in row.left_out.items())
            left, of = row.left_out.total(), row.cells["of"]
            yield f"{row.series}: {left} of {of} pairs are left out: {told}"


# ------------------------------------------------------------ reading


def read_run(source: str) -> Run:
    """Read a run back from a file, or `-` for standard input.

    Raises:
        UsageError: it cannot be read, a line is no output line, lines are of different benchmarks
            or workflows, or nothing in it is an item.
    """
    run = Run(source)
    seen: Counter[str] = Counter()
    for item in read(source):
        where, line = f"{source}, line {item.line}", item.fields
        if line is None:
            raise UsageError(f"{where}: {item.problem.message if item.problem else 'no record'}")
        judgement = line.get(RESERVED)
        if not isinstance(judgement, dict) or "verdict" not in judgement:
            hint = "name outputs of judge evaluate or validate"
            raise UsageError(f"{where}: field 'judge' holds no verdict: {hint}")
        if "benchmark" in judgement:
            made_by, key, entry = f"judge evaluate {judgement['benchmark']}", *_answer(line, where)
        elif "workflow" in judgement:
            made_by, key, entry = f"judge validate ({judgement['workflow']})", *_record(line)
        else:
            run.faulty += 1
            continue
        if run.made_by not in ("", made_by):
            raise UsageError(f"{where}: is of {made_by}, lines before of {run.made_by}")
        run.made_by = made_by
        seen[key] += 1
        if run.evaluated and seen[key] > 1:
            raise UsageError(f"{where}: {entry.name} stands there before")
        run.entries[key, seen[key]] = entry
    if not run.entries:
        raise UsageError(f"{source}: holds no answers and no verdicts")
    return run


def _answer(line: Mapping[str, Any], where: str) -> tuple[str, Entry]:
    """An output line of `judge evaluate`: what it is known by, and its entry."""
    found = result_of(line)
    if found is None:
        raise UsageError(f"{where}: an answer has an id, a condition, an outcome, a score")
    mark: Mark = NO_SCORE if found.score is None else found.score
    if found.outcome == "error":
        mark = "error"
    elif found.outcome != "answered":
        mark = NO_SCORE if "gold" in line and line["gold"] is None else MISSING
    entry = Entry(f"item {found.id}", {found.condition: mark}, found.row, line.get("gold"))
    return found.id, entry


def _record(line: Mapping[str, Any]) -> tuple[str, Entry]:
    """An output line of `judge validate`: what it is known by, and its entry.

    The marks are the verdict on the record as it came in and as it was written, and each check's
    as it was made last.
    """
    judgement = line[RESERVED]
    own = {name: content for name, content in line.items() if name != RESERVED}
    own |= judgement.get("original") or {}
    came = judgement.get("original_verdict") or judgement["verdict"]
    marks = {RECORD: _mark({"verdict": came}), REPAIRED: _mark(judgement)}
    for check in judgement.get("checks") or ():
        marks[f"check {check['check']}"] = _mark(check)
    id = scalar_text(own.get("id"))
    key = f"content {content_hash(own)}" if id is None else f"id {id}"
    return key, Entry(f"record {id}", marks, scalar_text(line.get("row")) or key)


def _mark(judged: Mapping[str, Any]) -> Mark:
    verdict = str(judged["verdict"])
    return {"pass": 1.0, "fail": 0.0}.get(verdict, verdict)


# ------------------------------------------------------------ rows

Marked = Sequence[tuple[Entry, Mark, Mark]]


def _marked(pairs: Sequence[tuple[Entry, Entry]], name: str) -> Marked:
    """The items that either run has in the series, with both marks.

    Missing answers are not right; in a series of which a run scored no answer, they have no score.
    """
    held = [(a, b) for a, b in pairs if name in a.marks or name in b.marks]
    first = _scored([a.marks.get(name, ABSENT) for a, _ in held])
    second = _scored([b.marks.get(name, ABSENT) for _, b in held])
    return [(a, one, two) for (a, _), one, two in zip(held, first, second, strict=True)]


def _scored(marks: Sequence[Mark]) -> list[Mark]:
    unscored = NO_SCORE in marks and not any(isinstance(mark, float) for mark in marks)
    missing: Mark = NO_SCORE if unscored else 0.0
    return [missing if mark == MISSING else mark for mark in marks]


class _Compared:
    """A row of the table: its cells, McNemar's p, and how many pairs are left out and why."""

    def __init__(self, series: str, marked: Marked) -> None:
        self.series = series
        self.left_out: Counter[str] = Counter()
        kept: list[tuple[str, float, float]] = []
        for entry, one, two in marked:
            if isinstance(one, float) and isinstance(two, float):
                kept.append((entry.cluster, one, two))
            else:
                sides = zip("AB", (one, two), strict=True)
                why = [f"{mark} in {run}" for run, mark in sides if isinstance(mark, str)]
                self.left_out[" and ".join(why)] += 1
        first, second = [one for _, one, _ in kept], [two for _, _, two in kept]
        resamples, of = Resamples([cluster for cluster, _, _ in kept]), len(marked)
        self.p: float | None = None
        self.cells: dict[str, Cell] = {
            "pairs": len(kept),
            "of": of,
            "A": replace(share_estimate(first, resamples), of=of),
            "B": replace(share_estimate(second, resamples), of=of),
            "B - A": replace(paired_difference(first, second, resamples), of=of),
        }
        if kept and {*first, *second} <= {0.0, 1.0}:
            test = mcnemar(first, second)
            self.p = test.p
            self.cells |= {"A, not B": test.only_first, "B, not A": test.only_second}
            self.cells["McNemar p"] = f"{test.p:.3g}"

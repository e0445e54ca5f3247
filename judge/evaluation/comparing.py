"""Runs on the same items: which is better, by how much, and could that be chance?

Runs are output lines of `judge evaluate` or `judge validate`. Items of `judge evaluate` are paired
by id (which holds the condition), records by their id, else by the hash of their own content as it
was before edits; the second of the same name goes with the second of the other run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Any

from judge.errors import UsageError
from judge.evaluation.results import result_of, tables_of_runs
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

_SUMS = (OVERALL, RECORD, REPAIRED)

_EVALUATE = "judge evaluate "
NO_SCORE, ABSENT, MISSING = "no score", "not there", "no answer"


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a run: its marks by series, and what intervals and pairing take of its fields."""

    name: str
    marks: dict[str, Mark]
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
        return self.made_by.startswith(_EVALUATE)

    def series(self) -> list[str]:
        """All series, in the order in which they first appear."""
        return list(dict.fromkeys(name for e in self.entries.values() for name in e.marks))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared, by the letters A, B, C: how their items are paired, the tables, and notes."""

    made_by: str
    runs: Mapping[str, str]
    items: Mapping[str, int]
    tables: Sequence[Table]
    notes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON; the table of two runs stands beside the other keys."""
        told: dict[str, Any] = {"made_by": self.made_by, "items": dict(self.items)}
        tables = [table.as_json() for table in self.tables]
        if len(tables) == 1:
            return {**told, **tables[0], "notes": [*tables[0]["notes"], *self.notes]}
        return {**told, "runs": dict(self.runs), "tables": tables, "notes": list(self.notes)}


_NOTE = "Intervals draw items of one row of the source together; McNemar's test takes each alone."


def compare(sources: Sequence[str], *, paper: bool = False) -> Comparison:
    """Compare two runs or more, each a file or `-`, on the items that they share.

    Two make one table of their differences. Of more, every run is a column of scores over the items
    that all have scored, and a second table holds each against the first.

    An answer that was refused or cannot be read is not right; one without a reply or a score is
    left out with its partners. Of verdicts only pass and fail count. Differences come with a paired
    bootstrap over rows of the source; where all scores are 0 and 1, McNemar's exact test (McNemar
    1947) is made, and its p-values are adjusted (Holm 1979) over conditions or checks, and runs.

    Args:
        paper: the benchmark's own tables, too, with a column for each run.

    Raises:
        UsageError: a file is no run, the runs are of different benchmarks or workflows, two share
            no item, or an item's gold differs.
    """
    if sources.count("-") > 1:
        raise UsageError("standard input can be one run, not both")
    if len(sources) > len(ascii_uppercase):
        raise UsageError(f"{len(sources)} runs: {len(ascii_uppercase)} can be compared at most")
    first, *others = (read_run(source) for source in sources)
    runs = dict(zip(ascii_uppercase, (first, *others), strict=False))
    _drop_equal(runs.values())
    beside = {name: _beside(first, run, name) for name, run in runs.items() if run is not first}
    # The rows over all conditions, and over records, sum the others up: each is one test.
    rows = [row for found in beside.values() for row in found]
    family = [row for row in rows if row.p is not None and row.series not in _SUMS]
    for row, p in zip(family, holm([row.p or 0.0 for row in family]), strict=True):
        row.cells["Holm p"] = f"{p:.3g}"
    notes = (note for name, some in beside.items() for note in _notes(runs, name, some))
    shared = [key for key in first.entries if all(key in run.entries for run in others)]
    head = "condition" if first.evaluated else "verdict of"
    if len(others) == 1:
        items = {"both": len(shared)} | {
            f"only_{name.lower()}": len(run.entries) - len(shared) for name, run in runs.items()
        }
        cells = [Row((row.series,), row.cells) for row in rows]
        title = "A and B on the same items (95 % intervals)"
        tables = [Table("comparison", title, (head,), cells, (_NOTE,), tuple(runs))]
    else:
        items = {"all": len(shared)} | {name: len(run.entries) for name, run in runs.items()}
        tables = [_scores(runs, shared, head), _differences(beside, head)]
    told = {name: run.source for name, run in runs.items()}
    if paper:
        if not first.evaluated:
            raise UsageError(f"--paper: {first.source} is of no benchmark")
        tables += tables_of_runs(first.made_by.removeprefix(_EVALUATE), told)
    return Comparison(first.made_by, told, items, tables, list(dict.fromkeys(notes)))


def _drop_equal(runs: Iterable[Run]) -> None:
    """Leave out the series of repaired records where no run repaired any."""
    marks = [entry.marks for run in runs for entry in run.entries.values()]
    if all(one.get(REPAIRED) == one.get(RECORD) for one in marks):
        for one in marks:
            one.pop(REPAIRED, None)


def _beside(a: Run, b: Run, name: str) -> list[_Compared]:
    """The rows of a run, by its letter, beside the first."""
    pairs = [(entry, b.entries[key]) for key, entry in a.entries.items() if key in b.entries]
    if a.made_by != b.made_by:
        raise UsageError(f"{a.source} is of {a.made_by}, {b.source} of {b.made_by}")
    if not pairs:
        raise UsageError(f"no item is in both {a.source} and {b.source}: nothing can be compared")
    for one, other in pairs:
        if one.gold != other.gold:
            golds = f"{clip(one.gold)} in {a.source} and {clip(other.gold)} in {b.source}"
            raise UsageError(f"{one.name}: gold is {golds}: not asked the same")
    series = {shared: _marked(pairs, shared) for shared in a.series() if shared in b.series()}
    if a.evaluated and len(series) > 1:
        series[OVERALL] = [marked for found in series.values() for marked in found]
    return [_Compared(shared, marked, name) for shared, marked in series.items()]


def _scores(runs: Mapping[str, Run], shared: Sequence[tuple[str, int]], head: str) -> Table:
    """Every run as a column: its mean score over the items that all have scored."""
    rows = []
    for name in runs["A"].series():
        held = [key for key in shared if any(name in r.entries[key].marks for r in runs.values())]
        columns = [
            _scored([run.entries[key].marks.get(name, ABSENT) for key in held])
            for run in runs.values()
        ]
        marks = zip(held, zip(*columns, strict=True), strict=True)
        kept = [(key, some) for key, some in marks if all(isinstance(one, float) for one in some)]
        resamples = Resamples([runs["A"].entries[key].cluster for key, _ in kept])
        found = zip(*(some for _, some in kept), strict=True) if kept else ((),) * len(runs)
        of = len(held)
        cells: dict[str, Cell] = {"pairs": len(kept), "of": of}
        for run, scores in zip(runs, found, strict=True):
            numbers = [one for one in scores if isinstance(one, float)]
            cells[run] = replace(share_estimate(numbers, resamples), of=of)
        rows.append(Row((name,), cells))
    title = "Mean scores on the items that all have (95 % intervals)"
    return Table("scores", title, (head,), rows, brief=tuple(runs))


def _differences(beside: Mapping[str, Sequence[_Compared]], head: str) -> Table:
    shown = ("pairs", "of", "B - A", "McNemar p", "Holm p")
    rows = [
        Row((name, row.series), {c.replace("B -", "run -"): row.cells.get(c) for c in shown})
        for name, some in beside.items()
        for row in some
    ]
    return Table(
        "differences", "Each run less A, on the items of both", ("run", head), rows, (_NOTE,)
    )


def _notes(runs: Mapping[str, Run], name: str, rows: Sequence[_Compared]) -> Iterator[str]:
    a, b = runs["A"], runs[name]
    for letter, run, other in (("A", a, b), (name, b, a)):
        if run.faulty:
            yield f"{run.faulty} lines of {letter} are about input that could not be read: no items"
        yield from (
            f"{one} is only in {letter}" for one in run.series() if one not in other.series()
        )
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
            made_by, key, entry = f"{_EVALUATE}{judgement['benchmark']}", *_answer(line, where)
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
    """A run beside A in one series: cells, McNemar's p, how many pairs are left out and why."""

    def __init__(self, series: str, marked: Marked, name: str) -> None:
        self.series = series
        self.left_out: Counter[str] = Counter()
        kept: list[tuple[str, float, float]] = []
        for entry, one, two in marked:
            if isinstance(one, float) and isinstance(two, float):
                kept.append((entry.cluster, one, two))
            else:
                sides = zip(("A", name), (one, two), strict=True)
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

"""Two runs on the same items: which is better, by how much, and could that be chance?

Runs are output lines of `judge evaluate` or `judge validate`. Items of `judge evaluate` are paired
by id (which holds the condition), records by their id, else by the hash of their own content as it
was before edits; the second of the same name goes with the second of the other run.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judge.errors import UsageError
from judge.evaluation.results import answered_of
from judge.evaluation.tables import NOT_SAID, Cell, Row, Table
from judge.records import RESERVED, content_hash, read
from judge.records.fields import scalar_text
from judge.records.values import clip
from judge.stats.bootstrap import Resamples, paired_difference, share_estimate
from judge.stats.significance import holm, mcnemar

Kind = Literal["evaluate", "validate"]
Mark = float | str
"""The score of an item in one series, in [0, 1], or why it has none."""

OVERALL, RECORD, RECALL = "overall", "record", "recall"
"""The series of all conditions together; of the records' verdicts; of value extraction."""

NO_SCORE, ABSENT, MISSING = "no score", "not there", "no answer"


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a run: its marks by series, and its other fields as far as they are compared."""

    name: str
    line: int
    marks: Mapping[str, Mark]
    cluster: str
    part: str
    gold: str | None


@dataclass(slots=True)
class Run:
    """A file of output lines, by item; `names` are its benchmarks or workflows.

    `faulty` counts lines about input that could not be read: they are no items.
    """

    source: str
    kind: Kind = "validate"
    names: set[str] = field(default_factory=set)
    entries: dict[tuple[str, ...], Entry] = field(default_factory=dict)
    faulty: int = 0

    def series(self) -> list[str]:
        """All series, in the order in which they first appear."""
        return list(dict.fromkeys(name for e in self.entries.values() for name in e.marks))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs compared: how they are paired, the table, and what is to be known of it."""

    kind: Kind
    names: Sequence[str]
    sources: tuple[str, str]
    both: int
    only_a: int
    only_b: int
    table: Table
    notes: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "command": f"judge {self.kind}",
            "names": list(self.names),
            "a": self.sources[0],
            "b": self.sources[1],
            "items": {"both": self.both, "only_a": self.only_a, "only_b": self.only_b},
            **self.table.as_json(),
            "notes": list(self.notes),
        }


def compare(
    first: str, second: str, *, by: str | None = None, draws: int = 1000, seed: int = 0
) -> Comparison:
    """Compare two runs on the items that are in both.

    An answer that was refused or cannot be read is not right; one without a reply or a score is
    left out with its partner. Of verdicts only pass and fail count. Differences come with a paired
    bootstrap over rows of the source; where all scores are 0 and 1, McNemar's exact test (McNemar
    1947) is made, and its p-values are adjusted (Holm 1979) over the conditions or checks, and over
    the slices.

    Args:
        first: the run A, a file or `-`.
        second: the run B.
        by: an own field of the items, to slice by.
        draws: of the bootstrap, at least 1.
        seed: of the bootstrap.

    Raises:
        UsageError: a file is no run, the runs are of different commands, benchmarks or workflows,
            no item is in both, an item's gold differs, or none has the field to slice by.
    """
    if first == second == "-":
        raise UsageError("standard input can be one run, not both")
    a, b = read_run(first, by), read_run(second, by)
    pairs = [(entry, b.entries[key]) for key, entry in a.entries.items() if key in b.entries]
    _refuse_unlike(a, b, pairs)
    if by is not None and all(one.part == other.part == NOT_SAID for one, other in pairs):
        raise UsageError(f"--by {by}: no item has this field")
    there = {"A": a.series(), "B": b.series()}
    shared = [name for name in there["A"] if name in there["B"]]
    rows = list(_rows(pairs, shared, a.kind, by, draws, seed))
    _adjust(rows)
    return Comparison(
        kind=a.kind,
        names=sorted(a.names & b.names),
        sources=(first, second),
        both=len(pairs),
        only_a=len(a.entries) - len(pairs),
        only_b=len(b.entries) - len(pairs),
        table=_table(rows, a.kind, by),
        notes=list(_notes(a, b, rows)),
    )


def _refuse_unlike(a: Run, b: Run, pairs: Sequence[tuple[Entry, Entry]]) -> None:
    if a.kind != b.kind:
        raise UsageError(f"{a.source} is of judge {a.kind}, {b.source} of judge {b.kind}")
    if not a.names & b.names:
        what = "benchmark" if a.kind == "evaluate" else "workflow"
        names = " and ".join(", ".join(sorted(run.names)) for run in (a, b))
        raise UsageError(f"{a.source} and {b.source} are of another {what} each: {names}")
    if not pairs:
        raise UsageError(f"no item is in both {a.source} and {b.source}: nothing can be compared")
    for one, other in pairs if a.kind == "evaluate" else ():
        if one.gold != other.gold:
            raise UsageError(
                f"item {one.name}: gold is {clip(one.gold)} in {a.source}, line {one.line}, and "
                f"{clip(other.gold)} in {b.source}, line {other.line}: not asked the same"
            )


# ------------------------------------------------------------ reading


def read_run(source: str, by: str | None = None) -> Run:
    """Read a run back.

    Args:
        source: a file, or `-` for standard input.
        by: the own field whose value slices the items.

    Raises:
        UsageError: it cannot be read, a line is no output line, lines are of different commands,
            an item comes twice, or nothing in it is an item.
    """
    run = Run(source)
    seen: Counter[tuple[str, str]] = Counter()
    for item in read(source):
        where = f"{source}, line {item.line}"
        if item.fields is None:
            raise UsageError(f"{where}: {item.problem.message if item.problem else 'no record'}")
        judgement = item.fields.get(RESERVED)
        if not isinstance(judgement, dict) or "verdict" not in judgement:
            raise UsageError(
                f"{where}: field 'judge' holds no verdict: "
                "name outputs of judge evaluate, validate or score"
            )
        fields = {name: content for name, content in item.fields.items() if name != RESERVED}
        kind: Kind = "evaluate" if "benchmark" in judgement else "validate"
        if kind == "validate" and not isinstance(judgement.get("workflow"), str):
            run.faulty += 1
            continue
        if run.entries and kind != run.kind:
            raise UsageError(f"{where}: is of judge {kind}, lines before of judge {run.kind}")
        run.kind = kind
        if kind == "evaluate":
            key, name, marks = _answer(item.fields, where)
            run.names.add(str(judgement["benchmark"]))
        else:
            original = judgement.get("original")
            fields |= original if isinstance(original, dict) else {}
            id = scalar_text(fields.get("id"))
            known = ("content", content_hash(fields)) if id is None else ("id", id)
            seen[known] += 1
            key, marks = (*known, str(seen[known])), _verdicts(judgement)
            name = f"record {id}" if id is not None else f"the record on line {item.line}"
            run.names.add(judgement["workflow"])
        if key in run.entries:
            raise UsageError(f"{where}: {name} stands on line {run.entries[key].line} already")
        run.entries[key] = _entry(name, item.line, fields, marks, by)
    if not run.entries:
        raise UsageError(f"{source}: holds no answers and no verdicts")
    return run


def _answer(line: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], str, dict[str, Mark]]:
    """An answer's key, name and mark, of an output line of `judge evaluate`."""
    found, id = answered_of(line), scalar_text(line.get("id"))
    if found is None or id is None or found.condition is None:
        raise UsageError(f"{where}: an answer has an id, a condition, an outcome, a score")
    mark: Mark = NO_SCORE if found.score is None else found.score
    nothing_right = "gold" in line and line["gold"] is None
    if found.outcome == "error":
        mark = "error"
    elif found.outcome != "answered":
        mark = NO_SCORE if nothing_right else MISSING
    return (found.condition, id), f"item {id} ({found.condition})", {found.condition: mark}


def _verdicts(judgement: Mapping[str, Any]) -> dict[str, Mark]:
    """The verdict, each check's as it was made last, and the recall of an extraction."""

    def mark(judged: Mapping[str, Any]) -> Mark:
        verdict = str(judged["verdict"])
        return {"pass": 1.0, "fail": 0.0}.get(verdict, verdict)

    marks = {RECORD: mark(judgement)}
    for check in judgement.get("checks") or ():
        marks[f"check {check['check']}"] = mark(check)
    extraction = judgement.get("extraction")
    if isinstance(extraction, dict):
        settled = extraction["over"] == extraction["of"] and extraction.get("recall") is not None
        marks[RECALL] = float(extraction["recall"]) if settled else NO_SCORE
    return marks


def _entry(
    name: str, line: int, fields: Mapping[str, Any], marks: Mapping[str, Mark], by: str | None
) -> Entry:
    part = NOT_SAID
    if by is not None and fields.get(by) is not None:
        part = scalar_text(fields[by]) or _plain(fields[by])
    row = scalar_text(fields.get("row"))
    gold = _plain(fields["gold"]) if "gold" in fields else None
    cluster = name if row is None else f"row {row}"
    return Entry(name, line, marks, cluster, part, gold)


def _plain(content: object) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


# ------------------------------------------------------------ rows


def _rows(
    pairs: Sequence[tuple[Entry, Entry]],
    shared: Sequence[str],
    kind: Kind,
    by: str | None,
    draws: int,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """A row of each series and of its slices: `series`, `part`, `cells`, `p`, `left_out`."""
    series = {name: _in_series(pairs, name) for name in shared}
    if kind == "evaluate" and len(shared) > 1:
        series[OVERALL] = [pair for found in series.values() for pair in found]
    for name, found in series.items():
        parts = sorted({entry.part for entry, _, _ in found}) if by is not None else []
        for part in (None, *parts):
            some = [pair for pair in found if part in (None, pair[0].part)]
            yield {"series": name, "part": part, **_row(some, draws, seed)}


def _in_series(pairs: Sequence[tuple[Entry, Entry]], name: str) -> list[tuple[Entry, Mark, Mark]]:
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


def _row(pairs: Sequence[tuple[Entry, Mark, Mark]], draws: int, seed: int) -> dict[str, Any]:
    first: list[float] = []
    second: list[float] = []
    clusters: list[str] = []
    left_out: Counter[str] = Counter()
    for entry, one, two in pairs:
        if isinstance(one, str) or isinstance(two, str):
            sides = zip("AB", (one, two), strict=True)
            why = [f"{mark} in {run}" for run, mark in sides if isinstance(mark, str)]
            left_out[" and ".join(why)] += 1
            continue
        first.append(one)
        second.append(two)
        clusters.append(entry.cluster)
    resamples = Resamples(clusters, draws=draws, seed=seed)
    cells: dict[str, Cell] = {
        "pairs": len(first),
        "of": len(pairs),
        "A": replace(share_estimate(first, resamples), of=len(pairs)),
        "B": replace(share_estimate(second, resamples), of=len(pairs)),
        "B - A": replace(paired_difference(first, second, resamples), of=len(pairs)),
    }
    p: float | None = None
    if first and {*first, *second} <= {0.0, 1.0}:
        test = mcnemar(first, second)
        p = test.p
        cells |= {"A, not B": test.only_first, "B, not A": test.only_second}
        cells["McNemar p"] = f"{p:.3g}"
    together = resamples.clusters < len(first)
    return {"cells": cells, "p": p, "left_out": left_out, "together": together}


def _adjust(rows: Sequence[dict[str, Any]]) -> None:
    """Give rows Holm's p-values: over the conditions or checks, and over their slices.

    The rows over all conditions, and over records, sum the others up and are families of their
    own: their slices are adjusted, the row itself is one test.
    """
    families: dict[tuple[bool, bool], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        whole = row["series"] in (OVERALL, RECORD)
        if row["p"] is not None and not (whole and row["part"] is None):
            families[whole, row["part"] is None].append(row)
    for family in families.values():
        adjusted = holm([row["p"] for row in family])
        for row, p in zip(family, adjusted, strict=True):
            row["cells"]["Holm p"] = f"{p:.3g}"


def _table(rows: Sequence[dict[str, Any]], kind: Kind, by: str | None) -> Table:
    head = "condition" if kind == "evaluate" else "verdict of"
    return Table(
        "comparison",
        "A and B on the same items (95 % intervals)",
        (head, *([by] if by else [])),
        rows=[
            Row((row["series"], *([row["part"] or "all"] if by else [])), row["cells"])
            for row in rows
        ],
    )


def _notes(a: Run, b: Run, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for run, faulty in (("A", a.faulty), ("B", b.faulty)):
        if faulty:
            yield f"{faulty} lines of {run} are about input that could not be read: no items"
    for run, own, other in (("A", a.series(), b.series()), ("B", b.series(), a.series())):
        yield from (f"{name} is only in {run}" for name in own if name not in other)
    for row in rows:
        if row["left_out"] and row["part"] is None:
            told = ", ".join(f"{count} {reason}" for reason, count in row["left_out"].items())
            left, of = row["left_out"].total(), row["cells"]["of"]
            yield f"{row['series']}: {left} of {of} pairs are left out: {told}"
    if any(row["p"] is not None and row["together"] for row in rows):
        yield (
            "some items share a row of the source: the intervals draw them together, McNemar's "
            "test takes each for itself"
        )

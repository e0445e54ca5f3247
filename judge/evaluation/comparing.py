"""Two runs on the same items: which is better, by how much, and could that be chance?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.errors import UsageError
from judge.evaluation.compared_runs import (
    ABSENT,
    RECORD,
    Entry,
    Kind,
    Mark,
    RunFile,
    read_run_file,
)
from judge.records.values import clip
from judge.stats.bootstrap import Resamples, paired_difference, share_estimate
from judge.stats.intervals import Estimate
from judge.stats.significance import McNemar, holm, mcnemar

OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class Compared:
    """One row: a series (condition, check, or all conditions), or a slice (`part`) of one.

    `first`, `second` and `difference` (second less first) are over the same pairs, `n` of them out
    of the items of both runs that belong here. `left_out` says why the others are missing.
    `clusters` is how many sets of pairs are drawn together. `test` is None where scores are not
    all 0 and 1; `adjusted` is its p-value among those of its family, None outside of one.
    """

    series: str
    part: str | None
    first: Estimate
    second: Estimate
    difference: Estimate
    clusters: int
    left_out: Mapping[str, int]
    test: McNemar | None
    adjusted: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON; `a` and `b` for the runs, `mcnemar` null where there is no test."""
        test = self.test
        return {
            "series": self.series,
            "part": self.part,
            "pairs": self.difference.n,
            "of": self.difference.of,
            "clusters": self.clusters,
            "left_out": dict(self.left_out),
            "a": self.first.as_json(),
            "b": self.second.as_json(),
            "difference": self.difference.as_json(),
            "mcnemar": None
            if test is None
            else {
                "only_a_right": test.only_first,
                "only_b_right": test.only_second,
                "p": test.p,
                "p_holm": self.adjusted,
            },
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs compared. `only_a`, `only_b` count items without a partner, `changed` records whose
    content differs, `lone` is each series that only one run has."""

    kind: Kind
    names: Sequence[str]
    sources: tuple[str, str]
    both: int
    only_a: int
    only_b: int
    faulty: tuple[int, int]
    changed: int
    lone: Mapping[str, str]
    by: str | None
    rows: Sequence[Compared]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "command": f"judge {self.kind}",
            "names": list(self.names),
            "a": self.sources[0],
            "b": self.sources[1],
            "items": {"both": self.both, "only_a": self.only_a, "only_b": self.only_b},
            "lines_without_item": {"a": self.faulty[0], "b": self.faulty[1]},
            "changed_records": self.changed,
            "series_of_one_run": dict(self.lone),
            "by": self.by,
            "rows": [row.as_json() for row in self.rows],
        }


def compare(
    first: str, second: str, *, by: str | None = None, draws: int = 1000, seed: int = 0
) -> Comparison:
    """Compare two runs on the items that are in both.

    An answer that was refused or cannot be read is not right; one that got no reply, or that
    nothing scored, is left out with its partner. Of verdicts only pass and fail count. Differences
    come with a paired bootstrap over rows of the source; where all scores are 0 and 1, McNemar's
    exact test is made, and its p-values are adjusted (Holm) over the conditions or checks, and over
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
    a, b = read_run_file(first, by), read_run_file(second, by)
    _refuse_unlike(a, b)
    keys = [key for key in a.entries if key in b.entries]
    if not keys:
        raise UsageError(f"no item is in both {first} and {second}: nothing can be compared")
    if by is not None and not (a.sliced or b.sliced):
        raise UsageError(f"--by {by}: no item has this field")
    pairs = [(a.entries[key], b.entries[key]) for key in keys]
    changed = 0
    for one, other in pairs:
        if a.kind == "evaluate":
            _refuse_other_gold(a, b, one, other)
        elif one.content != other.content:
            changed += 1
    shared = [name for name in a.series() if name in set(b.series())]
    return Comparison(
        kind=a.kind,
        names=sorted(a.names & b.names),
        sources=(first, second),
        both=len(pairs),
        only_a=len(a.entries) - len(pairs),
        only_b=len(b.entries) - len(pairs),
        faulty=(a.faulty, b.faulty),
        changed=changed,
        lone={name: run for run, name in _lone(a, b)},
        by=by,
        rows=_adjusted(list(_rows(pairs, shared, a.kind, by, draws, seed))),
    )


def _refuse_unlike(a: RunFile, b: RunFile) -> None:
    if a.kind != b.kind:
        raise UsageError(f"{a.source} is of judge {a.kind}, {b.source} of judge {b.kind}")
    if not a.names & b.names:
        what = "benchmark" if a.kind == "evaluate" else "workflow"
        names = " and ".join(", ".join(sorted(run.names)) for run in (a, b))
        raise UsageError(f"{a.source} and {b.source} are of another {what} each: {names}")


def _refuse_other_gold(a: RunFile, b: RunFile, one: Entry, other: Entry) -> None:
    if one.gold != other.gold:
        told = [clip(entry.gold if entry.gold is not None else "none") for entry in (one, other)]
        raise UsageError(
            f"item {one.name}: gold is {told[0]} in {a.source}, line {one.line}, and {told[1]} in "
            f"{b.source}, line {other.line}: these runs were not asked the same"
        )


def _lone(a: RunFile, b: RunFile) -> Iterator[tuple[str, str]]:
    there = {"A": a.series(), "B": b.series()}
    for run, other in (("A", "B"), ("B", "A")):
        for name in there[run]:
            if name not in there[other]:
                yield run, name


# ------------------------------------------------------------------ rows


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two marks of one item; `part` and `cluster` are the item's."""

    first: Mark
    second: Mark
    part: str
    cluster: str


def _rows(
    pairs: Sequence[tuple[Entry, Entry]],
    shared: Sequence[str],
    kind: Kind,
    by: str | None,
    draws: int,
    seed: int,
) -> Iterator[Compared]:
    every: list[_Pair] = []
    for name in shared:
        found = _in_series(pairs, name)
        every += found
        yield from _compared(name, found, by, draws, seed)
    if kind == "evaluate" and len(shared) > 1:
        yield from _compared(OVERALL, every, by, draws, seed)


def _in_series(pairs: Sequence[tuple[Entry, Entry]], name: str) -> list[_Pair]:
    """The items that either run has in the series. In a series of which a run scored no answer,
    its refusals have no score either."""
    absent = Mark(ABSENT, None)
    found = [
        _Pair(a.marks.get(name, absent), b.marks.get(name, absent), a.part, a.cluster)
        for a, b in pairs
        if name in a.marks or name in b.marks
    ]
    unscored = Mark("answered", None)
    if not _any_scored(pair.first for pair in found):
        found = [replace(p, first=unscored) if _refused(p.first) else p for p in found]
    if not _any_scored(pair.second for pair in found):
        found = [replace(p, second=unscored) if _refused(p.second) else p for p in found]
    return found


def _any_scored(marks: Iterator[Mark]) -> bool:
    """Whether an answer was scored; true too where there is no answer that could have been."""
    answered = [mark for mark in marks if mark.outcome == "answered"]
    return not answered or any(mark.score is not None for mark in answered)


def _refused(mark: Mark) -> bool:
    return mark.outcome in ("refused", "unreadable")


def _compared(
    series: str, pairs: Sequence[_Pair], by: str | None, draws: int, seed: int
) -> Iterator[Compared]:
    """The row of a series, then, where items are sliced, those of its parts by name."""
    yield _row(series, None, pairs, draws, seed)
    if by is not None:
        parts: dict[str, list[_Pair]] = defaultdict(list)
        for pair in pairs:
            parts[pair.part].append(pair)
        for part in sorted(parts):
            yield _row(series, part, parts[part], draws, seed)


def _row(series: str, part: str | None, pairs: Sequence[_Pair], draws: int, seed: int) -> Compared:
    first: list[float] = []
    second: list[float] = []
    clusters: list[str] = []
    left_out: Counter[str] = Counter()
    for pair in pairs:
        if pair.first.score is None or pair.second.score is None:
            left_out[_why(pair)] += 1
            continue
        first.append(pair.first.score)
        second.append(pair.second.score)
        clusters.append(pair.cluster)
    resamples = Resamples(clusters, draws=draws, seed=seed)
    binary = bool(first) and {*first, *second} <= {0.0, 1.0}
    return Compared(
        series,
        part,
        first=replace(share_estimate(first, resamples), of=len(pairs)),
        second=replace(share_estimate(second, resamples), of=len(pairs)),
        difference=replace(paired_difference(first, second, resamples), of=len(pairs)),
        clusters=resamples.clusters,
        left_out=dict(left_out),
        test=mcnemar(first, second) if binary else None,
    )


def _why(pair: _Pair) -> str:
    """Why a pair is left out: `error in A`, `abstain in A and skipped in B`."""
    sides = (("A", pair.first), ("B", pair.second))
    return " and ".join(f"{mark.missing} in {run}" for run, mark in sides if mark.score is None)


def _adjusted(rows: list[Compared]) -> list[Compared]:
    """The rows with Holm's p-values: over the conditions or checks, and over their slices.

    The rows over all conditions, and over records, sum the others up and are families of their
    own: their slices are adjusted, the row itself is one test.
    """
    families: dict[tuple[bool, bool], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        whole = row.series in (OVERALL, RECORD)
        if row.test is not None and not (whole and row.part is None):
            families[whole, row.part is None].append(place)
    made = list(rows)
    for places in families.values():
        p_values = [test.p for place in places if (test := rows[place].test) is not None]
        for place, p in zip(places, holm(p_values), strict=True):
            made[place] = replace(rows[place], adjusted=p)
    return made

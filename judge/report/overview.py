"""What stands at the top of the page: how many lines, what came of them, and who judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from judge.report.judged import Judged, Line, Result
from judge.run.summary import SpeechStatistics, Summary
from judge.stats.intervals import Estimate, wilson
from judge.verdict import Verdict

RESULTS: tuple[Result, ...] = get_args(Result)
OUTCOMES = tuple(map(str, Verdict))

MOST = 40
"""Checks, fingerprints and error types that are told apart; what is beyond is counted together."""

MEANINGS: Mapping[Result, str] = {
    "fail": "at least one check failed, and none was lost",
    "error": "no reply, or a record that cannot be judged; judge validate --resume asks again",
    "unreadable": "the judge's replies never became valid",
    "abstain": "no majority, or not sure enough: for people to decide",
    "pass": "every check that was made passed",
}


@dataclass(slots=True)
class Share:
    """One row of counts: a verdict's, with its share of all lines (95 % Wilson interval)."""

    result: Result
    count: int
    shown: int
    share: Estimate

    @property
    def meaning(self) -> str:
        return MEANINGS[self.result]

    @property
    def told(self) -> str:
        return percent(self.share.value)

    @property
    def interval(self) -> str:
        return between(self.share)


@dataclass(slots=True)
class Way:
    """How some of the lines were judged: one fingerprint, or one workflow without any."""

    fingerprint: str | None
    workflow: str | None
    models: Mapping[str, Any]
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def lines(self) -> int:
        return self.verdicts.total()

    @property
    def roles(self) -> list[tuple[str, str]]:
        """Who judged, accepted, rewrote."""
        return [pair for pair in _flat(self.models) if "." not in pair[0]][:MOST]

    @property
    def settings(self) -> list[tuple[str, str]]:
        """What else the fingerprint stands for, one pair a setting or rubric."""
        return [pair for pair in _flat(self.models) if "." in pair[0]][: 3 * MOST]


@dataclass(slots=True)
class Overview:
    """Counts over output lines."""

    summary: Summary = field(default_factory=lambda: Summary(SpeechStatistics(None)))
    ways: dict[tuple[str | None, str | None], Way] = field(default_factory=dict)
    other_ways: int = 0
    split: int = 0
    edited: int = 0
    shown: Counter[str] = field(default_factory=Counter)
    foreign: int = 0
    foreign_shown: int = 0

    def add(self, line: Line) -> None:
        """Count one line."""
        judged = line.judged
        self.summary.add(judged.model_dump())
        self.split += any(check.split for check in judged.checks)
        self.edited += bool(judged.edits)
        self._way(judged)

    def _way(self, judged: Judged) -> None:
        # An error line for a record that could not be read was not judged in any way.
        if judged.fingerprint is None and judged.workflow is None:
            return
        key = (judged.fingerprint, judged.workflow)
        if key not in self.ways:
            if len(self.ways) == MOST:
                self.other_ways += 1
                return
            self.ways[key] = Way(*key, judged.models)
        self.ways[key].verdicts[judged.verdict] += 1

    @property
    def lines(self) -> int:
        return self.summary.records

    @property
    def fingerprints(self) -> int:
        return len({way.fingerprint for way in self.ways.values()})

    @property
    def rows(self) -> list[Share]:
        """A row for each verdict that occurs, in the order of `RESULTS`."""
        counts = self.summary.verdicts
        return [
            Share(name, counts[name], self.shown[name], wilson(counts[name], self.lines))
            for name in RESULTS
            if counts[name]
        ]

    @property
    def checks(self) -> list[tuple[str, Mapping[str, int], Estimate]]:
        """Each check with its counts, and the share of passes over what was not skipped."""
        found: list[tuple[str, Mapping[str, int], Estimate]] = []
        for name, counts in list(self.summary.checks.items())[:MOST]:
            asked = sum(counts.values()) - counts[Verdict.SKIPPED]
            found.append((name, counts, wilson(counts[Verdict.PASS], asked)))
        return found

    @property
    def errors(self) -> Sequence[tuple[str, int]]:
        return self.summary.errors.most_common(MOST)


def percent(share: float | None) -> str:
    """A share to a tenth of a percent; a dash where it is undefined."""
    return "–" if share is None else f"{share:.1%}"


def between(share: Estimate) -> str:
    """The interval of a share; a dash where it is undefined."""
    if share.low is None or share.high is None:
        return "–"
    return f"{share.low:.1%} to {share.high:.1%}"


def _flat(tree: Any, path: str = "") -> list[tuple[str, str]]:
    """(path, content) for each leaf of nested settings that says something."""
    if isinstance(tree, Mapping):
        found = []
        for key, content in tree.items():
            found += _flat(content, f"{path}.{key}" if path else str(key))
        return found
    if isinstance(tree, list):
        tree = ", ".join(map(str, tree))
    return [] if tree is None or tree == "" else [(path, str(tree))]

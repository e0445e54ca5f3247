"""What stands at the top of the page: how many lines, their verdicts, their checks, the judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.run.summary import Summary
from judge.stats.intervals import Estimate, wilson
from judge.verdict import Judgement, Verdict

OUTCOMES = tuple(map(str, Verdict))

MOST = 40
"""Checks, fingerprints and error types that are shown; those beyond are counted together."""

MEANINGS: Mapping[Verdict, str] = {
    Verdict.FAIL: "at least one check failed, and none was lost",
    Verdict.ERROR: "no reply, or no readable record; judge validate --resume asks again",
    Verdict.UNREADABLE: "the judge's replies never became valid",
    Verdict.ABSTAIN: "no majority, or not sure enough: for people to decide",
    Verdict.PASS: "every check that was made passed",
}
"""What a record's verdict means, in the order in which people look at records."""


@dataclass(frozen=True, slots=True)
class Share:
    """A verdict's row: its count, how many are shown, its share of all lines (95 % Wilson)."""

    verdict: Verdict
    count: int
    shown: int
    share: Estimate
    meaning: str


@dataclass(slots=True)
class Run:
    """The lines of one fingerprint and workflow, and what OUT.run.json says of that run."""

    fingerprint: str | None
    workflow: str | None
    described: Mapping[str, Any]
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def details(self) -> list[tuple[str, str]]:
        """One (name, content) pair for each model, setting and rubric."""
        return _flat(self.described)[: 4 * MOST]


@dataclass(slots=True)
class Overview:
    """Counts over output lines.

    Attributes:
        described: the contents of OUT.run.json by fingerprint, where there is one.
        split: records of which at least one check has votes that differ.
        foreign: lines that `judge validate` did not write.
    """

    described: Mapping[str, Any] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)
    runs: dict[tuple[str | None, str | None], Run] = field(default_factory=dict)
    other_runs: int = 0
    split: int = 0
    edited: int = 0
    shown: Counter[str] = field(default_factory=Counter)
    foreign: int = 0

    def add(self, judged: Judgement) -> None:
        """Count one line."""
        self.summary.add(judged.model_dump())
        self.split += any(differ(check) for check in judged.checks)
        self.edited += bool(judged.edits)
        # A record that could not be read was judged by no run.
        if judged.fingerprint is None and judged.workflow is None:
            return
        key = (judged.fingerprint, judged.workflow)
        if key not in self.runs and len(self.runs) == MOST:
            self.other_runs += 1
            return
        known = self.described.get(judged.fingerprint or "", {})
        self.runs.setdefault(key, Run(*key, known)).verdicts[judged.verdict] += 1

    @property
    def lines(self) -> int:
        return self.summary.records

    @property
    def fingerprints(self) -> int:
        return len({run.fingerprint for run in self.runs.values()})

    @property
    def rows(self) -> list[Share]:
        """A row for each verdict that occurs, in the order of `MEANINGS`."""
        counts = self.summary.verdicts
        return [
            Share(v, counts[v], self.shown[v], wilson(counts[v], self.lines), meaning)
            for v, meaning in MEANINGS.items()
            if counts[v]
        ]

    @property
    def checks(self) -> list[tuple[str, Mapping[str, int], Estimate]]:
        """Each check with its counts, and the share of passes over what was not skipped."""
        return [
            (name, counts, wilson(counts[Verdict.PASS], counts.total() - counts[Verdict.SKIPPED]))
            for name, counts in list(self.summary.checks.items())[:MOST]
        ]


def differ(check: Any) -> bool:
    """Whether a check's votes say different things."""
    return len({vote.verdict for vote in check.votes}) > 1


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
        pairs = []
        for key, content in tree.items():
            pairs += _flat(content, f"{path}.{key}" if path else str(key))
        return pairs
    if isinstance(tree, list):
        tree = ", ".join(map(str, tree))
    return [] if tree is None or tree == "" else [(path, str(tree))]

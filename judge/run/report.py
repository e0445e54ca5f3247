"""How a run ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from judge.errors import Exit, JudgeError, unwritable
from judge.run.output import write_whole
from judge.run.summary import Summary

if TYPE_CHECKING:
    from judge.run.corrected import CorrectedRate
    from judge.run.gates import Gate, GateOutcome
    from judge.run.job import Job
    from judge.settings import Settings


@dataclass(slots=True, repr=False)
class Report:
    """How a run ended: its exit code, sums, gates, and the reason.

    `batches` counts those still at a provider. If OUT was not `begun`, it is unchanged; `unmatched`
    counts its finished lines without a record in the input, which were moved to a file beside it;
    `reviewed` counts lines in the review. `runs` describes how lines were made, by fingerprint;
    `unpriced` models have no known price.
    """

    summary: Summary = field(default_factory=Summary)
    gates: Sequence[Gate] = ()
    seconds: float = 0.0
    interrupted: bool = False
    fatal: JudgeError | None = None
    broken_pipe: bool = False
    batches: int = 0
    begun: bool = False
    unmatched: int = 0
    reviewed: int = 0
    traffic: dict[str, dict[str, Any]] = field(default_factory=dict)
    cost: float | None = 0.0
    unpriced: tuple[str, ...] = ()
    rates: dict[str, CorrectedRate] = field(default_factory=dict)
    runs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.summary}\nexit code: {self.exit_code}"

    @property
    def finished(self) -> bool:
        """Whether every input line has its output line."""
        return not (self.interrupted or self.fatal or self.broken_pipe)

    @property
    def outcomes(self) -> list[GateOutcome]:
        """The outcome of each gate."""
        return [gate.outcome(self.summary) for gate in self.gates]

    @property
    def exit_code(self) -> int:
        if self.broken_pipe:
            return int(Exit.READER_GONE)
        if self.fatal is not None:
            return int(self.fatal.exit_code)
        if self.interrupted:
            return int(Exit.INTERRUPTED)
        if not all(outcome.holds for outcome in self.outcomes):
            return int(Exit.GATE)
        return int(Exit.INCOMPLETE if self.summary.incomplete else Exit.OK)

    def as_json(self) -> dict[str, Any]:
        unknown = {} if self.finished else {"holds": None}
        return {
            **self.summary.as_json(),
            "finished": self.finished,
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 3),
            "cost_usd": None if self.cost is None else round(self.cost, 6),
            "unmatched": self.unmatched,
            "corrected_pass_rates": [rate.as_json() for _, rate in sorted(self.rates.items())],
            "models": self.traffic,
            "runs": self.runs,
            "gates": [outcome.as_json() | unknown for outcome in self.outcomes],
        }


def write_summary(job: Job, report: Report, settings: Settings, **more: Any) -> None:
    """Write the job's summary file, if it names one; a failure is fatal for the report."""
    if job.summary is None:
        return
    content = {**report.as_json(), **more, "settings_from": settings.from_files}
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    try:
        write_whole(job.summary, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        failure = unwritable(f"--summary {job.summary} cannot be written", error)
        report.fatal = report.fatal or failure

"""Tasks: what a run does with its items, and how its lines are made. Validation and evaluation are
tasks."""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from judge import plugins
from judge.digest import digest
from judge.errors import DISTRIBUTION, BackendError, JudgeError
from judge.judgement import Unfinished
from judge.records import Record
from judge.records.lines import Line
from judge.redact import redacted
from judge.run.models import Models
from judge.run.report import Report
from judge.run.summary import Summary
from judge.settings import IN_PROCESS, Settings
from judge.verdict import Verdict

if TYPE_CHECKING:
    from judge.judging.limits import Budget
    from judge.run.gates import Gate
    from judge.run.panels import Resources

_log = logging.getLogger(__name__)

FOR_PEOPLE = frozenset((Verdict.ABSTAIN, Verdict.UNREADABLE))
"""Verdicts whose records go to `--review`."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """How lines of one workflow or benchmark are made: its name, models and fingerprint; and what
    is behind each model's name, which is in the fingerprint, too."""

    name: str
    models: Mapping[str, Any]
    fingerprint: str
    identities: Mapping[str, Mapping[str, str]]

    @property
    def described(self) -> dict[str, Any]:
        """The form in the description beside OUT and in the summary file."""
        return {**self.models, "identities": self.identities}


def fingerprint(described: Mapping[str, Any], identities: Mapping[str, Any]) -> str:
    """16 hex digits over rubrics, models, parameters and workflow: same digits, same question.

    Args:
        described: the run's description; its `workflow` or `benchmark` names the entry point.
        identities: of the models, by `provider:model`.
    """
    body = {"run": described, "models": identities}
    foreign = {
        **plugins.packages("judge.backends", (spec.partition(":")[0] for spec in identities)),
        **plugins.packages("judge.workflows", (str(described.get("workflow")),)),
        **plugins.packages("judge.generators", (str(described.get("workflow")),)),
        **plugins.packages("judge.benchmarks", (str(described.get("benchmark")),)),
    }
    if foreign:
        body["plugins"] = foreign
    return digest(json.dumps(body, sort_keys=True).encode(), 8)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: sums over its lines so far, and its models' counters."""

    summary: Summary
    models: Models

    @property
    def calls(self) -> int:
        """Calls to models, without cache hits."""
        return sum(client.counters.calls for client in self.models.clients.values())

    @property
    def cache_hits(self) -> int:
        return sum(client.counters.cache_hits for client in self.models.clients.values())

    @property
    def cost(self) -> float:
        """US dollars, of models with a known price."""
        return self.models.budget.cost

    @property
    def batches(self) -> int:
        """Batches that are still at the provider."""
        return self.models.batches


class Watcher:
    """Receives the events of a run; this base class logs the messages that every user needs."""

    def wrote(self, progress: Progress) -> None:
        """Called when the models are ready, after each line, and every second."""

    def say(self, message: str) -> None:
        """Show a message that every user needs."""
        _log.warning("judge: %s", message)

    def note(self, message: str) -> None:
        """Show a message that --quiet suppresses."""


class Task(ABC):
    """The records of a run, and the step that turns one into its output line."""

    resources: Resources
    watcher = Watcher()
    gates: Sequence[Gate] = ()

    @abstractmethod
    def items(self) -> Iterator[Record]:
        """The records, in order; one with a `problem` is not judged, and its line says why.

        Raises:
            UsageError: the input does not suit this run.
        """

    @property
    def slots(self) -> int:
        """Records judged at once."""
        return self.resources.models.slots

    async def look(self) -> None:  # noqa: B027
        """Read ahead to check that the items can be asked about; raises UsageError."""

    async def prepare(self) -> None:
        """Reach every model before the first item; raises BackendError or UsageError."""
        await self.resources.prepare()

    async def aclose(self) -> None:
        """Free what the task holds."""
        await self.resources.models.aclose()

    @abstractmethod
    def run_info(self, name: str) -> RunInfo:
        """Models and fingerprint of this workflow's or benchmark's lines."""

    @abstractmethod
    async def step(self, record: Record) -> Line:
        """The output line of a record; raises BackendError: the model gave no reply."""

    @abstractmethod
    def failed(
        self, record: Record, kind: str, message: str, unfinished: Unfinished | None
    ) -> Line:
        """The line of a record without a verdict; `unfinished` is what was asked before."""

    def settled(self, line: Line) -> Line:
        """The final form of a new line, or of one kept from an earlier run; called in input
        order."""
        return line

    def discards(self, line: Line) -> bool:
        """Whether the line goes into the job's file of discarded lines instead of OUT."""
        return False

    def for_people(self, line: Line) -> bool:
        """Whether the line goes into `--review`."""
        return line.verdict in FOR_PEOPLE

    @abstractmethod
    def count(self, line: Line, report: Report) -> None:
        """Count a line that was written, or kept from an earlier run."""


class Engine(Protocol):
    """Where the steps of a task run: a task is the engine of this process."""

    @property
    def slots(self) -> int:
        """Records judged at once."""

    async def prepare(self) -> None:
        """Reach what the steps need; raises BackendError or UsageError."""

    async def step(self, record: Record) -> Line:
        """The output line of a record; raises BackendError: the model gave no reply."""

    async def aclose(self) -> None:
        """Free what the engine holds, and the task's models."""


OfWorker = Callable[[Settings, "Budget"], Task]
"""Makes a run's task in a worker of its engine, for steps only: it has no items. Can be pickled."""


def engine_of(task: Task, settings: Settings, of_worker: OfWorker) -> Engine:
    """The engine of the settings: the task itself in this process, else one whose workers take its
    steps. Raises UsageError as the engine does."""
    if settings.engine in IN_PROCESS:
        return task
    engine: Engine = plugins.load("judge.engines", settings.engine)(task, settings, of_worker)
    return engine


async def line_of(task: Task, record: Record, engine: Engine) -> Line:
    """The output line of a record, also if its step on the engine fails.

    Raises:
        JudgeError: what ends the run: an unreachable model, a refused key, a spent budget.
    """
    try:
        return await engine.step(record)
    except BackendError as error:
        if error.ends_run:
            raise
        return task.failed(record, error.kind, str(error), error.unfinished)
    except JudgeError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        # A library may cancel a call by itself; only if the run stops is the record to be dropped.
        now = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and now is not None and now.cancelling():
            raise
        # A fault of judge, or of an added rubric, workflow or benchmark: one record must not stop
        # all others, in this run and at every resume.
        _log.exception("%r was not judged", record.id)
        message = redacted(f"{type(error).__name__}: {error}").removesuffix(": ")
        if (package := plugins.owner(error)) != DISTRIBUTION:
            message += f" (a fault in {package})"
        return task.failed(record, "internal", message, None)

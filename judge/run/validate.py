"""`judge validate` without its command line: from inputs to output lines and a summary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Self

from judge.errors import BackendError, JudgeError, UsageError
from judge.records import Item, Kind, Problem, Record, SeenIds, build
from judge.redact import redacted
from judge.run import lines
from judge.run.fingerprint import Mark
from judge.run.job import Job, refuse_unusable, select
from judge.run.lines import Line
from judge.run.running import Report, Watcher, run
from judge.run.setup import Bound, Setup
from judge.run.summary import SpeechStatistics, Summary
from judge.run.workflows import load_workflow
from judge.settings import Settings
from judge.subject import Subject

_log = logging.getLogger(__name__)


def validate(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """Run a job to its end, or to where it was stopped.

    Raises:
        UsageError: nothing was judged: an input, output, model or setting that cannot be used.
    """
    refuse_unusable(job)
    return validate_items(job, settings, watcher, select(job), lambda line: None)


def validate_items(
    job: Job,
    settings: Settings,
    watcher: Watcher,
    items: Iterator[Item],
    seen: Callable[[Line], None],
) -> Report:
    """Judge items that are not read from the job's inputs; `seen` is told each output line.

    Raises:
        UsageError: as `validate`.
    """
    work_of = _work_of(settings)
    with SeenIds() as ids:
        return run(job, work_of(settings, ids, items, seen), new_summary(), watcher)


def _work_of(settings: Settings) -> Callable[..., Validation]:
    """Where the engine that the settings name has its records judged."""
    if settings.engine == "ray":
        from judge.run.cluster import ClusterValidation

        return ClusterValidation.of
    return Validation.of


def new_summary() -> Summary:
    """An empty summary; it compares rewritten speech where the sentence encoder is here."""
    return Summary(SpeechStatistics(_encoder()))


def _encoder() -> Any:
    from judge.stats.similarity import SentenceEncoder

    return SentenceEncoder() if SentenceEncoder.available() else None


class Validation:
    """What validation does with each item."""

    def __init__(
        self, setup: Setup, ids: SeenIds, items: Iterator[Item], seen: Callable[[Line], None]
    ) -> None:
        self.setup, self.ids = setup, ids
        self._items, self._seen = items, seen
        chosen = setup.settings.workflow
        self.kind: Kind | None = load_workflow(chosen).kind if chosen else None
        self._misfits: dict[Kind, str | None] = {}

    @classmethod
    def of(
        cls, settings: Settings, ids: SeenIds, items: Iterator[Item], seen: Callable[[Line], None]
    ) -> Self:
        """The work of a run with these settings.

        Raises:
            UsageError: as `Setup.of`.
        """
        return cls(Setup.of(settings), ids, items, seen)

    def items(self) -> Iterator[Item]:
        """The items.

        Raises:
            UsageError: none of the chosen checks is asked of the first record. Later on such a
                record has an error line, as others that cannot be judged.
        """
        looked = not self.setup.settings.check
        for item in self._items:
            if not looked and not isinstance(record := build(item, self.kind), Problem):
                looked = True
                if (misfit := self._misfit(record)) is not None:
                    raise UsageError(f"line {item.line} of {item.source}: {misfit}")
            yield item

    async def prepare(self) -> None:
        await self.setup.prepare()

    def mark(self, name: str) -> Mark:
        bound = self.setup.bound(name)
        return Mark(bound.workflow.name, bound.models, bound.fingerprint)

    def readable(self, item: Item) -> bool:
        if self.setup.settings.check:
            # Without the ids, which remember what they are asked about: a misfit gets a line, too.
            record = build(item, self.kind)
            if isinstance(record, Record) and self._misfit(record) is not None:
                return False
        return not isinstance(build(item, self.kind, self.ids), Problem)

    async def line(self, item: Item, kept: Callable[[Item], Line | None]) -> Line:
        """The output line for one item."""
        if item.problem is not None:
            return lines.bad_input(item, item.problem)
        record = build(item, self.kind, self.ids)
        if isinstance(record, Problem):
            return lines.bad_input(item, record)
        if (misfit := self._misfit(record)) is not None:
            return lines.bad_input(item, Problem(misfit))
        if (line := kept(item)) is not None:
            return line
        return await self.judged(record)

    def _misfit(self, record: Record) -> str | None:
        """Why none of the chosen checks is asked of such a record; None where one is."""
        if record.kind not in self._misfits:
            self._misfits[record.kind] = self.setup.misfit(record.kind)
        return self._misfits[record.kind]

    async def judged(self, record: Record) -> Line:
        """The output line for a record, from the setup alone: also where no input is read.

        Raises:
            BackendError: as `line`.
        """
        bound = self.setup.bound(record.kind)
        try:
            line = await self.through_workflow(record, bound)
        except BackendError as error:
            if error.kind in ("unreachable", "denied"):
                raise
            return lines.failed(record, error.kind, str(error), bound, error.unfinished)
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001
            # A fault of ours, or of somebody's rubric or workflow: one record must not keep all
            # others from being judged, now and again on every resume.
            _log.exception("record %s (line %d) was not judged", record.id, record.item.line)
            told = redacted(f"{type(error).__name__}: {error}")
            return lines.failed(record, "internal", told, bound)
        return line

    async def through_workflow(self, record: Record, bound: Bound) -> Line:
        """The line of a record that is taken through its workflow.

        Raises:
            BackendError: as `Workflow.run`.
        """
        outcome = await bound.workflow.run(Subject.of(record), bound.context)
        return lines.judged(record, outcome, bound)

    def count(self, line: Line, report: Report) -> None:
        self._seen(line)
        report.summary.note_failure(line.text, line.judgement)
        judgement = line.judgement
        if judgement.get("workflow") and judgement.get("checks") and not judgement.get("error"):
            chosen = self.setup.settings.workflow or line.judgement["workflow"]
            bound = self.setup.bound_workflow(chosen)
            report.corrections.add(line.text, line.judgement, bound)

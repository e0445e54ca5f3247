"""`judge validate` without its command line: from inputs to output lines and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

from judge.errors import UsageError
from judge.records import Item, Kind, Problem, Record, SeenIds, build
from judge.run import lines
from judge.run.fingerprint import Mark
from judge.run.job import Job, refuse_unusable, select
from judge.run.lines import Line
from judge.run.setup import Setup
from judge.run.summary import Summary
from judge.run.task import Report, Watcher, run
from judge.run.workflows import load_workflow
from judge.settings import Settings
from judge.subject import Subject
from judge.verdict import Unfinished


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
    task_of: Callable[..., Validation] = Validation.of
    if settings.engine == "ray":
        from judge.run.ray import RayValidation

        task_of = RayValidation.of
    with SeenIds() as ids:
        task = task_of(settings, ids, items, seen)
        return run(job, task, Summary(), watcher)


class Validation:
    """The task of validation."""

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
        """The task of a run with these settings.

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

    def read(self, item: Item) -> Record | Line:
        record = build(item, self.kind, self.ids)
        if isinstance(record, Problem):
            return lines.bad_input(item, record)
        if (misfit := self._misfit(record)) is not None:
            return lines.bad_input(item, Problem(misfit))
        return record

    def _misfit(self, record: Record) -> str | None:
        """Why none of the chosen checks is asked of such a record; None where one is."""
        if record.kind not in self._misfits:
            self._misfits[record.kind] = self.setup.misfit(record.kind)
        return self._misfits[record.kind]

    async def step(self, record: Record) -> Line:
        bound = self.setup.bound(record.kind)
        outcome = await bound.workflow.run(Subject.of(record), bound.context)
        return lines.judged(record, outcome, bound)

    def failed(
        self, record: Record, kind: str, message: str, unfinished: Unfinished | None
    ) -> Line:
        bound = self.setup.bound(record.kind)
        return lines.failed(record, kind, message, bound, unfinished)

    def count(self, line: Line, report: Report) -> None:
        self._seen(line)
        report.summary.note_failure(line.text, line.judgement)
        judgement = line.judgement
        if judgement.get("workflow") and judgement.get("checks") and not judgement.get("error"):
            chosen = self.setup.settings.workflow or judgement["workflow"]
            report.corrections.add(line.text, judgement, self.setup.bound_workflow(chosen))

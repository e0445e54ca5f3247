"""`judge validate` without its command line: from inputs to output lines and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Self

from judge.errors import UsageError
from judge.records import Item, Kind, Problem, Record, SeenIds, build, clip, mapped, recognise
from judge.run import lines
from judge.run.checks import load_workflow
from judge.run.job import Job, refuse_unusable, select
from judge.run.lines import Line, Mark
from judge.run.setup import Setup
from judge.run.summary import Report
from judge.run.task import Task, Watcher, run
from judge.settings import Settings
from judge.subject import Subject
from judge.verdict import Unfinished


def validate(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """Run a job until it ends or is stopped.

    Raises:
        UsageError: nothing was judged: an input, output, model or setting that cannot be used.
    """
    refuse_unusable(job)
    task_of: Callable[..., Validation] = Validation.of
    if settings.engine == "ray":
        from judge.run.ray import RayValidation

        task_of = RayValidation.of
    task = task_of(settings, select(job))
    report = run(job, task, watcher)
    for told in task.missing() if report.finished else ():
        watcher.say(told)
    return report


class Validation(Task):
    """The task of validation."""

    def __init__(self, setup: Setup, items: Iterator[Item]) -> None:
        self.setup, self._ids = setup, SeenIds()
        self.columns = setup.settings.columns
        self._items = mapped(items, self.columns)
        chosen = setup.settings.workflow
        self.kind: Kind | None = load_workflow(chosen).kind if chosen else None
        self._suited = False
        checks = setup.checks
        self._misfit = cache(checks.misfit)
        self._any_record = bool(checks.own)
        self._unseen = {
            field: f"--on {field}" if field in setup.settings.on else f"rubric {name}: {field}"
            for name in reversed(checks.own)
            for field in checks.rubrics[name].fields
        }
        self._first: Subject | None = None

    @classmethod
    def of(cls, settings: Settings, items: Iterator[Item]) -> Self:
        """The task of a run with these settings.

        Raises:
            UsageError: as `Setup.of`.
        """
        return cls(Setup.of(settings), items)

    def items(self) -> Iterator[Item]:
        return self._items

    def mark(self, name: str) -> Mark:
        return self.setup.bound(name)

    def read(self, item: Item) -> Record | Line:
        """The record, or the line of one that cannot be judged.

        Raises:
            UsageError: none of the chosen checks is asked of the first record. Later on such a
                record has an error line.
        """
        record = build(item, self.kind_of(item), self._ids)
        if isinstance(record, Problem):
            return lines.bad_input(item, record)
        if (misfit := self._misfit(record.kind)) is not None:
            if not self._suited:
                raise UsageError(f"line {item.line} of {item.source}: {misfit}")
            return lines.bad_input(item, Problem(misfit))
        self._suited = True
        if self._unseen:
            subject = Subject.of(record)
            self._unseen = {name: self._unseen[name] for name in subject.lacks([*self._unseen])}
            self._first = self._first or subject
        return record

    def missing(self) -> Iterator[str]:
        """Fields of `--on` and of additional rubrics that no record had, with the nearest known."""
        if self._first is None:
            return
        there = [*self._first.texts]
        for name, told in self._unseen.items():
            near = get_close_matches(name, there, 1)
            known = f"did you mean {near[0]}?" if near else f"the first has {clip(there, 300)}"
            yield f"{told}: no record has such a field; {known}"

    def kind_of(self, item: Item) -> Kind | None:
        """The workflow's kind, or that of any record where only the user's questions suit it."""
        sound = item.fields is not None and item.problem is None
        any_record = self._any_record and sound and not recognise(item.shown)
        return self.kind or ("record" if any_record else None)

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
        judgement = line.judgement
        if judgement.get("workflow") and judgement.get("checks") and not judgement.get("error"):
            bound = self.setup.bound(judgement["workflow"])
            report.corrections.add(judgement, bound.errors)

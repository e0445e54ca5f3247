"""Validation: judges inputs, and writes output lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from judge.errors import UsageError
from judge.judgement import Unfinished, verdict_columns
from judge.questions.evidence import SENTENCE_END
from judge.questions.rubric import Rubric
from judge.records import RECORD, Problem, Record, SeenIds, lines, mapped, recognise
from judge.records.base import LabelError, clip, judgement_in
from judge.records.lines import Line
from judge.run.gates import gates_of
from judge.run.job import Job
from judge.run.look_ahead import MAX_LISTED, LookAhead, listed, no_field
from judge.run.panels import Resources
from judge.run.report import Report
from judge.run.run import TaskRun
from judge.run.stream import aside
from judge.run.task import FOR_PEOPLE, RunInfo, Task, Watcher, engine_of
from judge.settings import IN_PROCESS, Settings, flag
from judge.verdict import SETTLED
from judge.workflows.load import load_workflow

if TYPE_CHECKING:
    from judge.judging.limits import Budget
    from judge.run.decisions import Decisions


def validate(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """Run a job until it ends or is stopped.

    Raises:
        UsageError: an input, output, model or setting cannot be used; nothing was judged.
    """
    job.check(settings.files)
    if job.rubrics and settings.engine not in IN_PROCESS:
        raise UsageError("engine: workers read rubrics from files alone")
    resources = Resources.of(settings, rubrics=job.rubrics)
    gates = gates_of(resources.rubrics)
    task = Validation(resources, job)
    task.gates = gates
    report = TaskRun(job, task, watcher, engine_of(task, settings, of_worker)).run()
    for message in task.missing() if report.finished else ():
        watcher.say(message)
    return report


def of_worker(settings: Settings, budget: Budget) -> Validation:
    """The task of an engine's worker."""
    return Validation(Resources.of(settings, budget=budget), Job())


class Validation(Task):
    """Asks the rubrics of a run about each record."""

    def __init__(self, resources: Resources, job: Job) -> None:
        """Raises UsageError as `Decisions`."""
        self.resources, self._ids = resources, SeenIds()
        self.columns = resources.settings.columns
        self._items = mapped(job.items(), self.columns)
        workflow = resources.settings.workflow
        self.kind: str | None = load_workflow(workflow).kind if workflow else None
        self._suited = False
        checks = resources.rubrics
        self._misfit = cache(checks.misfit)
        # Where no workflow applies, the user's own questions do.
        self._default_kind = RECORD if checks.own else None
        self._search = not (self.kind or self._default_kind)
        rubrics = [checks.by_name[name] for name in checks.own]
        # A sample is drawn by fields that some record has; those drawn may lack them.
        by = () if job.sample is not None else job.by
        self.ahead = LookAhead(resources.settings, rubrics, by, search=self._search, part=job.part)
        self._unseen = self.ahead.origins
        self._first: Record | None = None
        self._noted: set[str] = set()
        self._review: Collection[str] = job.review_verdicts or FOR_PEOPLE
        self._decisions: Decisions | None = None
        if job.decisions is not None:
            from judge.run.decisions import Decisions

            self._decisions = Decisions(job.decisions, checks.judging)
        self._unsplit = UnsplitTexts(rubrics)
        self._rubrics = rubrics

    def settled(self, line: Line) -> Line:
        return line if self._decisions is None else self._decisions.settled(line, self.columns)

    def for_people(self, line: Line) -> bool:
        settled = line.decided and line.verdict in SETTLED
        return line.verdict in self._review and not settled

    def items(self) -> Iterator[Record]:
        """The records as checks see them; one that cannot be judged has its `problem`.

        Raises:
            UsageError: no chosen check applies to the first record. Later, such a record gets an
                error line.
        """
        return map(self._read, self._items)

    async def look(self) -> None:
        """Run `look_ahead`, and note which fields are shown."""
        await aside(self.look_ahead)
        if message := self.ahead.shown or self.ahead.compared:
            self.watcher.note(message)
        if self.ahead.first is not None:
            for message in self.resources.profiles.unmeasured(self._rubrics, self.ahead.first):
                self.watcher.say(message)
            for message in dict.fromkeys(self._idle(self.ahead.first.kind)):
                self.watcher.note(message)

    def _idle(self, kind: str) -> Iterator[str]:
        """Yield messages about settings that have no effect on the checks of a kind of record."""
        settings, context = self.resources.settings, self.resources.bound(kind).context
        asked = (panel for panel in context.panels if panel.rubric.name in context.selected)
        panels = [panel for panel in asked if not panel.rubric.tested]
        if settings.votes:
            yield from filter(None, (panel.votes_once for panel in panels))
        judges = [judge for panel in panels for judge in panel.judges]
        if settings.abstain_margin and not any(judge.probabilistic for judge in judges):
            why = "no judge of these checks gives probabilities, as with --method logprobs"
            yield f"--abstain-margin has no effect: {why}"
        # Probabilities are read from one reply, at temperature 0.
        writing = [p for p in panels if not all(judge.probabilistic for judge in p.judges)]
        for name, several in (("temperature", False), ("vote_temperature", True)):
            if settings.typed(name) and all((panel.votes > 1) != several for panel in writing):
                why = "no judge of these checks writes replies"
                if writing:
                    why = "each judge has one vote (--temperature)"
                    why = why if several else "judges have several votes (--vote-temperature)"
                yield f"{flag(name)} has no effect: {why}"
        if settings.cheap_model and not any(panel.cheap for panel in panels):
            yield "--cheap-model is not asked: no check asks by first token, or its margin is 0.5"

    def look_ahead(self) -> None:
        """Read ahead until one record can be judged and each field of --on, --test, --by and --map
        has been seen. Note which fields of the first record are shown if a rubric names none.

        Raises:
            UsageError: as `LookAhead.refuse`.
        """
        ahead = self.ahead
        while not ahead.complete and (item := next(self._items, None)) is not None:
            record = item.of_kind(self.kind, default=self._default_kind)
            unasked = item.problem is None and self._search and recognise(item.visible) is None
            ahead.add(item, record, asked=record.problem is None or not unasked)
        ahead.refuse()
        self._items = chain(ahead.items, self._items)

    def _first_time(self, topic: str) -> bool:
        """Whether nothing has been said about this topic; it counts as said from now on."""
        before = len(self._noted)
        self._noted.add(topic)
        return len(self._noted) > before

    def run_info(self, name: str) -> RunInfo:
        return self.resources.bound(name)

    def _read(self, item: Record) -> Record:
        if item.input_key and self._first_time("input key"):
            self.watcher.say(f"the input's own field 'judge' is kept as {item.input_key!r}")
        if judgement_in(item.fields) is not None and self._first_time("earlier verdicts"):
            self.watcher.note("the input's earlier verdicts (field 'judge') are replaced")
        if verdict_columns(item.fields) and self._first_time("earlier columns"):
            self.watcher.note("tables have the new verdict in place of the input's judge.verdict")
        record = item.of_kind(self.kind, self._ids, default=self._default_kind)
        if record.problem is not None:
            return record
        if record.repeated and self._first_time("repeated id"):
            self.watcher.say(
                f"id {clip(record.typed['id'])} is repeated: {record.called}, and all later "
                "records with a repeated id, are named by file and line"
            )
        if (misfit := self._misfit(record.kind)) is not None:
            if not self._suited:
                raise UsageError(f"line {item.line} of {item.source}: {misfit}")
            return replace(record, problem=Problem(misfit))
        self._suited = True
        if self.ahead.shown and len(self.ahead.hidden) < MAX_LISTED:
            self._note_hidden(record)
        if self.ahead.origins:
            try:
                record.texts.refuse_ambiguous(self.ahead.origins)
            except LabelError as error:
                return replace(record, problem=error.problem)
            self._unseen = {n: origin for n, origin in self._unseen.items() if not record.has(n)}
            self._first = self._first or record
        self._unsplit.add(record)
        return record

    def _note_hidden(self, record: Record) -> None:
        """Note fields that are not shown, each at the first record that has it."""
        new = {n: why for n, why in record.hidden().items() if n not in self.ahead.hidden}
        self.ahead.hidden |= new
        if new:
            self.watcher.note(f"line {record.line}: not shown: {listed(new)}")

    def missing(self) -> Iterator[str]:
        """Messages about fields of `--on` and of additional rubrics that no record had, about texts
        that `each` does not split, and about people's answers (`Decisions.notes`)."""
        for name, origin in self._unseen.items():
            if self._first is not None:
                yield no_field(origin, name, self._first, self.columns)
        yield from self._unsplit.notes()
        if self._decisions is not None:
            yield from self._decisions.notes("input")

    async def step(self, record: Record) -> Line:
        bound = self.resources.bound(record.kind)
        outcome = await bound.workflow.run(record, bound.context)
        changes, fingerprint = outcome.changes, bound.fingerprint
        return lines.judged(record, outcome.judgement, changes, fingerprint)

    def failed(
        self, record: Record, kind: str, message: str, unfinished: Unfinished | None
    ) -> Line:
        bound = self.resources.bound(record.kind)
        error, workflow = (kind, message), bound.workflow.name
        return lines.failed(record, error, workflow, bound.fingerprint, unfinished)

    def count(self, line: Line, report: Report) -> None:
        if line.workflow and line.checks and not line.error:
            bound = self.resources.bound(line.workflow)
            if bound.errors:
                from judge.run.corrected import count

                foreign = line.fingerprint != bound.fingerprint
                count(report.rates, line, bound.errors, foreign=foreign)


class UnsplitTexts:
    """Which fields of `each` are one plain text of one line in every record, and of several
    sentences in one: a list with one entry, or a short text, may be meant as one."""

    def __init__(self, rubrics: Iterable[Rubric]) -> None:
        self._rubrics = {r.each: r.name for r in rubrics if r.each and not r.tested}
        self._several: set[str] = set()

    def add(self, record: Record) -> None:
        for name in [*self._rubrics]:
            if not (entries := record.entries(name)):
                continue
            text = record.visible.get(name)
            if not isinstance(text, str) or entries != (text.strip(),):
                del self._rubrics[name]
            elif name not in self._several and len(SENTENCE_END.findall(text)) > 1:
                self._several.add(name)

    def notes(self) -> Iterator[str]:
        """A message for each such field."""
        for name, rubric in self._rubrics.items():
            if name in self._several:
                yield (
                    f"{rubric}: {name} is one entry in each record, also where it has several "
                    "sentences: to judge each, make it a list, or write each on a line "
                    "(docs/howto/rag.md)"
                )

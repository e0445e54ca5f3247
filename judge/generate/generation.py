"""`judge generate` without its command line: takes drafts through a generator's workflow to OUT."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

from judge.errors import UsageError
from judge.generate.diversity import Diversity
from judge.generate.generator import DraftOptions, Generator, Lost
from judge.generate.recipe import load_generator
from judge.judgement import DraftOutcome, Judgement, Unfinished
from judge.judging.limits import Budget
from judge.model_tables import StepModel
from judge.records import Record, SeenIds
from judge.records.base import LINEAGE
from judge.records.lines import Line, failed, written
from judge.run.decisions import Decisions
from judge.run.job import Job
from judge.run.models import ClientBuilder, Models
from judge.run.output import discarded_file
from judge.run.panels import BoundWorkflow, Resources
from judge.run.plan import Plan, PlannedCalls, plan_items, planned, planned_client
from judge.run.profiles import profiles_of
from judge.run.report import Report, write_summary
from judge.run.rubrics import RubricSet
from judge.run.run import TaskRun
from judge.run.task import RunInfo, Task, Watcher, engine_of
from judge.settings import Settings
from judge.verdict import Verdict
from judge.workflows import Context, Work

BEFORE = ("source", "error")
"""Stages of every set: unusable source lines, and drafts without a reply."""

SIMILARITY = "similarity"
"""The stage at which near-duplicates are lost."""

JUDGED = frozenset(map(str, (Verdict.FAIL, Verdict.ABSTAIN, Verdict.UNREADABLE)))
"""Causes that come from judges, not from counting; a person may overrule them."""


def generate(
    job: Job,
    settings: Settings,
    watcher: Watcher,
    *,
    generator: Generator,
    options: DraftOptions,
    max_similarity: float,
    name: str,
) -> tuple[Report, Generation]:
    """Have drafts written and checked; those kept go into OUT, others into a file beside it.

    Args:
        settings: as `roles_of` returns them.
        max_similarity: a record that is more similar to an earlier one is discarded.
        name: the name by which an engine's workers load the generator.

    Raises:
        UsageError: nothing was written: a source, output, model or setting cannot be used.
    """
    if job.out is not None:
        job = replace(job, discarded=discarded_file(job.out))
    job.check_outputs(settings.files)
    task = Generation(job, resources_of(settings, generator), generator, options, max_similarity)
    workers_task = partial(of_worker, name)
    report = TaskRun(job, task, watcher, engine_of(task, settings, workers_task)).run()
    for message in task.decisions.notes("drafts") if report.finished and task.decisions else ():
        watcher.say(message)
    write_summary(job, report, settings, **task.as_json())
    return report, task


def of_worker(name: str, settings: Settings, budget: Budget) -> Generation:
    """The task of an engine's worker, with the generator of this name."""
    generator = load_generator(name)
    resources = resources_of(settings, generator, budget=budget)
    return Generation(Job(), resources, generator, DraftOptions())


def plan_generation(
    job: Job, settings: Settings, *, generator: Generator, options: DraftOptions
) -> Plan:
    """Estimate what a generation will ask: the same run, with calls counted instead of made.

    Raises:
        UsageError: a source, model or setting cannot be used.
    """
    resources = resources_of(planned(settings), generator, planned_client)
    task = Generation(job, resources, generator, options)

    async def calls_of(draft: Record, calls: PlannedCalls) -> None:
        await task.step(draft, calls.work)

    return plan_items(task.items(), calls_of, resources.models)


def roles_of(
    settings: Settings,
    generator: Generator,
    *,
    judges: Sequence[str] = (),
    steps: Mapping[str, str] | None = None,
    roles: str | None = None,
) -> Settings:
    """The settings with the writer (`settings.model`, else that of `roles`) and judges assigned.

    Args:
        judges: models that judge; by default the writer.
        steps: models of single steps, by the step's name.
        roles: the name of one of the generator's roles.

    Raises:
        UsageError: several writers, or a step or roles that the generator does not have.
    """
    settings = settings.without_questions()
    if len(settings.model) > 1:
        raise UsageError("name the one model that writes: -m PROVIDER:MODEL; judges: --judge-model")
    cast = generator.roles.get(roles or "")
    if roles is not None and cast is None:
        names = ", ".join(generator.roles) or "none"
        raise UsageError(f"--roles {roles}: {generator.name} has {names}")
    by_step: dict[str, str] = {}
    if cast is not None:
        settings = settings.model_copy(update={"model": settings.model or (cast.writer,)})
        judges = judges or (cast.judge,)
        by_step = {
            s: (settings.model if w == "writer" else judges)[0] for s, w in cast.steps.items()
        }
        unset = {n: s for n, s in cast.settings.items() if n not in settings.model_fields_set}
        settings = settings.model_copy(update=unset)
    known = (*generator.workflow.rewrites, *generator.workflow.checks)
    if unknown := [name for name in steps or () if name not in known]:
        raise UsageError(f"--step {unknown[0]}: {generator.name} has {', '.join(known)}")
    models = {name: StepModel(model=model) for name, model in (by_step | {**(steps or {})}).items()}
    return settings.model_copy(
        update={
            "rewrite_model": next(iter(settings.model), None),
            "model": tuple(judges) or settings.model,
            "final_model": (),
            "model_for": {n: s for n, s in settings.model_for.items() if n in known} | models,
            "repair": True,
            "keep_dropped": True,
        }
    )


def resources_of(
    settings: Settings,
    generator: Generator,
    build: ClientBuilder | None = None,
    budget: Budget | None = None,
) -> Resources:
    """The models of the writer and the judges, and their rubrics.

    Raises:
        UsageError: a model or a rubric cannot be used as named.
    """
    # The steps are the generator's: no installed workflow has them, so they would be refused.
    rubrics = RubricSet.of(settings.without_steps())
    rubrics = replace(rubrics, settings=settings, by_name={**generator.rubrics, **rubrics.by_name})
    models = Models.of(settings, build=build, budget=budget)
    return Resources(rubrics, models, profiles_of(settings))


@dataclass(slots=True)
class Funnel:
    """Drafts by the stage where they were lost, and the cause.

    Args:
        stages: in their order. The last concerns the set as a whole, so checks that are not listed
            come before it.
        edits, dropped: how many edits the kept ones have, and values that were dropped from them.
    """

    stages: Sequence[str]
    drafts: int = 0
    overruled: int = 0
    edits: int = 0
    dropped: int = 0
    lost: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, came: Mapping[str, Any], overruled: bool = False) -> None:
        """Count a draft by its outcome (`judge.judgement.DraftOutcome`, as JSON).

        Args:
            overruled: people kept it, and judges did not.
        """
        self.drafts += 1
        self.overruled += overruled
        if stage := came.get("stage"):
            self.lost[stage][came.get("cause") or ""] += 1

    def rows(self) -> list[tuple[str, int, int, dict[str, int]]]:
        """Stage, drafts in, drafts out, and how many were lost by cause, the most first."""
        *stages, last = self.stages
        before = [stage for stage in BEFORE if stage in self.lost]
        others = [stage for stage in self.lost if stage not in (*BEFORE, *self.stages)]
        rows, number = [], self.drafts
        for stage in (*before, *stages, *others, last):
            causes = dict(sorted(self.lost.get(stage, Counter()).items(), key=lambda c: (-c[1], c)))
            rows.append((stage, number, number := number - sum(causes.values()), causes))
        return rows

    @property
    def kept(self) -> int:
        return self.drafts - sum(counts.total() for counts in self.lost.values())

    def as_json(self) -> dict[str, Any]:
        stages = [
            {"stage": stage, "in": before, "out": after, "lost": causes}
            for stage, before, after, causes in self.rows()
        ]
        return {
            "drafts": self.drafts,
            "kept": self.kept,
            "kept_by_people": self.overruled,
            "stages": stages,
        }


@dataclass
class Generation(Task):
    """A generation as a task of the runner: its items are drafts."""

    job: Job
    resources: Resources
    generator: Generator
    options: DraftOptions
    max_similarity: float = 1.0
    decisions: Decisions | None = field(init=False, default=None)
    funnel: Funnel = field(init=False)
    diversity: Diversity = field(init=False)

    def __post_init__(self) -> None:
        made = self.generator
        self.funnel = Funnel((*made.stages, SIMILARITY))
        self.diversity = Diversity(made.text, made.counted, made.crossed)
        self._ids = SeenIds()
        if self.job.decisions is not None:
            self.decisions = Decisions(self.job.decisions, self.resources.rubrics.judging)

    @cached_property
    def bound(self) -> BoundWorkflow:
        """The generator's workflow with this run's models."""
        return self.resources.bind(self.generator.workflow)

    def items(self) -> Iterator[Record]:
        """The drafts, with the writer and the run's fingerprint in their lineage."""
        rewriters, stages = self.bound.context.rewriters, self.generator.stages
        models = {r.client.spec: None for name, r in rewriters.items() if name in stages}
        writer = {"model": ", ".join(models), "fingerprint": self.bound.fingerprint}
        for draft in islice(
            self.generator.drafts(self.job.inputs, self.options), self.options.limit
        ):
            if draft.problem is not None:
                yield draft
                continue
            lineage = {**draft.visible[LINEAGE], **writer}
            draft = replace(draft, fields={**draft.visible, LINEAGE: lineage})
            yield draft.of_kind("record", self._ids)

    def run_info(self, name: str) -> RunInfo:
        if name != self.bound.name:
            raise UsageError(
                f"{self.job.out} holds records of {name}, not of {self.bound.name}: name another "
                "file with -o"
            )
        return self.bound

    async def step(self, record: Record, work_of: Callable[[Record, Context], Work] = Work) -> Line:
        """Take a draft through the workflow; returns the line with the draft's outcome."""
        work = work_of(record, self.bound.context)
        work.rounds = work.context.rounds
        result = await self.bound.workflow.once(work)
        lost = self.generator.lost(work, result.judgement)
        stage, cause = lost or (None, None)
        came = DraftOutcome(draft=record.content_hash, stage=stage, cause=cause)
        bound = self.bound
        update: dict[str, Any] = {"workflow": bound.name, "fingerprint": bound.fingerprint}
        update["generated"] = came
        if lost is not None and (not work.written or result.judgement.verdict is Verdict.PASS):
            note = work.notes[-1] if work.notes else f"{stage}: {cause}"
            update |= {"verdict": Verdict.FAIL, "reason": note}
        judgement = result.judgement.model_copy(update=update)
        return written(work.record.with_changes(result.changes), judgement.as_json())

    def failed(
        self, record: Record, kind: str, message: str, unfinished: Unfinished | None
    ) -> Line:
        bound = self.bound
        line = failed(record, (kind, message), bound.name, bound.fingerprint, unfinished)
        return _with(line, DraftOutcome(draft=record.content_hash, stage="error", cause=kind))

    def settled(self, line: Line) -> Line:
        """Apply people's answers, which override the judges', then discard near-duplicates.

        Both are decided again for lines of an earlier run, whose answers and limit may differ.
        """
        now = self._compared(self._decided(_as_judged(line)))
        return line if now.text == line.text else now

    def _decided(self, line: Line) -> Line:
        if self.decisions is None or not line.checks:
            return line
        decided = self.decisions.settled(line, {})  # The columns are renamed in the drafts.
        return line if decided is line else self._anew(decided)

    def _compared(self, line: Line) -> Line:
        """The line, discarded if it is too similar to an earlier one that was kept."""
        if self.discards(line):
            return line
        near = self.diversity.add(line, self.max_similarity)
        if near is None:
            return line
        came = DraftOutcome(
            draft=line.key,
            stage=SIMILARITY,
            cause="near-duplicate",
            verdict=line.verdict,
            reason=line.content.get("reason"),
        )
        reason = f"{SIMILARITY}: {near[1]:.2f} to {near[0]}"
        return _with(line, came, verdict=str(Verdict.FAIL), reason=reason)

    def _anew(self, line: Line) -> Line:
        """The line with the outcome of its draft by its current checks."""
        judgement = line.judgement()
        stage, cause = self._lost(line, judgement) or (None, None)
        changes = {}
        if stage is not None and judgement.verdict is Verdict.PASS:
            changes = {"verdict": str(Verdict.FAIL), "reason": f"{stage}: {cause}"}
        return _with(line, DraftOutcome(draft=line.key, stage=stage, cause=cause), **changes)

    def _lost(self, line: Line, judgement: Judgement) -> Lost | None:
        """Where the draft is lost by the checks of `judgement`; a writer's step that failed has
        failed for good."""
        work = Work(Record(line.source, line.number, dict(line.fields)), self.bound.context)
        came = line.generated
        work.checks, work.written = [*judgement.checks], True
        if came.get("stage") in self.generator.workflow.rewrites:
            work.notes = [f"{came['stage']} gave up: {came['cause']}"]
        return self.generator.lost(work, judgement)

    def _overruled(self, line: Line) -> bool:
        """Whether people kept a draft that is lost by the judges' checks."""
        if not line.decided or self.discards(line):
            return False
        judgement = line.judgement()
        alone = judgement.model_copy(update={"checks": tuple(judgement.by_judges)})
        return self._lost(line, alone) is not None

    def discards(self, line: Line) -> bool:
        return line.fingerprint is None or line.generated.get("stage") is not None

    def for_people(self, line: Line) -> bool:
        """Whether judges rejected the draft, and no person has answered."""
        return line.generated.get("cause") in JUDGED and not line.decided

    def count(self, line: Line, report: Report) -> None:
        source = {"stage": "source", "cause": "bad input"} if line.fingerprint is None else {}
        self.funnel.add({**line.generated, **source}, self._overruled(line))
        if not self.discards(line):
            self.funnel.edits += line.edits
            self.funnel.dropped += line.dropped
        # A draft for which no model was asked had nothing to show.
        report.summary.unshown += self.discards(line) and not (line.checks or line.usage.replies)

    def as_json(self) -> dict[str, Any]:
        """The funnel and the diversity, for the summary."""
        return {"funnel": self.funnel.as_json(), "diversity": self.diversity.as_json()}


def _as_judged(line: Line) -> Line:
    """The line as it was before it was discarded as a near-duplicate."""
    came = line.generated
    if came.get("stage") != SIMILARITY:
        return line
    draft = DraftOutcome(draft=came["draft"])
    return _with(line, draft, verdict=came["verdict"], reason=came.get("reason"))


def _with(line: Line, came: DraftOutcome, **changes: Any) -> Line:
    """The line with the outcome `came` of its draft."""
    generated = came.model_dump(mode="json", exclude_none=True)
    content = {**line.content, "generated": generated, **changes}
    return written(line.fields, {k: part for k, part in content.items() if part is not None})

"""`judge evaluate` without its command line: run a model through a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from judge.backends.base import Method
from judge.digest import digest
from judge.errors import BackendError, UsageError
from judge.judgement import Unfinished
from judge.judging.client import Client
from judge.judging.judge import Sampling
from judge.papers.asking import MeasuredModel, PlannedModel
from judge.papers.benchmark import Benchmark, Choices
from judge.papers.results import asked_of, line_of, result_of
from judge.papers.rows import taken
from judge.papers.tasks import MeasuredAnswer, load_task
from judge.records import Record
from judge.records.lines import Line
from judge.run.job import Job
from judge.run.models import ClientBuilder, build_client
from judge.run.panels import Resources
from judge.run.plan import Plan, PlannedCalls, plan_items, planned, planned_client
from judge.run.profiles import NO_PROFILE
from judge.run.report import Report
from judge.run.run import TaskRun
from judge.run.task import RunInfo, Task, Watcher, fingerprint
from judge.settings import Settings, flag
from judge.verdict import AnswerOutcome, Verdict
from judge.version import __version__
from judge.workflows import Context, Work
from judge.workflows.load import load_workflow

GRADING = "extraction"
"""The workflow by which judges credit extracted values."""


def evaluate(
    job: Job,
    settings: Settings,
    watcher: Watcher,
    *,
    benchmark: Benchmark,
    choices: Choices,
    judges: Sequence[str] = (),
) -> tuple[Report, list[MeasuredAnswer]]:
    """Run the model that `settings.model` names, or the run's judges, through a benchmark.

    `judges` are models that credit extracted values, which no rule can score.

    Returns:
        How the run ended, and the results in its output.

    Raises:
        UsageError: nothing was asked: a source, output, model or setting cannot be used.
    """
    job.check_outputs(settings.files)
    resources = _resources(settings, benchmark, judges)
    task = Evaluation(job, resources, settings, benchmark, choices, tuple(judges))
    return TaskRun(job, task, watcher).run(), task.results


def plan_evaluation(
    job: Job, settings: Settings, *, benchmark: Benchmark, choices: Choices, judges: Sequence[str]
) -> Plan:
    """Plan an evaluation: the same run, with calls counted instead of made.

    Raises:
        UsageError: a source, model or setting cannot be used.
    """
    settings = planned(settings)
    resources = _resources(settings, benchmark, judges, build=planned_client)
    task = Evaluation(job, resources, settings, benchmark, choices, tuple(judges))

    async def calls_of(item: Record, calls: PlannedCalls) -> None:
        await task.result(item, partial(PlannedModel, calls=calls), calls.work)

    return plan_items(task.items(), calls_of, resources.models)


def _resources(
    settings: Settings,
    benchmark: Benchmark,
    judges: Sequence[str],
    *,
    build: ClientBuilder = build_client,
) -> Resources:
    """The clients of the measured model and of `judges`, which are the run's only judges; for a
    benchmark of judges, those of the settings."""
    if judges and benchmark.credited is None:
        raise UsageError(f"--judge-model: {benchmark.name} is scored by rules alone")
    settings = settings.without_steps().without_questions()
    if benchmark.rubrics is not None:
        # --rubric chooses the rubrics, and judge's handling of hostile text is what is measured.
        update = {"final_model": (), "rewrite_model": None, "on_injection": "abstain"}
        return Resources.of(settings.model_copy(update=update), build=build)
    if not judges:
        if settings.typed("rubric"):
            asks = f"{benchmark.name} asks by its tasks: --task FILE"
            raise UsageError(f"--rubric {settings.rubric[0]} is for benchmarks of judges; {asks}")
        for name in ("profile", "votes", "vote_temperature", "cheap_model", "abstain_margin"):
            if settings.typed(name) and (value := getattr(settings, name)) != NO_PROFILE:
                raise UsageError(f"{flag(name)} {value} is for judges, and no judge is asked")
        settings = settings.model_copy(update={"rubric": (), "profile": NO_PROFILE})
    if len(settings.model) != 1:
        raise UsageError("name the one model that is measured: --model PROVIDER:MODEL")
    if settings.method == "probe":
        raise UsageError(
            "--method probe is for judges: choose structured or logprobs for a measured model"
        )
    grading = settings.model_copy(update={"model": tuple(judges)})
    resources = Resources.of(grading, (*settings.model, *judges), build=build)
    checks = load_workflow(GRADING).checks
    if unasked := {*resources.rubrics.added}.difference(checks):
        if settings.typed("rubric"):
            names = " or ".join(checks)
            raise UsageError(
                f"--rubric {min(unasked)}: judges only credit values: leave it out, or call it "
                f"{names}, to replace that question"
            )
        # Of rubrics for other runs those that replace the workflow's stay.
        rubrics = replace(resources.rubrics, added=())
        resources = Resources(rubrics, resources.models, resources.profiles)
    return resources


@dataclass
class Evaluation(Task):
    """An evaluation as a task of the runner."""

    job: Job
    resources: Resources
    settings: Settings
    benchmark: Benchmark
    choices: Choices
    judges: tuple[str, ...]
    results: list[MeasuredAnswer] = field(default_factory=list)

    def items(self) -> Iterator[Record]:
        job = self.job
        items = job.among(self.benchmark.items(job.inputs, self.choices))
        return taken(items, job.limit, job.sample, job.sample_seed, job.by)

    async def prepare(self) -> None:
        if self.benchmark.rubrics is not None:
            await self.resources.prepare()
            return
        if self.choices.setting in self.benchmark.without_json:
            return
        if self._method == "logprobs":
            await self._client.prove_logprobs("--model")
        else:
            await self._client.prepare()
        if self.judges:
            await self.resources.prepare()

    def run_info(self, name: str) -> RunInfo:
        if name != self.benchmark.name:
            raise UsageError(
                f"{self.job.out} holds answers of {name}, not of {self.benchmark.name}: "
                "name another file with -o"
            )
        return self._mark

    async def step(self, item: Record) -> Line:
        return line_of(await self.result(item), self._mark)

    async def result(
        self,
        item: Record,
        model_of: Callable[..., MeasuredModel] = MeasuredModel,
        work_of: Callable[[Record, Context], Work] = Work,
    ) -> MeasuredAnswer:
        """The model's answer to an item, scored.

        Args:
            model_of, work_of: make the measured model, and the judges' work.
        """
        fields, choices = item.fields, self.choices
        model = model_of(
            self._client,
            self._method,
            self._sampling,
            fields,
            self.resources.panel,
            choices.tasks,
            choices.setting,
        )
        result = await asked_of(self.benchmark, fields, model)
        credited = self.benchmark.credited
        if (
            self.judges
            and credited
            and result.outcome is AnswerOutcome.ANSWERED
            and credited(fields)
        ):
            result = await credit(self.resources, result, work_of)
        return result

    def failed(self, item: Record, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        problem = {"type": kind, **item.place, "message": message}
        return line_of(
            MeasuredAnswer(item.fields, AnswerOutcome.ERROR, reason=message),
            self._mark,
            problem,
        )

    def count(self, line: Line, report: Report) -> None:
        result = result_of(Line.parse(line.text) or line)
        if result is not None:
            self.results.append(result)

    @cached_property
    def _client(self) -> Client:
        """The measured model, or the first judge."""
        models = self.resources.models
        names = self.settings.model if self.benchmark.rubrics is None else models.judges
        return models.client(names[0])

    @property
    def _method(self) -> Method:
        return self.settings.method or self._client.backend.method

    @cached_property
    def _sampling(self) -> Sampling:
        """Seed and temperature: the paper's, unless the user set one."""
        settings, temperature = self.settings, self.benchmark.temperature
        if temperature is None or "temperature" in settings.model_fields_set:
            temperature = settings.temperature
        return Sampling(temperature, settings.seed)

    @cached_property
    def _mark(self) -> RunInfo:
        """The parameters of the run, and their fingerprint."""
        judged = self.benchmark.rubrics is not None
        parameters, clients = self._of_judges() if judged else self._of_model()
        described = {"benchmark": self.benchmark.name, **parameters}
        identities = {client.spec: dict(client.backend.identity()) for client in clients}
        mark = fingerprint(described, identities)
        return RunInfo(self.benchmark.name, described, mark, identities)

    def _of_model(self) -> tuple[dict[str, Any], list[Client]]:
        """Everything that affects the measured model's answers, and its client."""
        parameters: dict[str, Any] = {
            "model": self._client.spec,
            "judge": list(self.judges),
            "settings": {
                "version": __version__,
                "method": self._method,
                "temperature": self._sampling.temperature,
                "seed": self.settings.seed,
                "reasks": self.settings.reasks,
                "max_tokens": self.settings.max_tokens,
                **({"map": list(self.settings.map)} if self.settings.map else {}),
                **({"setting": self.choices.setting} if self.choices.setting else {}),
            },
            "tasks": {
                task.name: self.choices.tasks.get(task.name, task).digest
                for task in map(load_task, self.benchmark.tasks)
            },
        }
        if self.judges:
            parameters["grading"] = self.resources.bound(GRADING).fingerprint
        return parameters, [self._client]

    def _of_judges(self) -> tuple[dict[str, Any], list[Client]]:
        """Everything that affects the verdicts of the run's judges, and their clients."""
        settings, models = self.resources.settings, self.resources.models
        methods = {}
        for name in self.choices.tasks:
            panel = self.resources.panel(name)
            judges = (*panel.judges, *([panel.cheap] if panel.cheap else []))
            # How each answer is read, by profile, thresholds and margins.
            methods[name] = [[judge.probabilistic, repr(judge.reader)] for judge in judges]
        parameters: dict[str, Any] = {
            "judge": list(models.judges),
            "cheap": settings.cheap_model,
            "settings": {"version": __version__, **settings.deciding()},
            "methods": digest(methods),
            "rubrics": {name: rubric.digest for name, rubric in self.choices.tasks.items()},
        }
        specs = filter(None, (*models.judges, settings.cheap_model))
        return parameters, [*map(models.client, specs)]


async def credit(
    resources: Resources, result: MeasuredAnswer, work_of: Callable[[Record, Context], Work] = Work
) -> MeasuredAnswer:
    """Have judges credit each gold value that an answer lists (graphs/extraction.py).

    The score is the mean credit over the settled gold values; `steps` then has `credits`, one for
    each value, and the `checks` with the judges' votes.

    Raises:
        BackendError: a gold value got no reply at all, or the model cannot be reached.
        UsageError: a blank gold value.
    """
    fields = {"id": result.id, "values": result.fields["gold"], "predicted": result.answer}
    record = Record("<answers>", 1, fields).of_kind(GRADING)
    if record.problem is not None:
        raise UsageError(f"{result.id}: {record.problem.message}")
    bound = resources.bound(GRADING)
    outcome = await bound.workflow.run(record, bound.context, work_of)
    judgement = outcome.judgement
    check, extraction = judgement.checks[0], judgement.extraction
    if any(verdict is Verdict.ERROR for verdict, _ in check.outcomes().values()):
        raise BackendError(check.reason or "a judge gave no reply")
    assert extraction is not None, "the workflow extraction credits values"
    credits = {"credits": [*extraction.credits], "checks": [*judgement.as_json()["checks"]]}
    return replace(
        result,
        score=extraction.recall,
        reason=result.reason or check.reason,
        steps={**result.steps, **credits},
        usage=result.usage + judgement.usage,
    )

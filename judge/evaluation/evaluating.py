"""`judge evaluate` without its command line: a model put through a benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

from judge import __version__
from judge.backends.base import Method
from judge.errors import BackendError, UsageError
from judge.evaluation.asking import MeasuredModel
from judge.evaluation.benchmark import Benchmark, Choices, Fields, Result
from judge.evaluation.results import asked_of, line_of, result_of
from judge.evaluation.rows import taken
from judge.judging.client import Client
from judge.judging.judge import Sampling
from judge.records import Item, Problem, build
from judge.run import lines
from judge.run.clients import ClientBuilder, build_client
from judge.run.job import Job, among, refuse_outputs
from judge.run.lines import Line, Mark, fingerprint
from judge.run.plan import Plan, Rehearsal, planned
from judge.run.setup import Setup
from judge.run.summary import Report
from judge.run.task import Task, Watcher, run
from judge.settings import Settings
from judge.subject import Subject
from judge.task import load_task
from judge.verdict import Judgement, Unfinished, Verdict


def evaluate(
    job: Job,
    settings: Settings,
    watcher: Watcher,
    *,
    benchmark: Benchmark,
    choices: Choices,
    judges: Sequence[str] = (),
) -> tuple[Report, list[Result]]:
    """Put the model that `settings.model` names through a benchmark.

    Args:
        judges: models that grade what no rule can score.

    Returns:
        How the run ended, and the results in its output.

    Raises:
        UsageError: nothing was asked: a source, output, model or setting that cannot be used.
    """
    refuse_outputs(job)
    setup = setup_of(settings, benchmark, judges)
    task = _Evaluation(job, setup, settings, benchmark, choices, tuple(judges))
    return run(job, task, watcher), task.results


def setup_of(
    settings: Settings,
    benchmark: Benchmark,
    judges: Sequence[str],
    *,
    build: ClientBuilder = build_client,
) -> Setup:
    """The clients of the measured model and of the judges, which alone are the setup's judges.

    Raises:
        UsageError: not one model is measured, or a model or setting cannot be used.
    """
    if judges and benchmark.grade is None:
        raise UsageError(f"--judge-model: {benchmark.name} is scored by rules alone")
    if len(settings.model) != 1:
        raise UsageError("name the one model that is measured: --model PROVIDER:MODEL")
    if settings.method == "probe":
        raise UsageError("--method probe is a judge's; measured models answer by the other two")
    grading = settings.without_steps().model_copy(
        update={"model": tuple(judges), "check": (), "workflow": None}
    )
    return Setup.of(grading, (*settings.model, *judges), build=build)


def items_of(job: Job, benchmark: Benchmark, choices: Choices) -> Iterator[Item]:
    """The items of the rows that the job takes.

    Raises:
        UsageError: a source cannot be used, or no line serves a condition that the user named.
    """
    found = benchmark.items(job.inputs, choices)
    if choices.chosen:
        found = _served(found, job, choices)
    return taken(among(job, found), job.limit, job.sample, job.sample_seed)


def _served(items: Iterator[Item], job: Job, choices: Choices) -> Iterator[Item]:
    """The items; those up to the first of the last condition to be served are held meanwhile."""
    missing, held = set(choices.conditions), []
    for item in items:
        held.append(item)
        missing.discard((item.fields or {}).get("condition"))
        if not missing:
            return chain(held, items)
    name = next(name for name in choices.conditions if name in missing)
    fault = next((item for item in held if item.problem is not None), None)
    why = fault and fault.problem and f": line {fault.line}: {fault.problem.message}"
    sources = ", ".join(job.inputs)
    raise UsageError(f"--condition {name}: no line of {sources} serves it{why or ''}")


def sampling_of(settings: Settings, benchmark: Benchmark) -> Sampling:
    """Seed and temperature of the measured model: the paper's, unless the user set one."""
    own = None if "temperature" in settings.model_fields_set else benchmark.temperature
    return Sampling(settings.temperature if own is None else own, settings.seed)


def plan_evaluation(
    job: Job, settings: Settings, *, benchmark: Benchmark, choices: Choices, judges: Sequence[str]
) -> Plan:
    """What an evaluation will ask, by task and by grading check, with stand-ins for its models.

    At the least replies are short (a quarter of a task's `max_tokens`, lists empty); at the most
    they are as long as they may be, lists are full, and every vote is asked. Re-asking of invalid
    replies is left out.

    Raises:
        UsageError: a source, model or setting that cannot be used.
    """
    rehearsal = Rehearsal()
    setup = setup_of(planned(settings), benchmark, judges, build=rehearsal.client)
    sampling = sampling_of(settings, benchmark)

    async def ask(fields: Fields) -> None:
        client = setup.client(settings.model[0])
        method = settings.method or client.backend.method
        model = MeasuredModel(client, method, sampling, fields, choices.tasks, choices.setting)
        answer = await benchmark.ask(fields, model)
        if judges and benchmark.grade is not None:
            grader = partial(graded, rehearsal.setup(setup, "extraction"))
            await benchmark.grade(Result(fields, "answered", answer), grader)

    def read(item: Item) -> Fields | Line:
        problem = item.problem or Problem("there is no item")
        return item.fields if item.fields is not None else lines.bad_input(item, problem)

    return rehearsal.plan(map(read, items_of(job, benchmark, choices)), ask)


@dataclass
class _Evaluation(Task):
    """An evaluation as a task of the runner."""

    job: Job
    setup: Setup
    settings: Settings
    benchmark: Benchmark
    choices: Choices
    judges: tuple[str, ...]
    results: list[Result] = field(default_factory=list)

    def items(self) -> Iterator[Item]:
        return items_of(self.job, self.benchmark, self.choices)

    async def prepare(self) -> None:
        if self._method == "logprobs":
            await self._client.prove_logprobs(f"--model {self._client.spec}")
        else:
            await self._client.prepare()
        if self.judges:
            await self.setup.prepare()

    def mark(self, name: str) -> Mark:
        if name != self.benchmark.name:
            raise UsageError(
                f"{self.job.out} holds answers of {name}, not of {self.benchmark.name}: "
                "name another file with -o"
            )
        return self._mark

    async def step(self, item: Item) -> Line:
        fields = item.fields or {}
        choices = self.choices
        model = MeasuredModel(
            self._client, self._method, self._sampling, fields, choices.tasks, choices.setting
        )
        result = await asked_of(self.benchmark, fields, model)
        grade = self.benchmark.grade
        if self.judges and grade is not None and result.outcome == "answered":
            result = await grade(result, partial(graded, self.setup))
        return line_of(result, self._mark)

    def failed(self, item: Item, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        told = {"type": kind, **item.found_at, "message": message}
        return line_of(Result(item.fields or {}, "error", reason=message), self._mark, told)

    def count(self, line: Line, report: Report) -> None:
        found = result_of(json.loads(line.text))
        if found is not None:
            self.results.append(found)

    # ------------------------------------------------------------ made once

    @cached_property
    def _client(self) -> Client:
        """The measured model."""
        return self.setup.client(self.settings.model[0])

    @property
    def _method(self) -> Method:
        return self.settings.method or self._client.backend.method

    @cached_property
    def _sampling(self) -> Sampling:
        return sampling_of(self.settings, self.benchmark)

    @cached_property
    def _mark(self) -> Mark:
        client = self._client
        known: dict[str, Any] = {
            "model": client.spec,
            "judge": list(self.judges),
            "settings": {
                "version": __version__,
                "method": self._method,
                "temperature": self._sampling.temperature,
                "seed": self.settings.seed,
                "reasks": self.settings.reasks,
                **({"map": list(self.settings.map)} if self.settings.map else {}),
                **({"setting": self.choices.setting} if self.choices.setting else {}),
            },
            "tasks": {
                task.name: self.choices.tasks.get(task.name, task).digest
                for task in map(load_task, self.benchmark.tasks)
            },
        }
        if self.judges:
            known["grading"] = self.setup.bound("extraction").fingerprint
        described = {"benchmark": self.benchmark.name, **known}
        identities = {client.spec: dict(client.backend.identity())}
        return Mark(self.benchmark.name, known, fingerprint(described, identities))


async def graded(setup: Setup, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Judgement:
    """Credit each gold value by the workflow `extraction` (graphs/extraction.py).

    Args:
        setup: whose models, votes, method and cache are the judges'.
        id: what cached replies and scripted judges know the answer by.

    Raises:
        BackendError: a gold value got no reply at all, or the model is out of reach.
        UsageError: a blank gold value.
    """
    fields = {"id": id, "values": [*gold], "predicted": [*predicted]}
    record = build(Item("<answers>", 1, fields), "extraction")
    if isinstance(record, Problem):
        raise UsageError(f"{id}: {record.message}")
    bound = setup.bound("extraction")
    judgement = (await bound.workflow.run(Subject.of(record), bound.context)).judgement
    check = judgement.checks[0]
    if any(verdict is Verdict.ERROR for verdict, _ in check.outcomes().values()):
        raise BackendError(check.reason or "a judge gave no reply")
    return judgement

"""`judge evaluate` without its command line: a model put through a benchmark."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judge import __version__
from judge.backends.base import Reading
from judge.digest import digest
from judge.errors import UsageError
from judge.evaluation.asking import Examinee
from judge.evaluation.benchmark import Benchmark, Choices, Fields, NoAnswer, Result
from judge.evaluation.grading import JudgedGrader
from judge.evaluation.measuring import by_condition
from judge.evaluation.results import asked_of, line_of, rated, result_of
from judge.evaluation.rows import first_rows, sampled_rows
from judge.evaluation.tables import Table
from judge.judging.capabilities import prove_logprobs
from judge.judging.client import Client
from judge.judging.judge import Sampling
from judge.records import Item, Problem
from judge.run import lines
from judge.run.clients import ClientBuilder, build_client
from judge.run.fingerprint import Mark, fingerprint
from judge.run.job import Job, among, refuse_outputs
from judge.run.lines import Line
from judge.run.setup import Setup
from judge.run.summary import Summary
from judge.run.task import Report, Watcher, run
from judge.settings import Settings
from judge.task import load_task
from judge.verdict import Unfinished

BASELINE = "baseline:"
"""Begins the name of what a benchmark measures in place of a model."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """How the run ended, and the results in its output."""

    report: Report
    results: list[Result]


def evaluate(
    job: Job,
    settings: Settings,
    watcher: Watcher,
    *,
    benchmark: Benchmark,
    choices: Choices,
    judges: Sequence[str] = (),
    given: Sequence[Result] | None = None,
) -> Evaluated:
    """Put the model that `settings.model` names through a benchmark.

    Args:
        judges: models that grade what no rule can score.
        given: answers that are at hand; no model is measured then, and these are graded.

    Raises:
        UsageError: nothing was asked: a source, output, model or setting that cannot be used.
    """
    refuse_outputs(job)
    setup = setup_of(settings, benchmark, judges, measured=given is None)
    task = _Evaluation(job, setup, settings, benchmark, choices, tuple(judges), given)
    report = run(job, task, Summary(), watcher)
    return Evaluated(report, task.results)


def tables_of(benchmark: Benchmark, results: Sequence[Result], choices: Choices) -> list[Table]:
    """The benchmark's tables, those without a row left out."""
    if benchmark.tables is None:
        return by_condition(benchmark.name, results, benchmark.conditions)
    return [table for table in benchmark.tables(results, choices) if table.rows]


def setup_of(
    settings: Settings,
    benchmark: Benchmark,
    judges: Sequence[str],
    *,
    measured: bool = True,
    build: ClientBuilder = build_client,
) -> Setup:
    """The clients of the measured model and of the judges, which alone are the setup's judges.

    Raises:
        UsageError: not one model is measured, or a model or setting cannot be used.
    """
    if judges and benchmark.grade is None:
        raise UsageError(f"--judge-model: {benchmark.name} is scored by rules alone")
    asked: tuple[str, ...] = ()
    if measured:
        if len(settings.model) != 1:
            raise UsageError("name the one model that is measured: --model PROVIDER:MODEL")
        if not settings.model[0].startswith(BASELINE):
            asked = settings.model
        elif settings.model[0].removeprefix(BASELINE) not in benchmark.baselines:
            told = ", ".join(BASELINE + name for name in benchmark.baselines) or "no baseline"
            raise UsageError(f"--model {settings.model[0]}: {benchmark.name} has {told}")
    graded = settings.model_copy(update={"model": tuple(judges), "check": (), "workflow": None})
    return Setup.of(graded, (*asked, *judges), build=build)


def items_of(job: Job, benchmark: Benchmark, choices: Choices) -> Iterator[Item]:
    """The items of the rows that the job takes."""
    found = among(job, benchmark.items(job.inputs, choices))
    if job.sample is not None:
        found = sampled_rows(found, job.sample, job.sample_seed)
    return found if job.limit is None else first_rows(found, job.limit)


def sampling_of(settings: Settings, benchmark: Benchmark, choices: Choices) -> Sampling:
    """Temperature and seed of the measured model.

    A temperature that the user set is taken; else the paper's; else several answers to the same
    question are drawn warm, or they would all be one.
    """
    if "temperature" in settings.model_fields_set:
        return Sampling(settings.temperature, settings.seed)
    if benchmark.temperature is not None:
        return Sampling(benchmark.temperature, settings.seed)
    warm = settings.vote_temperature if choices.draws > 1 else settings.temperature
    return Sampling(warm, settings.seed)


@dataclass
class _Evaluation:
    """An evaluation as a task of the runner."""

    job: Job
    setup: Setup
    settings: Settings
    benchmark: Benchmark
    choices: Choices
    judges: tuple[str, ...]
    given: Sequence[Result] | None
    results: list[Result] = field(default_factory=list)

    def items(self) -> Iterator[Item]:
        if self.given is None:
            return items_of(self.job, self.benchmark, self.choices)
        source = self.job.inputs[0]
        return (Item(source, n, dict(one.fields)) for n, one in enumerate(self.given, 1))

    async def prepare(self) -> None:
        if self._client is not None:
            if self._reading == "probability":
                await prove_logprobs(f"--model {self._measured}", self._client)
            else:
                await self._client.prepare()
        if self.judges:
            await self.setup.prepare_judges()

    def mark(self, name: str) -> Mark:
        if name != self.benchmark.name:
            raise UsageError(
                f"{self.job.out} holds answers of {name}, not of {self.benchmark.name}: "
                "name another file with -o"
            )
        return self._mark

    def read(self, item: Item) -> Item | Line:
        if item.fields is None:
            return lines.bad_input(item, item.problem or Problem("there is no item"))
        return item

    async def step(self, item: Item) -> Line:
        return line_of(await self._result(item.fields or {}), self._mark)

    def failed(self, item: Item, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        told = {"type": kind, **item.found_at, "message": message}
        return line_of(Result(item.fields or {}, "error", reason=message), self._mark, told)

    def count(self, line: Line, report: Report) -> None:
        found = result_of(json.loads(line.text))
        if found is not None:
            self.results.append(found)

    # ------------------------------------------------------------ one item

    async def _result(self, fields: Fields) -> Result:
        if self.given is not None:
            result = self._by_id[str(fields["id"])]
        elif self._guess is not None:
            result = self._guessed(fields, self._guess)
        else:
            result = await self._asked(fields)
        grade = self.benchmark.grade
        if not self.judges or grade is None or result.outcome != "answered":
            return result
        return await grade(result, self._grader)

    async def _asked(self, fields: Fields) -> Result:
        assert self._client is not None, "a model is measured"
        model = Examinee(self._client, self._reading, self._sampling, fields)
        return await asked_of(self.benchmark, fields, model)

    def _guessed(self, fields: Fields, guess: Callable[[Fields], Any]) -> Result:
        try:
            return rated(self.benchmark, Result(fields, "answered", guess(fields)))
        except NoAnswer as no:
            return Result(fields, no.outcome, no.answer, reason=no.detail)

    # ------------------------------------------------------------ made once

    @property
    def _measured(self) -> str:
        return self.settings.model[0] if self.given is None else "answers at hand"

    @cached_property
    def _client(self) -> Client | None:
        if self.given is not None or self._guess is not None:
            return None
        return self.setup.client(self._measured)

    @property
    def _reading(self) -> Reading:
        assert self._client is not None, "a model is measured"
        return self.settings.reading or self._client.backend.reading

    @cached_property
    def _by_id(self) -> Mapping[str, Result]:
        return {one.id: one for one in self.given or ()}

    @cached_property
    def _guess(self) -> Callable[[Fields], Any] | None:
        if not self._measured.startswith(BASELINE):
            return None
        return self.benchmark.baselines[self._measured.removeprefix(BASELINE)]()

    @cached_property
    def _grader(self) -> JudgedGrader:
        return JudgedGrader(self.setup)

    @cached_property
    def _sampling(self) -> Sampling:
        return sampling_of(self.settings, self.benchmark, self.choices)

    @cached_property
    def _mark(self) -> Mark:
        settings = self.settings
        options = self.choices.options.model_dump(mode="json")
        known: dict[str, Any] = {
            "model": self._measured,
            "judge": list(self.judges),
            "settings": {
                "version": __version__,
                "reading": None if self._client is None else self._reading,
                "temperature": self._sampling.temperature,
                "seed": settings.seed,
                "draws": self.choices.draws,
                "reasks": settings.reasks,
                **({"options": options} if options else {}),
            },
            "tasks": {task.name: task.digest for task in map(load_task, self.benchmark.tasks)},
        }
        if self.given is not None:
            known["answers"] = digest([result.answer for result in self.given])
        if self.judges:
            known["grading"] = self.setup.bound("extraction").fingerprint
        identities: dict[str, Any] = {}
        if self._client is not None:
            identities = {self._measured: dict(self._client.backend.identity())}
        described = {"benchmark": self.benchmark.name, **known}
        return Mark(self.benchmark.name, known, fingerprint(described, identities))

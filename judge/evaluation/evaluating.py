"""`judge evaluate` without its command line: a model put through a benchmark."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from judge import __version__, plugins
from judge.backends.base import Reading
from judge.errors import UsageError
from judge.evaluation.asking import Examinee
from judge.evaluation.benchmark import Answer, Benchmark, Choices, Grader, MeasuredModel, Result
from judge.evaluation.results import answered, result_of
from judge.evaluation.selection import first_rows, sampled_rows
from judge.judging.judge import Sampling
from judge.judging.probe import prove_logprobs
from judge.records import Item, Problem, SeenIds
from judge.run import lines
from judge.run.clients import ClientBuilder, build_client
from judge.run.fingerprint import Mark, fingerprint
from judge.run.job import Job, among, refuse_outputs
from judge.run.lines import Line
from judge.run.setup import Setup
from judge.run.summary import SpeechStatistics, Summary
from judge.run.task import Report, Watcher, run
from judge.settings import Settings
from judge.task import load_task
from judge.verdict import Unfinished, Usage

BENCHMARKS = "judge.benchmarks"
GUESSER = "baseline:embedding"
"""The measured model that stands for knowing nothing."""

_log = logging.getLogger(__name__)


def benchmark_names() -> tuple[str, ...]:
    """The benchmarks installed, sorted by name."""
    return plugins.names(BENCHMARKS)


def load_benchmark(name: str) -> Benchmark:
    """The benchmark with this name.

    Raises:
        UsageError: there is none.
    """
    found: Benchmark | None = plugins.load(BENCHMARKS, name)
    if found is None:
        told = ", ".join(benchmark_names())
        raise UsageError(f"no benchmark is called {name!r}; there are {told}")
    return found


def choices_of(
    benchmark: Benchmark, conditions: Sequence[str], seed: int, draws: int | None
) -> Choices:
    """What the user chose, held against what the benchmark has.

    Raises:
        UsageError: an unknown condition, or several answers to items that are asked once.
    """
    if unknown := [name for name in conditions if name not in benchmark.conditions]:
        told = ", ".join(benchmark.conditions)
        raise UsageError(f"--condition {unknown[0]}: {benchmark.name} has {told}")
    if draws is not None and draws > 1 and benchmark.draws == 1:
        raise UsageError(f"--draws: {benchmark.name} asks each item once")
    chosen = tuple(name for name in benchmark.conditions if name in (conditions or benchmark.usual))
    return Choices(chosen, seed, draws or benchmark.draws)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """How the run ended, and the results that stand in its output."""

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
) -> Evaluated:
    """Put the model that `settings.model` names through a benchmark.

    Args:
        judges: models that grade what no rule can.

    Raises:
        UsageError: nothing was asked: a source, output, model or setting that cannot be used.
    """
    refuse_outputs(job)
    setup = setup_of(settings, benchmark, judges)
    with SeenIds() as ids:
        work = _Evaluation(job, setup, ids, benchmark, choices, settings.model[0], tuple(judges))
        report = run(job, work, Summary(SpeechStatistics(None)), watcher)
    return Evaluated(report, work.results)


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
    if len(settings.model) != 1:
        raise UsageError("name the one model that is measured: --model PROVIDER:MODEL")
    if judges and benchmark.grade is None:
        raise UsageError(f"--judge-model: {benchmark.name} is scored by rules alone")
    graded = settings.model_copy(update={"model": tuple(judges), "check": (), "workflow": None})
    asked = () if settings.model[0] == GUESSER else settings.model
    return Setup.of(graded, (*asked, *judges), build=build)


def items_of(job: Job, benchmark: Benchmark, choices: Choices) -> Iterator[Item]:
    """The items of the rows that the job takes."""
    found = among(job, benchmark.items(job.inputs, choices))
    if job.sample is not None:
        found = sampled_rows(found, job.sample, job.sample_seed)
    return found if job.limit is None else first_rows(found, job.limit)


def problem_of(item: Item, ids: SeenIds) -> Problem | None:
    """Why an item cannot be asked about; None where it can, and its id is remembered then."""
    if item.problem is not None:
        return item.problem
    id = str((item.fields or {}).get("id"))
    first = ids.already(id, item)
    if first is None:
        return None
    return Problem(f"id {id} was already on {first}", "id", "duplicate-id")


class _Asks(MeasuredModel, Protocol):
    """A measured model before it is asked about an item."""

    def about(self, fields: Any) -> MeasuredModel: ...


def _guesser() -> Any:
    from judge.evaluation.guesser import EmbeddingGuesser

    return EmbeddingGuesser()


@dataclass(slots=True)
class _Evaluation:
    """What an evaluation does with each item."""

    job: Job
    setup: Setup
    ids: SeenIds
    benchmark: Benchmark
    choices: Choices
    measured: str
    judges: tuple[str, ...]
    results: list[Result] = field(default_factory=list)
    _mark: Mark | None = None
    _model: _Asks | None = None
    _grader: Grader | None = None

    def items(self) -> Iterator[Item]:
        return items_of(self.job, self.benchmark, self.choices)

    async def prepare(self) -> None:
        if self.measured != GUESSER:
            client = self.setup.client(self.measured)
            if self.reading == "probability":
                await prove_logprobs(f"--model {self.measured}", client)
            else:
                await client.prepare()
        if self.judges:
            await self.setup.prepare_judges()

    def mark(self, name: str) -> Mark:
        if self._mark is None:
            self._mark = self._made_mark()
        if name != self.benchmark.name:
            raise UsageError(
                f"{self.job.out} holds answers of {name}, not of {self.benchmark.name}: "
                "name another file with -o"
            )
        return self._mark

    def read(self, item: Item) -> Item | Line:
        problem = problem_of(item, self.ids)
        if problem is not None or item.fields is None:
            return lines.bad_input(item, problem or Problem("there is no item"))
        return item

    async def step(self, item: Item) -> Line:
        return answered(item, await self._answer(item), self.mark(self.benchmark.name))

    def failed(self, item: Item, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        return _failed(item, kind, message, self.mark(self.benchmark.name))

    def count(self, line: Line, report: Report) -> None:
        found = result_of(json.loads(line.text))
        if found is not None:
            self.results.append(found)

    # ------------------------------------------------------------ one item

    @property
    def reading(self) -> Reading:
        return self.setup.settings.reading or self.setup.client(self.measured).backend.reading

    async def _answer(self, item: Item) -> Answer:
        assert item.fields is not None
        answer = await self.benchmark.answer(item.fields, self._asked.about(item.fields))
        grade = self.benchmark.grade
        if not self.judges or grade is None or answer.outcome != "answered":
            return answer
        return await grade(item.fields, answer, self._graded)

    @property
    def _asked(self) -> _Asks:
        if self._model is None:
            if self.measured == GUESSER:
                self._model = _guesser()
            else:
                client = self.setup.client(self.measured)
                self._model = Examinee(client, self.reading, self._sampling)
        return self._model

    @property
    def _graded(self) -> Grader:
        if self._grader is None:
            from judge.evaluation.grading import JudgedGrader

            self._grader = JudgedGrader(self.setup)
        return self._grader

    @property
    def _sampling(self) -> Sampling:
        """Several answers to the same question are drawn warm, or they would all be one."""
        settings = self.setup.settings
        warm = settings.vote_temperature if self.choices.draws > 1 else settings.temperature
        return Sampling(warm, settings.seed)

    def _made_mark(self) -> Mark:
        settings = self.setup.settings
        known: dict[str, Any] = {
            "model": self.measured,
            "judge": list(self.judges),
            "settings": {
                "version": __version__,
                "reading": None if self.measured == GUESSER else self.reading,
                "temperature": self._sampling.temperature,
                "seed": settings.seed,
                "draws": self.choices.draws,
                "reasks": settings.reasks,
            },
            "tasks": {name: load_task(name).digest for name in self.benchmark.tasks},
        }
        if self.judges:
            known["grading"] = self.setup.bound("extraction").fingerprint
        identities: dict[str, Any] = {}
        if self.measured == GUESSER:
            identities = {GUESSER: _guesser().identity()}
        else:
            identities = {self.measured: dict(self.setup.client(self.measured).backend.identity())}
        described = {"benchmark": self.benchmark.name, **known}
        return Mark(self.benchmark.name, known, fingerprint(described, identities))


def _failed(item: Item, kind: str, message: str, mark: Mark) -> Line:
    answer = Answer("error", Usage(), reason=message)
    told = {"type": kind, **item.found_at, "message": message}
    return answered(item, answer, mark, told)

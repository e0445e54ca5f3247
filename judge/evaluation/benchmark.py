"""What a benchmark is: the contract between the evaluation of a model and one module a paper."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from judge import plugins
from judge.errors import UsageError
from judge.evaluation.tables import Table
from judge.records import Item
from judge.task import Task
from judge.verdict import Usage

BENCHMARKS = "judge.benchmarks"
"""The entry-point group that benchmarks are found by."""

Outcome = Literal["answered", "refused", "unreadable", "error"]
Fields = Mapping[str, Any]
"""What an item holds: an `id`, its `condition`, its `row`, `gold`, and what is asked about."""


class NoAnswer(Exception):
    """The measured model refused, or its reply cannot be read.

    `answer` is what there is of an answer all the same, `detail` what is wrong.
    """

    def __init__(
        self,
        outcome: Literal["refused", "unreadable"],
        detail: str | None = None,
        answer: object = None,
    ) -> None:
        super().__init__(detail or outcome)
        self.outcome = outcome
        self.detail = detail
        self.answer = answer


class MeasuredModel(Protocol):
    """The measured model, asked about one item by tasks (rubrics/tasks/NAME.yaml, or a Task).

    `texts` are the fields that the task shows or names in its question; missing ones are not shown.
    All methods raise NoAnswer where there is no answer, BackendError where there is no reply.
    `steps` goes into the output line as it is: what was written on the way. `probabilities` are
    those of the last choice, by answer, where it was read from log-probabilities. `usage` is what
    the calls took so far; `note` is to be known of the answer (a text was cut off).
    """

    steps: dict[str, Any]
    probabilities: dict[str, float] | None
    usage: Usage
    note: str | None

    async def choose(
        self,
        task: str | Task,
        texts: Mapping[str, str],
        options: Sequence[str],
        answers: Sequence[str] = (),
    ) -> str:
        """One of the options, as the one of `answers` in the same place, else as it stands."""
        ...

    async def select(
        self, task: str | Task, texts: Mapping[str, str], options: Sequence[str], count: int
    ) -> list[str]:
        """Exactly `count` different options."""
        ...

    async def list_texts(self, task: str | Task, texts: Mapping[str, str]) -> list[str]:
        """A list of short texts."""
        ...

    async def write(self, task: str | Task, texts: Mapping[str, str], *, draw: int = 0) -> str:
        """Free text; draw `draw` of the same question is another sample, with another seed."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """One item with the answer to it.

    `answer` is plain JSON. `score` (0 to 1) is how right it is; None where nothing is right or
    wrong, or it was not scored. `reason` says why there is no answer, or what is to be known of it.
    """

    fields: Fields
    outcome: Outcome
    answer: Any = None
    score: float | None = None
    probabilities: Mapping[str, float] | None = None
    steps: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def row(self) -> str:
        """The row of the source that the item was made from."""
        return str(self.fields.get("row", self.fields["id"]))

    @property
    def condition(self) -> str:
        return str(self.fields["condition"])


@dataclass(frozen=True, slots=True)
class Graded:
    """How far each gold value is found among predicted ones (CQ-Bench, section 3.1).

    `credits` has 1, 0.5 or 0 for each gold value, None where the judges did not settle it; `named`
    the predicted values (from 0) that each rests on; `reasons` the judges' reasons.
    """

    credits: tuple[float | None, ...]
    named: tuple[tuple[int, ...], ...]
    reasons: tuple[str | None, ...]
    usage: Usage


class Grader(Protocol):
    """Judges that grade the answers which no rule can score."""

    async def extraction(self, id: str, predicted: Sequence[str], gold: Sequence[str]) -> Graded:
        """Credit each gold value; without any prediction each is 0, and no judge is asked.

        Raises:
            BackendError: a judge gives no reply.
        """
        ...


class Options(BaseModel):
    """A benchmark's own settings; a benchmark that has some declares a subclass."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose of a benchmark.

    `conditions` are those that are run, in the benchmark's order; `chosen` whether the user named
    them. `draws` is the number of answers to each item; `seed` is for what is shuffled or drawn.
    """

    conditions: tuple[str, ...]
    seed: int = 0
    draws: int = 1
    chosen: bool = False
    options: Options = field(default_factory=Options)


def exact(fields: Fields, answer: Any) -> float | None:
    """1 for an answer that equals `gold`, 0 for another; None without a gold answer."""
    gold = fields.get("gold")
    return None if gold is None else float(answer == gold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A paper's protocol. Found by name through the entry points `judge.benchmarks`.

    - `conditions`: the settings that an item can be asked in; `usual` those that are run when the
      user names none (all, if left out)
    - `tasks`: the task files it asks by, or the tasks
    - `items`: from sources (paths, as the user named them) to items, each one question
      (`rows.asked` makes one). A row that cannot be read becomes an Item with a `problem`. Raises
      UsageError for a source that cannot be used.
    - `ask`: asks the model about one item's fields and returns its answer, plain JSON
    - `score`: how right an answer is. Raises ValueError for what is no possible answer
    - `tables`: from all results, in the order of the items, to the paper's tables; accuracy by
      condition, if left out
    - `grade`: scores an answer that takes judges; without judges its score is None
    - `draws`, `temperature`: the paper's number of answers an item and its sampling temperature,
      unless the user says otherwise
    - `options`: the benchmark's own settings
    - `baselines`: what can be measured in place of a model (`baseline:NAME`), each made when it is
      chosen: from an item's fields to an answer
    - `outputs`: results from a file of answers in a form of the paper's own, with the sources
    - `statistics`: tables about the sources alone
    """

    name: str
    title: str
    source: str
    conditions: tuple[str, ...]
    tasks: tuple[str | Task, ...]
    items: Callable[[Sequence[str], Choices], Iterator[Item]]
    ask: Callable[[Fields, MeasuredModel], Awaitable[Any]]
    usual: tuple[str, ...] = ()
    score: Callable[[Fields, Any], float | None] = exact
    tables: Callable[[Sequence[Result], Choices], list[Table]] | None = None
    grade: Callable[[Result, Grader], Awaitable[Result]] | None = None
    draws: int = 1
    temperature: float | None = None
    options: type[Options] = Options
    baselines: Mapping[str, Callable[[], Callable[[Fields], Any]]] = field(default_factory=dict)
    outputs: Callable[[str, Sequence[str]], tuple[list[Result], list[str]]] | None = None
    statistics: Callable[[Sequence[str]], list[Table]] | None = None


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
    benchmark: Benchmark,
    conditions: Sequence[str] = (),
    seed: int = 0,
    draws: int | None = None,
    options: Mapping[str, str] | None = None,
) -> Choices:
    """What the user chose, checked against what the benchmark has.

    Raises:
        UsageError: an unknown condition or option, or several answers to items that are asked once.
    """
    if unknown := [name for name in conditions if name not in benchmark.conditions]:
        told = ", ".join(benchmark.conditions)
        raise UsageError(f"--condition {unknown[0]}: {benchmark.name} has {told}")
    if draws is not None and draws > 1 and benchmark.draws == 1:
        raise UsageError(f"--draws: {benchmark.name} asks each item once")
    usual = benchmark.usual or benchmark.conditions
    taken = tuple(name for name in benchmark.conditions if name in (conditions or usual))
    chosen = bool(conditions) and set(taken) != set(usual)
    return Choices(
        taken, seed, draws or benchmark.draws, chosen, _options(benchmark, options or {})
    )


def _options(benchmark: Benchmark, given: Mapping[str, str]) -> Options:
    known = benchmark.options.model_fields
    if unknown := [name for name in given if name not in known]:
        told = f"has {', '.join(known)}" if known else "has no options"
        raise UsageError(f"--option {unknown[0]}: {benchmark.name} {told}")
    try:
        return benchmark.options.model_validate(dict(given))
    except ValueError as error:
        first = error.errors()[0] if hasattr(error, "errors") else {"loc": ("",), "msg": str(error)}
        raise UsageError(f"--option {first['loc'][0]}: {first['msg']}") from error

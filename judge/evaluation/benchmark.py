"""What a benchmark is: the contract between the evaluation of a model and one module a paper."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from judge import plugins
from judge.errors import UsageError
from judge.records import Item
from judge.task import Task, replaced
from judge.verdict import Judgement, Usage

if TYPE_CHECKING:
    from judge.evaluation.asking import MeasuredModel
    from judge.evaluation.tables import Table

BENCHMARKS = "judge.benchmarks"
"""The entry-point group that benchmarks are found by."""

Outcome = Literal["answered", "refused", "unreadable", "error"]
Fields = Mapping[str, Any]
"""What an item holds: an `id`, its `condition`, its `row`, `gold`, and what is asked about."""


class NoAnswer(Exception):
    """The measured model refused, or its reply cannot be read; `detail` is what is wrong."""

    def __init__(
        self, outcome: Literal["refused", "unreadable"], detail: str | None = None
    ) -> None:
        super().__init__(detail or outcome)
        self.outcome = outcome
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Result:
    """One item with the answer to it.

    `answer` is plain JSON. `score` (0 to 1) is how right it is; None where nothing is right or
    wrong, or it was not scored. `reason` says why there is no answer, or what is to be known of it.
    """

    fields: Fields
    outcome: Outcome
    answer: Any = None
    score: Annotated[float, Field(ge=0, le=1)] | None = None
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


Grader = Callable[[str, Sequence[str], Sequence[str]], Awaitable[Judgement]]
"""Judges who credit each gold value (graphs/extraction.py): from an id, predicted and gold values.
Raises BackendError where a judge gives no reply."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose of a benchmark.

    `conditions` are those that are run, in the benchmark's order; `chosen` whether the user named
    them. `seed` is for what is shuffled or drawn. `tasks` are the user's own, by name. `columns` of
    the sources are renamed, for `rows.each_row`. `setting` is one of the benchmark's, None for its
    usual way of asking.
    """

    conditions: tuple[str, ...]
    seed: int = 0
    chosen: bool = False
    tasks: Mapping[str, Task] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    setting: str | None = None


def exact(fields: Fields, answer: Any, labels: Sequence[str] = ()) -> float | None:
    """1 for an answer that equals `gold`, 0 for another; None without a gold answer.

    Raises:
        ValueError: there are `labels`, and it is none of them.
    """
    if labels and answer not in labels:
        raise ValueError(f"{answer!r} is none of {', '.join(labels)}")
    gold = fields.get("gold")
    return None if gold is None else float(answer == gold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A paper's protocol. Found by name through the entry points `judge.benchmarks`.

    - `conditions`: the settings that an item can be asked in
    - `tasks`: the task files it asks by, or the tasks
    - `items`: from sources (paths, as the user named them) to items, each one question
      (`rows.asked` makes one). A row that cannot be read becomes an Item with a `problem`. Raises
      UsageError for a source that cannot be used.
    - `ask`: asks the model about one item's fields and returns its answer, plain JSON
    - `score`: how right an answer is. Raises ValueError for what is no possible answer
    - `tables`: from all results, in the order of the items, to the paper's tables; accuracy by
      condition, if left out
    - `grade`: scores an answer that takes judges; without judges its score is None
    - `temperature`: the paper's sampling temperature, unless the user says otherwise
    - `settings`: other ways of asking, such as the paper's own, by name what each changes; `items`
      is told the chosen one by its choices, `ask` by its model
    - `of_sources`: the benchmark as the sources, renamed columns considered, have it, where they
      decide on its conditions
    """

    name: str
    title: str
    source: str
    conditions: tuple[str, ...]
    tasks: tuple[str | Task, ...]
    items: Callable[[Sequence[str], Choices], Iterator[Item]]
    ask: Callable[[Fields, MeasuredModel], Awaitable[Any]]
    score: Callable[[Fields, Any], float | None] = exact
    tables: Callable[[Sequence[Result]], list[Table]] | None = None
    grade: Callable[[Result, Grader], Awaitable[Result]] | None = None
    temperature: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    of_sources: Callable[[Sequence[str], Mapping[str, str]], Benchmark] | None = None


def benchmark_names() -> tuple[str, ...]:
    """The benchmarks installed, sorted by name."""
    return plugins.names(BENCHMARKS)


def load_benchmark(
    name: str, sources: Sequence[str] = (), columns: Mapping[str, str] = MappingProxyType({})
) -> Benchmark:
    """The benchmark with this name, for these sources, `columns` of which are renamed.

    Raises:
        UsageError: there is none, or a source that cannot be used.
    """
    found: Benchmark | None = plugins.load(BENCHMARKS, name)
    if found is None:
        told = ", ".join(benchmark_names())
        raise UsageError(f"no benchmark is called {name!r}; there are {told}")
    return found.of_sources(sources, columns) if sources and found.of_sources else found


def choices_of(
    benchmark: Benchmark,
    conditions: Sequence[str] = (),
    seed: int = 0,
    tasks: Sequence[Path] = (),
    columns: Mapping[str, str] = MappingProxyType({}),
    setting: str | None = None,
) -> Choices:
    """What the user chose, checked against what the benchmark has.

    Raises:
        UsageError: an unknown condition or setting, or a task file, see `judge.task.replaced`.
    """
    if setting is not None and setting not in benchmark.settings:
        told = f"has {', '.join(benchmark.settings)}" if benchmark.settings else "has none"
        raise UsageError(f"--setting {setting}: {benchmark.name} {told}")
    if unknown := [name for name in conditions if name not in benchmark.conditions]:
        told = ", ".join(benchmark.conditions)
        raise UsageError(f"--condition {unknown[0]}: {benchmark.name} has {told}")
    taken = tuple(name for name in benchmark.conditions if not conditions or name in conditions)
    own = replaced(benchmark.tasks, tasks) if tasks else {}
    return Choices(taken, seed, bool(conditions), own, columns, setting)

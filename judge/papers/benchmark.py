"""The interface of a benchmark, which each paper's module implements."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from judge import plugins
from judge.errors import UsageError, meant
from judge.papers.tasks import Fields, MeasuredAnswer, replaced
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.answers import spelt_as
from judge.records.base import clip

if TYPE_CHECKING:
    from judge.papers.asking import MeasuredModel
    from judge.records.lines import Line
    from judge.report.table import Table

BENCHMARKS = "judge.benchmarks"
"""The entry-point group of benchmarks."""


AnswersById = Mapping[str, MeasuredAnswer]

PAPER = "paper"
"""The setting in which a benchmark asks and measures just as its paper does."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The user's choices for a benchmark.

    Args:
        conditions: those to run, in the benchmark's order.
        seed: seed of shuffling and drawing.
        tasks: the user's own tasks, by name; for a benchmark of judges its rubrics.
        columns: columns of the sources to rename (`rows.each_row`).
        setting: one of the benchmark's settings; None for its usual way of asking.
    """

    conditions: tuple[str, ...]
    seed: int = 0
    tasks: Mapping[str, Rubric] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    setting: str | None = None


def exact(fields: Fields, answer: Any) -> float | None:
    """1 for the gold answer, 0 for another, None without gold."""
    gold = fields.get("gold")
    return None if gold is None else float(answer == gold)


def label_of(answer: Any, labels: Sequence[str]) -> str:
    """The label that an answer spells (`judge.records.answers`); ValueError if it spells none."""
    label = spelt_as(answer, labels)
    if label is None:
        raise ValueError(f"{clip(answer)} is none of {', '.join(labels)}")
    return label


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A paper's protocol, found by name through the entry points `judge.benchmarks`.

    Args:
        conditions: the conditions that an item can be asked in.
        tasks: the task files that it asks by, or the tasks.
        items: makes items from sources (paths, as the user named them), each one question
            (`rows.asked` makes one). A row that cannot be read becomes a Record with a `problem`.
            Raises UsageError for a source that cannot be used.
        ask: asks the model about one item's fields; the answer is plain JSON.
        read: converts an answer made elsewhere to the benchmark's own spelling. Raises ValueError
            for an impossible answer.
        score: how right an answer from `read` is; None if no rule scores it.
        tables: makes the paper's tables from all results, in the order of the items; by default
            accuracy by condition.
        credited: whether the answer to an item lists values that judges credit against `gold`.
        temperature: the paper's sampling temperature, unless the user sets another.
        settings: other ways of asking, such as the paper's own: by name, what each changes.
        described: makes the paper's tables of the data, from the unanswered items and their
            sources.
        counted_in: the conditions whose items `judge describe` counts; None for all, () for items
            that are rows, not questions.
        without_json: the settings (None: the usual one) that ask for free text or embeddings alone.
        rubrics: for a benchmark of judges, which needs no sources: the rubrics to judge by, from
            the user's `--rubric` and sources. The models named are the judges, which `ask` calls
            by `MeasuredModel.check`.
        conditions_of: the conditions of sources, if the sources decide on them; with the user's
            renamed columns.
        released: reads models' answers in the authors' released form: from a file, the gold sources
            and the choices, the answers by id, with all their fields if there is no gold source;
            None for a file of another form. Raises UsageError.
    """

    name: str
    title: str
    source: str
    conditions: tuple[str, ...]
    tasks: tuple[str | Rubric, ...]
    items: Callable[[Sequence[str], Choices], Iterator[Record]]
    ask: Callable[[Fields, MeasuredModel], Awaitable[Any]]
    read: Callable[[Fields, Any], Any] = lambda fields, answer: answer
    score: Callable[[Fields, Any], float | None] = exact
    tables: Callable[[Sequence[MeasuredAnswer]], list[Table]] | None = None
    described: Callable[[Sequence[MeasuredAnswer], Sequence[str]], list[Table]] | None = None
    counted_in: tuple[str, ...] | None = None
    credited: Callable[[Fields], bool] | None = None
    temperature: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    without_json: frozenset[str | None] = frozenset()
    rubrics: Callable[[Sequence[str], Sequence[str]], Mapping[str, Rubric]] | None = None
    conditions_of: Callable[[Sequence[str], Mapping[str, str]], tuple[str, ...]] | None = None
    released: Callable[[str, Sequence[str], Choices], AnswersById | None] | None = None

    def tabulate(self, lines: Sequence[Line]) -> list[Table]:
        """The tables of output lines of `judge evaluate`; the answers are scored again."""
        from judge.papers.results import rated, result_of
        from judge.papers.tables import tables_of

        results = (result_of(line) for line in lines)
        return tables_of(self, [rated(self, result) for result in results if result])


def load_benchmark(name: str) -> Benchmark:
    """The benchmark with this name; raises UsageError."""
    benchmark: Benchmark | None = plugins.load(BENCHMARKS, name, Benchmark)
    if benchmark is None:
        names = plugins.names(BENCHMARKS)
        raise UsageError(f"no benchmark is called {name!r}; {meant(name, names)}")
    return benchmark


def choices_of(
    benchmark: Benchmark,
    sources: Sequence[str],
    conditions: Sequence[str] = (),
    *,
    seed: int = 0,
    tasks: Sequence[Path] = (),
    columns: Mapping[str, str] = MappingProxyType({}),
    setting: str | None = None,
    rubrics: Sequence[str] = (),
) -> Choices:
    """The user's choices, checked against those of the benchmark and its sources.

    Raises:
        UsageError: an unknown condition, setting or rubric, or a faulty task file
            (`tasks.replaced`).
    """
    if tasks and benchmark.rubrics is not None:
        raise UsageError(f"--task {tasks[0]}: {benchmark.name} measures judges: --rubric FILE")
    if setting is not None and setting not in benchmark.settings:
        listing = f"has {', '.join(benchmark.settings)}" if benchmark.settings else "has none"
        raise UsageError(f"--setting {setting}: {benchmark.name} {listing}")
    names = benchmark.conditions
    if benchmark.conditions_of is not None and sources:
        names = benchmark.conditions_of(sources, columns)
    if unknown := [name for name in conditions if name not in names]:
        listing = ", ".join(names)
        raise UsageError(f"--condition {unknown[0]}: {benchmark.name} has {listing}")
    selection = tuple(name for name in names if not conditions or name in conditions)
    if benchmark.rubrics is not None:
        questions = benchmark.rubrics(rubrics, sources)
    else:
        questions = replaced(benchmark.tasks, tasks) if tasks else {}
    return Choices(selection, seed, questions, columns, setting)

"""A model that answers by a rule, runs of benchmarks on it, and checks of their tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.papers.benchmark import Benchmark, choices_of
from judge.papers.results import asked_of
from judge.papers.tasks import MeasuredAnswer, NoAnswer, load_task, task_messages
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.report.table import Cell, Table
from judge.stats.intervals import Estimate
from judge.verdict import Usage

ONE = Usage(replies=1, input_tokens=10, output_tokens=1)

Rule = Callable[[str, Mapping[str, str], Sequence[str]], Any]


class Examined:
    """Answers what a rule says of task, texts and options: a place, several, a list or a text.

    A rule that gives `refused` or `unreadable` gives no answer. Prompts are noted by task.
    """

    def __init__(self, rule: Rule, chances: Sequence[float] = ()) -> None:
        self.rule = rule
        self.chances = chances
        self.asked: list[tuple[str, str]] = []
        self.steps: dict[str, Any] = {}
        self.probabilities: dict[str, float] | None = None
        self.usage = Usage()
        self.note: str | None = None
        self.setting: str | None = None
        self.draws: list[int] = []

    def _said(self, task: str | Rubric, texts: Mapping[str, str], options: Sequence[str]) -> Any:
        found = load_task(task)
        self.asked.append((found.name, str(task_messages(found, texts, options)[-1]["content"])))
        self.usage += ONE
        said = self.rule(found.name, texts, options)
        if said in ("refused", "unreadable"):
            raise NoAnswer(said, "no answer in it")
        return said

    async def choose(
        self,
        task: str | Rubric,
        texts: Mapping[str, str],
        options: Sequence[str],
        answers: Sequence[str] = (),
    ) -> str:
        place: int = self._said(task, texts, options)
        if self.chances:
            self.probabilities = dict(zip(answers or options, self.chances, strict=True))
        return (answers or options)[place]

    async def select(
        self, task: str | Rubric, texts: Mapping[str, str], options: Sequence[str], count: int
    ) -> list[str]:
        places: list[int] = self._said(task, texts, options)
        assert len(places) == count
        return [options[place] for place in places]

    async def list_texts(self, task: str | Rubric, texts: Mapping[str, str]) -> list[str]:
        said: list[str] = self._said(task, texts, ())
        return said

    async def write(self, task: str | Rubric, texts: Mapping[str, str], *, draw: int = 0) -> str:
        self.draws.append(draw)
        return str(self._said(task, texts, ()))


async def ask(
    benchmark: Benchmark, fields: Mapping[str, Any], model: Examined | Rule
) -> MeasuredAnswer:
    """The model's answer to one item, as a run records it."""
    examined = model if isinstance(model, Examined) else Examined(model)
    return await asked_of(benchmark, fields, examined)


def items(
    benchmark: Benchmark, *sources: str, conditions: Sequence[str] = (), **more: Any
) -> list[Record]:
    """The items of the sources in the named conditions, or the usual ones."""
    return list(benchmark.items(sources, choices_of(benchmark, sources, conditions, **more)))


def asked(found: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """The items' fields by id; none may have a problem, and no two the same id."""
    assert [item.problem for item in found] == [None] * len(found)
    by_id = {item.fields["id"]: item.fields for item in found}
    assert len(by_id) == len(found)
    return by_id


def problems(found: Sequence[Record]) -> list[str]:
    """The problems of the items that cannot be asked."""
    return [item.problem.message for item in found if item.problem is not None]


def table(
    benchmark: Benchmark, results: Sequence[MeasuredAnswer], name: str
) -> dict[tuple[str, ...], dict[str, Cell]]:
    """The cells of one of the benchmark's tables by labels; all its tables must be well formed."""
    assert benchmark.tables is not None
    return rows(benchmark.tables(results), name)


def rows(tables: Sequence[Table], name: str) -> dict[tuple[str, ...], dict[str, Cell]]:
    for one in tables:
        assert all(len(row.labels) == len(one.heads) for row in one.rows)
        assert json.dumps(one.as_json())
    (wanted,) = (one for one in tables if one.name == name)
    cells = {row.labels: dict(row.cells) for row in wanted.rows}
    assert len(cells) == len(wanted.rows)
    return cells


def value(cell: Cell) -> Any:
    """The number in an estimate."""
    assert isinstance(cell, Estimate)
    return None if cell.value is None else round(cell.value, 9)


def written(path: Path, lines: Sequence[Mapping[str, object]]) -> str:
    """The path of a CSV file, or by its name of JSON lines, of these rows."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return str(path)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in lines for key in row)))
        writer.writeheader()
        writer.writerows(lines)
    return str(path)


def public(name: str) -> Path:
    """A public data file beside the repository; the test is skipped without it."""
    path = Path(__file__).parents[2].parent / "shared" / "data" / name
    if not path.exists():
        pytest.skip("the public data are not here")
    return path

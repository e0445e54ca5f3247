"""A model that answers by a rule, benchmarks put to it, and looking at the tables."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.evaluation.benchmark import Benchmark, Choices, Given, Result
from judge.evaluation.tables import Cell, Row, Table
from judge.records import Item
from judge.stats.intervals import Estimate
from judge.task import load_task
from judge.verdict import Usage

ONE = Usage(replies=1, input_tokens=10, output_tokens=1)

Rule = Callable[[Mapping[str, str], Sequence[str]], int | str]


class Unasked:
    """A measured model that must not be asked; what a test asks for is overridden."""

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        raise AssertionError("nothing is chosen here")

    async def select(
        self,
        task: str,
        texts: Mapping[str, str],
        options: Sequence[str],
        count: int,
        *,
        draw: int = 0,
    ) -> Given:
        raise AssertionError("nothing is selected here")

    async def lists(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        raise AssertionError("nothing is listed here")

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        raise AssertionError("nothing is written here")


class Examined(Unasked):
    """Chooses what a rule says: a place, or a trouble. Notes each task and prompt."""

    def __init__(self, rule: Rule, probabilities: tuple[float, ...] | None = None) -> None:
        self.rule = rule
        self.probabilities = probabilities
        self.prompts: list[str] = []
        self.tasks: list[str] = []

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        self.tasks.append(task)
        self.prompts.append(str(load_task(task).prompt(texts, options)[1]["content"]))
        said = self.rule(texts, options)
        if isinstance(said, int):
            return Given(ONE, place=said, probabilities=self.probabilities)
        return Given(ONE, "refused" if said == "refused" else "unreadable", "no answer in it")


def usual(benchmark: Benchmark, seed: int = 0) -> Choices:
    """The choices of a user who chose nothing."""
    return Choices(benchmark.usual, seed)


def asked(items: Sequence[Item]) -> dict[str, dict[str, Any]]:
    """The items' fields by id; none may have a problem, and no two the same id."""
    assert [item.problem for item in items] == [None] * len(items)
    found = {item.fields["id"]: item.fields for item in items if item.fields is not None}
    assert len(found) == len(items)
    return found


async def results_of(benchmark: Benchmark, items: Sequence[Item], model: Examined) -> list[Result]:
    """Every item asked."""
    found = []
    for fields in asked(items).values():
        answer = await benchmark.answer(fields, model)
        found.append(
            Result(
                fields,
                answer.outcome,
                answer.answer,
                answer.score,
                answer.probabilities,
                answer.steps,
            )
        )
    return found


def table(tables: Sequence[Table], name: str) -> dict[tuple[str, ...], Row]:
    """The rows of the table with this name, by their labels; all cells must be in its columns."""
    (found,) = (one for one in tables if one.name == name)
    rows = {row.labels: row for row in found.rows}
    assert len(rows) == len(found.rows)
    assert set(found.drawn) <= set(found.columns)
    return rows


def value(cell: Cell) -> float | None:
    """The number in an estimate."""
    assert isinstance(cell, Estimate)
    return cell.value


def written(path: Path, rows: Sequence[Mapping[str, object]]) -> str:
    """The path of a CSV file of these rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def public(name: str) -> str:
    """The path of a public data file beside the repository; skips where it is not there."""
    path = Path(__file__).parents[2].parent / "shared" / "data" / name
    if not path.is_file():
        pytest.skip("the public data are not here")
    return str(path)

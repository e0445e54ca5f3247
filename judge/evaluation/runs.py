"""Several runs of one benchmark in the paper's own tables: a column for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge.errors import UsageError
from judge.evaluation.benchmark import Result, choices_of, load_benchmark
from judge.evaluation.results import scored
from judge.evaluation.tables import Cell, Row, Table, tables_of
from judge.stats.intervals import Estimate

_NOTE = "Each over the items that all runs have; what cannot be read counts as not right."


def tables_of_runs(name: str, sources: Mapping[str, str]) -> list[Table]:
    """The benchmark's tables of the items that all runs have.

    Args:
        name: the benchmark's.
        sources: by the letter that a run's columns bear, its file.

    Raises:
        UsageError: a file cannot be read twice, or is no run of the benchmark.
    """
    if "-" in sources.values():
        raise UsageError("--paper reads its runs twice: standard input cannot be one of them")
    runs: dict[str, dict[str, Result]] = {}
    for letter, source in sources.items():
        benchmark = load_benchmark(name, [source])
        found = scored(benchmark, source, (), choices_of(benchmark)).results
        runs[letter] = {one.id: one for one in found}
    shared = [id for id in next(iter(runs.values())) if all(id in run for run in runs.values())]
    made = {
        letter: {one.name: one for one in tables_of(benchmark, [run[id] for id in shared])}
        for letter, run in runs.items()
    }
    of_first = next(iter(made.values()))
    merged = (
        _merged([run.get(name) for run in made.values()], tuple(made), first)
        for name, first in of_first.items()
    )
    return [table for table in merged if table.brief]


def _merged(tables: Sequence[Table | None], runs: Sequence[str], first: Table) -> Table:
    """The tables' measures beside one another, named in `brief`; words, and how many were asked,
    once."""
    by_labels = {
        run: {row.labels: row.cells for row in table.rows} if table else {}
        for run, table in zip(runs, tables, strict=True)
    }
    measures = [c for c in first.columns if any(_measured(row.cells.get(c)) for row in first.rows)]
    rows = []
    for row in first.rows:
        cells: dict[str, Cell] = {
            name: cell
            for name, cell in row.cells.items()
            if isinstance(cell, str) or name == "asked"
        }
        for measure in measures:
            for run, known in by_labels.items():
                cells[f"{measure} {run}"] = known.get(row.labels, {}).get(measure)
        rows.append(Row(row.labels, cells))
    brief = tuple(f"{measure} {run}" for measure in measures for run in runs)
    return replace(first, rows=rows, notes=(*first.notes, _NOTE), brief=brief)


def _measured(cell: Cell) -> bool:
    return isinstance(cell, Estimate)

"""`judge describe`: count a benchmark's data as its paper does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from judge.cli import options as opt
from judge.cli.printing import MAX_PROBLEMS, counted, nothing, print_message
from judge.errors import Exit, UsageError
from judge.papers.commands.evaluate import BenchmarkFiles, BenchmarkName

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge describe normad normad.csv               the paper's table 2
  judge describe culturalbench CulturalBench-Easy.csv
  judge describe cqbench repaired.jsonl          table 3, of repaired stories
  judge describe normad normad.csv --by country --by gold

Exit code 3: some lines could not be used; they are named.
"""


@opt.with_settings("map", map="Read this column of the sources as NAME; a.b is b within a.")
def command(
    settings: Settings,
    name: BenchmarkName,
    sources: BenchmarkFiles = None,
    as_json: opt.Json = False,
    all_tables: opt.All = False,
    by: opt.BySlice = None,
) -> None:
    """Count a benchmark's data as its paper does, without a model.

    --by counts the lines of the sources by fields of their items; the last of several fields makes
    the columns.
    """
    opt.need_calibrate("judge describe")
    from judge.cli.tables import print_tables
    from judge.papers.benchmark import choices_of, load_benchmark
    from judge.papers.tables import crosstab
    from judge.papers.tasks import unanswered

    benchmark = load_benchmark(name)
    if not sources or (benchmark.described is None and not by):
        lacking = (
            "--by FIELD; its paper has no tables of its data"
            if sources
            else "the files to describe"
        )
        raise UsageError(f"judge describe {name}: name {lacking}")
    choices = choices_of(benchmark, sources, columns=settings.columns)
    if benchmark.counted_in is not None:
        choices = replace(choices, conditions=benchmark.counted_in)
    items = list(benchmark.items(sources, choices))
    sound = unanswered(items)
    bad = [(item, item.problem) for item in items if item.problem is not None]
    if not items:
        print_message(nothing(sources))
    tables = benchmark.described(sound, sources) if sound and benchmark.described else []
    if by and sound:
        # The first item of each line; CALI's rows are premises, which several lines have.
        lines = {(item.source, item.line): item for item in reversed(items) if not item.problem}
        rows = unanswered(lines.values())
        tables.insert(0, crosstab("rows", f"Rows by {', '.join(by)}", rows, by))
    print_tables(tables, as_json=as_json, all_tables=all_tables, headlines=1 if by else len(tables))
    for item, problem in bad[:MAX_PROBLEMS]:
        print_message(f"{item.source}, line {item.line}: {problem.message}")
    if bad:
        print_message(f"{counted(len(bad), 'line')} could not be used")
        raise typer.Exit(int(Exit.INCOMPLETE))

"""`judge compare`: runs on the same items, with paired differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, print_message, print_output
from judge.errors import UsageError

EPILOG = """\b
Examples:
  judge compare small.jsonl large.jsonl
  judge compare before.jsonl after.jsonl
  judge compare small.jsonl large.jsonl people.jsonl         a column for each
  judge compare small.jsonl people.jsonl --paper --figure scores.svg
  judge compare a.jsonl b.jsonl --json | jq '.tables[0].rows[]'

Items are paired by id and condition, records without an id by their content. Items that not all
runs have, or scored, are counted and left out. judge score BENCHMARK ANSWERS GOLD -o RUN makes a
run of people's answers, or of a model's that ran elsewhere.
"""


def command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Outputs of judge evaluate, score or validate, of the same items; - reads stdin.",
        ),
    ],
    as_json: opt.Json = False,
    all_tables: opt.All = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's own tables, too, with a row for each run.")
    ] = False,
    by: opt.BySlice = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the runs' scores: .svg or .png.")
    ] = None,
    form: Annotated[
        Literal["dots", "bars", "boxes"],
        typer.Option(help="Form of the figure; boxes show the measures of --paper."),
    ] = "dots",
    overwrite: opt.Overwrite = False,
) -> None:
    """Compare runs on the items that they share.

    Each run is a column of mean scores, over the items that all have. Differences from the first
    come with paired intervals and, where scores are right or wrong, McNemar's exact test.
    Tables go to standard output, notes to standard error.
    """
    opt.need_calibrate("judge compare")
    from judge.report.compare import compare

    if len(runs) < 2:
        raise UsageError("judge compare: name at least two runs, RUN_A RUN_B")
    if form != "dots" and figure is None:
        raise UsageError(f"--form {form} needs a figure: name one with --figure")
    from judge.arguments import refuse_existing

    refuse_existing("--figure", figure, overwrite, sources=runs)
    comparison = compare(runs, paper=paper, by=by or ())
    if figure is not None:
        from judge.report.plots import draw_runs

        if note := draw_runs(comparison, figure, form):
            print_message(note)
    if as_json:
        print_output(json.dumps(comparison.as_json(), ensure_ascii=False, indent=2))
    else:
        from judge.cli.tables import print_results

        sources = [f"{name}: {source}" for name, source in comparison.runs.items()]
        items = ", ".join(f"{comparison.items[name]} in {name}" for name in comparison.runs)
        items = f"{counted(comparison.items['all'], 'item')} in all runs; {items}\n"
        print_output("\n".join([comparison.made_by, *sources, items]))
        tables = comparison.tables
        print_results(tables, all_tables=all_tables, headlines=len(tables))
        if paper:
            print_output("")
            print_results(comparison.paper, all_tables=True)
    for note in comparison.notes:
        print_message(note)

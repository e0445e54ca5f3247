"""`judge compare`: runs on the same items, with paired differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import say, tell
from judge.errors import UsageError

EPILOG = """\b
Examples:
  judge compare small.jsonl large.jsonl
  judge compare before.jsonl after.jsonl
  judge compare small.jsonl large.jsonl people.jsonl         a column for each
  judge compare small.jsonl people.jsonl --paper --figure scores.svg
  judge compare a.jsonl b.jsonl --json | jq '.tables[0].rows[]'

Items are paired by id and condition, records without an id by their content. What only one run
has, or scored, is counted and left out. Answers of people or of a model that ran elsewhere become
a run by judge score BENCHMARK ANSWERS GOLD -o RUN.
"""

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="Outputs of judge evaluate, score or validate, of the same items; - reads stdin.",
    ),
]


Paper = Annotated[
    bool,
    typer.Option("--paper", help="The paper's own tables, too, with a row for each run."),
]
FigureFile = Annotated[
    Path | None,
    typer.Option("--figure", metavar="FILE", help="Draw the scores of the runs: .svg or .png."),
]


def command(
    runs: Runs,
    as_json: opt.Json = False,
    every: opt.All = False,
    paper: Paper = False,
    figure: FigureFile = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Compare runs on the items that they share.

    Each run is a column of mean scores, over the items that all have. Differences from the first
    come with paired bootstrap intervals and, where scores are right or wrong, McNemar's exact test.
    Tables go to standard output, notes to standard error.
    """
    opt.need_calibrate("judge compare")
    from judge.report.compare import compare

    if len(runs) < 2:
        raise UsageError("judge compare: name at least two runs, RUN_A RUN_B")
    from judge.api import refuse_existing

    refuse_existing("--figure", figure, overwrite)
    found = compare(runs, paper=paper)
    if figure is not None:
        from judge.report.plots import draw_runs

        draw_runs(found.tables[0], found.runs, figure)
    if as_json:
        say(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        from judge.cli.tables import print_results

        told = [f"{name}: {source}" for name, source in found.runs.items()]
        each = ", ".join(f"{found.items[name]} in {name}" for name in found.runs)
        say("\n".join([found.made_by, *told, f"{found.items['all']} items in all runs; {each}\n"]))
        print_results(found.tables[:1], every=every)
        if paper:
            say("")
            print_results(found.tables[1:], every=True)
    for note in found.notes:
        tell(note)

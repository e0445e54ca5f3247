"""`judge score`: score existing answers as `judge evaluate` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, print_message
from judge.errors import Exit
from judge.papers.commands.evaluate import BenchmarkName, Condition, Setting

if TYPE_CHECKING:
    from judge.settings import Settings

EPILOG = """\b
Examples:
  judge score normad answers.jsonl normad.csv --condition country
  judge score normad answers.jsonl          what judge evaluate -o wrote
  judge score cali people.jsonl data.tsv -o people.scored.jsonl
  judge score eecc outputs.tsv eecc         the authors' released outputs
  judge compare model.jsonl people.scored.jsonl

ANSWERS has a line for each item: its `id` (as judge evaluate writes it; with one --condition the
row's id will do) and its `answer`, null if none was readable. It may also be a file of answers that
the authors of NormAd or EECC released. GOLD are the benchmark's files.
No rule scores extracted values: judge validate does (workflow extraction).

Exit code 3: some answers could not be read (they are named), or none could.
"""

_NAMED = 5

Answers = Annotated[str, typer.Argument(metavar="ANSWERS", help="Lines with id and answer.")]
ScoredOut = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="Write scored lines for judge compare to this file."),
]
Gold = Annotated[
    list[str] | None,
    typer.Argument(metavar="GOLD", help="The benchmark's files, with the right answers."),
]


@opt.with_settings("seed", "map", map="Read this column of ANSWERS as NAME, as in answer=label.")
def command(
    settings: Settings,
    name: BenchmarkName,
    answers: Answers,
    gold: Gold = None,
    as_json: opt.Json = False,
    all_tables: opt.All = False,
    out: ScoredOut = None,
    condition: Condition = None,
    overwrite: opt.Overwrite = False,
    by: opt.BySlice = None,
    setting: Setting = None,
) -> None:
    """Score existing answers by a paper's benchmark."""
    opt.need_calibrate("judge score")
    from judge.arguments import refuse_existing
    from judge.run.output import refuse_ending

    refuse_existing("-o", out, overwrite, sources=[answers, *(gold or ())])
    if out is not None:
        refuse_ending("-o", out)
    from judge.cli.tables import print_tables
    from judge.papers.benchmark import choices_of, load_benchmark
    from judge.papers.results import scored, write_scored
    from judge.papers.tables import sliced_tables

    benchmark = load_benchmark(name)
    choices = choices_of(
        benchmark, gold or (), condition or (), seed=settings.seed, setting=setting
    )
    scores = scored(benchmark, answers, gold or (), choices, settings.columns)
    tables = sliced_tables(benchmark, scores.results, by or ())
    if out is not None:
        write_scored(out, benchmark, scores.results)
    headlines = 2 if by else 1
    print_tables(tables, as_json=as_json, all_tables=all_tables, headlines=headlines)
    for ids, kind, why in (
        (scores.missing, "gold item", "without an answer, counted as unreadable"),
        (scores.extra, "answer", "without a gold item, left out"),
    ):
        if ids:
            dots = " ..." if len(ids) > _NAMED else ""
            print_message(f"{counted(len(ids), kind)} {why}: {', '.join(ids[:_NAMED])}{dots}")
    if scores.no_label:
        from judge.records.labels import no_label

        print_message(f"{no_label(scores.no_label)}, counted as unreadable")
    for result in scores.unread[:_NAMED]:
        print_message(f"{result.id}: {result.reason}")
    if scores.unread:
        print_message(f"{counted(len(scores.unread), 'answer')} could not be read")
    if scores.unasked:
        lines = counted(scores.unasked, "line")
        print_message(f"{lines} of {answers} left out: their input cannot be asked about")
    if not scores.readable:
        print_message("no answer could be read: nothing was scored")
    if scores.unread or not scores.readable:
        raise typer.Exit(int(Exit.INCOMPLETE))

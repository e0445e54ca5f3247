"""`judge report`: judged records as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, nothing, print_message
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.records.lines import Lines

EPILOG = """\b
Examples:
  judge report judged.jsonl -o page.html
  judge report judged.jsonl -o page.html --by country
  judge report before.jsonl after.jsonl -o page.html
  judge validate records.jsonl | tee judged.jsonl | judge report -o page.html

The page is one file and loads nothing from the network. A searched or
filtered view has its own address. Two files that have records in common are
shown side by side, differences first; others are counted together.

Exit code 3: some lines could not be read as output of judge, and were left out.
"""

JudgedFiles = Annotated[
    list[str] | None,
    opt.files("OUT", "What validate or evaluate wrote, also .gz and .zst;"),
]


def command(
    context: typer.Context,
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the page to this file.")],
    inputs: JudgedFiles = None,
    overwrite: opt.Overwrite = False,
    limit: Annotated[
        int,
        typer.Option(min=0, help="Show the first N records of each verdict; counts include all."),
    ] = 10_000,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Also count by this field; repeatable."),
    ] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="The heading.")] = "",
    date: Annotated[str, typer.Option(metavar="TEXT", help="The date, in your words.")] = "",
    quiet: opt.Quiet = False,
) -> None:
    """Make an HTML page of judged records.

    It shows the questions, counts with intervals, judges and labels beside one another, then the
    records, to search, sort and filter: checks, votes, evidence marked in the text, and rewrites
    word by word. Text of records cannot run scripts on the page.
    """
    sources = opt.inputs_or_stdin(inputs, context)
    from judge import api

    lines, counts, _, share = api.report(
        sources, out, overwrite=overwrite, limit=limit, by=by, title=title, date=date
    )
    records = ", ".join(f"{n} of {of} {verdict}" for verdict, (n, of) in counts.items())
    of = counted(lines.judged, "record")
    if share:
        runs = f"{len(sources)} runs on the {counted(share, 'record')} that they share"
        of = f"{runs}, {counted(lines.judged, 'verdict')}"
    message = f"{of}; shown: {records or 'none'}"
    end_of_lines(lines, sources, f"wrote {out}: {message}", quiet=quiet)


def end_of_lines(lines: Lines, sources: Sequence[str], message: str, *, quiet: bool) -> None:
    """Print what was written and which lines were left out; exit with 3 if there are any."""
    if not quiet:
        print_message(message)
        if not lines.judged:
            print_message(nothing(sources))
    if lines.foreign:
        foreign = f"{counted(lines.foreign, 'line')} could not be read as output of judge"
        print_message(f"{foreign}; the first: {lines.first_foreign}")
        raise typer.Exit(int(Exit.INCOMPLETE))

"""`judge report`: what was judged, as a page that a person reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted, nothing, tell
from judge.errors import Exit

EPILOG = """\b
Examples:
  judge report judged.jsonl -o page.html
  judge validate stories.jsonl | tee judged.jsonl | judge report -o page.html

The page is one file without scripts, and asks nothing of any network.

Exit code 3: some lines were not written by judge validate, and count for nothing.
"""


def command(
    context: typer.Context,
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the page here.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OUT]...",
            help="What `judge validate` wrote, also .gz and .zst; - reads stdin.",
            show_default=False,
        ),
    ] = None,
    overwrite: opt.Overwrite = False,
    limit: Annotated[
        int, typer.Option(min=0, help="Show the first N records of each verdict; all count.")
    ] = 200,
    quiet: opt.Quiet = False,
) -> None:
    """Make a page out of judged records: counts with intervals, then the records to look at.

    Each record comes with its checks, votes, evidence marked in the text, and rewrites word by
    word. Nothing that stands in a record can act on the page.
    """
    sources = opt.inputs_or_stdin(inputs, context)
    from judge.report.page import publish

    made = publish(sources, out, overwrite=overwrite, limit=limit)
    if not quiet:
        shown = ", ".join(f"{row.shown} of {row.count} {row.verdict}" for row in made.rows)
        records = counted(made.lines, "record")
        tell(f"wrote {out}: {records}; shown: {shown or 'none'}")
        if not made.lines:
            tell(nothing(sources))
    if made.foreign:
        told = f"{counted(made.foreign, 'line')} could not be read as output of judge validate"
        tell(f"{told}, the first: {made.first_foreign}")
        raise typer.Exit(int(Exit.INCOMPLETE))

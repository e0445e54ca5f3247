"""`judge export`: judged records for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli import options as opt
from judge.cli.printing import counted
from judge.cli.report import JudgedFiles, end_of_lines

EPILOG = """\b
Examples:
  judge export judged.jsonl -o judged.parquet     one flat table
  judge export judged.jsonl -o junit.xml          a test case per record
  judge export judged.jsonl -o summary.md         for $GITHUB_STEP_SUMMARY
  judge export judged.jsonl -o open.xlsx --verdicts fail,abstain

Tables have the record's own columns, then judge's (docs/howto/tables.md).

Exit code 3: some lines could not be read as output of judge, and were left out.
"""


def command(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="FILE.csv, .parquet, .xlsx, .xml (JUnit) or .md.")
    ],
    inputs: JudgedFiles = None,
    verdicts: Annotated[
        str | None,
        typer.Option(
            metavar="VERDICT,...",
            help="Only records with these verdicts, such as fail,abstain. The counts in Markdown "
            "include all. [default: all; Markdown lists those that failed]",
            autocompletion=opt.completed("verdicts"),
        ),
    ] = None,
    overwrite: opt.Overwrite = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write judged records as CSV, Parquet, Excel, JUnit XML or Markdown.

    The ending of FILE decides which.
    """
    sources = opt.inputs_or_stdin(inputs, context)
    from judge import api

    written = api.export(sources, out, overwrite=overwrite, verdicts=opt.names(verdicts))
    lines, left_out = written.lines, written.left_out
    message = counted(lines.judged - sum(left_out.values()), "record")
    if left_out:
        message += f"; left out: {', '.join(f'{n} {verdict}' for verdict, n in left_out.items())}"
    end_of_lines(lines, sources, f"wrote {out}: {message}", quiet=quiet)

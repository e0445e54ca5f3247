"""Tables of results: printed on the terminal, or as JSON, and written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.calibration_tables import UNDEFINED, number
from judge.cli.printing import print_table, say
from judge.errors import UsageError
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.evaluation.tables import Cell, Table

Folder = Annotated[
    Path | None, typer.Option("--tables", help="Folder for every table as CSV, JSON and figure.")
]


def refuse_folder(folder: Path | None, replace: bool) -> None:
    """Raise UsageError where the folder for tables is a file, or holds something to be kept."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--tables {folder}: is a file; name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not replace:
        raise UsageError(f"--tables {folder}: is not empty; name another folder, or --overwrite")


def hand_over(
    made: Sequence[Table],
    folder: Path | None,
    *,
    as_json: bool,
    benchmark: str,
    model: str,
    beside: bool = False,
) -> None:
    """Write tables to the folder, if one is named, and print them.

    They go to standard output, or where answers go there (`beside`) to standard error. Files come
    first: a reader of standard output that leaves, as `head` does, ends the process. A folder that
    cannot be written to keeps no table from being printed.

    Raises:
        UsageError: matplotlib is not installed, or the folder cannot be written to.
    """
    try:
        if folder is not None:
            from judge.report.results import write

            write(made, folder, benchmark=benchmark, model=model)
    finally:
        if as_json:
            import json

            told = [table.as_json() for table in made]
            say(json.dumps(told, ensure_ascii=False, indent=1), err=beside)
        else:
            print_results(made, stderr=beside)


def print_results(tables: Sequence[Table], *, stderr: bool = False) -> None:
    """Print every table that has rows, each under its title, with its notes behind it.

    An estimate is shown with its interval, and over how many items it is where these are not all
    that were asked, or where the table does not say how many those are.
    """
    for table in tables:
        counted = not {"asked", "pairs"}.isdisjoint(table.columns)
        rows = [
            [*row.labels, *(_told(row.cells.get(c), counted=counted) for c in table.columns)]
            for row in table.rows
        ]
        if rows:
            heads, labels = (*table.heads, *table.columns), len(table.heads)
            print_table(
                heads, rows, title=table.title, labels=labels, notes=table.notes, err=stderr
            )


def _told(cell: Cell, *, counted: bool) -> str:
    if cell is None:
        return UNDEFINED
    if isinstance(cell, Estimate):
        over = "" if counted and cell.n == cell.of else f", {cell.n} of {cell.of}"
        return f"{number(cell)}{over}"
    return str(cell)

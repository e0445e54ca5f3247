"""Tables of results on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as Printed
from rich.text import Text

from judge.cli.calibration_tables import UNDEFINED, number
from judge.cli.printing import WIDEST, plain_console
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.evaluation.tables import Cell, Table


def print_results(tables: Sequence[Table], *, stderr: bool = False) -> None:
    """Print every table that has rows, each under its title, with its notes behind it.

    An estimate is shown with its interval, and over how many items it is where these are not all
    that were asked, or where the table does not say how many those are.
    """
    # Rich cuts cells to the terminal's width, or to 80 in a pipe; these are the data.
    console = plain_console(stderr=stderr, width=WIDEST)
    for place, table in enumerate(table for table in tables if table.rows):
        console.print(*[""] if place else [], Text(table.title, style="bold"), sep="\n")
        console.print(_printed(table), soft_wrap=True)
        for note in table.notes:
            console.print(Text(note, style="dim"), soft_wrap=True)


def _printed(table: Table) -> Printed:
    printed = Printed(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in table.heads:
        printed.add_column(name, no_wrap=True)
    for name in table.columns:
        printed.add_column(name, justify="right", no_wrap=True)
    counted = "asked" in table.columns
    for row in table.rows:
        cells = (_told(row.cells.get(name), counted=counted) for name in table.columns)
        printed.add_row(*map(Text, row.labels), *map(Text, cells))
    return printed


def _told(cell: Cell, *, counted: bool) -> str:
    if cell is None:
        return UNDEFINED
    if isinstance(cell, Estimate):
        over = "" if counted and cell.n == cell.of else f", {cell.n} of {cell.of}"
        return f"{number(cell)}{over}"
    return str(cell)

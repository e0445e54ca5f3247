"""Tables of results on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from judge.cli.calibration_tables import UNDEFINED, number
from judge.cli.printing import print_table
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.evaluation.tables import Cell, Table


def print_results(tables: Sequence[Table], *, stderr: bool = False) -> None:
    """Print every table that has rows, each under its title, with its notes behind it.

    An estimate is shown with its interval, and over how many items it is where these are not all
    that were asked, or where the table does not say how many those are.
    """
    for table in tables:
        counted = "asked" in table.columns
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

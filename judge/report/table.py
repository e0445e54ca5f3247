"""A table of results, which commands print, compare, draw, and give as `--json`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from judge.stats.intervals import Estimate, Quartiles, plain
from judge.stats.significance import p_text

Cell = Estimate | Quartiles | int | float | str | None
"""A number with its interval and its n; a box; a count; a p-value; a word; None for an empty cell.
"""


def cell_text(cell: Cell) -> str:
    """A cell for people: a p-value to three digits, a dash for an empty one."""
    if isinstance(cell, float):
        return p_text(cell)
    return "–" if cell is None else str(cell)


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: its labels, one for each label column of the table, and its cells by column."""

    labels: tuple[str, ...]
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads.

    Args:
        name: of lower-case letters, digits and hyphens.
        title: a line for people.
        heads: names of the label columns.
        rows: in the order in which they are shown.
        notes: what a reader must know to read it.
        brief: columns whose intervals a headline leaves out, so that it fits.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    rows: Sequence[TableRow] = ()
    notes: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the cell columns, in the order in which rows first have them."""
        return list(dict.fromkeys(name for row in self.rows for name in row.cells))

    def __str__(self) -> str:
        """The title, and the rows in columns; a dash for an empty cell."""
        texts = ([cell_text(row.cells.get(name)) for name in self.columns] for row in self.rows)
        lines = [[*self.heads, *self.columns]]
        lines += [[*row.labels, *text] for row, text in zip(self.rows, texts, strict=True)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join([self.title, *rows])

    def as_json(self) -> dict[str, Any]:
        """Plain JSON; estimates with their interval, `n` and `of`. A head that a column is called,
        too, such as a user's field `of`, is `by of`."""
        cells = [{name: plain(row.cells.get(name)) for name in self.columns} for row in self.rows]
        heads = [f"by {head}" if head in self.columns else head for head in self.heads]
        labels = [dict(zip(heads, row.labels, strict=True)) for row in self.rows]
        return {
            "name": self.name,
            "title": self.title,
            "heads": heads,
            "columns": self.columns,
            "rows": [{**a, **b} for a, b in zip(labels, cells, strict=True)],
            "notes": list(self.notes),
        }


def stacked(
    parts: Mapping[tuple[str, ...], Iterable[Table]], heads: tuple[str, ...]
) -> list[Table]:
    """The tables of several parts (runs, strata), merged by name: rows with the same labels are
    below one another, each with its part's labels under `heads`. Tables without an estimate are
    left out."""
    tables: dict[str, Table] = {}
    rows: dict[str, dict[tuple[str, ...], list[TableRow]]] = defaultdict(lambda: defaultdict(list))
    for labels, part in parts.items():
        for table in part:
            cells = chain.from_iterable(row.cells.values() for row in table.rows)
            if any(isinstance(cell, Estimate) for cell in cells):
                tables.setdefault(table.name, table)
            for row in table.rows:
                rows[table.name][row.labels].append(TableRow((*row.labels, *labels), row.cells))
    return [
        replace(table, heads=(*table.heads, *heads), rows=[*chain(*rows[name].values())])
        for name, table in tables.items()
    ]

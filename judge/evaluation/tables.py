"""A table of results: what the terminal, CSV, JSON and figures are all made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from judge.stats.intervals import Estimate

Cell = Estimate | int | str | None
"""A number with its interval and its n; a count; a word; None where there is nothing to say."""

Figure = Literal["bars", "boxes"]
NOT_SAID = "(not said)"
"""The group of results that lack the field they are grouped by."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its labels, one for each label column of the table, and its cells by column.

    `spread` holds the single values behind the row, for a box plot.
    """

    labels: tuple[str, ...]
    cells: Mapping[str, Cell]
    spread: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads.

    Args:
        name: of lower-case letters, digits and hyphens; names its files.
        title: a line for people.
        heads: names of the label columns.
        rows: in the order in which they are shown.
        columns: names of the cell columns, in order; those of the rows if left out.
        figure: how it is drawn (bars of `drawn`, boxes of the rows' spreads); None: not at all.
        drawn: the columns, of estimates, that bars show.
        notes: what a reader must know to read it.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    figure: Figure | None = None
    drawn: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            names = dict.fromkeys(name for row in self.rows for name in row.cells)
            object.__setattr__(self, "columns", tuple(names))

    def as_json(self) -> dict[str, Any]:
        """Plain JSON; estimates with their interval, `n` and `of`."""
        return {
            "name": self.name,
            "title": self.title,
            "heads": list(self.heads),
            "columns": list(self.columns),
            "rows": [
                {
                    **dict(zip(self.heads, row.labels, strict=True)),
                    **{name: _plain(row.cells.get(name)) for name in self.columns},
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }

    def as_rows(self) -> list[list[str | int | float | None]]:
        """Heads and rows for CSV; an estimate takes five columns (NAME, NAME low and so on)."""
        wide = {
            name
            for name in self.columns
            if any(isinstance(row.cells.get(name), Estimate) for row in self.rows)
        }
        heads: list[str | int | float | None] = [*self.heads]
        for name in self.columns:
            heads += [name, *(f"{name} {part}" for part in _PARTS if name in wide)]
        return [heads, *(self._as_row(row, wide) for row in self.rows)]

    def _as_row(self, row: Row, wide: set[str]) -> list[str | int | float | None]:
        found: list[str | int | float | None] = [*row.labels]
        for name in self.columns:
            cell = row.cells.get(name)
            if isinstance(cell, Estimate):
                found += [cell.value, cell.low, cell.high, cell.n, cell.of]
            else:
                found += [cell, *(None for _ in _PARTS if name in wide)]
        return found


def bars(
    name: str,
    title: str,
    heads: tuple[str, ...],
    groups: Iterable[tuple[tuple[str, ...], T]],
    cells: Callable[[T], Mapping[str, Cell]],
    *,
    drawn: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Table:
    """A table with a row for each group, drawn as bars of the columns in `drawn`.

    Args:
        groups: labels and what is measured, as `grouped` gives them.
        cells: the cells of a row, from what is measured.
    """
    rows = [Row(labels, cells(part)) for labels, part in groups]
    figure: Figure | None = "bars" if drawn else None
    return Table(name, title, heads, rows=rows, figure=figure, drawn=drawn, notes=notes)


def grouped(
    items: Iterable[T],
    *keys: Callable[[T], str],
    known: Sequence[Sequence[str]] = (),
) -> list[tuple[tuple[str, ...], list[T]]]:
    """The items by their keys, with the keys as labels.

    Args:
        keys: each gives one label.
        known: for each key its labels in the order in which they come first; others follow by
            name.
    """
    found: dict[tuple[str, ...], list[T]] = {}
    for item in items:
        found.setdefault(tuple(key(item) for key in keys), []).append(item)
    ranks = [{label: rank for rank, label in enumerate(order)} for order in known]
    ranks += [{}] * (len(keys) - len(ranks))

    def place(entry: tuple[tuple[str, ...], list[T]]) -> list[tuple[int, str]]:
        pairs = zip(entry[0], ranks, strict=True)
        return [(rank.get(label, len(rank)), label) for label, rank in pairs]

    return sorted(found.items(), key=place)


_PARTS = ("low", "high", "n", "of")


def _plain(cell: Cell) -> Any:
    return cell.as_json() if isinstance(cell, Estimate) else cell

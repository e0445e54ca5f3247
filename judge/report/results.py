"""The folder that `judge evaluate --tables` leaves: every table as CSV, JSON and figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError
from judge.report.sheet import (
    BLUE,
    GREY,
    PALE,
    SMALL,
    UNDEFINED,
    Heading,
    drawable,
    need_matplotlib,
    save,
    sheet,
    short,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from judge.evaluation.tables import Row, Table
    from judge.stats.intervals import Estimate

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

MOST = 100
"""Rows that a figure has room for."""


def write(tables: Sequence[Table], folder: Path, *, benchmark: str, model: str) -> None:
    """Write tables.json, and for each table NAME.csv and, if it is drawn, NAME.png and NAME.svg.

    Raises:
        UsageError: matplotlib is not installed, or the folder cannot be written to.
    """
    need_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        told = {
            "benchmark": benchmark,
            "model": model,
            "tables": [table.as_json() for table in tables],
        }
        text = json.dumps(told, ensure_ascii=False, indent=1)
        # A surrogate without its other half has no UTF-8; so written it is what JSON escapes it to.
        (folder / "tables.json").write_text(text + "\n", "utf-8", "backslashreplace")
        for table in tables:
            path = folder / f"{table.name}.csv"
            with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
                rows = ([_inert(cell) for cell in row] for row in table.as_rows())
                csv.writer(file, lineterminator="\n").writerows(rows)
            heading = Heading(benchmark, model, table.title)
            with style():
                figure = draw(table, heading)
                if figure is not None:
                    save(figure, folder / table.name)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _inert(cell: str | float | None) -> str | float | None:
    """A cell that no spreadsheet takes for a formula: such a text gets an apostrophe in front.

    Labels come out of records. Numbers are no texts and stay as they are. A carriage return becomes
    a newline: the csv module does not quote it, and readers would take it for the end of the row.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if cell.startswith(_FORMULA) else text


def draw(table: Table, heading: Heading) -> Figure | None:
    """The table's figure; None where it has none, or nothing in it can be drawn.

    Of more than `MOST` rows the first are drawn, and the note says how many are not.
    """
    if table.figure == "boxes":
        rows = [row for row in table.rows if row.spread]
    else:
        drawn = table.drawn
        rows = [row for row in table.rows if any(_value(row, name) is not None for name in drawn)]
    if not rows or table.figure is None:
        return None
    kept, note = rows[:MOST], " ".join(table.notes)
    if len(rows) > MOST:
        note = f"{note} {len(rows) - MOST} further rows are in the table only.".strip()
    panels = max(len(table.drawn), 1)
    figure = sheet(
        heading,
        f"by {', '.join(table.heads)}",
        width=8.0 if panels < 3 else 3.0 * panels,
        height=0.26 * len(kept) + 0.9,
        note=note or None,
    )
    found: Any = figure.subplots(1, panels, sharey=True, squeeze=False)
    for axes, name in zip(found[0], table.drawn or ("",), strict=True):
        if table.figure == "boxes":
            axes.boxplot(
                [row.spread for row in kept],
                positions=range(len(kept)),
                orientation="horizontal",
                widths=0.6,
                medianprops={"color": BLUE},
                flierprops={"markersize": 3, "markeredgecolor": GREY},
            )
        else:
            for place, row in enumerate(kept):
                _bar(axes, place, row.cells.get(name))
            axes.set_xlabel(drawable(name))
            axes.axvline(0, color=GREY, linewidth=0.8)
        axes.grid(axis="x", color=PALE, linewidth=0.5, alpha=0.6)
        axes.set_axisbelow(True)
    names = [short(", ".join(row.labels), 44) for row in kept]
    found[0][0].set_yticks(range(len(kept)), names)
    found[0][0].tick_params(axis="y", length=0)
    found[0][0].set_ylim(len(kept) - 0.4, -0.6)
    return figure


def _bar(axes: Axes, place: int, cell: Any) -> None:
    """A bar with its interval; where the number is undefined, a dash."""
    if cell is None or cell.value is None:
        axes.annotate(UNDEFINED, (0, place), va="center", size=SMALL, color=GREY)
        return
    axes.barh(place, cell.value, height=0.7, color=BLUE, alpha=0.55)
    if cell.low is not None and cell.high is not None:
        axes.hlines(place, cell.low, cell.high, color="black", linewidth=1.1)


def _value(row: Row, name: str) -> float | None:
    cell: Estimate | Any = row.cells.get(name)
    return getattr(cell, "value", None)

"""A figure of several runs: each run's scores with their intervals, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import catch_warnings, filterwarnings

from judge.errors import UsageError, why_unread
from judge.report.calibration import STYLE, drawable
from judge.stats.intervals import Estimate

if TYPE_CHECKING:
    from judge.evaluation.tables import Cell, Table

ENDINGS = (".svg", ".png")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_STEP = 0.7
"""The part of a row's height that its runs are spread over."""


def draw(table: Table, runs: Mapping[str, str], path: Path) -> None:
    """Draw the columns of the runs, a mark for each row with its 95 % interval, into a file.

    Args:
        table: of a comparison, with a column for each run's letter.
        runs: the runs' files by letter.
        path: ends in one of `ENDINGS`. The same table gives the same bytes.

    Raises:
        UsageError: another ending, or the file cannot be written.
    """
    from matplotlib.figure import Figure
    from matplotlib.style import context

    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--figure {path}: name a file that ends in {', '.join(ENDINGS)}")
    rows = [row for row in table.rows if _placed(row.cells.get(next(iter(runs))))]
    with context(["default", STYLE]), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(6.4, 1.6 + len(rows) * (0.3 + 0.12 * len(runs))))
        axes = figure.subplots()
        for number, (letter, source) in enumerate(runs.items()):
            place = (number - (len(runs) - 1) / 2) * _STEP / len(runs)
            colour = _COLOURS[number % len(_COLOURS)]
            label = drawable(f"{letter}: {source}", 60)
            for height, row in enumerate(rows):
                one = row.cells.get(letter)
                if isinstance(one, Estimate) and one.value is not None:
                    if one.low is not None and one.high is not None:
                        axes.plot((one.low, one.high), (height + place,) * 2, color=colour)
                    axes.plot(one.value, height + place, "o", color=colour, label=label)
                    label = "_"
        names = [drawable(", ".join(row.labels), 40) for row in rows]
        axes.set_yticks(range(len(names)), names)
        axes.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -0.5), xlabel="mean score")
        figure.legend(loc="outside upper left", fontsize="small")
        axes.grid(axis="x", color="#e5e5e5")
        figure.set_layout_engine("constrained")
        dated = {"Date": None} if path.suffix.lower() == ".svg" else None
        try:
            figure.savefig(path, metadata=dated)
        except OSError as error:
            raise UsageError(f"--figure {path}: cannot be written: {why_unread(error)}") from error


def _placed(cell: Cell) -> bool:
    return isinstance(cell, Estimate) and cell.value is not None

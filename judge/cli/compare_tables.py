"""The table of `judge compare`: both runs, their difference, and whether it could be chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from judge.cli.calibration_tables import UNDEFINED, number
from judge.cli.printing import WIDEST, plain_console

if TYPE_CHECKING:
    from judge.evaluation.comparing import Compared, Comparison
    from judge.stats.intervals import Estimate

_LEAST = 0.001


def show(found: Comparison) -> None:
    """Print what is compared and the table on standard output."""
    # Rich cuts cells to the terminal's width, or to 80 in a pipe; these are the data.
    console = plain_console(width=WIDEST)
    for line in _heading(found):
        console.print(line, soft_wrap=True)
    console.print(_table(found), soft_wrap=True)


def _heading(found: Comparison) -> Iterator[str]:
    yield f"judge {found.kind}, {', '.join(found.names)} (95 % intervals)"
    yield f"A: {found.sources[0]}"
    yield f"B: {found.sources[1]}"
    what = "items" if found.kind == "evaluate" else "records"
    yield f"{found.both} {what} in both, {found.only_a} only in A, {found.only_b} only in B"


def _table(found: Comparison) -> Table:
    head = "condition" if found.kind == "evaluate" else "verdict of"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (head, *([found.by] if found.by else [])):
        table.add_column(name, no_wrap=True)
    for name in ("pairs", "A", "B", "B − A", "A, not B", "B, not A", "McNemar p", "Holm p"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.rows:
        part = [Text("all" if row.part is None else row.part)] if found.by else []
        table.add_row(Text(row.series), *part, *_cells(row))
    return table


def _cells(row: Compared) -> list[str]:
    pairs = f"{row.difference.n} of {row.difference.of}"
    scores = [pairs, number(row.first), number(row.second), _signed(row.difference)]
    if row.test is None:
        return [*scores, *[UNDEFINED] * 4]
    counts = [str(row.test.only_first), str(row.test.only_second)]
    return [*scores, *counts, _chance(row.test.p), _chance(row.adjusted)]


def _signed(one: Estimate) -> str:
    if one.value is None:
        return UNDEFINED
    if one.low is None or one.high is None:
        return _plus(one.value)
    return f"{_plus(one.value)} ({_plus(one.low)} to {_plus(one.high)})"


def _plus(value: float) -> str:
    """Two places with the sign, and none before 0.00."""
    rounded = round(value, 2)
    return f"{rounded:+.2f}" if rounded else "0.00"


def _chance(p: float | None) -> str:
    if p is None:
        return UNDEFINED
    return f"<{_LEAST}" if p < _LEAST else f"{p:.3f}"

"""What is printed for people: safe for the terminal, without secrets, in tables of 80 columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from judge.redact import printable, redacted

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 10_000
"""Columns of a console whose lines must not be folded."""

COLOURS = {"pass": "green", "fail": "red", "abstain": "yellow", "unreadable": "magenta"}
_GAP = 2


def tell(message: object) -> None:
    """Lines from `judge` on standard error, without secrets."""
    typer.echo(printable(redacted(f"judge: {message}")), err=True)


def say(text: str, *, err: bool = False) -> None:
    """Text or JSON on standard output, or on standard error."""
    typer.echo(printable(text), err=err)


def nothing(sources: Sequence[str], limit: int | None = None) -> str:
    """The message for a run that found nothing to do, which must not look like a good one."""
    if limit == 0:
        return "nothing was done: --limit 0"
    names = ("standard input" if source == "-" else source for source in sources)
    return f"no records in {', '.join(names)}"


def counted(number: int, what: str, plural: str | None = None) -> str:
    """The number with its noun, in the plural unless it is 1: `1 record`, `0 records`."""
    return f"{number} {what if number == 1 else plural or what + 's'}"


def shortened(text: str, most: int) -> str:
    """The text on one line, of at most so many characters and an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


def width(*, err: bool = False) -> int:
    """Columns to print in: those of the terminal (or of $COLUMNS), 80 where there is none."""
    from shutil import get_terminal_size

    stream = sys.stderr if err else sys.stdout
    return get_terminal_size((80, 24)).columns if stream and stream.isatty() else 80


def plain_console(**more: Any) -> Console:
    """A Rich console whose text is `printable`, and never read as Rich's markup."""
    from rich.console import Console
    from rich.segment import Segment

    class Printing(Console):
        def render(self, *arguments: Any, **named: Any) -> Iterable[Segment]:
            for part in super().render(*arguments, **named):
                yield part if part.control else Segment(printable(part.text), part.style)

    return Printing(**{"highlight": False, "markup": False, **more})


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    labels: int = 1,
    text: Sequence[str] = (),
    notes: Sequence[str] = (),
    err: bool = False,
) -> None:
    """Print a table in the columns there are; words and numbers are never broken.

    A table that is too wide comes in pieces below one another, each with the label columns.

    Args:
        heads: a name for each column.
        rows: a cell for each column.
        labels: so many columns, from the left, say what a row is about.
        text: heads of further columns with words instead of numbers.
        notes: lines below the table.
        err: print on standard error.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    wide = width(err=err)
    worded = {*range(labels), *(heads.index(name) for name in text)}
    cells = [list(column) for column in zip(heads, *rows, strict=True)]
    least = [_least(column, folded=n in worded) for n, column in enumerate(cells)]
    console = plain_console(stderr=err, width=WIDEST)
    if title:
        console.print(Text(title, style="bold"), width=wide)
    for shown in _pieces(least, labels, wide):
        widths = _widths({n: (least[n], max(map(_cells, cells[n]))) for n in shown}, wide)
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))

        def styled(cell: str, wide: int) -> Text:
            return Text(_folded(printable(cell), wide), style=COLOURS.get(cell, ""))

        for n in shown:
            justify: Any = "left" if n in worded else "right"
            table.add_column(
                styled(heads[n], widths[n]), justify=justify, width=widths[n], no_wrap=True
            )
        for row in rows:
            table.add_row(*(styled(row[n], widths[n]) for n in shown))
        console.print(table, crop=False)
    for note in notes:
        console.print(Text(note, style="dim"), width=wide)


def _least(column: Sequence[str], *, folded: bool) -> int:
    """The narrowest that a column may be: its longest cell or, if folded, its longest word."""
    head, *cells = column
    return max((_longest(head), *(_longest(c) if folded else _cells(c) for c in cells)))


def _widths(ranges: Mapping[int, tuple[int, int]], wide: int) -> dict[int, int]:
    """The width of each column, between the narrowest and the widest that it may have."""
    widths = {n: widest for n, (_, widest) in ranges.items()}
    while sum(widths.values()) + _GAP * (len(widths) - 1) > wide:
        slack = {n: widths[n] - narrowest for n, (narrowest, _) in ranges.items()}
        roomiest = max(slack, key=lambda n: (slack[n] > 0, widths[n]))
        if slack[roomiest] <= 0:
            break
        widths[roomiest] -= 1
    return widths


def _folded(text: str, wide: int) -> str:
    """The text in lines of at most so many columns, broken between words.

    Rich's own folding loses characters of double width.
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if _cells(longer) <= wide:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _longest(text: str) -> int:
    return max(map(_cells, text.split()), default=0)


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(printable(text))


def _pieces(least: Sequence[int], labels: int, wide: int) -> Iterator[list[int]]:
    """The columns of each piece of a table: the labels, and as many others as there is room for."""
    always = list(range(labels))
    room = wide - sum(least[n] + _GAP for n in always)
    piece, left = list(always), room
    for n in range(labels, len(least)):
        if least[n] > left and len(piece) > labels:
            yield piece
            piece, left = list(always), room
        piece.append(n)
        left -= least[n] + _GAP
    yield piece

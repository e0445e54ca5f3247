"""What is printed for people: safe for the terminal, without secrets, in tables of 80 columns."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import typer

from judge.redact import printable, redacted

_COLOURS = {"pass": "green", "fail": "red", "abstain": "yellow", "unreadable": "magenta"}
_GAP = "  "


class _Errors(io.TextIOWrapper):
    """Drops what cannot be written."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def guard_streams() -> None:
    """Make standard error a stream whose writes never fail, and standard output one for any text.

    A run of days must not end for a log on a full disk. Lone surrogates, which records may hold,
    have no UTF-8 form: they are written as escapes, which mean the same in JSON. Streams that are
    closed are opened on the null device: otherwise the next file that is opened gets their number,
    and a library that prints writes into it.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(opened)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        # Without a buffer, which would keep what could not be written and fail again at exit.
        raw = io.FileIO(2, "w", closefd=False)
        sys.stderr = _Errors(raw, "utf-8", "backslashreplace", write_through=True)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
        # A pipe that another process has made non-blocking, and that is full, is waited for.
        with suppress(OSError):
            os.set_blocking(sys.stdout.fileno(), True)


def drop_stdout() -> None:
    """Let what waits in the buffer of standard output go nowhere: it could not be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


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


def folded(text: str, wide: int, indent: str = "") -> list[str]:
    """The text in lines of at most `wide` columns, the later ones indented; words stay whole."""
    from rich.cells import cell_len

    if cell_len(text) <= wide:
        return [text]
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(longer := f"{lines[-1]} {word}") <= wide:
            lines[-1] = longer
        else:
            start = indent if lines else text[: len(text) - len(text.lstrip())]
            lines.append(start + word)
    return lines


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
    from rich.cells import cell_len

    def cells(column: Sequence[str]) -> list[str]:
        return [" ".join(printable(cell).split()) for cell in column]

    def styled(line: str, **how: Any) -> str:
        plain = "NO_COLOR" in os.environ or not any(how.values())
        return line if plain else typer.style(line, **how)

    wide = width(err=err)
    columns = [cells(column) for column in zip(heads, *rows, strict=True)]
    worded = {*range(labels), *(heads.index(name) for name in text)}
    least = []
    for n, (head, *below) in enumerate(columns):
        # The narrowest that a column may be: its longest word or, of numbers, its longest cell.
        whole = " ".join(below).split() if n in worded else below
        least.append(max(map(cell_len, (*head.split(), *whole)), default=0))
    for line in folded(printable(title), wide) if title else ():
        typer.echo(styled(line, bold=True), err=err)
    for shown in _pieces(least, labels, wide):
        most = [max(map(cell_len, columns[n])) for n in shown]
        widths = _widths([least[n] for n in shown], most, wide)
        for number, row in enumerate(zip(*(columns[n] for n in shown), strict=True)):
            parts = [folded(cell, size) for cell, size in zip(row, widths, strict=True)]
            for across in zip_longest(*parts, fillvalue=""):
                padded = []
                for n, part, size, cell in zip(shown, across, widths, row, strict=True):
                    blank = " " * (size - cell_len(part))
                    aligned = part + blank if n in worded else blank + part
                    padded.append(styled(aligned, fg=_COLOURS.get(cell)))
                typer.echo(_GAP.join(padded).rstrip(), err=err)
            if number == 0:
                typer.echo("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), err=err)
    for note in notes:
        for line in folded(printable(note), wide):
            typer.echo(styled(line, dim=True), err=err)


def _pieces(least: Sequence[int], labels: int, wide: int) -> Iterator[list[int]]:
    """The columns of each piece of a table: the labels, and as many others as there is room for."""
    always = list(range(labels))
    piece = list(always)
    for n in range(labels, len(least)):
        taken = sum(least[one] for one in (*piece, n)) + len(_GAP) * len(piece)
        if taken > wide and len(piece) > labels:
            yield piece
            piece = list(always)
        piece.append(n)
    yield piece


def _widths(least: Sequence[int], most: Sequence[int], wide: int) -> list[int]:
    """The width of each column, between the narrowest and the widest that it may have."""
    widths, room = list(most), wide - len(_GAP) * (len(most) - 1)
    while sum(widths) > room and widths != list(least):
        slack = [n for n, size in enumerate(widths) if size > least[n]]
        widths[max(slack, key=widths.__getitem__)] -= 1
    return widths

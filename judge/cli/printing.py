"""What is printed for people: safe for the terminal, without secrets, in tables of 80 columns."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from shutil import get_terminal_size
from typing import Any

import typer
from rich.cells import cell_len, set_cell_size

from judge.redact import printable, redacted

_COLOURS = {"pass": "green", "fail": "red", "abstain": "yellow", "unreadable": "magenta"}
_GAP = 2
_LONGEST = 40
"""Columns of a word in a table; of a longer one, such as an address, the beginning is shown."""


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

    Lone surrogates have no UTF-8 form: they are written as escapes, which mean the same in JSON.
    Closed streams are opened on the null device, or the next file that is opened gets their number.
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


def tell(message: object, *, apart: bool = False) -> None:
    """Lines from `judge` on standard error, without secrets.

    `apart`: on a line of its own, where a terminal shows Ctrl-C as `^C` without a new line.
    """
    # Rich stands before the stream while it shows a bar, and says that it is no terminal.
    if apart and getattr(sys.stderr, "rich_proxied_file", sys.stderr).isatty():
        typer.echo(err=True)
    typer.echo(printable(redacted(f"judge: {message}")), err=True)


def say(text: str, *, err: bool = False) -> None:
    """Text or JSON on standard output, or on standard error."""
    typer.echo(printable(text), err=err)


def nothing(sources: Sequence[str], limit: int | None = None) -> str:
    """The message for a run that found nothing to do, which must not look like a good one."""
    if limit == 0 or not sources:
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


def columns(*, err: bool = False) -> int:
    """The columns of the terminal (or $COLUMNS), 80 where there is none."""
    stream = sys.stderr if err else sys.stdout
    return get_terminal_size((80, 24)).columns if stream and stream.isatty() else 80


def _folded(text: str, wide: int, indent: str = "") -> list[str]:
    """The words of a text in lines of at most so many columns, from the second on indented."""
    parts: list[str] = []
    for word in text.split():
        if parts and cell_len(longer := f"{parts[-1]} {word}") <= wide:
            parts[-1] = longer
        else:
            parts.append(indent * bool(parts) + word)
    return parts or [""]


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines folded to the columns there are, the later parts of each indented."""
    wide = columns(err=err)
    for line in map(printable, lines):
        indent = " " * (len(line) - len(line.lstrip()))
        for part in [line] if cell_len(line) <= wide else _folded(line, wide - len(indent), "  "):
            typer.echo((part if part is line else indent + part).rstrip(), err=err)


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    labels: int = 1,
    text: Sequence[str] = (),
    every: bool = True,
    err: bool = False,
) -> int:
    """Print a table in the columns there are; words and numbers are never broken.

    A table that is too wide comes in pieces below one another, each with the label columns. A
    column that counts nothing but zeros is left out.

    Args:
        heads: a name for each column.
        rows: a cell for each column.
        labels: so many columns, from the left, say what a row is about.
        text: heads of further columns with words instead of numbers.
        every: print every piece; otherwise the first one alone.
        err: print on standard error.

    Returns:
        How many columns stand in pieces that were not printed.
    """
    by_column = [
        [" ".join(_short(word) for word in printable(c).split()) for c in one]
        for n, one in enumerate(zip(heads, *rows, strict=True))
        if n < labels or not rows or not {"", "0"}.issuperset(one[1:])
    ]
    heads = [head for head, *_ in by_column]
    worded = {*range(labels), *(heads.index(name) for name in text)}
    least = []
    for n, (head, *below) in enumerate(by_column):
        # The narrowest that a column may be: its longest word or, of numbers, its longest cell.
        whole = " ".join(below).split() if n in worded else below
        least.append(max(map(cell_len, (*head.split(), *whole)), default=0))
    print_lines([title] if title else [], err=err)
    wide = columns(err=err)
    pieces = list(_pieces(least, labels, wide))
    for shown in pieces if every else pieces[:1]:
        most = [max(map(cell_len, by_column[n])) for n in shown]
        widths = _widths([least[n] for n in shown], most, wide)
        for number, row in enumerate(zip(*(by_column[n] for n in shown), strict=True)):
            cells = [_folded(cell, size) for cell, size in zip(row, widths, strict=True)]
            for parts in zip_longest(*cells, fillvalue=""):
                padded = [
                    _padded(part, size, right=n not in worded, coloured=number > 0)
                    for n, part, size in zip(shown, parts, widths, strict=True)
                ]
                typer.echo((" " * _GAP).join(padded).rstrip(), err=err)
            if not number:
                typer.echo("─" * (sum(widths) + _GAP * (len(widths) - 1)), err=err)
    return 0 if every else sum(len(shown) - labels for shown in pieces[1:])


class Tables:
    """The tables of a command: the headline in the columns there are, all else with `--all`."""

    def __init__(self, *, every: bool, err: bool = False) -> None:
        self._every, self._err = every, err
        self._notes: dict[str, None] = {}
        self._printed = self._tables = self._columns = 0

    def add(
        self,
        heads: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        headline: bool,
        notes: Sequence[str] = (),
        **more: Any,
    ) -> None:
        """Print a table (`more` as `print_table`), where it is no headline only with `--all`."""
        if not (headline or self._every):
            self._tables += 1
            return
        if self._printed and more.get("title"):
            typer.echo(err=self._err)
        self._printed += 1
        self._columns += print_table(heads, rows, every=self._every, err=self._err, **more)
        self._notes |= dict.fromkeys(notes)

    def end(self, *more: str) -> None:
        """Print each note once, and what `--all` adds: tables, columns, and `more`."""
        hidden = {"table": self._tables, "column": self._columns}
        told = [*(counted(number, what) for what, number in hidden.items() if number), *more]
        adds = [f"--all shows more: {', '.join(told)}"] if told else []
        print_lines([*self._notes, *adds], err=self._err)


def _short(word: str) -> str:
    return word if cell_len(word) <= _LONGEST else set_cell_size(word, _LONGEST - 1) + "…"


def _padded(text: str, size: int, *, right: bool, coloured: bool) -> str:
    blanks = " " * (size - cell_len(text))
    told = coloured_word(text) if coloured else text
    return blanks + told if right else told + blanks


def coloured_word(word: str) -> str:
    """The name of a verdict in its colour, which typer leaves out where there is no terminal."""
    colour = None if os.environ.get("NO_COLOR") else _COLOURS.get(word)
    return typer.style(word, fg=colour) if colour else word


def _pieces(least: Sequence[int], labels: int, wide: int) -> Iterator[list[int]]:
    """The columns of each piece of a table: the labels, and as many others as there is room for."""
    always = list(range(labels))
    piece = list(always)
    for n in range(labels, len(least)):
        taken = sum(least[one] for one in (*piece, n)) + _GAP * len(piece)
        if taken > wide and len(piece) > labels:
            yield piece
            piece = list(always)
        piece.append(n)
    yield piece


def _widths(least: Sequence[int], most: Sequence[int], wide: int) -> list[int]:
    """The width of each column, between the narrowest and the widest that it may have."""
    widths, room = list(most), wide - _GAP * (len(most) - 1)
    while sum(widths) > room and widths != list(least):
        slack = [n for n, size in enumerate(widths) if size > least[n]]
        widths[max(slack, key=widths.__getitem__)] -= 1
    return widths

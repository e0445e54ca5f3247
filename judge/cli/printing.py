"""Printing for people: safe for the terminal, without secrets, tables in the terminal's width."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from judge.redact import printable, redacted

if TYPE_CHECKING:
    from rich.table import Table

_COLOURS = {
    "pass": "green",
    "fail": "red",
    "answered": "cyan",
    "abstain": "yellow",
    "unreadable": "magenta",
}
MAX_PROBLEMS = 20
"""Most lines of input that are named; further ones are only counted."""

_WINDOWS = os.name == "nt"
"""There a pipe's default encoding is the code page, which may lack the lines of tables."""

_GAP = 2
"""Blanks between two columns."""
_MAX_WORD, _LEAST_WORD = 40, 8
"""Width of a word in a table; a longer one, such as an address, is cut off. Labels are cut off
further, at most to the least, where they leave no room for figures."""
_NUMBER = re.compile(r"[-+<]?[\d.]|–|$")
"""How the cells of a column of numbers begin."""


class _Errors(io.TextIOWrapper):
    """A stream that drops text it cannot write."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def guard_streams() -> None:
    """Make writes to standard error never fail, and standard output accept any text.

    Lone surrogates have no UTF-8 form: they are written as escapes, which mean the same in JSON.
    Closed streams are opened on the null device; else the next file opened gets their descriptor.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(descriptor)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        # Unbuffered: a buffer would keep text that could not be written and fail again at exit.
        # The raw stream writes Unicode to a console of Windows.
        buffer: Any = getattr(sys.stderr, "buffer", None) or io.FileIO(2, "w", closefd=False)
        raw = getattr(buffer, "raw", buffer)
        sys.stderr = _Errors(raw, "utf-8", "backslashreplace", write_through=True)
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = "utf-8" if _WINDOWS else None
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
        # Another process may have made the pipe non-blocking; then writing to a full one fails.
        # Windows has no such call before Python 3.12.
        with suppress(OSError, AttributeError):
            os.set_blocking(sys.stdout.fileno(), True)


def drop_stdout() -> None:
    """Discard the buffer of standard output, which could not be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def print_message(message: object, *, new_line: bool = False) -> None:
    """Print a message of `judge` on standard error, without secrets.

    `new_line`: on a new line, because a terminal shows Ctrl-C as `^C` and stays on that line.
    """
    # While rich shows a bar, it replaces the stream with one that denies being a terminal.
    if new_line and getattr(sys.stderr, "rich_proxied_file", sys.stderr).isatty():
        typer.echo(err=True)
    typer.echo(printable(redacted(f"judge: {message}")), err=True)


def print_output(text: str, *, err: bool = False) -> None:
    """Print text or JSON on standard output, or on standard error."""
    typer.echo(printable(text), err=err)


def nothing(sources: Sequence[str], limit: int | None = None) -> str:
    """The message for a run that found nothing to do, which must not look like a success."""
    if limit == 0 or not sources:
        return "nothing was done: --limit 0"
    names = ("standard input" if source == "-" else source for source in sources)
    return f"no records in {', '.join(names)}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """The number with its noun: `1 record`, `0 records`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def shortened(text: str, length: int) -> str:
    """The text on one line, cut off after `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length]}…"


def width(*, err: bool = False) -> int:
    """The width of the terminal (or $COLUMNS), 80 where there is none."""
    stream = sys.stderr if err else sys.stdout
    return get_terminal_size((80, 24)).columns if stream and stream.isatty() else 80


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines, folding those that are too wide; words stay whole."""
    for line in map(printable, lines):
        indent = " " * (len(line) - len(line.lstrip()))
        parts = wrap(
            line,
            width(err=err),
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for part in parts or [""]:
            typer.echo(part, err=err)


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    labels: int = 1,
    totals: Collection[str] = (),
    all_pieces: bool = True,
    err: bool = False,
) -> int:
    """Print a table in the width of the terminal; words and numbers are not broken.

    A table that is too wide is split into pieces below one another, each with the label columns. A
    column with only zeros and blanks is left out, unless `totals` has its head.

    Args:
        labels: number of label columns, on the left, which say what a row is about.
        totals: heads of the columns that say over how many the figures are.
        all_pieces: print every piece, not only the first.

    Returns:
        The number of columns in pieces that were not printed.
    """
    from rich.console import Console

    console = Console(stderr=err, width=width(err=err))
    parts = [
        column
        for number, column in enumerate(zip(heads, *rows, strict=True))
        if number < labels or column[0] in totals or not {"", "0"} >= {*column[1:]} or not rows
    ]
    columns = [_column(texts, number < labels) for number, texts in enumerate(parts)]
    widest = max((each.least + _GAP for each in columns[labels:]), default=0)
    most = _MAX_WORD
    while most > _LEAST_WORD and widest - _GAP > console.width - sum(
        min(each.least, most) + _GAP for each in columns[:labels]
    ):
        most -= 1  # Labels leave room for each figure.
    columns[:labels] = [_column(texts, True, most) for texts in parts[:labels]]
    pieces = [columns[:labels]]
    for column in columns[labels:]:
        least = sum(each.least + _GAP for each in (*pieces[-1], column)) - _GAP
        if least <= console.width or len(pieces[-1]) == labels:
            pieces[-1].append(column)
        else:
            pieces.append([*columns[:labels], column])
    print_lines([title] if title else [], err=err)
    for piece in pieces if all_pieces else pieces[:1]:
        with console.capture() as capture:
            console.print(_table(piece, console.width))
        for line in capture.get().splitlines():
            typer.echo(line.rstrip(), err=err)
    return 0 if all_pieces else sum(len(piece) - labels for piece in pieces[1:])


class _Column(NamedTuple):
    """A column with the widths of its longest word (or number) and of its longest cell."""

    head: str
    cells: Sequence[str]
    is_text: bool
    least: int
    largest: int


def _column(texts: Sequence[str], is_label: bool, most: int = _MAX_WORD) -> _Column:
    """The column with this head and these cells, with words of at most this width."""
    from rich.cells import cell_len

    head, *cells = (_plain(text, most) for text in texts)
    is_text = is_label or not all(map(_NUMBER.match, cells))
    unbroken = [*head.split(), *(" ".join(cells).split() if is_text else cells)]
    least, largest = (
        max(map(cell_len, several), default=0) for several in (unbroken, (head, *cells))
    )
    return _Column(head, cells, is_text, least, largest)


def _table(columns: Sequence[_Column], width: int) -> Table:
    """The table, its widest columns narrowed until it fits, none below its longest word: rich would
    narrow all columns alike, and break words."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    widths = [column.largest for column in columns]
    while sum(widths) > width - _GAP * (len(columns) - 1):
        wide = [n for n, column in enumerate(columns) if widths[n] > column.least]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="")
    table.padding = (0, _GAP - 1, 0, 0)  # the divider is one more
    for column, size in zip(columns, widths, strict=True):
        head = Text(column.head, _COLOURS.get(column.head, ""))
        justify: Any = "left" if column.is_text else "right"
        table.add_column(head, justify=justify, width=size, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _plain(cell: str, most: int) -> str:
    """A cell on one line, safe for the terminal, with words of at most this width."""
    from rich.cells import cell_len, set_cell_size

    def cut(word: str) -> str:
        return word if cell_len(word) <= most else f"{set_cell_size(word, most - 1).rstrip()}…"

    return " ".join(map(cut, printable(cell).split()))


class Tables:
    """The tables of a command: the headlines, as far as they fit; the rest only with `--all`."""

    def __init__(self, *, all_tables: bool, err: bool = False) -> None:
        self._all, self._err = all_tables, err
        self._notes: dict[str, None] = {}
        self._printed = self._tables = self._columns = 0

    def add(
        self,
        heads: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        headline: bool,
        notes: Sequence[str] = (),
        title: str = "",
        labels: int = 1,
        totals: Collection[str] = (),
    ) -> None:
        """Print a table that has rows, if it is a headline or `--all` is set."""
        if not rows:
            return
        if not (headline or self._all):
            self._tables += 1
            return
        if self._printed and title:
            typer.echo(err=self._err)
        self._printed += 1
        self._columns += print_table(
            heads,
            rows,
            title=title,
            labels=labels,
            totals=totals,
            all_pieces=self._all,
            err=self._err,
        )
        self._notes |= dict.fromkeys(notes)

    def end(self, *parts: str) -> None:
        """Print each note once, and what `--all` adds: tables, columns, and `parts`."""
        counts = {"table": self._tables, "column": self._columns}
        parts = (*(counted(number, noun) for noun, number in counts.items() if number), *parts)
        adds = [f"--all shows more: {', '.join(parts)}"] if parts else []
        print_lines([*self._notes, *adds], err=self._err)

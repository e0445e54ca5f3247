"""Rows of CSV and TSV files: their cells, the line where they begin, what is wrong with them."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.records.lines import SAMPLE, Input, Line, split_lines

_CELL = re.compile(r'"((?:[^"\t]|"")*+)"(?=\t|\Z)|([^\t]*+)')
_STAYS_OPEN = re.compile(r'(?:^|\t)"(?:[^"\t]|"")*+\Z')
_CONTINUES = re.compile(r'(?:[^"\t]|"")*+\Z')
_CLOSES = re.compile(r'(?:[^"\t]|"")*+"(?=\t|\Z)')
_CALI = {"premise", "hypothesis", "us_ratings", "in_ratings"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row's cells, or what is wrong with it.

    `line` is where it begins, `data` its bytes or the first of its `size`; `ended` is false for
    a last row without a newline.
    """

    line: int
    cells: list[str]
    data: bytes
    size: int
    ended: bool
    problem: str | None = None


def csv_rows(opened: Input) -> Iterator[Row]:
    """The rows of a CSV file, header and all, without the empty ones."""
    # Larger rows are stopped before the csv module sees them.
    csv.field_size_limit(max(csv.field_size_limit(), opened.max_line))
    feed = _Feed(opened)
    reader = csv.reader(feed, strict=True)
    while True:
        feed.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except _TooLongError:
            yield _too_long(opened, feed.taken)
        except csv.Error as error:
            yield _broken(feed.taken, str(error).partition(" - ")[0])
        else:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield _row(feed.taken, cells)


def tsv_rows(opened: Input) -> Iterator[Row]:
    """The rows of a TSV file, header and all, without the empty ones.

    A cell is quoted if a quote stands at both its ends; it may then hold newlines and doubled
    quotes, but no tab: so a quote that somebody merely wrote never swallows the rows after it.
    In CALI's files (known by their header) quotes are always text.
    """
    lines = _Ahead(split_lines(opened))
    quoting: bool | None = None
    while line := lines.take():
        text = _decoded([line])
        if line.size > opened.max_line:
            yield _too_long(opened, [line])
        elif text.strip(" \r"):
            taken = [line]
            if quoting is not False and _STAYS_OPEN.search(text):
                taken += lines.take_continuation(opened.max_line - line.size)
            text = _decoded(taken)
            cells = text.split("\t") if quoting is False or '"' not in text else _unquoted(text)
            if quoting is None:
                quoting = not _CALI.issubset(cell.strip().casefold() for cell in cells)
            yield _row(taken, cells)


class _TooLongError(Exception):
    """A row is over the limit."""


class _Feed:
    """Decoded lines for the csv module, which keeps those that make up one row."""

    def __init__(self, opened: Input) -> None:
        self._lines = split_lines(opened)
        self._limit = opened.max_line
        self._size = 0
        self.taken: list[Line] = []

    def begin_row(self) -> None:
        self.taken.clear()
        self._size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.taken.append(line)
        self._size += line.size
        if self._size > self._limit:
            raise _TooLongError
        return line.data.decode("utf-8", "surrogateescape") + ("\n" if line.ended else "")


class _Ahead:
    """Lines, of which some were looked at before their turn."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._seen: deque[Line] = deque()

    def take(self) -> Line | None:
        return self._seen.popleft() if self._seen else next(self._lines, None)

    def take_continuation(self, limit: int) -> list[Line]:
        """The lines that go on with an open quoted cell, as far as its end; none if it has none."""
        number = size = 0
        while (line := self._look(number)) and (size := size + line.size) <= limit:
            number += 1
            text = _decoded([line])
            end = _CLOSES.match(text)
            if end and not _STAYS_OPEN.search(text[end.end() :]):
                return [self._seen.popleft() for _ in range(number)]
            if not end and not _CONTINUES.match(text):
                break
        return []

    def _look(self, number: int) -> Line | None:
        if number == len(self._seen):
            self._seen.extend([line] if (line := next(self._lines, None)) else [])
        return self._seen[number] if number < len(self._seen) else None


def _decoded(lines: Sequence[Line]) -> str:
    data = b"\n".join(line.data for line in lines)
    return data.decode("utf-8", "surrogateescape").removesuffix("\r")


def _unquoted(text: str) -> list[str]:
    cells: list[str] = []
    at = 0
    while at <= len(text) and (cell := _CELL.match(text, at)):
        cells.append(cell[2] if cell[1] is None else cell[1].replace('""', '"'))
        at = cell.end() + 1
    return cells


def _row(lines: Sequence[Line], cells: list[str], problem: str | None = None) -> Row:
    data = b"\n".join(line.data for line in lines)
    return Row(lines[0].number, cells, data, len(data), lines[-1].ended, problem)


def _broken(lines: Sequence[Line], message: str) -> Row:
    row = _row(lines, [])
    if message == "unexpected end of data":
        problem = "a quote that opens in this row is never closed: it takes in all that follows"
        return Row(row.line, [], row.data[:SAMPLE], row.size, row.ended, problem)
    return _row(lines, [], f"the row is not CSV: {message}")


def _too_long(opened: Input, lines: Sequence[Line]) -> Row:
    size = sum(line.size for line in lines)
    data = b"\n".join(line.data for line in lines)[:SAMPLE]
    problem = f"the row has {size} bytes, more than the limit of {opened.max_line}"
    return Row(lines[0].number, [], data, size, lines[-1].ended, problem)

"""Reading CSV and TSV: a header, then one record a row, every cell a text."""

from __future__ import annotations

import csv
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.records.base import Item
from judge.records.lines import SAMPLE, Input, Line, split_lines
from judge.records.streams import BrokenStreamError

# Decoding with "surrogateescape" turns bytes that are no UTF-8 into these, and nothing else can.
_UNREADABLE = re.compile("[\0\udc80-\udcff]")
_CELL = re.compile(r'"((?:[^"\t]|"")*+)"(?=\t|\Z)|([^\t]*+)')
_STAYS_OPEN = re.compile(r'(?:^|\t)"(?:[^"\t]|"")*+\Z')
_CONTINUES = re.compile(r'(?:[^"\t]|"")*+\Z')
_CLOSES = re.compile(r'(?:[^"\t]|"")*+"(?=\t|\Z)')
_CALI = {"premise", "hypothesis", "us_ratings", "in_ratings"}


@dataclass(frozen=True, slots=True)
class _Row:
    """One row's cells, or what is wrong with it; `data` its bytes or the first of its `size`."""

    line: int
    cells: list[str]
    data: bytes
    size: int
    problem: str | None = None


def read_csv(opened: Input) -> Iterator[Item]:
    """Rows of comma-separated cells, quoted as spreadsheets and pandas do it.

    Empty lines hold no record. Raises UsageError for a header that cannot name the columns.
    """
    return _items(opened, _csv_rows(opened))


def read_tsv(opened: Input) -> Iterator[Item]:
    """Rows of tab-separated cells.

    A cell is quoted if a quote stands at both its ends; it may then hold newlines and doubled
    quotes, but no tab: so a stray quote never swallows the rows after it. In CALI's files (known
    by their header) quotes are always text.

    Empty lines hold no record. Raises UsageError for a header that cannot name the columns.
    """
    return _items(opened, _tsv_rows(opened))


def _items(opened: Input, rows: Iterator[_Row]) -> Iterator[Item]:
    try:
        first = next(rows, None)
    except BrokenStreamError as error:
        return iter([opened.cut_off(1, error)])
    if first is None:
        return iter(())
    bad = next((n for n, cell in enumerate(first.cells, 1) if _UNREADABLE.search(cell)), None)
    problem = first.problem or (bad and f"cell {bad} is not UTF-8, or holds a NUL byte")
    if problem:
        raise UsageError(f"{opened.name}: the header row cannot be read: {problem}")
    repeated = sorted(cell for cell, count in Counter(first.cells).items() if count > 1)
    if repeated:
        raise UsageError(f"{opened.name}: the header names a column twice: {', '.join(repeated)}")
    return _records(opened, first.cells, rows)


def _records(opened: Input, header: Sequence[str], rows: Iterator[_Row]) -> Iterator[Item]:
    line = 1
    try:
        for row in rows:
            line, problem, field = row.line, row.problem, None
            if problem is None and len(row.cells) != len(header):
                problem = f"the row has {len(row.cells)} cells, the header {len(header)}"
            fields = dict(zip(header, row.cells, strict=False))
            if problem is None:
                field = next((k for k, cell in fields.items() if _UNREADABLE.search(cell)), None)
                problem = field and f"column {field!r} is not UTF-8, or holds a NUL byte"
            if problem:
                yield opened.bad(line, problem, row.data, size=row.size, field=field)
            else:
                yield Item(opened.name, line, fields)
    except BrokenStreamError as error:
        yield opened.cut_off(line + 1, error)


class _TooLongError(Exception):
    """A row is over the limit."""


class _Feed:
    """Decoded lines for the csv module, which keeps those that make up one row."""

    def __init__(self, opened: Input) -> None:
        self._lines = split_lines(opened)
        self._limit = opened.max_line
        self.taken: list[Line] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.taken.append(line)
        self._limit -= line.size
        if self._limit < 0:
            raise _TooLongError
        return line.data.decode("utf-8", "surrogateescape") + "\n"

    def begin_row(self, limit: int) -> None:
        self._limit = limit
        self.taken = []


def _csv_rows(opened: Input) -> Iterator[_Row]:
    # Larger rows are stopped before the csv module sees them.
    csv.field_size_limit(max(csv.field_size_limit(), opened.max_line))
    feed = _Feed(opened)
    reader = csv.reader(feed, strict=True)
    while True:
        feed.begin_row(opened.max_line)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except _TooLongError:
            yield _too_long(opened, feed.taken)
        except csv.Error as error:
            said = str(error).partition(" - ")[0]
            problem = f"the row is not CSV: {said}"
            if said == "unexpected end of data":
                problem = "a quote that opens in this row is never closed: it takes in the rest"
            row = _row(feed.taken, [])
            yield _Row(row.line, [], row.data[:SAMPLE], row.size, problem)
        else:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield _row(feed.taken, cells)


def _tsv_rows(opened: Input) -> Iterator[_Row]:
    lines = split_lines(opened)
    ahead: deque[Line] = deque()
    quoting: bool | None = None
    while line := (ahead.popleft() if ahead else next(lines, None)):
        text = _decoded([line])
        if line.size > opened.max_line:
            yield _too_long(opened, [line])
        elif text.strip(" \r"):
            taken = [line]
            if quoting is not False and _STAYS_OPEN.search(text):
                taken += _continuation(ahead, lines, opened.max_line - line.size)
            text = _decoded(taken)
            cells = text.split("\t") if quoting is False or '"' not in text else _unquoted(text)
            if quoting is None:
                quoting = not _CALI.issubset(cell.strip().casefold() for cell in cells)
            yield _row(taken, cells)


def _continuation(ahead: deque[Line], lines: Iterator[Line], limit: int) -> list[Line]:
    """The lines that go on with an open quoted cell, as far as its end; none if it has none.

    Lines that were looked at in vain stay `ahead`.
    """
    seen: list[Line] = []
    while line := (ahead.popleft() if ahead else next(lines, None)):
        seen.append(line)
        limit -= line.size
        text = _decoded([line])
        end = _CLOSES.match(text)
        if limit >= 0 and end and not _STAYS_OPEN.search(text[end.end() :]):
            return seen
        if limit < 0 or not (end or _CONTINUES.match(text)):
            break
    ahead.extendleft(reversed(seen))
    return []


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


def _row(lines: Sequence[Line], cells: list[str]) -> _Row:
    data = b"\n".join(line.data for line in lines)
    return _Row(lines[0].number, cells, data, len(data))


def _too_long(opened: Input, lines: Sequence[Line]) -> _Row:
    size = sum(line.size for line in lines)
    data = b"\n".join(line.data for line in lines)[:SAMPLE]
    problem = f"the row has {size} bytes, more than the limit of {opened.max_line}"
    return _Row(lines[0].number, [], data, size, problem)

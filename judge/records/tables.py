"""Reading CSV, TSV and Parquet: one record a row."""

from __future__ import annotations

import csv
import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from judge.errors import UsageError, missing_extra
from judge.records.base import Item, Problem
from judge.records.streams import SAMPLE, BrokenStreamError, Input, Line, split_lines

# Decoding with "surrogateescape" turns bytes that are no UTF-8 into these, and nothing else can.
_UNREADABLE = re.compile("[\0\udc80-\udcff]")
_CALI = {"premise", "hypothesis", "us_ratings", "in_ratings"}
_BATCH = 256


def read_csv(opened: Input) -> Iterator[Item]:
    """Rows of comma-separated cells under a header, quoted as spreadsheets and pandas do it.

    Empty lines hold no record. Raises UsageError for a header that cannot name the columns.
    """
    return _read_rows(opened, ",")


def read_tsv(opened: Input) -> Iterator[Item]:
    """Rows of tab-separated cells, quoted as in CSV; in CALI's files, which their header tells,
    quotes are text. Raises UsageError for a header that cannot name the columns."""
    return _read_rows(opened, "\t")


def _read_rows(opened: Input, separator: str) -> Iterator[Item]:
    rows = _rows(opened, separator)
    try:
        header = next(rows, None)
    except BrokenStreamError as error:
        return iter([opened.cut_off(1, error)])
    if header is None:
        return iter(())
    problem = header.problem
    for number, cell in enumerate(header.cells, 1):
        if problem is None and _UNREADABLE.search(cell):
            problem = f"cell {number} is not UTF-8, or holds a NUL byte"
    if problem:
        raise UsageError(f"{opened.name}: the header row cannot be read: {problem}")
    _refuse_repeated(opened.name, header.cells)
    return _records(opened, header.cells, rows)


def _refuse_repeated(name: str, columns: Sequence[str]) -> None:
    repeated = sorted(column for column, count in Counter(columns).items() if count > 1)
    if repeated:
        raise UsageError(f"{name}: the header names a column twice: {', '.join(repeated)}")


@dataclass(slots=True)
class _Row:
    """One row's cells, or what is wrong with it; `data` its bytes or the first of its `size`."""

    line: int
    cells: list[str]
    data: bytes
    size: int
    problem: str | None = None


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

    def __init__(self, lines: Iterator[Line], limit: int) -> None:
        self._lines = lines
        self._limit = self._left = limit
        self.taken: list[Line] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.taken.append(line)
        self._left -= line.size
        if self._left < 0:
            raise _TooLongError
        return _decoded(line) + "\n"

    def begin_row(self) -> None:
        self._left = self._limit
        self.taken = []


def _rows(opened: Input, separator: str) -> Iterator[_Row]:
    # Larger rows are stopped before the csv module sees them.
    csv.field_size_limit(max(csv.field_size_limit(), opened.max_line))
    lines = split_lines(opened)
    header = next(lines, None)
    if header is None:
        return
    names = {name.strip().casefold() for name in _decoded(header).split(separator)}
    unquoted = separator == "\t" and names >= _CALI
    feed = _Feed(chain([header], lines), opened.max_line)
    reader = csv.reader(
        feed,
        delimiter=separator,
        quoting=csv.QUOTE_NONE if unquoted else csv.QUOTE_MINIMAL,
        strict=True,
    )
    while True:
        feed.begin_row()
        problem: str | None = None
        cells: list[str] = []
        try:
            cells = next(reader)
        except StopIteration:
            return
        except _TooLongError:
            problem = f"more than the limit of {opened.max_line}"
        except csv.Error as error:
            said = str(error).partition(" - ")[0]
            problem = f"the row is not CSV: {said}"
            if said == "unexpected end of data":
                problem = "a quote that opens in this row is never closed: it takes in the rest"
        if problem is None and (not cells or (len(cells) == 1 and not cells[0].strip())):
            continue
        if separator == "\t" and any("\t" in cell and "\n" in cell for cell in cells):
            problem = "a stray quote joins this row to the next: quote the cell, or leave it out"
        data = b"\n".join(line.data for line in feed.taken)
        size = sum(line.size for line in feed.taken) + len(feed.taken) - 1
        if problem is not None and size > opened.max_line:
            problem = f"the row has {size} bytes, {problem}"
        kept = data if problem is None else data[:SAMPLE]
        yield _Row(feed.taken[0].number, cells, kept, size, problem)


def _decoded(line: Line) -> str:
    return line.data.decode("utf-8", "surrogateescape")


def read_parquet(name: str, file: str | IO[bytes]) -> Iterator[Item]:
    """One record a row; `line` is the row's number.

    Lists and structs become lists and objects, a missing number (NaN) null, and what JSON has no
    form for (bytes, decimals, dates) a text. Raises UsageError for a file that is no Parquet, and
    where pyarrow is missing.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError as error:
        raise missing_extra(f"{name}: Parquet needs pyarrow", "parquet") from error
    try:
        # Without pre-buffering, else whole row groups are read ahead of the batches.
        table = pq.ParquetFile(file, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{name} is not a Parquet file: {error}") from error
    _refuse_repeated(name, table.schema_arrow.names)
    return _parquet_items(name, table)


def _parquet_items(name: str, table: Any) -> Iterator[Item]:
    import pyarrow as pa

    number = 0
    try:
        for batch in table.iter_batches(batch_size=_BATCH):
            for place in range(batch.num_rows):
                number += 1
                yield _parquet_item(name, number, batch, place)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"the file cannot be read further: {str(error).partition('. Detail')[0]}"
        yield Item(name, number + 1, None, None, Problem(message))


def _parquet_item(name: str, number: int, batch: Any, place: int) -> Item:
    row: dict[str, Any] = {}
    problem: Problem | None = None
    for column, cells in zip(batch.schema.names, batch.columns, strict=True):
        try:
            row[column] = cells[place].as_py()
            row[column] = _plain(row[column])
        # Text that is no UTF-8; dates beyond Python's, and infinite numbers.
        except (ValueError, OverflowError) as error:
            message = f"column {column!r} holds what cannot be read: {error}"
            problem = problem or Problem(message, column)
    if problem is None:
        return Item(name, number, row)
    # The row as far as it can be read; this text may write numbers that JSON lacks.
    raw = json.dumps(row, ensure_ascii=False, default=str)
    return Item(name, number, None, raw, problem)


def _plain(content: Any) -> Any:
    match content:
        case float():
            if math.isinf(content):
                raise OverflowError("an infinite number, which JSON does not have")
            return None if math.isnan(content) else content
        case None | bool() | int() | str():
            return content
        case dict():
            return {str(key): _plain(part) for key, part in content.items()}
        case list() | tuple():
            return [_plain(part) for part in content]
        case bytes():
            return content.decode("utf-8", "backslashreplace")
        case datetime.date() | datetime.time():
            return content.isoformat()
    return str(content)

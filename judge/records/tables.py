"""Rows as records: of CSV, TSV and Parquet files, of data frames and dicts in memory."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from judge.errors import UsageError, missing_extra
from judge.records.base import Item, Problem, clip
from judge.records.streams import SAMPLE, Input

# Decoding with "surrogateescape" turns bytes that are no UTF-8 into these, and nothing else can.
_UNREADABLE = re.compile("[\0\udc80-\udcff]")
_CALI = {"premise", "hypothesis", "us_ratings", "in_ratings"}
_BATCH = 256
_SOURCE = "<records>"
_MISSING = frozenset(("NaTType", "NAType"))
"""pandas' own types for what is not there."""


def read_csv(opened: Input, separator: str = ",") -> Iterator[Item]:
    """Rows under a header, quoted as spreadsheets and pandas do it; in CALI's TSV files, which
    their header tells, quotes are text. A header without commas may have semicolons.

    Empty lines hold no record. Raises UsageError for a header that cannot name the columns.
    """
    # Larger rows are stopped before the csv module sees them.
    csv.field_size_limit(max(csv.field_size_limit(), opened.max_line))
    lines = _Lines(opened)
    rows = csv.reader(lines, delimiter=separator, strict=True)
    header: list[str] = []
    while True:
        line = opened.line + 1
        try:
            cells, problem = lines.row(rows), None
        except StopIteration:
            return
        except csv.Error as error:
            cells, problem = [""], _explained(error)
        if not "".join(cells).strip() and len(cells) < 2 and problem is None:
            continue
        if separator == "\t" and any("\t" in cell and "\n" in cell for cell in cells):
            problem = "a stray quote joins this row to the next: quote the cell, or leave it out"
        if not header:
            if separator == "," and len(cells) == 1 and ";" in cells[0]:
                rows = csv.reader(lines, delimiter=";", strict=True)
                cells = next(csv.reader(cells, delimiter=";"))
            _refuse_header(opened.name, cells, problem)
            header = cells
            if separator == "\t" and {name.strip().casefold() for name in header} >= _CALI:
                rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
            continue
        if problem is None and len(cells) != len(header):
            problem = f"the row has {len(cells)} cells, the header {len(header)}"
        fields = dict(zip(header, cells, strict=False))
        spoilt = (name for name, cell in fields.items() if _UNREADABLE.search(cell))
        field = next(spoilt, None) if problem is None else None
        if field is not None:
            problem = f"column {field!r} is not UTF-8, or holds a NUL byte"
        if problem is None:
            yield Item(opened.name, line, fields)
        else:
            yield opened.bad(line, problem, lines.taken(), size=lines.size, field=field)


def read_tsv(opened: Input) -> Iterator[Item]:
    """Rows of tab-separated cells; see `read_csv`."""
    return read_csv(opened, "\t")


class _Lines(Iterator[str]):
    """The lines of a table, decoded for the csv module; those of the row at hand are kept."""

    def __init__(self, opened: Input) -> None:
        self._lines, self._limit = opened.lines(), opened.max_line
        self._taken: list[bytes] = []
        self.size = 0

    def __next__(self) -> str:
        data, size = next(self._lines)
        self.size += size + bool(self._taken)
        self._taken.append(data)
        if self.size > self._limit:
            raise csv.Error(f"it has {self.size} bytes, more than the limit of {self._limit}")
        return data.decode("utf-8", "surrogateescape") + "\n"

    def row(self, rows: Iterator[list[str]]) -> list[str]:
        """The next row; raises csv.Error, and StopIteration at the end."""
        self._taken, self.size = [], 0
        return next(rows)

    def taken(self) -> bytes:
        """The text of the row, of one over the limit its beginning."""
        text = b"\n".join(self._taken)
        return text if self.size <= self._limit else text[:SAMPLE]


def _explained(error: csv.Error) -> str:
    told = str(error).partition(" - ")[0]
    if told == "unexpected end of data":
        return "a quote that opens in this row is never closed: it takes in the rest"
    return f"the row is not CSV: {told}"


def _refuse_header(name: str, columns: Sequence[str], problem: str | None = None) -> None:
    if any(_UNREADABLE.search(column) for column in columns):
        problem = "a cell is not UTF-8, or holds a NUL byte"
    if problem:
        raise UsageError(f"{name}: the header row cannot be read: {problem}")
    repeated = sorted(column for column, count in Counter(columns).items() if count > 1)
    if repeated:
        raise UsageError(f"{name}: the header names a column twice: {', '.join(repeated)}")


def read_parquet(name: str, shown: str, file: IO[bytes]) -> Iterator[Item]:
    """One record a row, with values as `from_memory` has them; `line` is the row's number.

    Raises UsageError for a file that is no Parquet, and where pyarrow is missing.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet as pq
    except ImportError as error:
        raise missing_extra(f"{shown}: Parquet needs pyarrow", "parquet") from error
    try:
        # Without pre-buffering, else whole row groups are read ahead of the batches.
        table = pq.ParquetFile(file, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{shown} is not a Parquet file: {error}") from error
    _refuse_header(shown, table.schema_arrow.names)
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
    fields: dict[str, Any] = {}
    for column, cells in zip(batch.schema.names, batch.columns, strict=True):
        try:
            fields[column] = _as_json(cells[place].as_py())
        # Text that is no UTF-8, and dates beyond Python's.
        except (ValueError, OverflowError) as error:
            told = f"column {column!r} holds what cannot be read: {error}"
            return Item(name, number, None, None, Problem(told, column))
    return Item(name, number, fields)


def from_memory(records: Iterable[object]) -> Iterator[Item]:
    """An item for each record, numbered from 1, with values as JSON has them.

    NaN, infinite numbers and pandas' missing values become null, NumPy's numbers and arrays plain
    ones, and what JSON has no form for (dates, decimals) a text. What is no mapping, or nested
    without end, comes with its problem.
    """
    for number, record in enumerate(records, 1):
        if not isinstance(record, Mapping):
            told = f"a record is a mapping of fields, and this is {type(record).__name__}"
            yield Item(_SOURCE, number, None, clip(record), Problem(told))
            continue
        try:
            yield Item(_SOURCE, number, {str(name): _as_json(one) for name, one in record.items()})
        except RecursionError:
            yield Item(_SOURCE, number, None, "", Problem("the record is nested too deep"))


def _as_json(content: Any) -> Any:
    if content is None or isinstance(content, str | int):
        return content
    if isinstance(content, float):
        return float(content) if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {str(name): _as_json(one) for name, one in content.items()}
    if isinstance(content, list | tuple | set | frozenset):
        return [_as_json(one) for one in content]
    if isinstance(content, bytes):
        return content.decode("utf-8", "backslashreplace")
    if type(content).__name__ in _MISSING:
        return None
    if hasattr(content, "tolist"):  # NumPy's numbers and arrays
        return _as_json(content.tolist())
    return content.isoformat() if hasattr(content, "isoformat") else str(content)

"""Rows as records: of CSV, TSV and Parquet files, of data frames and dicts in memory."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import orjson

from judge.errors import UsageError, missing_extra
from judge.records.base import Item, Problem, clip
from judge.records.streams import SAMPLE, STREAM_ERRORS, Input, Line, split_lines

# Decoding with "surrogateescape" turns bytes that are no UTF-8 into these, and nothing else can.
_UNREADABLE = re.compile("[\0\udc80-\udcff]")
_CALI = {"premise", "hypothesis", "us_ratings", "in_ratings"}
_BATCH = 256
_SOURCE = "<records>"
_MISSING = frozenset(("NaTType", "NAType"))
"""pandas' own types for what is not there."""


def read_csv(opened: Input, separator: str = ",") -> Iterator[Item]:
    """Rows under a header, quoted as spreadsheets and pandas do it; in CALI's TSV files, which
    their header tells, quotes are text.

    Empty lines hold no record. Raises UsageError for a header that cannot name the columns.
    """
    # Larger rows are stopped before the csv module sees them.
    csv.field_size_limit(max(csv.field_size_limit(), opened.max_line))
    rows = _Rows(opened, separator)
    try:
        header, problem = rows.next_row()
    except StopIteration:
        return iter(())
    except STREAM_ERRORS as error:
        return iter([opened.cut_off(1, error)])
    if any(_UNREADABLE.search(cell) for cell in header):
        problem = "a cell is not UTF-8, or holds a NUL byte"
    if problem:
        raise UsageError(f"{opened.name}: the header row cannot be read: {problem}")
    _refuse_repeated(opened.name, header)
    if separator == "\t" and {name.strip().casefold() for name in header} >= _CALI:
        rows.reader = csv.reader(rows, delimiter=separator, quoting=csv.QUOTE_NONE)
    return _records(opened, header, rows)


def read_tsv(opened: Input) -> Iterator[Item]:
    """Rows of tab-separated cells; see `read_csv`."""
    return read_csv(opened, "\t")


def _refuse_repeated(name: str, columns: Sequence[str]) -> None:
    repeated = sorted(column for column, count in Counter(columns).items() if count > 1)
    if repeated:
        raise UsageError(f"{name}: the header names a column twice: {', '.join(repeated)}")


def _records(opened: Input, header: Sequence[str], rows: _Rows) -> Iterator[Item]:
    try:
        while True:
            cells, problem = rows.next_row()
            line, field = rows.taken[0][0], None
            if problem is None and len(cells) != len(header):
                problem = f"the row has {len(cells)} cells, the header {len(header)}"
            fields = dict(zip(header, cells, strict=False))
            if problem is None:
                field = next((k for k, cell in fields.items() if _UNREADABLE.search(cell)), None)
                problem = field and f"column {field!r} is not UTF-8, or holds a NUL byte"
            if problem is None:
                yield Item(opened.name, line, fields)
                continue
            data = b"\n".join(data for _, data, _ in rows.taken)
            if rows.size > opened.max_line:
                data = data[:SAMPLE]
            yield opened.bad(line, problem, data, size=rows.size, field=field)
    except StopIteration:
        return
    except STREAM_ERRORS as error:
        yield opened.cut_off(rows.line + 1, error)


class _Rows(Iterator[str]):
    """Decoded lines for the csv module: `taken` are those of the row at hand, `size` its bytes,
    `line` is the number of the last one."""

    def __init__(self, opened: Input, separator: str) -> None:
        self._lines, self._limit, self._separator = split_lines(opened), opened.max_line, separator
        self.reader = csv.reader(self, delimiter=separator, strict=True)
        self.taken: list[Line] = []
        self.size = self.line = 0

    def __next__(self) -> str:
        self.line, data, size = line = next(self._lines)
        self.size += size + bool(self.taken)
        self.taken.append(line)
        if self.size > self._limit:
            raise csv.Error(f"it has {self.size} bytes, more than the limit of {self._limit}")
        return data.decode("utf-8", "surrogateescape") + "\n"

    def next_row(self) -> tuple[list[str], str | None]:
        """The cells of the next row that is not empty, and what is wrong with it.

        Raises StopIteration at the end.
        """
        cells: list[str] = []
        try:
            while not "".join(cells).strip() and len(cells) < 2:
                self.taken, self.size = [], 0
                cells = next(self.reader)
        except csv.Error as error:
            said = str(error).partition(" - ")[0]
            if said == "unexpected end of data":
                return [], "a quote that opens in this row is never closed: it takes in the rest"
            return [], f"the row is not CSV: {said}"
        if self._separator == "\t" and any("\t" in cell and "\n" in cell for cell in cells):
            return [], "a stray quote joins this row to the next: quote the cell, or leave it out"
        return cells, None


def read_parquet(name: str, file: str | IO[bytes]) -> Iterator[Item]:
    """One record a row; `line` is the row's number.

    NaN and infinite numbers become null, and what JSON has no form for (bytes, decimals, dates) a
    text. Raises UsageError for a file that is no Parquet, and where pyarrow is missing.
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
                row, problem = _parquet_row(batch, place)
                yield Item(name, number, row, None, problem)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"the file cannot be read further: {str(error).partition('. Detail')[0]}"
        yield Item(name, number + 1, None, None, Problem(message))


def _parquet_row(batch: Any, place: int) -> tuple[dict[str, Any] | None, Problem | None]:
    row: dict[str, Any] = {}
    for column, cells in zip(batch.schema.names, batch.columns, strict=True):
        try:
            # orjson writes null for NaN and infinite numbers, and dates in ISO's form.
            json = orjson.dumps(cells[place].as_py(), _plain, orjson.OPT_NON_STR_KEYS)
        # Text that is no UTF-8, and dates beyond Python's.
        except (ValueError, OverflowError) as error:
            return None, Problem(f"column {column!r} holds what cannot be read: {error}", column)
        row[column] = orjson.loads(json)
    return row, None


def _plain(content: object) -> str:
    if isinstance(content, bytes):
        return content.decode("utf-8", "backslashreplace")
    return str(content)


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

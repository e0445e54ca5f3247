"""Reading Parquet files, batch by batch."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from judge.errors import UsageError, missing_extra
from judge.records.base import Item, Problem

_BATCH = 256


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
    twice = sorted(key for key, count in Counter(table.schema_arrow.names).items() if count > 1)
    if twice:
        raise UsageError(f"{name}: two columns have the same name: {', '.join(twice)}")
    return _items(name, table)


def _items(name: str, table: Any) -> Iterator[Item]:
    import pyarrow as pa

    number = 0
    try:
        for batch in table.iter_batches(batch_size=_BATCH):
            for place in range(batch.num_rows):
                number += 1
                yield _item(name, number, batch, place)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"the file cannot be read further: {str(error).partition('. Detail')[0]}"
        yield Item(name, number + 1, None, None, Problem(message))


def _item(name: str, number: int, batch: Any, place: int) -> Item:
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

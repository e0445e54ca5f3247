"""Parquet and Arrow files, and folders of `datasets.save_to_disk`: rows in batches of bounded size.

A file of a few kilobytes can repeat a text of megabytes in every row. So texts stay
dictionary-encoded, and a row's size is computed before its texts are copied. pyarrow unpacks a
Parquet page (2 GiB at most, by the format) or a compressed Arrow batch as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.errors import UsageError, missing_extra
from judge.records.record import Record
from judge.records.streams import Input
from judge.records.tables import refuse_header
from judge.records.values import as_json

_BATCH = 256
_BATCH_BYTES = 16 << 20
_GROUP_BYTES = 1 << 30
"""Larger row groups are read one row at a time: their large rows may be consecutive."""


def read_parquet(source: Input) -> Iterator[Record]:
    """One record per row, with values as in `from_memory`; `line` is the row's number. The stream
    can be sought in.

    A row of more than `max_line` bytes is a problem. Raises UsageError if the file is not Parquet
    or pyarrow is missing.
    """
    pa = _pyarrow(source.display)
    from pyarrow import parquet as pq

    try:
        # Pre-buffering would read whole row groups ahead of the batches.
        leaves = pq.ParquetFile(source.stream).schema
        binaries = (leaf for leaf in leaves if leaf.physical_type == "BYTE_ARRAY")
        texts = [leaf.path for leaf in binaries if _is_text(leaf)]
        table = pq.ParquetFile(source.stream, read_dictionary=texts, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{source.display} is not a Parquet file: {error}") from error
    refuse_header(source.display, table.schema_arrow.names)
    yield from _items(source, _groups(table))


def _is_text(leaf: Any) -> bool:
    return leaf.logical_type.type in ("STRING", "NONE", "JSON", "ENUM")


def _groups(table: Any) -> Iterator[Any]:
    """Batches of a Parquet file, with fewer rows where rows are large."""
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        rows = _BATCH * (group.total_byte_size <= _GROUP_BYTES)
        rows = min(rows, _BATCH_BYTES * group.num_rows // max(1, group.total_byte_size))
        yield from table.iter_batches(batch_size=max(1, rows), row_groups=[number])


def read_arrow(source: Input) -> Iterator[Record]:
    """As `read_parquet`, for an Arrow IPC file (Feather) or stream."""
    pa, file = _pyarrow(source.display), source.stream
    try:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        table = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{source.display} is not an Arrow file: {error}") from error
    refuse_header(source.display, table.schema.names)
    batches = map(table.get_batch, range(table.num_record_batches)) if is_file else iter(table)
    yield from _items(source, batches)


def saved_files(folder: Path) -> list[Path]:
    """The files of a folder that `datasets.save_to_disk` wrote, in order.

    Raises UsageError for any other folder, saying what to type.
    """
    if (splits := _described(folder, "dataset_dict.json").get("splits")) is not None:
        names = [str(entry) for entry in splits] if isinstance(splits, list) else []
        message = f"{folder} holds the splits {', '.join(names)}: name one of them"
        raise UsageError(f"{message}, as in {folder / (names or ['train'])[0]}")
    state = _described(folder, "state.json")
    files = state.get("_data_files")
    if not isinstance(files, list):
        raise UsageError(f"{folder} is a folder: name the files in it")
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise UsageError(f"{folder} holds a selection of rows: call flatten_indices, save it again")
    # The names alone: no file outside the folder is read.
    entries = (entry for entry in files if isinstance(entry, dict))
    return [folder / Path(str(entry.get("filename"))).name for entry in entries]


def _described(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}


def _pyarrow(display: str) -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra(f"{display}: Parquet and Arrow need pyarrow", "parquet") from error
    return pa


def _items(source: Input, batches: Iterator[Any]) -> Iterator[Record]:
    import pyarrow as pa

    limit = source.max_line
    try:
        for batch in batches:
            sizes = [0] * batch.num_rows
            for column in batch.columns:
                sizes = list(map(int.__add__, sizes, _sizes(column).to_pylist()))
            for place, size in enumerate(sizes):
                source.line += 1
                if size > limit:
                    message = f"the row has {size} bytes, more than the limit of {limit}"
                    yield source.bad(source.line, message)
                else:
                    yield _row(source, batch, place)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"the file cannot be read further: {str(error).partition('. Detail')[0]}"
        source.line += 1
        yield source.bad(source.line, message)


def _row(source: Input, batch: Any, place: int) -> Record:
    fields: dict[str, Any] = {}
    for column, cells in zip(batch.schema.names, batch.columns, strict=True):
        try:
            fields[column] = as_json(cells[place].as_py())
        # Text that is not UTF-8, or a date outside Python's range.
        except (ValueError, OverflowError) as error:
            message = f"column {column!r} cannot be read: {error}"
            return source.bad(source.line, message, field=column)
    return Record(source.name, source.line, fields)


def _sizes(column: Any) -> Any:
    """The bytes of each value of an Arrow array; a dictionary's values count at every use.

    Raises ValueError for a type that judge does not read.
    """
    import pyarrow as pa
    from pyarrow import compute as pc

    kind, types = column.type, pa.types
    if isinstance(column, pa.ExtensionArray):
        return _sizes(column.storage)
    if types.is_dictionary(kind):
        sizes = _sizes(column.dictionary).take(column.indices)
    elif types.is_struct(kind):
        sizes = pa.array([0] * len(column), pa.int64())
        for part in column.flatten():
            sizes = pc.add(sizes, _sizes(part))
    elif types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        parts = (column.keys, column.items) if types.is_map(kind) else (column.values,)
        ends = pa.array([0] * len(column), pa.int64())
        for part in parts:
            sums = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(_sizes(part))])
            at_offsets = sums.take(column.offsets)
            ends = pc.add(ends, pc.subtract(at_offsets[1:], at_offsets[:-1]))
        sizes = ends
    elif types.is_fixed_size_list(kind):
        sizes = _sizes(column.cast(pa.list_(kind.value_type)))
    elif types.is_null(kind) or types.is_primitive(kind) or types.is_decimal(kind):
        sizes = pa.array([8] * len(column), pa.int64())
    elif types.is_string_view(kind) or types.is_binary_view(kind):
        # A view has 16 bytes, and the first four are the length. Several views may share one text.
        last = column.offset + len(column)
        quarters = pa.Array.from_buffers(pa.int32(), 4 * last, [None, column.buffers()[1]])
        sizes = quarters.take(pa.array(range(4 * column.offset, 4 * last, 4), pa.int64()))
        sizes = pc.if_else(column.is_valid(), sizes, 0).cast(pa.int64())
    else:
        try:
            sizes = pc.binary_length(column).cast(pa.int64())
        except pa.ArrowNotImplementedError:
            raise ValueError(f"type {kind} is not read") from None
    return pc.fill_null(sizes, 0)

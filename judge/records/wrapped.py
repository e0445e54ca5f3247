"""A JSON file that is one object: a record, or a wrapper of rows.

    {"version": "1.0", "data": [{...}, ...]}      one list of objects beside metadata
    {"q1": {...}, "q2": {...}}                    records by id, also inside one field
    {"columns": [...], "data": [[...], ...]}      pandas' orients split, columns, index and table

If the names and types of the fields leave this open, the file is refused.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from judge.errors import UsageError
from judge.records.jsonfiles import json_item, read_json, read_jsonl, spans
from judge.records.kinds import normalise, normalised, recognise
from judge.records.record import Record
from judge.records.streams import CHUNK, Input


def _names(text: str) -> set[str]:
    return normalised(text.split())


_ROWS = _names("data rows records items examples instances samples entries results dataset")
_ABOUT_A_FILE = _names(
    "version name title description license licence citation homepage url source split language "
    "date created created_at updated updated_at author authors count total size length page pages "
    "next previous offset limit cursor schema features info meta metadata config object type task "
    "has_more first_id last_id status partial num_rows_total num_rows_per_page generated_by"
)
_OF_A_RECORD = _names(
    "messages conversation conversations turns dialogue dialog choices contexts documents passages "
    "tools tool_calls labels annotators annotations responses fields judge"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How an object wraps its rows: in a list, by id, in columns (`table`), or `unsure`.

    Args:
        key: the field that holds the rows; "": the object itself.
        table: the rows of columns.
        candidates: where the rows may be, as paths of jq.
    """

    form: Literal["list", "ids", "table", "unsure"]
    key: str = ""
    table: tuple[dict[str, Any], ...] = ()
    candidates: tuple[str, ...] = ()


def read_objects(source: Input) -> Iterator[Record]:
    """The records of a JSON file: a list, concatenated objects, or one object that wraps its rows.

    Several that begin on one line are numbered on from it: records without an id are told apart by
    their line. Raises UsageError if it is unclear whether the object wraps rows, or where.
    """
    line = 0
    for item in _one_or_more(source):
        line = max(item.line, line + 1)
        yield item if item.line == line else replace(item, line=line)


def _one_or_more(source: Input) -> Iterator[Record]:
    if not _is_lines(source.stream.peek(CHUNK)):
        yield from read_json(source, _unwrapped)
        return
    items = read_jsonl(source)
    for item in items:
        # Wait for the next line only where it matters: a pipe may be slow.
        wraps = item.problem is None and layout(item.fields) is not None
        if wraps and (following := next(items, None)) is None:
            yield from _unwrapped(source, item.line, item.json or "")
        else:
            yield from chain([item], [following] if wraps and following else [], items)


def _is_lines(head: bytes) -> bool:
    """Whether text that begins with an object has one per line, not one over several lines, nor
    several on the first."""
    line = head.lstrip().partition(b"\n")[0].rstrip()
    # Pretty-printed JSON breaks lines after these; a truncated line of JSON lines rarely does.
    if not line.startswith(b"{") or line.endswith((b"{", b"[", b",")):
        return False
    text = line.decode("utf-8", "replace")
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return True
    return not text[end:].lstrip().startswith("{")


def _unwrapped(source: Input, line: int, text: str) -> Iterator[Record]:
    """The rows of a file's only object, which begins on this line; the object if it wraps none."""
    item = json_item(source, line, text.encode("utf-8", "surrogateescape"), "character")
    wrapper = layout(item.fields) if item.problem is None else None
    if wrapper is None:
        yield item
        return
    if wrapper.form == "unsure":
        raise UsageError(_unsure(source.name, wrapper.candidates))
    if wrapper.form == "table":
        yield from (Record(source.name, line, row) for row in wrapper.table)
        return
    start, end = dict(spans(text))[wrapper.key] if wrapper.key else (0, len(text))
    line += text.count("\n", 0, start)
    inner = text[start:end]
    if wrapper.form == "list":
        stream: Any = io.BufferedReader(io.BytesIO(inner.encode("utf-8", "surrogateescape")))
        yield from read_json(replace(source, stream=stream, line=line - 1))
        return
    for id, (start, end) in spans(inner):
        row = inner[start:end]
        if row.startswith("{") and "id" not in normalised(json.loads(row)):
            comma = "" if row[1:].lstrip() == "}" else ", "
            row = f'{{"id": {json.dumps(id)}{comma}{row[1:].lstrip()}'
        place = line + inner.count("\n", 0, start)
        yield json_item(source, place, row.encode("utf-8", "surrogateescape"), "character")


def _unsure(name: str, candidates: tuple[str, ...]) -> str:
    if not candidates:
        how = "write one object a row (pandas: orient='records', lines=True)"
        return f"{name} is one object that may hold columns: {how}"
    rows = " or ".join(f"jq -c '{path}[]' {name}" for path in candidates[:3])
    return (
        f"{name} is one object, a record or a wrapper of rows: take the rows, {rows} > rows.jsonl, "
        f"or make it one record, jq -c . {name} > record.jsonl"
    )


def layout(fields: Mapping[str, Any]) -> Layout | None:
    """How a file's only object wraps rows; None if it is a record itself."""
    if not fields or recognise(fields):
        return None
    if (table := _split(fields)) or (table := _columns(fields)):
        return table
    inner = () if "id" in normalised(fields) else _rows_within(fields)
    if not inner and all(isinstance(content, dict) for content in fields.values()):
        return _by_ids(fields)
    candidates = [key for key, content in fields.items() if _may_hold_rows(key, content)]
    paths = (*inner, *map(_path, candidates))
    if inner:
        return Layout("unsure", candidates=paths)
    keys = normalised(key for key in fields if key not in candidates) - _ABOUT_A_FILE
    if not candidates:
        return Layout("unsure") if _are_columns(fields) else None
    if len(candidates) == 1 and not keys:
        (key,) = candidates
        return Layout("list" if isinstance(fields[key], list) else "ids", key)
    if "id" in keys and not normalised(candidates) & _ROWS:
        return None
    return Layout("unsure", candidates=paths)


def _path(*keys: str) -> str:
    return "." + "".join(f"[{json.dumps(key)}]" for key in keys)


def _rows_within(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Where rows may be one level deeper: `results.results` of promptfoo, `data.items` of an
    API."""
    return tuple(
        _path(key, inner)
        for key, content in fields.items()
        if normalise(key) in _ROWS and isinstance(content, dict)
        for inner, rows in content.items()
        if normalise(inner) in _ROWS and isinstance(rows, list) and _may_hold_rows(inner, rows)
    )


def _may_hold_rows(key: str, content: object) -> bool:
    name = normalise(key)
    if name in _OF_A_RECORD or name in _ABOUT_A_FILE:
        return False
    if isinstance(content, list):
        first = content[0] if content else None
        turn = isinstance(first, dict) and ("role" in first or {"from", "value"} <= first.keys())
        return (isinstance(first, dict) and not turn) or (not content and name in _ROWS)
    return (
        isinstance(content, dict)
        and bool(content)
        and all(isinstance(entry, dict) for entry in content.values())
    )


def _by_ids(fields: Mapping[str, dict[str, Any]]) -> Layout | None:
    """The layout of an object of objects."""
    if normalised(fields) & _OF_A_RECORD:
        return None
    if len(fields) == 1:
        ((key, inner),) = fields.items()
        if _may_hold_rows(key, inner):
            return (
                Layout("ids", key)
                if normalise(key) in _ROWS
                else Layout("unsure", candidates=(_path(key),))
            )
    return Layout("ids")


def _split(fields: Mapping[str, Any]) -> Layout | None:
    """pandas' orient split: column names, and rows as lists."""
    names, rows = fields.get("columns"), fields.get("data")
    if not isinstance(names, list) or not isinstance(rows, list):
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return Layout("unsure", candidates=(_path("data"),))
    index = fields.get("index")
    if isinstance(index, list) and len(index) == len(rows) and index != [*range(len(rows))]:
        names, rows = ["index", *names], [[at, *row] for at, row in zip(index, rows, strict=True)]
    if len({*map(str, names)}) < len(names):
        return Layout("unsure", candidates=(_path("data"),))
    return Layout(
        "table", table=tuple(dict(zip(map(str, names), row, strict=True)) for row in rows)
    )


def _columns(fields: Mapping[str, Any]) -> Layout | None:
    """pandas' orient columns: columns by name, each mapping index to cell."""
    columns = list(fields.values())
    if not all(isinstance(column, dict) and column for column in columns):
        return None
    index = list(columns[0])
    if any(list(column) != index for column in columns):
        return None
    numbered = all(map(str.isdigit, index))
    if numbered and not all(map(str.isdigit, fields)):
        return Layout(
            "table", table=tuple({k: column[at] for k, column in fields.items()} for at in index)
        )
    alike = all(len({type(cell) for cell in column.values()}) == 1 for column in columns)
    may_be_index = 1 < len(fields) < len(index) and alike and not all(map(str.isdigit, fields))
    return Layout("unsure") if may_be_index else None


def _are_columns(fields: Mapping[str, Any]) -> bool:
    """Whether the fields may be columns: lists of one length."""
    lists = [content for content in fields.values() if isinstance(content, list)]
    return len(fields) == len(lists) > 1 and len({*map(len, lists)}) == 1 and len(lists[0]) > 1

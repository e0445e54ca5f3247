"""Values of Python as records: dicts, rows of data frames and objects in memory."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

from judge.records.base import Problem, clip
from judge.records.record import Record

_SOURCE = "<records>"
_MISSING = frozenset(("NaTType", "NAType"))
"""pandas' types of missing values."""
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+\b")
"""The address in memory in the text of an object that has none of its own."""


def from_memory(records: Iterable[object]) -> Iterator[Record]:
    """One record per mapping or object, numbered from 1, with values converted to JSON.

    NaN, infinite numbers and pandas' missing values become null, NumPy numbers and arrays become
    plain ones, members of an enumeration their values, sets sorted lists, Pydantic models (such as
    messages of LangChain and OpenAI) and dataclasses objects, and values without a JSON form
    (dates, decimals) text, without an address in memory, which differs from run to run. A string,
    or a missing value among strings, becomes a record with the field `text`; a `Record` is returned
    as it is. Anything else, cyclic nesting, and what JSON would lose gives a record with a problem.
    """
    for number, record in enumerate(records, 1):
        yield record if isinstance(record, Record) else _record(number, record)


def _record(number: int, content: object) -> Record:
    if isinstance(content, str) or _is_missing(content):
        return Record(_SOURCE, number, {"text": as_json(content)})
    try:
        fields = as_json(content)
    except RecursionError:
        return Record.unreadable(_SOURCE, number, Problem("the record is nested too deep"))
    except _NoJSONError as error:
        problem = str(error)
    else:
        if isinstance(fields, dict):
            return Record(_SOURCE, number, fields)
        problem = f"a record is a mapping of fields, and this is {type(content).__name__}"
    return Record.unreadable(_SOURCE, number, Problem(problem), clip(content))


class _NoJSONError(Exception):
    """A value that cannot become JSON without a loss."""


def _is_missing(content: object) -> bool:
    is_nan = isinstance(content, float) and math.isnan(content)
    return content is None or is_nan or type(content).__name__ in _MISSING


def as_json(content: Any) -> Any:
    """The content converted to JSON; see `from_memory`. Raises _NoJSONError."""
    if isinstance(content, Enum):  # The JSON of a text in one is its value, `str` its name.
        content = content.value
    if content is None or isinstance(content, str | int):
        return content
    if isinstance(content, float):
        return float(content) if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return _object(content)
    if isinstance(content, set | frozenset):  # Its order differs from process to process.
        return sorted((as_json(entry) for entry in content), key=repr)
    if isinstance(content, bytes | bytearray):
        return content.decode("utf-8", "backslashreplace")
    if isinstance(content, Sequence | KeysView | ValuesView | ItemsView):
        return [as_json(entry) for entry in content]
    if _is_missing(content) or (isinstance(content, Decimal) and not content.is_finite()):
        return None
    if (kind := str(getattr(content, "dtype", ""))).endswith("64[ns]"):
        # As NumPy's whole numbers these would be counts of nanoseconds.
        content = content.astype(kind.replace("[ns]", "[us]"))
    if hasattr(content, "tolist"):  # NumPy's numbers and arrays
        plain = content.tolist()
        if type(plain) is type(content):  # A long double, which Python does not have.
            plain = float(plain) if isinstance(plain, Real) else str(plain)
        return as_json(plain)
    if isinstance(content, type):
        return str(content)
    if hasattr(content, "model_dump"):
        return as_json(content.model_dump())
    if is_dataclass(content):
        return {field.name: as_json(getattr(content, field.name)) for field in fields_of(content)}
    if hasattr(content, "getbands"):  # Pillow's, as `datasets` decodes images
        return {"type": "image"}
    if isinstance(content, Iterator):
        kind = type(content).__name__
        raise _NoJSONError(f"a field holds a {kind}, which can be read once only: make it a list")
    text = content.isoformat() if hasattr(content, "isoformat") else str(content)
    return _ADDRESS.sub("", text)


def _object(content: Mapping[Any, Any]) -> dict[str, Any]:
    keys = [str(name.value if isinstance(name, Enum) else name) for name in content]
    if len(set(keys)) < len(keys):
        twice = next(key for key, count in Counter(keys).items() if count > 1)
        raise _NoJSONError(f"two keys of one object are {twice!r} as text: rename one")
    return dict(zip(keys, map(as_json, content.values()), strict=True))

"""Records that are in memory already: dicts, the rows of a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judge.records.base import Item, Problem, clip

_SOURCE = "<records>"
_MISSING = frozenset(("NaTType", "NAType"))
"""pandas' own types for what is not there."""


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
            yield Item(_SOURCE, number, {str(name): _plain(one) for name, one in record.items()})
        except RecursionError:
            yield Item(_SOURCE, number, None, "", Problem("the record is nested too deep"))


def _plain(content: Any) -> Any:
    if content is None or isinstance(content, str | int):
        return content
    if isinstance(content, float):
        return float(content) if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {str(name): _plain(one) for name, one in content.items()}
    if isinstance(content, list | tuple | set | frozenset):
        return [_plain(one) for one in content]
    if isinstance(content, bytes):
        return content.decode("utf-8", "backslashreplace")
    if type(content).__name__ in _MISSING:
        return None
    if hasattr(content, "tolist"):  # NumPy's numbers and arrays
        return _plain(content.tolist())
    return content.isoformat() if hasattr(content, "isoformat") else str(content)

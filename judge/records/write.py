"""Writing records as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from judge.records.base import RESERVED, Item

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def dump(fields: Mapping[str, Any]) -> bytes:
    """One JSON line in UTF-8, with its newline at the end and none inside.

    Text that UTF-8 cannot hold (lone surrogates) makes the whole line ASCII with escapes.
    Raises nothing for fields that a reader gave; ValueError for NaN and infinities.
    """
    try:
        line = _ENCODER.encode(fields).encode("utf-8")
    except UnicodeEncodeError:
        line = _ASCII_ENCODER.encode(fields).encode("ascii")
    return line + b"\n"


def dump_judged(
    fields: Mapping[str, Any], judgement: Mapping[str, Any] | bytes, item: Item | None = None
) -> bytes:
    """One JSON line: a record's fields, and behind them the judgement, under `judge`.

    Args:
        fields: the record's own fields, without an earlier judgement.
        judgement: without NaN and infinities, or its JSON.
        item: what the record was read from. Where its fields are the same (none was repaired, none
            left out), its source text is kept byte by byte, so that numbers and escapes stay as
            they are: `-0`, `1.50`, a decimal with more digits than a float has.
    """
    found = judgement if isinstance(judgement, bytes) else _compact(judgement)
    if item is not None and item.raw is not None and item.fields == fields:
        begun = item.raw.encode("utf-8").rstrip()[:-1]
    else:
        begun = dump(fields)[:-2]
    comma = b"," if fields else b""
    return begun + comma + f'"{RESERVED}":'.encode() + found + b"}\n"


def _compact(judgement: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(judgement)
    except orjson.JSONEncodeError:
        # A lone surrogate, or a whole number beyond 64 bits.
        return dump(judgement)[:-1]

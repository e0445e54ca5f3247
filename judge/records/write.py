"""Writing records as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from judge.records.base import RESERVED

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


def dump_judged(fields: Mapping[str, Any], judgement: Mapping[str, Any]) -> bytes:
    """`dump` of a record's fields with what was found about it behind them, under `judge`.

    `judgement` holds no NaN and no infinity.
    """
    try:
        found = orjson.dumps(judgement)
    except orjson.JSONEncodeError:
        return dump({**fields, RESERVED: judgement})
    begun = dump(fields)[:-2] + (b"," if fields else b"")
    return begun + f'"{RESERVED}":'.encode() + found + b"}\n"

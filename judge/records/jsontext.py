"""One JSON object from its bytes, strictly: what JSON does not define is a problem with a name."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

MAX_DEPTH = 200
"""Deepest nesting that is read: far above any record's, far below Python's recursion limit."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_NAMES: dict[type, str] = {
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class UnreadableError(Exception):
    """Text that holds no record; `field` is the key at fault, if one is."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def kind_of(content: object) -> str:
    """What a parsed JSON value is, in words."""
    return _NAMES.get(type(content), type(content).__name__)


def parse_object(data: bytes, *, where: str = "column") -> tuple[dict[str, Any], str]:
    """The JSON object in `data`, with white space around it allowed, and its text.

    Raises UnreadableError for invalid UTF-8, broken JSON (with its place, counted in characters and
    called `where`), another JSON value, a repeated key, a number JSON or a float cannot hold, and
    nesting beyond MAX_DEPTH.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise UnreadableError(f"not UTF-8: byte 0x{byte:02x} at byte {error.start + 1}") from None
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _depth(data) > MAX_DEPTH:
        raise UnreadableError(f"nested more than {MAX_DEPTH} deep")
    try:
        content = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at {where} {error.pos + 1}"
        raise UnreadableError(message) from None
    except ValueError:
        # Python refuses to convert integers of more than 4,300 digits.
        raise UnreadableError("holds a whole number with too many digits") from None
    if not isinstance(content, dict):
        raise UnreadableError(f"a record must be an object, this is {kind_of(content)}")
    return content, text


def _depth(data: bytes) -> int:
    depth = deepest = 0
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
            deepest = max(deepest, depth)
        elif token in (b"}", b"]"):
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise UnreadableError(f"key {key!r} stands twice in one object", field=key)
    return fields


def _constant(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is no JSON number")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise UnreadableError(f"number {text[:40]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)

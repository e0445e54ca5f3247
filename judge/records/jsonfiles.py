"""JSON lines, JSON lists and files of JSON objects: a strict reader, and a writer of lines."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import orjson

from judge.errors import UsageError
from judge.records.base import RESERVED, LabelError, kind_of
from judge.records.record import Record
from judge.records.streams import CHUNK, RAW_LIMIT, TO_UTF8, Input
from judge.records.text import form

MAX_DEPTH = 200
"""Deepest nesting that is read: far above any real record, far below Python's recursion limit."""

MAX_FIELD = 200_000
"""Characters of a field that are copied to the line of a record without a verdict."""

_NOT_MARK = re.compile(r"[^ \t\r\n,:]")
_NOT_SPACE = re.compile(r"[^ \t\r\n]")
_LINE_BREAK = re.compile(r"[\r\n][ \t\r\n]*")
# Only finds where a value ends; the strict parser decides whether it is a record.
_ENDS = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=len)
_MAX_TOKEN = 12
_OVER_LINES = re.compile(rb"\s*[\[{](?:.*[\[{,])?\s*", re.DOTALL)
"""The first line of JSON over several lines."""
_UNCLOSED = "the input ends inside this record: cut off, or a quote or bracket is not closed"


def _of_list(content: object, where: str) -> str:
    """How to read a chat, or a line that is a list of records."""
    if form(content) == "chat":
        return ": if it is one chat, jq -c '{messages: .}' FILE"
    rows = isinstance(content, list) and any(isinstance(entry, dict) for entry in content)
    return ": if it is a list of records, --format json" if rows and where == "column" else ""


def _too_deep(content: object) -> bool:
    level: list[Any] = [content]
    for _ in range(MAX_DEPTH):
        objects = [part for node in level if isinstance(node, dict) for part in node.values()]
        level = objects + [part for node in level if isinstance(node, list) for part in node]
    return any(isinstance(node, dict | list) for node in level)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise LabelError(f"key {key!r} stands twice in one object", key)
    return fields


def _constant(name: str) -> NoReturn:
    raise LabelError(f"{name} is not a JSON number: write null, as pandas' to_json does")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise LabelError(f"number {text[:40]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)


def read_jsonl(source: Input) -> Iterator[Record]:
    """One record per line. Blank lines are skipped."""
    first = True
    for data, size in source.lines():
        if size > source.max_line:
            message = f"the line has {size} bytes, more than the limit of {source.max_line}"
            yield source.bad(source.line, message, data, size=size)
        elif data and not data.isspace():
            item = json_item(source, source.line, data.rstrip(b"\r"), "column")
            if first and item.problem is not None and _OVER_LINES.fullmatch(data):
                hint = f"{item.problem.message}: if JSON runs over several lines, --format json"
                item = replace(item, problem=replace(item.problem, message=hint))
            yield item
            first = False


def read_json(
    source: Input, whole: Callable[[Input, int, str], Iterator[Record]] | None = None
) -> Iterator[Record]:
    """Reads a JSON list of records, or concatenated records, over any number of lines.

    If the input is a single object, `whole` reads it, from the input, the object's first line and
    its text. Valid JSON that is not a record gives an item with a problem, and reading continues.
    Broken JSON gives one, and reading stops: the start of the next record is unknown.
    """
    text = _Text(source)
    try:
        in_list = text.take("[")
        if in_list and text.peek() == "[":
            message = "its rows are lists without names: write objects (pandas: orient='records')"
            raise UsageError(f"{source.name}: {message}")
        while (mark := text.peek()) and not (in_list and mark == "]"):
            line = source.line + 1
            value = text.value()
            if not in_list and whole is not None and not text.peek():
                yield from whole(source, line, value)
                return
            whole = None
            yield json_item(source, line, value.encode("utf-8", "surrogateescape"), "character")
            if in_list and not text.take(",") and (mark := text.peek()) not in ("", "]"):
                raise LabelError(f"not a JSON list: expected ',' or ']', found {mark!r}")
        if in_list and not text.take("]"):
            raise LabelError("the input ends inside the list: it is cut off")
        if text.peek():
            raise LabelError("there is text after the end of the list")
    except LabelError as error:
        start = text.buffer[text.at :].encode("utf-8", "surrogateescape")
        yield source.bad(source.line + 1, f"{error}; what follows is not read", start)


def json_item(source: Input, line: int, data: bytes, where: str) -> Record:
    """The record in `data`, which begins on this line, or an item with its problem.

    Problems are invalid UTF-8, broken JSON (the message gives the place, in units of `where`),
    another JSON value, a repeated key, a number that JSON or a float cannot hold, or nesting beyond
    MAX_DEPTH.
    """
    field = None
    try:
        text = data.decode("utf-8")
        content = _DECODER.decode(text)
        if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _too_deep(content):
            raise RecursionError
    except LabelError as error:
        problem, field = str(error), error.problem.field
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1}, 0x{data[error.start]:02x}, is not UTF-8: {TO_UTF8}"
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg.removesuffix(' at')} at {where} {error.pos + 1}"
    except ValueError:
        # Python refuses to convert integers of more than 4,300 digits.
        problem = "holds a whole number with too many digits"
    except RecursionError:
        problem = f"nested more than {MAX_DEPTH} deep"
    else:
        if isinstance(content, dict):
            # A record over several lines is joined: a JSON string cannot hold a raw line break.
            return Record(source.name, line, content, json=_LINE_BREAK.sub("", text))
        problem = f"a record must be an object, not {kind_of(content)}{_of_list(content, where)}"
    return source.bad(line, problem, data, field=field)


def spans(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each key of the JSON object `text`, with the start and end of its value."""
    at = text.index("{") + 1
    while (match := _NOT_MARK.search(text, at)) and match[0] == '"':
        key, end = _ENDS.raw_decode(text, match.start())
        start = _NOT_MARK.search(text, end)
        assert start is not None, "the object is sound"
        at = _ENDS.raw_decode(text, start.start())[1]
        yield key, (start.start(), at)


class _Text:
    """The text of an input, of which at most one JSON value is kept in memory."""

    def __init__(self, source: Input) -> None:
        self._input = source
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._ended = False
        self.buffer, self.at = "", 0

    def peek(self) -> str:
        """The next character that is not white space, not consumed; empty at the end."""
        while True:
            match = _NOT_SPACE.search(self.buffer, self.at)
            self._advance(match.start() if match else len(self.buffer))
            if match or self._ended:
                return match[0] if match else ""
            self._more()

    def take(self, mark: str) -> bool:
        """Consume the next character if it is `mark`; returns whether it was."""
        there = self.peek() == mark
        self._advance(self.at + there)
        return there

    def value(self) -> str:
        """Consume the value that begins at the next character.

        Raises LabelError, and consumes nothing, for broken JSON and for a value over the limit.
        """
        while (end := self._end()) is None:
            if len(self.buffer) - self.at > self._input.max_line:
                message = f"the record has more than {self._input.max_line} characters, the limit"
                raise LabelError(message)
            self._more()
        return self._advance(end)

    def _end(self) -> int | None:
        """The end of the next value; None if more text must be read first."""
        length = len(self.buffer)
        try:
            end = _ENDS.raw_decode(self.buffer, self.at)[1]
        except RecursionError:
            raise LabelError("the record is nested too deep") from None
        except json.JSONDecodeError as error:
            unclosed = error.msg.startswith("Unterminated string")
            if not self._ended and (unclosed or error.pos >= length - _MAX_TOKEN):
                return None
            if unclosed or error.pos >= length:
                raise LabelError(_UNCLOSED) from None
            place = error.pos - self.at + 1
            raise LabelError(
                f"not JSON: {error.msg.removesuffix(' at')} at character {place}"
            ) from None
        # A number at the end of the buffer may have more digits.
        return end if end < length or self._ended or self.buffer[end - 1] in '}]"' else None

    def _advance(self, end: int) -> str:
        text = self.buffer[self.at : end]
        self._input.line += text.count("\n")
        self.at = end
        return text

    def _more(self) -> None:
        """Read more, doubling the buffer each time, so that a long value is rescanned rarely."""
        length = len(self.buffer) - self.at
        stream = self._input.stream
        data = (stream.read if length > CHUNK else stream.read1)(max(CHUNK, length))
        self._ended = not data
        text = self._decoder.decode(data, final=self._ended)
        self.buffer, self.at = self.buffer[self.at :] + text, 0


def shortened(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, with those of more than MAX_FIELD characters as JSON cut."""
    result: dict[str, Any] = {}
    for name, content in fields.items():
        text = content if isinstance(content, str) else _text(content)
        cut = f"{text[:RAW_LIMIT]}… [{len(text)} characters in all]"
        result[name] = content if len(text) <= MAX_FIELD else cut
    return result


def dump(fields: Mapping[str, Any]) -> bytes:
    """One JSON line in UTF-8, ending in its only newline; NaN becomes null."""
    return _encoded(fields) + b"\n"


def dump_judged(
    fields: Mapping[str, Any], judgement: Mapping[str, Any], record: Record | None = None
) -> bytes:
    """One JSON line: a record's fields, then the judgement under `judge`.

    Args:
        fields: the record's own fields, without an earlier judgement.
        record: what its source text has of these fields is kept byte for byte (`-0`, `1.50`,
            `\\u00e9`); fields that were repaired are written anew.
    """
    comma = b"," if fields else b""
    text = _encoded(fields) if record is None else _own_text(fields, record)
    return text[:-1] + comma + f'"{RESERVED}":'.encode() + _encoded(judgement) + b"}\n"


def _own_text(fields: Mapping[str, Any], record: Record) -> bytes:
    """The fields as JSON, those that the record still has in the words of its source text."""
    before, text = record.fields, (record.json or "").rstrip()
    if not text:
        return _encoded(fields)
    if before == fields and not record.input_key:
        return text.encode()
    parts, rest, at = [], dict(fields), 1
    for key, (start, end) in spans(text):
        lead, at = text[at:start], end
        name = record.input_key if key == RESERVED and record.input_key else key
        if name not in rest:
            continue
        content, lead = rest.pop(name), lead if name == key else f",{_text(name)}:"
        same = before[name] == content
        parts.append(lead + (text[start:end] if same else _text(content)))
    parts += [f",{_text(name)}:{_text(content)}" for name, content in rest.items()]
    return b"{" + "".join(parts).lstrip(" \t,").encode() + b"}"


def _text(content: object) -> str:
    return _encoded(content).decode()


def _encoded(content: object) -> bytes:
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError:
        # A lone surrogate, which JSON can only escape, or an integer beyond 64 bits.
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()

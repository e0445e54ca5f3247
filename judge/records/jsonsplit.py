"""Finding where one JSON value ends and the next begins, without holding more than one."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

from judge.records.lines import SAMPLE

_CHUNK = 1 << 16
_STRING_BODY = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_UNSTRUCTURED = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+', re.DOTALL)
_SCALAR_END = re.compile(rb"[\s,\]}]")
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")


@dataclass(frozen=True, slots=True)
class Element:
    """The bytes of one JSON value, not yet parsed, `size` of them.

    Over the limit only the beginning is there (`size > len(data)`). `complete` is false when the
    text ended before the value did.
    """

    data: bytes
    line: int
    size: int
    complete: bool


class Splitter:
    """Walks over JSON values by their quotes and brackets alone.

    It sees every byte once, whatever the chunks, so that a value of many megabytes costs no more
    than as many small ones. Whether a value is sound is for the parser to say. `endless` is asked,
    of a value that has so many bytes, whether it is to be left there.
    """

    def __init__(
        self,
        stream: io.BufferedIOBase,
        max_size: int,
        endless: Callable[[int], bool] = lambda size: False,
    ) -> None:
        self._stream = stream
        self._max_size = max_size
        self._endless = endless
        self._buffer = b""
        self._at = 0
        self.line = 1

    def peek(self) -> bytes:
        """The next byte that is no white space, which stays to be taken; empty at the end."""
        while True:
            found = _NOT_SPACE.search(self._buffer, self._at)
            if found:
                self._advance(found.start())
                return found[0]
            self._advance(len(self._buffer))
            if not self._more():
                return b""

    def skip(self) -> None:
        """Drop the byte that `peek` gave."""
        self._advance(self._at + 1)

    def take(self) -> Element:
        """The value that begins at the byte that `peek` gave."""
        line, parts, size, kept = self.line, [], 0, 0
        first = self.peek()
        scan = _Nested(first) if first in (b'"', b"[", b"{") else _Scalar()
        complete = False
        while not complete:
            end, complete = scan.over(self._buffer, self._at)
            size += end - self._at
            if kept <= self._max_size:
                parts.append(self._buffer[self._at : end])
                kept += len(parts[-1])
            self._advance(end)
            if not complete and (self._endless(size) or not self._more()):
                break
        complete = complete or scan.ends_with_text
        data = b"".join(parts)
        return Element(data if size <= self._max_size else data[:SAMPLE], line, size, complete)

    def _advance(self, to: int) -> None:
        self.line += self._buffer.count(b"\n", self._at, to)
        self._at = to

    def _more(self) -> bool:
        self._buffer, self._at = self._stream.read1(_CHUNK), 0
        return bool(self._buffer)


class _Scalar:
    """Looks for the end of a number, a word, or whatever else stands where a value should.

    It takes in one byte at least, so that a stray bracket or comma is passed over too.
    """

    ends_with_text = True

    def __init__(self) -> None:
        self._first = True

    def over(self, buffer: bytes, at: int) -> tuple[int, bool]:
        at += self._first
        self._first = False
        found = _SCALAR_END.search(buffer, at)
        return (found.start(), True) if found else (len(buffer), False)


class _Nested:
    """Looks for the end of a text, a list or an object."""

    ends_with_text = False

    def __init__(self, first: bytes) -> None:
        self._first = True
        self._in_text = first == b'"'
        self._depth = 0 if self._in_text else 1
        self._escaped = False

    def over(self, buffer: bytes, at: int) -> tuple[int, bool]:
        at += self._first
        self._first = False
        while at < len(buffer):
            at = self._text(buffer, at) if self._in_text else self._structure(buffer, at)
            if not self._in_text and self._depth == 0:
                return at, True
        return at, False

    def _text(self, buffer: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            at += 1
        body = _STRING_BODY.match(buffer, at)
        at = body.end() if body else at
        if at < len(buffer):
            # A backslash here is the last byte of the chunk: what it escapes is in the next one.
            self._escaped = buffer[at : at + 1] == b"\\"
            self._in_text = self._escaped
            at += 1
        return at

    def _structure(self, buffer: bytes, at: int) -> int:
        # Whole texts are passed over in one step; a quote that is met here opens one that goes on
        # in the next chunk.
        passed = _UNSTRUCTURED.match(buffer, at)
        at = passed.end() if passed else at
        found = buffer[at : at + 1]
        if found == b'"':
            self._in_text = True
        elif found:
            self._depth += 1 if found in (b"[", b"{") else -1
        return at + len(found)

"""Splitting a byte stream at its newlines, in bounded memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from judge.records.base import Item, Problem
from judge.records.streams import BrokenStreamError

LONGEST = 4 << 30
"""Bytes of one record at which reading ends. Smaller ones over the limit are passed over; this one
may have no end at all, such as a device, or what a few bytes of a compressed file stand for."""

RAW_LIMIT = 2_000
SAMPLE = 4 * RAW_LIMIT
"""Bytes kept of a record over the limit: enough for RAW_LIMIT characters of UTF-8."""


@dataclass(frozen=True, slots=True)
class Input:
    """One opened input: its name for the output, its bytes, the largest record it may hold."""

    name: str
    stream: io.BufferedReader
    max_line: int

    def bad(
        self,
        line: int,
        message: str,
        data: bytes | None = None,
        *,
        size: int | None = None,
        field: str | None = None,
    ) -> Item:
        """An item that could not be read: `data` is its text, or the start of `size` bytes."""
        raw = None
        if data is not None:
            raw = data.decode("utf-8", "backslashreplace")
            if size is not None and size > len(data):
                raw = f"{raw[:RAW_LIMIT]}… [{size} bytes in all]"
        return Item(self.name, line, None, raw, Problem(message, field))

    def too_long(self, line: int, data: bytes, size: int, what: str) -> Item:
        """The item that stands for one over the size limit."""
        message = f"{what} has {size} bytes, more than the limit of {self.max_line}"
        return self.bad(line, message, data[:SAMPLE], size=size)

    def cut_off(self, line: int, error: BrokenStreamError) -> Item:
        """The item that says why the input broke off in this line."""
        return self.bad(line, f"{error}: what follows here is lost")


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline, `size` its length in bytes.

    Of a line over the limit (`size > len(data)`) only the beginning is there.
    """

    data: bytes
    number: int
    size: int


def split_lines(opened: Input) -> Iterator[Line]:
    """The lines of an input, split at `\\n` alone: other line breaks may stand inside JSON text.

    Raises BrokenStreamError after the last line of a stream that breaks off.
    """
    stream, max_line, number = opened.stream, opened.max_line, 0
    while data := stream.readline(max_line + 1):
        number += 1
        ended = data.endswith(b"\n")
        data = data[:-1] if ended else data
        size = len(data)
        if size > max_line:
            data = data[:SAMPLE]
            while not ended and size <= LONGEST and (more := stream.readline(1 << 20)):
                ended = more.endswith(b"\n")
                size += len(more) - ended
        if size > LONGEST:
            raise BrokenStreamError(
                f"one record has more than {LONGEST} bytes, at which reading ends"
            )
        yield Line(data, number, size)

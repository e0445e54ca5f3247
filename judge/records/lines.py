"""Splitting a byte stream at its newlines, in bounded memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from judge.records.base import Item, Problem
from judge.records.compression import ByteSource

LONGEST = 4 << 30
"""Bytes of one record at which reading ends. Smaller ones over the limit are passed over; this one
may have no end at all, such as a device, or what a few bytes of a compressed file stand for."""

RAW_LIMIT = 2_000
SAMPLE = 4 * RAW_LIMIT
"""Bytes kept of what is over the limit: enough for RAW_LIMIT characters of UTF-8."""


@dataclass(frozen=True, slots=True)
class Input:
    """One opened input: its name for the output, its bytes, the largest record it may hold."""

    name: str
    source: ByteSource
    stream: io.BufferedReader
    max_line: int

    @classmethod
    def over(cls, name: str, source: ByteSource, max_line: int) -> Input:
        return cls(name, source, io.BufferedReader(source, 1 << 17), max_line)

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
            whole = size is None or size <= len(data)
            raw = data.decode("utf-8", "backslashreplace")
            raw = raw if whole else f"{raw[:RAW_LIMIT]}… [{size} bytes in all]"
        return Item(self.name, line, None, raw, Problem(message, field))

    def too_long(self, line: int, data: bytes, size: int, what: str) -> Item:
        """The item that stands for one over the size limit."""
        message = f"{what} has {size} bytes, more than the limit of {self.max_line}"
        return self.bad(line, message, data, size=size)

    def endless(self, size: int) -> bool:
        """Whether to read no further, because one record has `size` bytes already."""
        if size <= LONGEST:
            return False
        self.source.give_up(f"one record has more than {LONGEST} bytes, at which reading ends")
        return True

    def cut_off(self, line: int, data: bytes | None = None, size: int | None = None) -> Item | None:
        """The item that says why the input broke off, or None: it came to its end.

        `data` is what was read of the last record.
        """
        fault = self.source.fault
        if fault is None:
            return None
        return self.bad(line, f"{fault}: what follows here is lost", data or None, size=size)


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline, `size` its length in bytes.

    Of a line over the limit (`size > len(data)`) only the beginning is there. `ended` is false
    for a last line that has no newline.
    """

    data: bytes
    number: int
    size: int
    ended: bool


def split_lines(opened: Input) -> Iterator[Line]:
    """The lines of an input, split at `\\n` alone: other line breaks may stand inside JSON text."""
    stream, max_line, number = opened.stream, opened.max_line, 0
    while data := stream.readline(max_line + 1):
        number += 1
        ended = data.endswith(b"\n")
        if ended:
            data = data[:-1]
        size, endless = len(data), False
        if size > max_line:
            data = data[:SAMPLE]
            while more := stream.readline(1 << 20):
                ended = more.endswith(b"\n")
                size += len(more) - ended
                if ended or (endless := opened.endless(size)):
                    break
        yield Line(data, number, size, ended)
        if endless:
            return

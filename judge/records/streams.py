"""Bytes of an input: files, pipes and compressed streams, in chunks and lines of bounded size."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from judge.errors import UsageError
from judge.records.base import Item, Problem

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 16
LONGEST = 4 << 30
"""Bytes of one record at which reading ends. Smaller ones over the limit are passed over; this one
may have no end at all, such as a device, or what a few bytes of a compressed file stand for."""

RAW_LIMIT = 2_000
SAMPLE = 4 * RAW_LIMIT
"""Bytes kept of a record over the limit: enough for RAW_LIMIT characters of UTF-8."""

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = {".gz": "gzip", ".zst": "zstd"}

Chunks = Iterator[bytes]


class BrokenStreamError(Exception):
    """A stream that cannot be read to its end; the message says why."""


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
    """One line without its newline; over the limit (`size > len(data)`) only its beginning."""

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


class _Source(io.RawIOBase):
    """A stream over chunks of bytes. It raises BrokenStreamError after the last readable one."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        view = memoryview(buffer).cast("B")
        size = min(len(view), len(self._rest))
        view[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def buffered(chunks: Chunks) -> io.BufferedReader:
    """A stream over the chunks, to be read line by line."""
    return io.BufferedReader(_Source(chunks), 2 * CHUNK)


def look(chunks: Chunks, enough: Callable[[bytes], bool]) -> tuple[bytes, Chunks]:
    """The first bytes, as many as are `enough` (at most a chunk or so), and all chunks."""
    head = b""
    try:
        while len(head) < CHUNK and not enough(head) and (chunk := next(chunks, b"")):
            head += chunk
    except BrokenStreamError as error:
        chunks = _broken(error)
    return head, chain([head] if head else [], chunks)


def _broken(error: BrokenStreamError) -> Chunks:
    yield from ()
    raise error


def plain(stream: BinaryIO | io.RawIOBase) -> Chunks:
    """The bytes of an open stream; what a pipe holds comes at once, not when it is full."""
    read = getattr(stream, "read1", stream.read)
    try:
        while chunk := read(CHUNK):
            yield chunk
        shortened = _shortened(stream)
    except OSError as error:
        raise BrokenStreamError(f"the input cannot be read further: {error.strerror}") from error
    if shortened:
        raise BrokenStreamError("the input was shortened while it was read")


def _shortened(stream: BinaryIO | io.RawIOBase) -> bool:
    """Whether an open file is now smaller than what was read of it."""
    try:
        here = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(here.st_mode) and here.st_size < stream.tell()


def decompressed(chunks: Chunks, name: str, suffix: str) -> tuple[Chunks, bool]:
    """The content of a stream, and whether it was compressed, as its first bytes tell.

    Raises UsageError where `suffix` promises gzip or zstd and the bytes are neither: reading on
    would give one unreadable line after the other.
    """
    head, chunks = look(chunks, lambda head: len(head) >= 4)
    packing = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    # Parallel compressors (pzstd) begin their files with a skippable frame.
    if head[:1] and head[0] >> 4 == 5 and head[1:4] == b"\x2a\x4d\x18":
        packing = "zstd"
    if packing is not None:
        return _unpacked(buffered(chunks), packing), True
    if suffix in _SUFFIXES:
        why = "its first bytes are not those of one" if head else "it is empty"
        raise UsageError(f"{name} ends in {suffix} but is no {_SUFFIXES[suffix]} file: {why}")
    return chunks, False


def _unpacked(stream: io.BufferedReader, packing: str) -> Chunks:
    import zstandard

    try:
        yield from _gunzip(stream) if packing == "gzip" else _unzstd(stream)
    except EOFError as error:
        raise BrokenStreamError(f"the {packing} stream is cut off") from error
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        # Both kinds are checked only at the end of a block, after its text was passed on.
        message = f"damaged ({error}), records before this one may be wrong too"
        raise BrokenStreamError(f"the {packing} stream is {message}") from error


def _gunzip(stream: io.BufferedReader) -> Chunks:
    unpacked = gzip.GzipFile(fileobj=stream)
    while chunk := unpacked.read1(CHUNK):
        yield chunk


def _unzstd(stream: io.BufferedReader) -> Chunks:
    import zstandard

    # Not zstandard's own stream reader: that one ends a cut-off stream without an error. The
    # chunks are small because the output of one may be 32,768 times as large.
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    while data := stream.read(256):
        while data:
            if frame.eof:
                frame = decompressor.decompressobj()
            if chunk := frame.decompress(data):
                yield chunk
            data = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise EOFError

"""Bytes of an input: files, pipes and compressed streams, read in lines of bounded size."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judge.errors import UsageError
from judge.records.base import Item, Problem

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 16
LONGEST = 4 << 30
"""Bytes of one record at which reading ends: a device, or a compressed bomb, may have no end."""

RAW_LIMIT = 2_000
SAMPLE = 4 * RAW_LIMIT
"""Bytes kept of a record over the limit: enough for RAW_LIMIT characters of UTF-8."""

Stream = io.BufferedReader | gzip.GzipFile


class BrokenStreamError(Exception):
    """A stream that cannot be read to its end; the message says why."""


@dataclass(frozen=True, slots=True)
class Input:
    """One opened input: its name for the output, its bytes, the largest record it may hold."""

    name: str
    stream: Stream
    max_line: int

    def bad(
        self, line: int, message: str, data: bytes, *, size: int = 0, field: str | None = None
    ) -> Item:
        """An item that could not be read: `data` is its text, or the start of `size` bytes."""
        raw = data.decode("utf-8", "backslashreplace")
        if size > len(data):
            raw = f"{raw[:RAW_LIMIT]}… [{size} bytes in all]"
        return Item(self.name, line, None, raw, Problem(message, field))

    def cut_off(self, line: int, error: Exception) -> Item:
        """The item that says why the input broke off in this line."""
        why = broken(error)
        return Item(self.name, line, None, None, Problem(f"{why}: what follows here is lost"))


STREAM_ERRORS = (BrokenStreamError, OSError, EOFError, zlib.error)
"""What reading a stream may raise."""


def broken(error: Exception) -> str:
    """Why a stream cannot be read to its end."""
    if isinstance(error, EOFError):
        return "the gzip stream is cut off"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        # Checked only at the end of a block, after its text was passed on.
        return f"the gzip stream is damaged ({error}), records before this one may be wrong too"
    if isinstance(error, OSError):
        return f"the input cannot be read further: {error.strerror}"
    return str(error)


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline; over the limit (`size > len(data)`) only its beginning."""

    data: bytes
    number: int
    size: int


def split_lines(opened: Input) -> Iterator[Line]:
    """The lines of an input, split at `\\n` alone; STREAM_ERRORS end a stream that breaks off."""
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
            raise BrokenStreamError(f"one record has more than {LONGEST} bytes")
        yield Line(data, number, size)


def unpacked(stream: io.BufferedReader, name: str, suffix: str) -> Stream:
    """The content of a stream that is compressed, as its first bytes tell, or the stream itself.

    Raises UsageError where `suffix` promises compression that the bytes do not have.
    """
    head = stream.peek(4)[:4]
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    # Parallel compressors (pzstd) begin their files with a skippable frame.
    if head == b"\x28\xb5\x2f\xfd" or (head[1:] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return io.BufferedReader(_Unzstd(stream), CHUNK)
    if suffix:
        raise UsageError(f"{name} ends in {suffix} but is not compressed so")
    return stream


class _Unzstd(io.RawIOBase):
    """The content of zstd frames; zstandard's own reader ends a cut-off stream without an error.

    The stream is taken in small parts because the content of one may be 32,768 times as large.
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._stream, self._frames = stream, zstandard.ZstdDecompressor()
        self._frame = self._frames.decompressobj()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._rest:
            data = self._frame.unused_data if self._frame.eof else b""
            data = data or self._stream.read(256)
            if not data:
                if not self._frame.eof:
                    raise BrokenStreamError("the zstd stream is cut off")
                return 0
            if self._frame.eof:
                self._frame = self._frames.decompressobj()
            try:
                self._rest = self._frame.decompress(data)
            except self._error as error:
                told = f"damaged ({error}), records before this one may be wrong too"
                raise BrokenStreamError(f"the zstd stream is {told}") from error
        view = memoryview(buffer).cast("B")
        part, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(part)] = part
        return len(part)

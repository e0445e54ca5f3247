"""Bytes of an input: files, pipes and compressed streams, read in lines of bounded size."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import UsageError
from judge.records.base import Item, Problem

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 16
LONGEST = 4 << 30
"""Bytes of one record at which reading ends: a device, or a compressed bomb, may have no end."""

RAW_LIMIT = 2_000
SAMPLE = 4 * RAW_LIMIT
"""Bytes kept of a record over the limit: enough for RAW_LIMIT characters of UTF-8."""

Stream = io.BufferedReader | gzip.GzipFile | ZstdFile


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


STREAM_ERRORS = (BrokenStreamError, OSError, EOFError, zlib.error, ZstdError)
"""What reading a stream may raise."""


def broken(error: Exception) -> str:
    """Why a stream cannot be read to its end."""
    if isinstance(error, EOFError):
        return "the compressed stream is cut off"
    if isinstance(error, gzip.BadGzipFile | zlib.error | ZstdError):
        # Checked only at the end of a block, after its text was passed on.
        told = f"damaged ({error}), records before this one may be wrong too"
        return f"the compressed stream is {told}"
    if isinstance(error, OSError):
        return f"the input cannot be read further: {error.strerror}"
    return str(error)


Line = tuple[int, bytes, int]
"""The number of a line (from 1), its bytes without the newline, its size in bytes. Of a line over
the limit, whose size is more than its bytes, only the beginning."""


class WholeFile(io.FileIO):
    """A file to read that breaks off where it was shortened since it was opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._size = os.fstat(self.fileno()).st_size  # 0 for pipes

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = super().readinto(buffer) or 0
        if not count and self._size and self.tell() < self._size:
            raise BrokenStreamError(
                f"the file was shortened while it was read, from {self._size} bytes to less"
            )
        return count


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
        yield number, data, size


def unpacked(stream: io.BufferedReader, name: str, suffix: str) -> Stream:
    """The content of a stream that is compressed, as its first bytes tell, or the stream itself.

    Raises UsageError where `suffix` promises compression that the bytes do not have.
    """
    head = stream.peek(4)[:4]
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    # Parallel compressors (pzstd) begin their files with a skippable frame.
    if head == b"\x28\xb5\x2f\xfd" or (head[1:] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return ZstdFile(stream)
    if suffix:
        raise UsageError(f"{name} ends in {suffix} but is not compressed so")
    return stream

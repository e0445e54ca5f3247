"""Bytes from files, pipes and compressed streams, in chunks, with a look ahead."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from judge.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 16
_ZSTD_LEAST, _ZSTD_MOST = 1 << 6, 1 << 11
_MUCH = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# Both kinds of stream are checked only at the end of a block, after its text was passed on.
_DAMAGED = "the {} stream is damaged ({}), records before this one may be wrong too"
_SUFFIXES = {".gz": "gzip", ".zst": "zstd"}


class BrokenStreamError(Exception):
    """A stream that cannot be read to its end; the message says why."""


class ByteSource(io.RawIOBase):
    """A readable stream over chunks of bytes.

    A stream that breaks off ends, like any other, after the last byte that could be read; `fault`
    then says why, so that what came before it is not lost.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._ahead = b""
        self._at = 0
        self.fault: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill `buffer` with what one chunk gives; 0 at the end."""
        if self._at == len(self._ahead) and not self._pull():
            return 0
        view = memoryview(buffer).cast("B")
        size = min(len(view), len(self._ahead) - self._at)
        view[:size] = memoryview(self._ahead)[self._at : self._at + size]
        self._at += size
        return size

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end; they stay to be read."""
        while len(self._ahead) - self._at < size and self._pull():
            pass
        return self._ahead[self._at : self._at + size]

    def peek_all(self) -> bytes:
        """All bytes that were looked at and are still to be read."""
        return self._ahead[self._at :]

    def give_up(self, why: str) -> None:
        """Read nothing further; `why` becomes the fault, if there is none yet."""
        self._ahead, self._at = b"", 0
        self.fault = self.fault or why

    def skip(self, size: int) -> None:
        """Drop bytes that were looked at."""
        self._at += size

    def _pull(self) -> bool:
        if self.fault is not None:
            return False
        try:
            chunk = next(self._chunks, b"")
        except BrokenStreamError as error:
            self.fault = str(error)
            return False
        # Only what is still to be read is copied, else a chunk of megabytes would be copied for
        # every few bytes that are taken of it.
        self._ahead, self._at = self._ahead[self._at :] + chunk, 0
        return bool(chunk)


def plain(stream: BinaryIO | io.RawIOBase) -> ByteSource:
    """A source over an open binary stream; what a pipe holds comes at once, not when it is full."""
    read = getattr(stream, "read1", stream.read)

    def chunks() -> Iterator[bytes]:
        try:
            while chunk := read(CHUNK):
                yield chunk
            shortened = _shortened(stream)
        except OSError as error:
            raise BrokenStreamError(
                f"the input cannot be read further: {error.strerror}"
            ) from error
        if shortened:
            raise BrokenStreamError("the input was shortened while it was read")

    return ByteSource(chunks())


def _shortened(stream: BinaryIO | io.RawIOBase) -> bool:
    """Whether an open file is smaller by now than what was read of it."""
    try:
        here = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(here.st_mode) and here.st_size < stream.tell()


def decompressed(source: ByteSource, name: str, suffix: str) -> tuple[ByteSource, bool]:
    """The content of `source`, and whether it was compressed.

    The first bytes decide. Raises UsageError where `suffix` promises gzip or zstd and they are
    neither: reading on would give one unreadable line after the other.
    """
    head = source.peek(4)
    if head.startswith(_GZIP_MAGIC):
        return ByteSource(_gzip_chunks(source)), True
    if head.startswith(_ZSTD_MAGIC) or _is_skippable_frame(head):
        return ByteSource(_zstd_chunks(source)), True
    if suffix in _SUFFIXES:
        raise UsageError(
            f"{name} ends in {suffix} but is no {_SUFFIXES[suffix]} file: "
            + ("it is empty" if not head else "its first bytes are not those of one")
        )
    return source, False


def _is_skippable_frame(head: bytes) -> bool:
    # Parallel compressors (pzstd) begin their files with one.
    return len(head) == 4 and head[1:] == b"\x2a\x4d\x18" and head[0] >> 4 == 5


def _gzip_chunks(source: ByteSource) -> Iterator[bytes]:
    stream = gzip.GzipFile(fileobj=source)
    try:
        while chunk := stream.read1(CHUNK):
            yield chunk
    except EOFError as error:
        raise BrokenStreamError(source.fault or "the gzip stream is cut off") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BrokenStreamError(_DAMAGED.format("gzip", error)) from error


def _zstd_chunks(source: ByteSource) -> Iterator[bytes]:
    import zstandard

    # Not zstandard's own stream reader: that one ends a cut-off stream without a word.
    # The chunks are small because the output of one may be 32,768 times as large: 64 MiB at most,
    # and 2 MiB for as long as that much comes.
    size = _ZSTD_LEAST
    decompressor = zstandard.ZstdDecompressor()
    try:
        while data := source.read(size):
            while data:
                frame = decompressor.decompressobj()
                while not frame.eof:
                    if not data:
                        raise BrokenStreamError(source.fault or "the zstd stream is cut off")
                    if chunk := frame.decompress(data):
                        yield chunk
                    size = _ZSTD_LEAST if len(chunk) > _MUCH else min(2 * size, _ZSTD_MOST)
                    data = b"" if frame.eof else source.read(size)
                data = frame.unused_data
    except zstandard.ZstdError as error:
        raise BrokenStreamError(_DAMAGED.format("zstd", error)) from error

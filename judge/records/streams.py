"""Bytes from files, pipes and compressed streams, in chunks, with a look at the first of them."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
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

Chunks = Iterator[bytes]


class BrokenStreamError(Exception):
    """A stream that cannot be read to its end; the message says why."""


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
        while len(head) < CHUNK and not enough(head):
            chunk = next(chunks, b"")
            if not chunk:
                break
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
    if head.startswith(_GZIP_MAGIC):
        return _gunzip(chunks), True
    # Parallel compressors (pzstd) begin their files with a skippable frame.
    skippable = len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5
    if head.startswith(_ZSTD_MAGIC) or skippable:
        return _unzstd(buffered(chunks)), True
    if suffix in _SUFFIXES:
        why = "its first bytes are not those of one" if head else "it is empty"
        raise UsageError(f"{name} ends in {suffix} but is no {_SUFFIXES[suffix]} file: {why}")
    return chunks, False


def _gunzip(chunks: Chunks) -> Chunks:
    stream = gzip.GzipFile(fileobj=buffered(chunks))
    try:
        while chunk := stream.read1(CHUNK):
            yield chunk
    except EOFError as error:
        raise BrokenStreamError("the gzip stream is cut off") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BrokenStreamError(_DAMAGED.format("gzip", error)) from error


def _unzstd(stream: io.BufferedReader) -> Chunks:
    import zstandard

    # Not zstandard's own stream reader: that one ends a cut-off stream without an error.
    # The chunks are small because the output of one may be 32,768 times as large: 64 MiB at most,
    # and 2 MiB for as long as that much comes.
    size = _ZSTD_LEAST
    decompressor = zstandard.ZstdDecompressor()
    try:
        while data := stream.read(size):
            while data:
                frame = decompressor.decompressobj()
                while not frame.eof:
                    if not data:
                        raise BrokenStreamError("the zstd stream is cut off")
                    if chunk := frame.decompress(data):
                        yield chunk
                    size = _ZSTD_LEAST if len(chunk) > _MUCH else min(2 * size, _ZSTD_MOST)
                    data = b"" if frame.eof else stream.read(size)
                data = frame.unused_data
    except zstandard.ZstdError as error:
        raise BrokenStreamError(_DAMAGED.format("zstd", error)) from error

"""Byte streams: files, pipes and compressed streams, read in lines of bounded size."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from judge.errors import UsageError
from judge.records.base import Problem
from judge.records.record import Record

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile
else:
    from backports.zstd import ZstdError, ZstdFile

CHUNK = 1 << 16
MAX_RECORD = 4 << 30
"""Bytes of one record at which reading stops: a device or a compression bomb may never end."""

TO_UTF8 = (
    "iconv -f ENCODING -t UTF-8 FILE > NEW (ENCODING of a Western European file: CP1252, of a "
    "Japanese one: CP932)"
)
"""How to convert a file that is not UTF-8."""

RAW_LIMIT = 2_000
SAMPLE = 4 * RAW_LIMIT
"""Bytes kept of a record over the limit, enough for RAW_LIMIT characters of UTF-8."""

Stream = io.BufferedReader | gzip.GzipFile | ZstdFile

_UTF8_BOM = codecs.BOM_UTF8
_OTHER_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class BrokenStreamError(Exception):
    """A stream that cannot be read to its end; the message says why."""


STREAM_ERRORS = (BrokenStreamError, OSError, EOFError, zlib.error, ZstdError)
"""What reading a stream may raise."""


@dataclass(slots=True)
class Input:
    """An opened input.

    Args:
        name: its name in the output.
        display: its name in messages.
        stream: its bytes.
        max_line: the largest record, in bytes.
        line: how many lines were read.
        sheet: the sheet of a workbook to read; None for its only one with rows.
    """

    name: str
    display: str
    stream: Stream
    max_line: int
    line: int = 0
    sheet: str | None = None

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Each line, without its `\\n` (the only line break), and its size in bytes.

        Of a line over the limit only the beginning is kept. Raises STREAM_ERRORS if the stream
        breaks off.
        """
        while data := self.stream.readline(self.max_line + 1):
            whole = data.endswith(b"\n")
            data = data[:-1] if whole else data
            size = len(data)
            if size > self.max_line:
                data = data[:SAMPLE]
                while not whole and size <= MAX_RECORD and (chunk := self.stream.readline(1 << 20)):
                    whole = chunk.endswith(b"\n")
                    size += len(chunk) - whole
            if size > MAX_RECORD:
                raise BrokenStreamError(f"one record has more than {MAX_RECORD} bytes")
            self.line += 1
            yield data, size

    def bad(
        self,
        line: int,
        message: str,
        data: bytes = b"",
        *,
        size: int = 0,
        field: str | None = None,
    ) -> Record:
        """The item for an unreadable record; `data` is its text, or the start of `size` bytes."""
        raw = data.decode("utf-8", "backslashreplace")
        if size > len(data):
            raw = f"{raw[:RAW_LIMIT]}… [{size} bytes in all]"
        return Record.unreadable(self.name, line, Problem(message, field), raw)

    def cut_off(self, error: Exception) -> Record:
        """The item that says why the input broke off."""
        why = str(error)
        if isinstance(error, EOFError):
            why = "the compressed stream is cut off"
        elif isinstance(error, gzip.BadGzipFile | zlib.error | ZstdError):
            # Checked only at the end of a block, after its text was passed on.
            why = f"the compressed stream is damaged ({error}), "
            why += "records before this one may be wrong too"
        elif isinstance(error, OSError):
            why = f"the input cannot be read further: {error.strerror}"
        return self.bad(self.line + 1, f"{why}: the rest of the input is lost")


def unpacked(stream: io.BufferedReader, name: str, suffix: str) -> Stream:
    """The stream, decompressed if its first bytes are those of gzip or zstd.

    Raises UsageError if `suffix` names a compression but the bytes are not compressed.
    """
    head = stream.peek(4)[:4]
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    # Parallel compressors (pzstd) begin their files with a skippable frame.
    if head == b"\x28\xb5\x2f\xfd" or (head[1:] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return ZstdFile(stream)
    if suffix:
        raise UsageError(f"{name} ends in {suffix} but is not in that format")
    return stream


def as_utf8(stream: Stream) -> Stream:
    """The stream without its byte order mark, recoded to UTF-8 if that says UTF-16 or UTF-32; or if
    it has none, but begins with two Latin letters in UTF-16."""
    head = stream.peek(4)[:4]
    if head.startswith(_UTF8_BOM):
        stream.read(len(_UTF8_BOM))
    for mark, encoding in _OTHER_BOMS.items():
        if head.startswith(mark):
            return io.BufferedReader(_Chunks(_recoded(stream, encoding)), CHUNK)
    nul = [byte == 0 for byte in head]
    for zeros, encoding in (([0, 1, 0, 1], "utf-16-le"), ([1, 0, 1, 0], "utf-16-be")):
        if nul == zeros:
            return io.BufferedReader(_Chunks(_recoded(stream, encoding)), CHUNK)
    return stream


def with_first_lines(stream: Stream) -> Stream:
    """The stream, waited for until `peek` shows the first two lines, or CHUNK bytes: its form must
    not depend on how much a slow pipe has written. Of JSON, which is told by its first byte, what
    is there is enough."""
    if _tells_form(stream.peek(CHUNK)[:CHUNK]):
        return stream
    head = b""
    while not _tells_form(head) and (more := stream.read1(CHUNK - len(head))):
        head += more
    return io.BufferedReader(_Chunks(chain([head], iter(lambda: stream.read1(CHUNK), b""))), CHUNK)


def _tells_form(head: bytes) -> bool:
    is_json = head.lstrip().startswith((b"{", b"["))
    return is_json or head.count(b"\n") > 1 or len(head) == CHUNK


class _Chunks(io.RawIOBase):
    """A stream of these bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._held or next(self._chunks, b"")
        count = min(len(data), len(buffer))
        buffer[:count], self._held = data[:count], data[count:]
        return count


def _recoded(stream: Stream, encoding: str) -> Iterator[bytes]:
    """The stream's text in UTF-8."""
    try:
        for text in codecs.iterdecode(iter(lambda: stream.read(CHUNK), b""), encoding):
            yield text.encode()
    except UnicodeError:
        raise BrokenStreamError(f"not valid {encoding.upper()}") from None

"""Opening an input of any form and reading its records one by one."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from judge.errors import UsageError, why_unread
from judge.records.base import Item
from judge.records.jsonfiles import read_json, read_jsonl
from judge.records.streams import CHUNK, STREAM_ERRORS, Input, Stream, WholeFile, broken, unpacked
from judge.records.tables import read_csv, read_parquet, read_tsv

MAX_LINE = 64 * 1024 * 1024
"""Largest record in bytes, unless the caller says otherwise."""

FORMATS = ("jsonl", "json", "csv", "tsv", "parquet")
"""The formats that can be asked for."""

_SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl"}
_READERS: dict[str, Callable[[Input], Iterator[Item]]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "tsv": read_tsv,
}
_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


def read(
    source: str | Path,
    *,
    stdin: BinaryIO | None = None,
    format: str | None = None,
    max_line: int = MAX_LINE,
) -> Iterator[Item]:
    """The items of a file, or of standard input where `source` is `-`, in their order.

    The format is `format` (one of FORMATS), else the file's extension, else what the first bytes
    look like; compression is known by its first bytes. An item that cannot be read comes with its
    problem, never as an exception; a stream that breaks off gives what came before, then an item
    that says so.

    Raises UsageError, at the call: the file cannot be opened, its format cannot be told, or it is
    not what its name promises.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(f"format {format!r} is not known; there are {', '.join(FORMATS)}")
    with ExitStack() as stack:
        items = _open(source, stdin, format, max_line, stack)
        return _closing(items, stack.pop_all())


def _closing(items: Iterator[Item], stack: ExitStack) -> Iterator[Item]:
    with stack:
        yield from items


def _open(
    source: str | Path, stdin: BinaryIO | None, format: str | None, limit: int, stack: ExitStack
) -> Iterator[Item]:
    path, shown, name = Path(source), str(source), Path(source).name
    if shown == "-":
        name, shown = "<stdin>", "standard input"
        file = stdin if stdin is not None else sys.stdin.buffer
        plain = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(Any, file))
    else:
        plain = _open_file(path, stack)
    suffixes = [suffix.casefold() for suffix in path.suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in (".gz", ".zst") else ""
    try:
        stream = unpacked(plain, shown, packing)
        head = stream.peek(CHUNK)
    except STREAM_ERRORS as error:
        return iter([Input(name, plain, limit).cut_off(1, error)])
    chosen = format or _SUFFIXES.get(suffixes[-1] if suffixes else "") or _sniffed(head, shown)
    if chosen == "parquet":
        direct = path.is_file() and stream is plain and name != "<stdin>"
        return read_parquet(name, str(path) if direct else _spool(stream, shown, stack))
    if head.startswith(_OTHER_BOMS):
        raise UsageError(f"{shown} is UTF-16 or UTF-32: convert it to UTF-8 (iconv -t UTF-8)")
    if head.startswith(_BOM):
        stream.read(len(_BOM))
    if chosen == "json" and _is_lines(head):
        chosen = "jsonl"
    return _READERS[chosen](Input(name, stream, limit))


def _open_file(path: Path, stack: ExitStack) -> io.BufferedReader:
    try:
        return stack.enter_context(io.BufferedReader(WholeFile(path), 2 * CHUNK))
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder: name the files in it") from None
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {why_unread(error)}") from error


def _sniffed(head: bytes, shown: str) -> str:
    """The format that the first bytes of a file look like."""
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.removeprefix(_BOM).lstrip()
    if text.startswith((b"[", b"{")) or head.startswith(_OTHER_BOMS):
        return "json"
    if not text:
        return "jsonl"
    raise UsageError(
        f"cannot tell the format of {shown}: put it in a file whose name ends in "
        f"{', '.join(f'.{name}' for name in FORMATS)} (judge validate: --format)"
    )


def _is_lines(head: bytes) -> bool:
    """Whether text that begins as an object has one on each line, rather than one over many."""
    line = head.removeprefix(_BOM).lstrip().partition(b"\n")[0].rstrip()
    # Where a printer of JSON breaks a line; a line of JSON lines that is cut off seldom ends so.
    return line.startswith(b"{") and not line.endswith((b"{", b"[", b","))


def _spool(stream: Stream, shown: str, stack: ExitStack) -> IO[bytes]:
    """A copy of the stream on disk, because Parquet is read from its end."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
    try:
        shutil.copyfileobj(stream, file)
    except STREAM_ERRORS as error:
        raise UsageError(f"{shown}: {broken(error)}") from error
    file.seek(0)
    return file

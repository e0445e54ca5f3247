"""Opening an input of any form and reading its records one by one."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from judge.errors import UsageError, why_unread
from judge.records.base import Item
from judge.records.jsonfiles import read_json, read_jsonl
from judge.records.streams import CHUNK, STREAM_ERRORS, Input, unpacked
from judge.records.tables import read_csv, read_parquet, read_tsv

MAX_LINE = 64 * 1024 * 1024
"""Largest record in bytes, unless the caller says otherwise."""

_READERS: dict[str, Callable[[Input], Iterator[Item]]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "tsv": read_tsv,
}
FORMATS = (*_READERS, "parquet")
"""The formats that can be asked for."""

_SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl"}
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
    items = _items(source, stdin, format, max_line)
    # The first item is read at the call, and with it all that is refused.
    return chain(list(islice(items, 1)), items)


def _items(
    source: str | Path, stdin: BinaryIO | None, format: str | None, max_line: int
) -> Iterator[Item]:
    path = Path(source)
    if str(source) == "-":
        raw = stdin if stdin is not None else sys.stdin.buffer
        file = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(Any, raw))
        yield from _records(Input("<stdin>", file, max_line), "standard input", [], format)
        return
    suffixes = [suffix.casefold() for suffix in path.suffixes]
    with _opened(path) as file:
        yield from _records(Input(path.name, file, max_line), str(path), suffixes, format)


def _opened(path: Path) -> io.BufferedReader:
    try:
        return io.BufferedReader(io.FileIO(path), CHUNK)
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder: name the files in it") from None
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {why_unread(error)}") from error


def _records(opened: Input, shown: str, suffixes: list[str], format: str | None) -> Iterator[Item]:
    """The items of an input that messages call `shown`."""
    packing = suffixes.pop() if suffixes and suffixes[-1] in (".gz", ".zst") else ""
    plain = cast(io.BufferedReader, opened.stream)
    try:
        opened.stream = stream = unpacked(plain, shown, packing)
        head = stream.peek(CHUNK)
        named = _SUFFIXES.get(suffixes[-1]) if suffixes else None
        chosen = format or named or _sniffed(head, shown)
        if chosen == "parquet" and stream is plain and plain.seekable():
            yield from read_parquet(opened.name, shown, plain)
        elif chosen == "parquet":
            # Parquet is read from its end.
            with tempfile.TemporaryFile() as copy:
                shutil.copyfileobj(stream, copy)
                yield from read_parquet(opened.name, shown, copy)
        elif head.startswith(_OTHER_BOMS):
            raise UsageError(f"{shown} is UTF-16 or UTF-32: convert it to UTF-8 (iconv -t UTF-8)")
        else:
            stream.read(len(_BOM) if head.startswith(_BOM) else 0)
            yield from _READERS["jsonl" if chosen == "json" and _is_lines(head) else chosen](opened)
    except STREAM_ERRORS as error:
        yield opened.cut_off(error)


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

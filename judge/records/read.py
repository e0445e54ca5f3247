"""Opening an input of any form and reading its records one by one."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, BinaryIO

from judge.errors import UsageError
from judge.records.base import Item
from judge.records.compression import ByteSource, decompressed, plain
from judge.records.jsonfiles import read_json, read_jsonl
from judge.records.lines import Input
from judge.records.parquet import read_parquet
from judge.records.tables import read_csv, read_tsv

MAX_LINE = 64 * 1024 * 1024
"""Largest record in bytes, unless the caller says otherwise."""

FORMATS = ("jsonl", "json", "csv", "tsv", "parquet")
"""The formats that can be asked for."""

_COPY = 1 << 20
_SNIFF = 1 << 16
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
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
    look like; compression is known by its first bytes. Only what the next item needs is read. An
    item that cannot be read comes with its problem, never as an exception; a stream that breaks
    off gives what came before, then an item that says so.

    Raises UsageError, at the call: the file cannot be opened, its format cannot be told, it is
    UTF-16, it has a header that names a column twice, or it is not what its name promises.
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
    if str(source) == "-":
        path, name, shown = None, "<stdin>", "standard input"
        raw = plain(stdin if stdin is not None else sys.stdin.buffer)
    else:
        path, shown = Path(source), str(source)
        name = path.name
        raw = plain(_open_file(path, shown, stack))
    suffix, packing = _suffixes(path)
    content, packed = decompressed(raw, shown, packing)
    chosen = format or _SUFFIXES.get(suffix)
    if chosen != "parquet":
        _skip_byte_order_mark(content, shown)
    chosen = chosen or _sniff(content, shown)
    if chosen == "parquet":
        direct = path is not None and path.is_file() and not packed
        return read_parquet(name, str(path) if direct else _spool(content, shown, stack))
    if chosen == "json" and _is_lines(content):
        chosen = "jsonl"
    return _READERS[chosen](Input.over(name, content, limit))


def _open_file(path: Path, shown: str, stack: ExitStack) -> io.FileIO:
    try:
        return stack.enter_context(path.open("rb", buffering=0))
    except IsADirectoryError:
        raise UsageError(f"{shown} is a folder: name the files in it") from None
    except FileNotFoundError:
        raise UsageError(f"{shown} does not exist") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{shown} cannot be read: {reason}") from error


def _suffixes(path: Path | None) -> tuple[str, str]:
    """What a file's name says of its format and its compression, each perhaps nothing."""
    suffixes = [suffix.casefold() for suffix in path.suffixes] if path else []
    packing = suffixes.pop() if suffixes and suffixes[-1] in (".gz", ".zst") else ""
    return (suffixes[-1] if suffixes else ""), packing


def _skip_byte_order_mark(content: ByteSource, shown: str) -> None:
    head = content.peek(4)
    if head.startswith(_BOM):
        content.skip(len(_BOM))
    elif head.startswith(_OTHER_BOMS):
        raise UsageError(f"{shown} is UTF-16 or UTF-32: convert it to UTF-8 (iconv -t UTF-8)")


def _sniff(content: ByteSource, shown: str) -> str:
    if content.peek(4) == b"PAR1":
        return "parquet"
    head = _first_line(content)
    if head.startswith((b"[", b"{")):
        return "json"
    if not head:
        return "jsonl"
    raise UsageError(
        f"cannot tell the format of {shown} from its name or its first bytes: put it in a file "
        f"whose name ends in {', '.join(f'.{name}' for name in FORMATS)} (also with .gz or .zst "
        "behind), or, where the command has --format, name it there"
    )


def _is_lines(content: ByteSource) -> bool:
    """Whether text that begins as an object has one on each line, rather than one over many."""
    head = _first_line(content)
    # Where a printer of JSON breaks a line; a line of JSON lines that is cut off seldom ends so.
    return head.startswith(b"{") and not head.endswith((b"{", b"[", b","))


def _first_line(content: ByteSource) -> bytes:
    """The first line that is not blank, as far as a bounded look goes."""
    head = content.peek(1)
    while b"\n" not in head.lstrip() and len(head) < _SNIFF:
        longer = content.peek(len(head) + 1)
        if len(longer) == len(head):
            break
        head = content.peek_all()
    return head.lstrip().partition(b"\n")[0].rstrip()


def _spool(content: ByteSource, shown: str, stack: ExitStack) -> IO[bytes]:
    """A copy of the stream on disk, because Parquet is read from its end."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
    while chunk := content.read(_COPY):
        file.write(chunk)
    if content.fault:
        raise UsageError(f"{shown}: {content.fault}")
    file.seek(0)
    return file

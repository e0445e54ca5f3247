"""Opens an input of any format, reads its records one at a time, and applies `--map`."""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from glob import glob
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, cast
from unicodedata import normalize

from judge.errors import UsageError, why_unread
from judge.judgement import verdict_columns
from judge.records.base import (
    RESERVED,
    LabelError,
    Problem,
    at,
    clip,
    is_verdict,
    judgement_in,
    own_fields,
)
from judge.records.jsonfiles import read_jsonl
from judge.records.record import Record
from judge.records.streams import (
    CHUNK,
    MAX_RECORD,
    STREAM_ERRORS,
    Input,
    Stream,
    as_utf8,
    unpacked,
    with_first_lines,
)
from judge.records.tables import read_csv, read_tsv, read_xlsx
from judge.records.values import from_memory
from judge.records.words import marks
from judge.verdict import Verdict

MAX_LINE = 64 * 1024 * 1024
"""Largest record in bytes, unless the caller says otherwise."""

SHEET_MARK = b'<meta name="generator" content="judge label --sheet">'
"""Marks a page written by `judge label --sheet`."""

_READERS = {"jsonl": read_jsonl, "csv": read_csv, "tsv": read_tsv, "xlsx": read_xlsx}
_BINARIES = ("parquet", "arrow", "xlsx")
FORMATS = ("jsonl", "json", "csv", "tsv", *_BINARIES)
"""The formats that a caller can name."""

_SUFFIXES = {f".{name}": name for name in FORMATS}
_SUFFIXES |= {".ndjson": "jsonl", ".feather": "arrow", ".tab": "tsv", ".psv": "csv"}
_BEGINNINGS = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"PK\x03\x04": "xlsx",
}


@cache
def _header() -> re.Pattern[str]:
    """Matches a line of at least two names without blanks: the header of a table, and no sentence.

    `\\w` does not match the vowels of Hindi and Thai, nor an accent beside its letter.
    """
    name = rf"[^\W\d](?:[\w.-]|{marks().pattern})*"
    column = rf'(?:{name}|"{name}")'
    return re.compile(rf"{column}([,;\t|]){column}(?:\1{column})*\r?\n")


_SHEET = re.compile(r"(.+\.xlsx)#(.+)", re.IGNORECASE | re.DOTALL)


def file_and_sheet(source: str | Path) -> tuple[Path, str | None]:
    """The file that a source names, and the sheet in `FILE.xlsx#SHEET`, unless a file has that
    name."""
    path = Path(source)
    match = None if path.exists() else _SHEET.fullmatch(str(source))
    return (path, None) if match is None else (Path(match[1]), match[2])


class InMemory(str):
    """Records in memory, usable in place of a file name.

    The string is their name in messages; `records` is read by `from_memory`. Of judgements, `runs`
    says how they were made, by fingerprint.
    """

    records: Sequence[object] = ()
    runs: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, name: str, records: Iterable[object]) -> Self:
        source = cls(name)
        source.records = list(records)
        return source


def read(
    source: str | Path,
    *,
    stdin: BinaryIO | None = None,
    format: str | None = None,
    max_line: int = MAX_LINE,
) -> Iterator[Record]:
    """The records of a file, or of standard input where `source` is `-`, in order. A sheet of a
    workbook is `FILE.xlsx#SHEET`.

    The format is `format` (one of FORMATS), else that of the file's extension, else guessed from
    the first bytes (a table's from a header of at least two names without blanks); compression and
    encoding are detected from the first bytes. A folder must be one of `datasets.save_to_disk`. A
    record that cannot be read has a `problem`; it never raises. A stream that breaks off yields the
    records before the break, then one whose problem says so. Lines count up in every format.

    Raises UsageError, at the call: the file cannot be opened, its format cannot be determined, or
    its content does not have the format that its name promises.
    """
    if isinstance(source, InMemory):
        return (replace(item, source=str(source)) for item in from_memory(source.records))
    if format is not None and format not in FORMATS:
        raise UsageError(f"format {format!r} is unknown; there are {', '.join(FORMATS)}")
    items = _items(source, stdin, format, max_line)
    # Read the first item now, so that errors are raised at the call.
    return chain(list(islice(items, 1)), items)


_SAVED = ("state.json", "dataset_dict.json")
"""What `datasets.save_to_disk` writes into the folder of a data set, of several splits."""


def input_files(sources: Iterable[str], outputs: Iterable[Path] = ()) -> list[str]:
    """Expands folders and patterns to files.

    A folder becomes its files with an extension of `FORMATS` (not hidden ones), a pattern such as
    `data/*.csv` the files that match, both sorted by name and without `outputs`, which the run
    itself writes. Other sources, and folders of `datasets.save_to_disk`, stay as they are.

    Raises:
        UsageError: a folder or a pattern without such a file.
    """
    files: list[str] = []
    outs = {*map(os.path.realpath, outputs)}  # Of a loop of links, too.
    for source in sources:
        path = Path(source)
        if path.is_dir() and not any((path / name).is_file() for name in _SAVED):
            inside = (file for file in sorted(path.iterdir()) if file.is_file() and _ending(file))
            found = [str(file) for file in inside if os.path.realpath(file) not in outs]
            what = f"no file that ends in {', '.join(f'.{name}' for name in FORMATS)}"
        elif any(sign in source for sign in "*?[") and not path.exists():
            matches = sorted(glob(source, recursive=True))  # noqa: PTH207
            found = [file for file in matches if os.path.realpath(file) not in outs]
            what = "no such file"
        else:
            found, what = [source], ""
        if not found:
            raise UsageError(f"{source}: {what}")
        files += found
    return files


def _ending(path: Path) -> bool:
    suffixes = [suffix.casefold() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    # Hidden files, which no pattern matches either, and Excel's locks are no data.
    no_data = path.name.startswith((".", "~$")) or path.name.endswith(".run.json")
    return bool(suffixes) and suffixes[-1] in _SUFFIXES and not no_data


def _items(
    source: str | Path, stdin: BinaryIO | None, format: str | None, max_line: int
) -> Iterator[Record]:
    path, sheet = file_and_sheet(source)
    if str(source) == "-":
        raw = stdin if stdin is not None else sys.stdin.buffer
        file = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(Any, raw))
        yield from _records(Input("<stdin>", "standard input", file, max_line), [], format)
        return
    if path.is_dir():
        from judge.records.columnar import read_arrow, saved_files

        line = 0
        for part in saved_files(path):
            with _opened(part) as file:
                source_part = Input(_name(path), str(part), file, max_line, line)
                yield from read_arrow(source_part)
                line = source_part.line
        return
    suffixes = [suffix.casefold() for suffix in path.suffixes]
    with _opened(path) as file:
        opened = Input(_name(Path(source)), str(path), file, max_line, sheet=sheet)
        yield from _records(opened, suffixes, format)


def _name(path: Path) -> str:
    """The name of a file in the output, composed (NFC), because records may be named after it."""
    return normalize("NFC", path.name)


def _opened(path: Path) -> io.BufferedReader:
    try:
        return io.BufferedReader(io.FileIO(path), CHUNK)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {why_unread(error)}") from error


def _records(source: Input, suffixes: list[str], format: str | None) -> Iterator[Record]:
    packing = suffixes.pop() if suffixes and suffixes[-1] in (".gz", ".zst") else ""
    plain = cast(io.BufferedReader, source.stream)
    try:
        source.stream = stream = unpacked(plain, source.display, packing)
        by_name = _SUFFIXES.get(suffixes[-1]) if suffixes else None
        head = stream.peek(CHUNK)
        beginnings = (name for mark, name in _BEGINNINGS.items() if head.startswith(mark))
        form = format or by_name or next(beginnings, None)
        if form in _BINARIES and stream is plain and plain.seekable():
            yield from _reader(form)(source)
        elif form in _BINARIES:
            # Their readers need to seek: the index is at the end of the file.
            with tempfile.TemporaryFile() as copy:
                _copy(source, copy, packed=stream is not plain)
                copy.seek(0)
                source.stream = cast(Stream, copy)
                yield from _reader(form)(source)
        else:
            source.stream = with_first_lines(as_utf8(stream))
            head = source.stream.peek(CHUNK).lstrip()
            if form not in ("csv", "tsv"):
                _refuse_page(head, source.display)
            yield from _reader(form or _looks(head, source.display))(source)
    except STREAM_ERRORS as error:
        yield source.cut_off(error)


def _copy(source: Input, copy: IO[bytes], *, packed: bool) -> None:
    """Copy an input; UsageError if it is `packed` and has more than MAX_RECORD bytes, as a bomb."""
    size = 0
    while chunk := source.stream.read(CHUNK):
        size += len(chunk)
        if packed and size > MAX_RECORD:
            raise UsageError(
                f"{source.display} has more than {MAX_RECORD} bytes unpacked: unpack it first"
            )
        copy.write(chunk)


def _reader(form: str) -> Callable[[Input], Iterator[Record]]:
    """The reader of a format. Rarely used ones are loaded here."""
    if form == "json":
        from judge.records.wrapped import read_objects

        return read_objects
    if form in ("parquet", "arrow"):
        from judge.records.columnar import read_arrow, read_parquet

        return read_parquet if form == "parquet" else read_arrow
    return _READERS[form]


def _looks(head: bytes, display: str) -> str:
    """The text format that starts like this; UsageError if it cannot be determined."""
    if head.startswith((b"[", b"{")):
        return "json"
    if not head:
        return "jsonl"
    if _header().match(head.decode("utf-8", "replace")):
        return "csv"
    raise UsageError(
        f"cannot tell the format of {display}: if it is a table, type --format csv (judge "
        "validate, plan and label); if each line is a text, make it JSON lines, jq -cR "
        "'{text: .}'; or give a file name that ends in "
        f"{', '.join(f'.{name}' for name in FORMATS)}"
    )


def _refuse_page(head: bytes, display: str) -> None:
    """Raise UsageError for a web page, naming the file to use instead."""
    if not head[:15].lower().startswith((b"<!doctype html", b"<html")):
        return
    if SHEET_MARK not in head:
        raise UsageError(f"{display} is a web page: name the file with the records it was made of")
    answers = f"{display.removesuffix('.html')}.NAME.jsonl"
    raise UsageError(
        f"{display} is a sheet to answer in a browser: give the file that it saves, {answers}"
    )


# ---------------------------------------------------------------- columns


_NO_FIELD = object()


def mapped(records: Iterable[Record], columns: Mapping[str, str]) -> Iterator[Record]:
    """The records with `columns` applied.

    A record that lacks a column, or already has a field of the new name, gets a problem. A field
    `judge` that is not an earlier verdict is renamed. A judged line of input that could not be read
    is unreadable again.
    """
    for record in map(_with_judge_renamed, map(_with_earlier_problem, records)):
        if not columns:
            yield record
            continue
        paths = columns
        if key := record.input_key:
            paths = {name: key if path == RESERVED else path for name, path in columns.items()}
        problem = record.problem or _misfit(record.fields, paths)
        yield replace(record, columns=paths, problem=problem)


def renamed(records: Iterable[Record], columns: Mapping[str, str]) -> Iterator[Record]:
    """As `mapped`, but the records' fields are replaced by those shown to judges."""
    for record in mapped(records, columns):
        if record.problem is not None:
            yield replace(record, fields={}, json=None, raw=record.raw or record.json or "")
        else:
            yield replace(record, fields=record.visible, columns={})


def _with_earlier_problem(record: Record) -> Record:
    """The record of a judged line, or of a row of a table that judge wrote, whose input could not
    be read, with the problem that it had; any other record unchanged."""
    fields = record.fields
    if "raw" not in fields:
        return record
    content, columns = judgement_in(fields), verdict_columns(fields)
    if columns and not is_verdict(content):
        content = {name: fields.get(f"judge.{name}") for name in ("verdict", "fingerprint")}
        content["error"] = {"message": fields.get("judge.error")}
    own = own_fields(fields).keys() - columns - {"raw"}
    # In a table, the row has the other records' fields, too, all of them empty.
    if any(fields[key] not in (None, "") for key in own):
        return record
    if not is_verdict(content) or content["verdict"] != Verdict.ERROR or content.get("fingerprint"):
        return record
    error = content.get("error")
    if not isinstance(error, dict) or not (message := str(error.get("message") or "")):
        return record
    problem = Problem(message, error.get("field"), error.get("type") or "bad-input")
    return replace(record, fields={}, json=None, raw=str(fields["raw"] or ""), problem=problem)


def _with_judge_renamed(record: Record) -> Record:
    fields = record.fields
    if (content := judgement_in(fields, _NO_FIELD)) is _NO_FIELD or is_verdict(content):
        return record
    name = f"input_{RESERVED}"
    while name in fields:
        name = f"input_{name}"
    fields = {name if key == RESERVED else key: content for key, content in fields.items()}
    return replace(record, fields=fields, input_key=name)


def flag_of(name: str, column: str) -> str:
    """The flag that maps `name` to the column, for messages."""
    return f"--id {column}" if name == "id" else f"--map {name}={column}"


def _misfit(fields: Mapping[str, object], columns: Mapping[str, str]) -> Problem | None:
    for name, column in columns.items():
        flag = flag_of(name, column)
        try:
            at(fields, column)
        except LabelError as error:
            return replace(error.problem, message=f"{flag}: {error}")
        except KeyError:
            names = clip([key for key in fields if key != RESERVED], 300)
            message = f"{flag}: the record has no field {column!r}, its fields are {names}"
            return Problem(message, column)
        if name in fields and name not in (*columns.values(), "id"):
            message = f"{flag}: the record has a field {name!r} already: choose another name"
            return Problem(message, name)
    return None

"""Rows of files as records: CSV and TSV, Excel workbooks."""

from __future__ import annotations

import csv
import re
import shlex
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias
from unicodedata import normalize
from xml.etree.ElementTree import ParseError

from judge.errors import UsageError, missing_extra
from judge.records.record import Record
from judge.records.streams import CHUNK, SAMPLE, TO_UTF8, BrokenStreamError, Input
from judge.records.values import as_json

# What decoding with "surrogateescape" makes of bytes that are not UTF-8, and nothing else does.
_FOREIGN = re.compile("[\udc80-\udcff]")
_UNQUOTED = {"premise", "hypothesis", "us_ratings", "in_ratings"}
"""The columns of a published TSV file in which quotes are text."""

_SheetRows: TypeAlias = Iterator[tuple[int, list[Any]]]

_NUL = "holds a NUL byte (if FILE is UTF-16: iconv -f UTF-16LE -t UTF-8 FILE > NEW)"
_COUNT = re.compile(r"(.*?)([0-9]{1,18})")
"""A name that ends in a number."""

_MARKS = (",", ";", "\t", "|")
_NAMED_MARK = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
_SAMPLE_ROWS = 20
_MAX_WORKBOOK = 1 << 30
"""Most bytes of an unpacked workbook: openpyxl keeps all of its texts in memory."""


def read_csv(source: Input, separator: str = ",") -> Iterator[Record]:
    """One record per row under a header, quoted as spreadsheets and pandas do it.

    A separator other than `separator` is detected from the first rows, or given by a first line
    `sep=;`. In TSV files with the columns `_UNQUOTED`, quotes are text. Blank rows are
    skipped.

    Raises UsageError for a header that cannot name the columns.
    """
    # `_Lines` stops larger rows before the csv module sees them.
    csv.field_size_limit(max(csv.field_size_limit(), source.max_line))
    head = source.stream.peek(CHUNK)[:CHUNK].decode("utf-8", "replace")
    lines = _Lines(source)
    if mark := _NAMED_MARK.match(head):
        separator = mark[1]
        next(lines)
    else:
        separator = _separator(source.name, head, separator)
    rows = csv.reader(lines, delimiter=separator, strict=True)
    header: list[str] = []
    while True:
        line = source.line + 1
        try:
            cells, problem = lines.row(rows), None
        except StopIteration:
            return
        except csv.Error as error:
            cells, problem = [""], _explained(error, lines.text(), line, separator)
        if problem is None and not "".join(cells).strip():
            continue
        several = f"lines {line} to {source.line}" if source.line > line else ""
        if several and problem is None and _holds_rows(lines.text(), separator, len(header)):
            problem = f"a stray quote joins {several}, each a row: remove it"
            problem += "; if they are one cell, give JSON lines"
        if not header:
            refuse_header(source.name, cells, problem)
            header = cells
            if separator == "\t" and {name.strip().casefold() for name in header} >= _UNQUOTED:
                rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
            continue
        if problem is None and len(cells) != len(header):
            problem = f"the row has {len(cells)} cells, the header {len(header)}"
            problem += f"; a quote joins {several}" if several else ""
        fields = dict(zip(header, cells, strict=False))
        faults = ((name, fault) for name, cell in fields.items() if (fault := _fault_of(cell)))
        field, fault = next(faults, (None, None)) if problem is None else (None, None)
        if field is not None:
            problem = f"column {field!r} {fault}"
        if problem is None:
            yield Record(source.name, line, fields)
        else:
            yield source.bad(line, problem, lines.taken(), size=lines.size, field=field)


def read_tsv(source: Input) -> Iterator[Record]:
    """Rows of tab-separated cells; see `read_csv`."""
    return read_csv(source, "\t")


def _separator(name: str, head: str, default: str) -> str:
    """The separator of the first rows: `default`, unless another mark splits more rows into as many
    cells as the header.

    Raises UsageError if two marks split every row alike, the other into more cells (for a comma
    also into as many, since files with semicolons have the same name); and if there is a title
    above the header: a mark splits all rows but the first alike, and none splits all.
    """
    whole = head.splitlines(keepends=True)
    # The last line may be incomplete.
    whole = whole[:-1] if len(whole) > 1 and not head.endswith("\n") else whole
    alike: dict[str, float] = {}
    columns: dict[str, int] = {}
    below: dict[str, int] = {}
    for mark in dict.fromkeys((default, *_MARKS)):
        cut = (row for row in csv.reader(whole, delimiter=mark) if "".join(row).strip())
        rows = [*islice(cut, _SAMPLE_ROWS)]
        if any(cell.count('"') % 2 for row in rows[:-1] for cell in row):
            continue  # The mark is inside of quotes.
        first, *widths = [len(row) for row in rows] or [0]
        if first > 1:
            alike[mark] = (1 + widths.count(first)) / (1 + len(widths))
            columns[mark] = first
        elif len(widths) > 1 and len(set(widths)) == 1 and widths[0] > 1:
            below[mark] = widths[0]
    sure = [mark for mark, share in alike.items() if share == 1 and len(whole) > 1]
    if below and not sure:
        mark, width = next(iter(below.items()))
        raise UsageError(
            f"{name}: the first line has one cell, the lines below have {width}: delete "
            f"what stands above the header, or quote cells that hold {mark!r}"
        )
    fewest = columns.get(default, 0) + (default != ",")
    if default in sure and (rivals := [m for m in sure if m != default and columns[m] >= fewest]):
        message = f"{name}: {default!r} or {rivals[0]!r} may separate the cells"
        raise UsageError(
            f"{message}: write sep={rivals[0]} or sep={default} on a line above the header"
        )
    return max(alike, key=lambda mark: (alike[mark], mark == default), default=default)


class _Lines(Iterator[str]):
    """The lines of a table, decoded for the csv module; those of the current row are kept."""

    def __init__(self, source: Input) -> None:
        self._lines, self._limit = source.lines(), source.max_line
        self._taken: list[bytes] = []
        self.size = 0

    def __next__(self) -> str:
        data, size = next(self._lines)
        self.size += size + bool(self._taken)
        self._taken.append(data)
        if self.size > self._limit:
            raise csv.Error(f"it has {self.size} bytes, more than the limit of {self._limit}")
        return data.decode("utf-8", "surrogateescape") + "\n"

    def row(self, rows: Iterator[list[str]]) -> list[str]:
        """The next row; raises csv.Error, and StopIteration at the end."""
        self._taken, self.size = [], 0
        return next(rows)

    def taken(self) -> bytes:
        """The text of the row, or its beginning if the row is over the limit."""
        text = b"\n".join(self._taken)
        return text if self.size <= self._limit else text[:SAMPLE]

    def text(self) -> str:
        """The whole text of the row as far as it was read."""
        return b"\n".join(self._taken).decode("utf-8", "surrogateescape")


def _holds_rows(text: str, separator: str, width: int) -> bool:
    """Whether a stray quote joined the lines of a row of `width` cells, which are rows themselves.

    Each has as many cells separated by tabs; or at least as many, and the first or the last ones
    count on (`7,"Hi`, `8,Bye"`). Other lines may be the cell's own: a letter, a program, a table.
    """
    rows = [line.split(separator) for line in text.split("\n")]
    widths = {len(row) for row in rows}
    if separator == "\t" and widths == {width}:
        return True
    counts_on = any(_counts_on([row[place] for row in rows]) for place in (0, -1))
    return counts_on and min(widths) >= max(width, 2)


def _counts_on(cells: Sequence[str]) -> bool:
    """Whether the cells are the same name with one number after the other."""
    counts = [*map(_COUNT.fullmatch, (cell.strip('" \r') for cell in cells))]
    found = [(count[1], int(count[2])) for count in counts if count is not None]
    name, first = found[0] if found else ("", 0)
    return found == [(name, first + number) for number in range(len(cells))]


def _explained(error: csv.Error, text: str, line: int, separator: str) -> str:
    """What is wrong with the row of this text, which begins on `line`."""
    mark = re.escape(separator)
    # Whole cells, so that the match ends where the open quote stands.
    cells = rf'(?:(?:"[^"]*+(?:""[^"]*+)*+"|(?!")[^{mark}\n]*+){mark})*+'
    before = re.match(cells, text)
    opened = line + text.count("\n", 0, before.end() if before else 0)
    last = line + text.count("\n")
    message = str(error).partition(" - ")[0]
    if message == "unexpected end of data":
        return (
            f"the quote opened on line {opened} is never closed: the rest of the file is one cell"
        )
    if message.endswith("expected after '\"'"):  # The csv module's words about "a"b.
        message = 'text follows the closing quote: write a quote within a quoted cell twice ("")'
    if message.startswith("new-line character"):
        message = "a carriage return alone ends no line: replace it, as tr '\\r' '\\n' does"
    if last > opened:
        message = f"the quote opened on line {opened} runs to line {last}: {message}"
    return f"the row is not CSV: {message}"


def _fault_of(text: str) -> str | None:
    """Why a text cannot be read, and what to type; None if it can."""
    if "\0" in text:
        return _NUL
    return f"is not UTF-8: {TO_UTF8}" if _FOREIGN.search(text) else None


def refuse_header(name: str, columns: Sequence[str], problem: str | None = None) -> None:
    """Raise UsageError for a header that cannot name the columns."""
    if fault := _fault_of("".join(columns)):
        problem = f"a cell {fault}"
    elif len(columns) > 2 and sum(map(bool, columns)) == 1:
        problem = "it names one column of several: delete the lines above the header"
    if problem:
        raise UsageError(f"{name}: the header row cannot be read: {problem}")
    repeated = sorted(column for column, count in Counter(columns).items() if count > 1)
    if "" in repeated:
        raise UsageError(f"{name}: several columns have no name: name them, or delete them")
    if repeated:
        raise UsageError(f"{name}: the header names a column twice: {', '.join(repeated)}")


def read_xlsx(source: Input) -> Iterator[Record]:
    """One record per row of a workbook's sheet, or of its only one with rows; `line` is the row's
    number. The stream can be sought in.

    A formula has its saved value. A row of more than `max_line` characters is a problem. Raises
    UsageError if the file is not a workbook, has no such sheet or several with rows, the header
    cannot name the columns, or openpyxl is missing.
    """
    display, limit = source.display, source.max_line
    file: Any = source.stream
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise missing_extra(f"{display}: Excel files need openpyxl", "excel") from error
    try:
        with zipfile.ZipFile(file) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > _MAX_WORKBOOK:
            raise UsageError(f"{display} has {size} bytes unpacked: save it as .csv")
        book = load_workbook(file, read_only=True, data_only=True)
    except (zipfile.BadZipFile, ParseError, OSError, KeyError, ValueError) as error:
        raise UsageError(f"{display} is not an Excel workbook (.xlsx): {error}") from error
    rows = _rows_of(book.worksheets, source.sheet, display)
    header = [_as_text(cell) for cell in next(rows, (0, []))[1]]
    refuse_header(display, header)
    for line, cells in rows:
        while len(cells) > len(header) and not _as_text(cells[-1]).strip():
            cells.pop()
        size = sum(len(cell) for cell in cells if isinstance(cell, str))
        if len(header) == 1 < len(cells) and line <= _SAMPLE_ROWS:
            raise UsageError(
                f"{display}: the first row has one cell: delete the lines above the header"
            )
        if len(cells) > len(header):
            yield source.bad(line, f"the row has {len(cells)} cells, the header {len(header)}")
        elif size > limit:
            message = f"the row has {size} characters, more than the limit of {limit}"
            yield source.bad(line, message)
        else:
            fields = dict.fromkeys(header)
            fields |= {key: as_json(cell) for key, cell in zip(header, cells, strict=False)}
            yield Record(source.name, line, fields)


def _rows_of(sheets: Sequence[Any], name: str | None, display: str) -> _SheetRows:
    """The rows of the sheet of this name, or of the only one that has rows."""
    filled = [sheet for sheet in sheets if next(_filled(sheet), None)]
    by_title = {normalize("NFC", sheet.title): sheet for sheet in sheets}
    sheet = by_title.get(normalize("NFC", name or ""))
    candidates = filled if name is None else [sheet] if sheet is not None else []
    titles = ", ".join(sheet.title for sheet in filled)
    if name is not None and not candidates:
        raise UsageError(f"{display} has no sheet {name!r}; sheets with rows: {titles}")
    if len(candidates) > 1:
        example = shlex.quote(f"{display}#{filled[0].title}")
        raise UsageError(f"{display} has rows on the sheets {titles}: name one, such as {example}")
    return _filled(candidates[0]) if candidates else iter(())


def _filled(sheet: Any) -> _SheetRows:
    """Number and cells of each row that is not blank, without empty cells at its end. Excel saves
    a carriage return as `_x000D_`. Raises STREAM_ERRORS if the sheet is damaged."""
    from openpyxl.utils.escape import unescape

    try:
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            cells = [unescape(cell) if isinstance(cell, str) else cell for cell in row]
            while cells and cells[-1] in (None, ""):
                cells.pop()
            if any(_as_text(cell).strip() for cell in cells):
                yield number, cells
    except (ParseError, zipfile.BadZipFile) as error:
        raise BrokenStreamError(f"the workbook is damaged ({error})") from error


def _as_text(content: Any) -> str:
    return "" if content is None else str(as_json(content))

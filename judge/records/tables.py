"""Reading CSV and TSV: a header, then one record a row, every cell a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from judge.errors import UsageError
from judge.records.base import Item
from judge.records.lines import Input
from judge.records.rows import Row, csv_rows, tsv_rows


def read_csv(opened: Input) -> Iterator[Item]:
    """Rows of comma-separated cells, quoted as spreadsheets and pandas do it.

    Empty lines hold no record. Raises UsageError for a header that cannot name the columns.
    """
    return _items(opened, csv_rows(opened))


def read_tsv(opened: Input) -> Iterator[Item]:
    """Rows of tab-separated cells; `tsv_rows` says when quotes are taken as quotes.

    Empty lines hold no record. Raises UsageError for a header that cannot name the columns.
    """
    return _items(opened, tsv_rows(opened))


def _items(opened: Input, rows: Iterator[Row]) -> Iterator[Item]:
    first = next(rows, None)
    if first is None:
        return iter(())
    return _records(opened, _header(opened, first), rows)


def _header(opened: Input, row: Row) -> list[str]:
    problem = row.problem or _cell_problem(row.cells)
    if problem:
        raise UsageError(f"{opened.name}: the header row cannot be read: {problem}")
    repeated = sorted(cell for cell, count in Counter(row.cells).items() if count > 1)
    if repeated:
        raise UsageError(f"{opened.name}: the header names a column twice: {', '.join(repeated)}")
    return row.cells


def _records(opened: Input, header: Sequence[str], rows: Iterator[Row]) -> Iterator[Item]:
    line = 1
    for row in rows:
        line = row.line
        if not row.ended and (last := opened.cut_off(line, row.data, row.size)):
            yield last
            return
        problem = row.problem or _cell_problem(row.cells, header)
        if problem is None and len(row.cells) != len(header):
            problem = f"the row has {len(row.cells)} cells, the header {len(header)}"
        if problem:
            yield opened.bad(line, problem, row.data, size=row.size)
        else:
            yield Item(opened.name, line, dict(zip(header, row.cells, strict=True)))
    if last := opened.cut_off(line + 1):
        yield last


def _cell_problem(cells: Sequence[str], header: Sequence[str] = ()) -> str | None:
    for number, cell in enumerate(cells):
        if cell.isascii() and "\0" not in cell:
            continue
        where = f"column {header[number]!r}" if number < len(header) else f"cell {number + 1}"
        if "\0" in cell:
            return f"{where} holds a NUL byte"
        # Decoding with "surrogateescape" leaves these, and nothing else can.
        bad = next((char for char in cell if "\udc80" <= char <= "\udcff"), None)
        if bad:
            return f"{where} is not UTF-8: byte 0x{ord(bad) - 0xDC00:02x}"
    return None

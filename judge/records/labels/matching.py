"""Check that a sheet's row shows the texts of the record with its id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from judge.errors import UsageError
from judge.records.answers import spelling
from judge.records.base import clip
from judge.records.kinds import recognise
from judge.records.record import Record
from judge.records.text import chat_in, shown

_PREFIX = "text of "
"""Prefix of a field whose name is also one of the sheet's own columns."""

_APOSTROPHES = re.compile(r"\A'+|'(?=[=+\-@＝＋－＠])")
"""Places where a sheet may have an apostrophe to keep a spreadsheet from reading a formula."""


def need_same_text(row: Record, record: Record) -> None:
    """Raise UsageError if the record has another text in a field than the sheet's row shows."""
    if (field := _other_text(row, record)) is not None:
        raise UsageError(
            f"{row.source}, line {row.line}: item {clip(row.id)} shows another text in field "
            f"{field!r} than {record.source}, line {record.line}: give the records that the sheet "
            "was made from"
        )


def _other_text(row: Record, record: Record) -> str | None:
    """The first field whose texts differ, else None.

    Numbers and dates, which spreadsheets rewrite, are compared only in rows without words.
    """
    cells = {name: cell for name, cell in (row.fields or {}).items() if isinstance(cell, str)}
    cells = {name: cell for name, cell in cells.items() if cell.strip()}
    worded = {name: cell for name, cell in cells.items() if _worded(cell)}
    texts = record.of_kind(recognise(record.visible) or "record").texts
    anywhere: set[str] | None = None
    for column, cell in (worded or cells).items():
        name = column if column in texts else column.removeprefix(_PREFIX)
        if name in texts:
            same = _plain(cell) == _plain(texts[name])
        elif cell.lstrip().startswith("1. "):
            continue  # A list renamed by `judge label --map`: the record has no such numbers.
        else:  # A field renamed by `judge label --map`.
            anywhere = anywhere or set(map(_plain, _texts_in(record.visible)))
            same = _plain(cell) in anywhere
        if not same:
            return name
    return None


def _worded(text: str) -> bool:
    return any(map(str.isalpha, text)) and spelling(text) not in ("yes", "no")


def _plain(text: str) -> str:
    """The text without blanks and the sheet's apostrophes; a number in its shortest form."""
    text = _APOSTROPHES.sub("", "".join(text.split()))
    return text if _worded(text) else spelling(text)


def _texts_in(content: Any) -> Iterator[str]:
    """The texts of a value and of all values in it."""
    yield shown(content).text
    content = chat_in(content) or content
    parts = content.values() if isinstance(content, dict) else content
    for part in parts if isinstance(content, dict | list) else ():
        yield from _texts_in(part)

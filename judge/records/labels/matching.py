"""Whether the record that a sheet's row is matched to is the one that the row shows."""

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
"""Before a field's name that is also one of the sheet's own columns."""

_APOSTROPHES = re.compile(r"\A'+|'(?=[=+\-@＝＋－＠])")
"""Where a sheet may have put an apostrophe, so that no spreadsheet sees a formula."""


def need_same_text(row: Record, record: Record) -> None:
    """Nothing where the record has the texts that the sheet's row shows.

    Raises:
        UsageError: it has another text in a field.
    """
    if (field := _other_text(row, record)) is not None:
        raise UsageError(
            f"{row.source}, line {row.line}: item {clip(row.id)} shows another text in field "
            f"{field!r} than {record.source}, line {record.line}: give the records that the sheet "
            "was made from"
        )


def _other_text(row: Record, record: Record) -> str | None:
    """The first field whose texts differ; None for none.

    Numbers and dates, which spreadsheets rewrite, count where there are no words to compare.
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
            continue  # A list that `judge label --map` named anew: its numbers stand nowhere else.
        else:  # A field that `judge label --map` named anew.
            anywhere = anywhere or set(map(_plain, _texts_in(record.visible)))
            same = _plain(cell) in anywhere
        if not same:
            return name
    return None


def _worded(text: str) -> bool:
    return any(map(str.isalpha, text)) and spelling(text) not in ("yes", "no")


def _plain(text: str) -> str:
    """The text without blanks and the sheet's apostrophes; a number as short as it can be."""
    text = _APOSTROPHES.sub("", "".join(text.split()))
    return text if _worded(text) else spelling(text)


def _texts_in(content: Any) -> Iterator[str]:
    """The texts of a value and of all values in it."""
    yield shown(content).text
    content = chat_in(content) or content
    parts = content.values() if isinstance(content, dict) else content
    for part in parts if isinstance(content, dict | list) else ():
        yield from _texts_in(part)

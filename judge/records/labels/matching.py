"""Check that a sheet's row shows the texts of the record with its id, and that people answered the
question that is asked now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from judge.errors import UsageError
from judge.records.answers import scalar_text, spelling
from judge.records.base import clip, content_hash, key_for
from judge.records.kinds import RECORD, normalise
from judge.records.labels.items import LabelledItem
from judge.records.record import Record
from judge.records.text import chat_in, shown

_PREFIX = "text of "
"""Prefix of a field whose name is also one of the sheet's own columns."""

_APOSTROPHES = re.compile(r"\A'+|'(?=[=+\-@＝＋－＠])")
"""Places where a sheet may have an apostrophe to keep a spreadsheet from reading a formula."""

_VARIABLE = re.compile(r"\{\{.*?\}\}|\{%.*%\}|\{#.*?#\}", re.DOTALL)
"""Places of a question's template that another text may take."""


class SharedNames:
    """The names of labelled items from several files, one for each record.

    A record without an id has the name of its place, FILE#LINE. If annotators answered about the
    same content in other files, or on other lines, the first place is the name in all.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._contents: dict[str, str] = {}

    def of(self, item: LabelledItem) -> LabelledItem:
        """The item under its record's shared name."""
        record = item.record
        if not (item.annotations and is_place(record.id, record.source)):
            return item
        content = content_hash(record.fields)
        name = self._names.get(content, record.id)
        if self._contents.setdefault(name, content) != content:  # Files of one name, in two folders
            name = f"{record.id} ({content[:6]})"
        self._names[content] = name
        return replace(item, record=replace(record, name=name))


def in_column(record: Record, column: str | None) -> str | None:
    """The record's name in this column, if it has one there."""
    fields = record.fields
    name = scalar_text(fields.get(key_for(fields, column))) if column else None
    return name.strip() if name else None


def is_place(name: str, source: str) -> bool:
    """Whether a labelled record's name is its place in this file: it has no id."""
    return name.startswith(f"{source}#")


def need_same_text(row: Record, record: Record) -> None:
    """Raise UsageError if the record has another text in a field than the sheet's row shows."""
    if (field := _other_text(row, record)) is not None:
        raise UsageError(
            f"{row.source}, line {row.line}: item {clip(row.id)} shows another text in field "
            f"{field!r} than {record.source}, line {record.line}: give the records that the sheet "
            "was made from"
        )


def other_texts(pairs: Iterable[tuple[Record, Record]]) -> Iterator[str]:
    """The note that records of one name, from two files, have the same text in no field, if any.

    People may have added columns of their own, so one equal text is enough.
    """
    others: dict[str, tuple[Record, Record]] = {}
    for first, second in pairs:
        one, two = first.visible, second.visible
        texts = [(one[key], two[key]) for key in one.keys() & two.keys() if normalise(key) != "id"]
        worded = [pair for pair in texts if all(isinstance(t, str) and _worded(t) for t in pair)]
        if worded and not any(_plain(a) == _plain(b) for a, b in worded):
            others.setdefault(first.id, (first, second))
    if others:
        first, second = next(iter(others.values()))
        count = "1 record" if len(others) == 1 else f"{len(others)} records"
        yield (
            f"{count} with other texts under one id, the first {clip(first.id)} in {first.source} "
            f"and {second.source}: give different records different ids"
        )


def other_question(items: Iterable[LabelledItem], question: str) -> str | None:
    """The note that people were asked another question than this template; None if they were not,
    or if nothing says what they were asked."""
    questions = [(a.asked, item) for item in items for a in item.annotations]
    different = [
        (text, item) for text, item in questions if text and not _is(text, question, item.number)
    ]
    if not different:
        return None
    text, item = different[0]
    further = len({text for text, _ in different}) - 1
    words = clip(text) + (
        f" and {further} more question{'s' if further > 1 else ''}" if further else ""
    )
    count = f"{len(different)} of {len(questions)} answer{'s' if len(questions) > 1 else ''}"
    return f"people answered {words} ({count}), and {item.check} asks {clip(question)}"


def mixed_questions(questions: Iterable[tuple[int, Iterable[str | None]]]) -> str | None:
    """The note that annotators were asked different questions about one record or entry; None if
    they were not, or if nothing says what they were asked.

    Args:
        questions: the entry's number, and the words that each annotator was asked.
    """
    pairs = []
    for number, words in questions:
        first, *rest = dict.fromkeys(text for text in words if text) or [""]
        pairs += [
            (first, text)
            for text in rest
            if not (_is(text, first, number) or _is(first, text, number))
        ][:1]
    if not pairs:
        return None
    first, text = pairs[0]
    times = "1 time" if len(pairs) == 1 else f"{len(pairs)} times"
    return f"people were asked {clip(first)} and {clip(text)} about the same text ({times})"


def _is(text: str, question: str, number: int) -> bool:
    """Whether people were asked this question: its template, or what a row of a sheet shows, which
    may begin with the entry."""
    parts = [re.escape(_letters(part)) for part in _VARIABLE.split(question)]
    pattern = (".*" if number else "") + ".*".join(parts)
    return re.fullmatch(pattern, _letters(text)) is not None


def _other_text(row: Record, record: Record) -> str | None:
    """The first field whose texts differ, else None.

    Numbers and dates, which spreadsheets rewrite, are compared only in rows without words.
    """
    cells = {name: cell for name, cell in row.fields.items() if isinstance(cell, str)}
    cells = {name: cell for name, cell in cells.items() if cell.strip()}
    worded = {name: cell for name, cell in cells.items() if _worded(cell)}
    texts = record.of_kind(default=RECORD).texts
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
    """As `_letters`; a number in its shortest form."""
    text = _letters(text)
    return text if _worded(text) else spelling(text)


def _letters(text: str) -> str:
    """The text without blanks and the sheet's apostrophes, composed (NFC)."""
    return _APOSTROPHES.sub("", normalize("NFC", "".join(text.split())))


def _texts_in(content: Any) -> Iterator[str]:
    """The texts of a value and of all values in it."""
    yield shown(content).text
    content = chat_in(content) or content
    parts = content.values() if isinstance(content, dict) else content
    for part in parts if isinstance(content, dict | list) else ():
        yield from _texts_in(part)

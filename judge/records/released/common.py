"""What the readers of labelled sets share: answers, slices, names of records, refused lines."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.records.base import Item, Problem
from judge.records.ids import SeenIds
from judge.records.jsontext import kind_of
from judge.records.labelled import LabelledItem
from judge.records.lines import RAW_LIMIT
from judge.records.names import normalise
from judge.records.values import clip
from judge.records.write import dump

LONGEST_SLICE = 60
"""Texts of more characters than this are no slice: they tell records apart, not groups of them."""

LONGEST_LITERAL = 1_000_000
"""Texts of more characters than this are not read in Python's notation."""

ENTAILMENT = {
    "e": "entailment",
    "n": "neutral",
    "c": "contradiction",
    "entailment": "entailment",
    "neutral": "neutral",
    "contradiction": "contradiction",
}
"""How the answers of an entailment check are written in the released sets."""

Labelled = LabelledItem | Item
"""What a reader gives: a labelled item, or a line with its problem."""


class LabelError(ValueError):
    """A line that holds no label that can be read; `field` is the one at fault."""

    def __init__(self, message: str, field: str | None = None, type: str = "bad-input") -> None:
        super().__init__(message)
        self.problem = Problem(message, field, type)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the lines come from: the file (None for standard input), and the check asked for."""

    path: Path | None = None
    check: str | None = None

    def beside(self, pattern: str) -> list[Path]:
        """The files in the same folder whose names match, in the order of their names."""
        return sorted(self.path.parent.glob(pattern)) if self.path is not None else []


Converter = Callable[[Iterable[Item], Place], Iterator[Labelled]]
"""What a reader's function is: the file's items, and where they come from, to labelled items."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of labelled data.

    `known` says whether a line's fields are of this form, beyond doubt. `checks` are those that it
    has labels for, empty where only the lines tell. `files` are the patterns of its files where it
    is a folder of several, `merged` whether these are converted as one. `groups` is the pattern of
    the file beside it that gives the annotators' groups.
    """

    name: str
    convert: Converter
    known: Callable[[Mapping[str, Any]], bool]
    checks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    merged: bool = False
    groups: str | None = None


def refused(item: Item, problem: Problem) -> Item:
    """The line that `item` was read from, with what is wrong with it in place of its fields."""
    raw = item.raw
    if item.fields is not None:
        text = dump(item.fields).decode("utf-8").rstrip("\n")
        raw = text if len(text) <= RAW_LIMIT else f"{text[:RAW_LIMIT]}… [{len(text)} in all]"
    return Item(item.source, item.line, None, raw, problem)


def each_line(
    items: Iterable[Item], convert: Callable[[Item, dict[str, Any]], Iterable[LabelledItem]]
) -> Iterator[Labelled]:
    """The labelled items that `convert` makes of each line, or the line with its problem.

    `convert` is given the item and its fields, and raises LabelError for a line that it cannot
    take; nothing of such a line is given.
    """
    for item in items:
        if item.problem is not None or item.fields is None:
            yield item
            continue
        try:
            found = list(convert(item, item.fields))
        except LabelError as error:
            yield refused(item, error.problem)
        else:
            yield from found


class RecordNames:
    """Gives each line its record's name, and refuses one that was there before.

    A line without an id is `SOURCE#LINE`; where several records share a line, those after the
    first are `SOURCE#LINE.2` and on. For one file; use as a context manager.
    """

    def __init__(self) -> None:
        self._seen = SeenIds()
        self._last: tuple[str, int] | None = None
        self._repeats = 1

    def __enter__(self) -> RecordNames:
        return self

    def __exit__(self, *_: object) -> None:
        self._seen.close()

    def name(self, item: Item, id: object = None, field: str = "id", source: str = "") -> str:
        """The record's name: its id, else its place in `source` (the item's own, if left out).

        Raises LabelError for an id that is no text or number, and one that was seen before.
        """
        own = id_text(id, field)
        if own is None:
            return self._place(source or item.source, item.line)
        first = self._seen.already(own, item)
        if first is not None:
            message = f"id {clip(own)} was already on {first}"
            raise LabelError(message, field, "duplicate-id")
        return own

    def _place(self, source: str, line: int) -> str:
        place = (source, line)
        self._repeats = self._repeats + 1 if place == self._last else 1
        self._last = place
        return f"{source}#{line}" + (f".{self._repeats}" if self._repeats > 1 else "")


def id_text(id: object, field: str) -> str | None:
    """An id as text, None where it is empty. Raises LabelError for what is no text or number."""
    if id is None or (isinstance(id, str) and not id.strip()):
        return None
    if isinstance(id, bool) or not isinstance(id, str | int | float):
        raise LabelError(f"field {field!r} must be a text or a number, not {kind_of(id)}", field)
    return str(id)


def scalar_text(content: object) -> str | None:
    """A text, number or truth value as text (`yes` and `no` for the last); None for all else."""
    if isinstance(content, bool):
        return "yes" if content else "no"
    if isinstance(content, float):
        return str(int(content)) if content.is_integer() else repr(content)
    return str(content) if isinstance(content, str | int) else None


def answer_of(content: object, field: str) -> str | None:
    """An answer, folded to lower case; None where it is null: not labelled.

    Raises LabelError for an empty text, and for what is no text, number or truth value.
    """
    if content is None:
        return None
    text = scalar_text(content)
    if text is None:
        raise LabelError(f"field {field!r} must hold an answer, not {kind_of(content)}", field)
    folded = text.strip().casefold()
    if not folded:
        raise LabelError(f"field {field!r} holds an empty answer: write null for none", field)
    return folded


def one_of(content: object, answers: Mapping[str, str], field: str) -> str:
    """The answer that `content` stands for. Raises LabelError where `answers` does not know it."""
    answer = answer_of(content, field)
    if answer is None or answer not in answers:
        known = ", ".join(dict.fromkeys(answers.values()))
        raise LabelError(f"field {field!r} must be one of {known}, not {clip(content)}", field)
    return answers[answer]


def text_of(fields: Mapping[str, Any], *keys: str) -> str:
    """The text under the first of `keys` that is there.

    Raises LabelError where none is, or it is empty or no text.
    """
    key = next((key for key in keys if key in fields), None)
    if key is None:
        raise LabelError(f"field {keys[0]!r} is missing", keys[0])
    content = fields[key]
    if not isinstance(content, str):
        raise LabelError(f"field {key!r} must be a text, not {kind_of(content)}", key)
    if not content.strip():
        raise LabelError(f"field {key!r} is empty", key)
    return content


def listed(content: object, field: str) -> list[Any]:
    """A list, as such or written as text in JSON or as Python writes it.

    Raises LabelError for anything else.
    """
    found = content
    if isinstance(content, str):
        found = literal(content)
    if not isinstance(found, list):
        raise LabelError(f"field {field!r} must be a list, not {clip(content)}", field)
    return found


def literal(text: str) -> object:
    """What a cell's text says in JSON or in Python's notation; None where it is neither."""
    for parse in (json.loads, _python):
        try:
            found = parse(text.strip())
            # What has no text cannot be told of: 0xfff… with more digits than Python writes.
            repr(found)
            return found
        # Deep nesting ends in one of the last two, by version of Python.
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _python(text: str) -> object:
    if len(text) > LONGEST_LITERAL:
        raise ValueError("Python's parser takes a hundred times the memory of the text")
    return ast.literal_eval(text)


def slices_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """What results can be told apart by: every short scalar field as text, less the id."""
    found: dict[str, str] = {}
    for key, content in fields.items():
        text = scalar_text(content)
        if text is not None and text.strip() and len(text) <= LONGEST_SLICE:
            found[key] = text
    return {key: text for key, text in found.items() if normalise(key) != "id"}

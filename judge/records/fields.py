"""Single fields of a data set's lines: texts, ids, answers, lists."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from judge.records.base import Item, Problem
from judge.records.jsonfiles import kind_of
from judge.records.kinds import normalise
from judge.records.streams import RAW_LIMIT
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


class LabelError(ValueError):
    """A line without a usable label; `problem` says why and which field is at fault."""

    def __init__(self, message: str, field: str | None = None, type: str = "bad-input") -> None:
        super().__init__(message)
        self.problem = Problem(message, field, type)


def refused(item: Item, problem: Problem) -> Item:
    """`item` with the problem in place of its fields, and with the text that it was read from."""
    raw = item.raw
    if item.fields is not None:
        text = dump(item.fields).decode("utf-8").rstrip("\n")
        raw = text if len(text) <= RAW_LIMIT else f"{text[:RAW_LIMIT]}… [{len(text)} in all]"
    return Item(item.source, item.line, None, raw, problem)


def id_text(id: object, field: str) -> str | None:
    """An id as text, None where it is empty; LabelError where it is neither text nor number."""
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
    """An answer in lower case; None for null, which means that there is no label.

    Raises LabelError for an empty text, and for anything but a text, number or truth value.
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
    """The answer that `content` stands for in `answers`; LabelError for any other content."""
    answer = answer_of(content, field)
    if answer is None or answer not in answers:
        known = ", ".join(dict.fromkeys(answers.values()))
        raise LabelError(f"field {field!r} must be one of {known}, not {clip(content)}", field)
    return answers[answer]


def text_of(fields: Mapping[str, Any], *keys: str) -> str:
    """The text under the first of `keys` that is there; LabelError if missing, empty or no text."""
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
    """A list, given as such or as text in JSON or Python's notation; LabelError for all else."""
    found = literal(content) if isinstance(content, str) else content
    if not isinstance(found, list):
        raise LabelError(f"field {field!r} must be a list, not {clip(content)}", field)
    return found


def literal(text: str) -> object:
    """What a text holds in JSON or Python's notation; None where it is neither."""
    for parse in (json.loads, _python):
        try:
            found = parse(text.strip())
            # Python refuses to print integers of more than 4,300 digits (0xfff...).
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
    """The fields to group results by: every short scalar field as text, without the id."""
    texts = {key: scalar_text(content) for key, content in fields.items()}
    return {
        key: text
        for key, text in texts.items()
        if text is not None
        and text.strip()
        and len(text) <= LONGEST_SLICE
        and normalise(key) != "id"
    }

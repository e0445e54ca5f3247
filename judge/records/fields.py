"""Parsers for single fields of a data set's lines: texts, ids, answers, lists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.records.answers import scalar_text, spelling
from judge.records.base import LabelError as LabelError
from judge.records.base import Problem, clip, kind_of, spelt_id
from judge.records.jsonfiles import dump
from judge.records.kinds import normalise, text
from judge.records.lists import list_in
from judge.records.record import Record
from judge.records.streams import RAW_LIMIT

MAX_SLICE = 60
"""Characters of a slice's value at most; a longer text names a record, not a group."""

ENTAILMENT = {"e": "entailment", "n": "neutral", "c": "contradiction"}
ENTAILMENT |= {answer: answer for answer in ENTAILMENT.values()}
"""Spellings of an entailment check's answers in the released sets."""


def refused(item: Record, problem: Problem) -> Record:
    """`item` with the problem, and its fields as raw text."""
    raw = item.raw
    if raw is None:
        text = dump(item.fields).decode("utf-8").rstrip("\n")
        raw = text if len(text) <= RAW_LIMIT else f"{text[:RAW_LIMIT]}… [{len(text)} in all]"
    return Record.unreadable(item.source, item.line, problem, raw)


def id_text(id: object, field: str) -> str | None:
    """An id as text (`spelt_id`), None if it is empty; LabelError if it is neither a text nor a
    number."""
    if id is None or (isinstance(id, str) and not id.strip()):
        return None
    if isinstance(id, bool) or not isinstance(id, str | int | float):
        raise LabelError(f"field {field!r} must be a text or a number, not {kind_of(id)}", field)
    return spelt_id(id)


def record_name(item: Record) -> str:
    """The name of a line: its id, else FILE#LINE."""
    key = next((key for key in item.fields if normalise(key) == "id"), "id")
    place = f"{Path(item.source).name}#{item.line}"
    return id_text(item.fields.get(key), key) or place


def answer_of(content: object, field: str) -> str | None:
    """An answer, normalised (`spelling`); None if it is empty.

    A spelling of "no label" (`NULL`) is kept as an answer here: see `LabelledRecord.answered`.

    Raises:
        LabelError: the content is not a text, number or boolean.
    """
    if content is None:
        return None
    text = scalar_text(content)
    if text is None:
        raise LabelError(f"field {field!r} must hold an answer, not {kind_of(content)}", field)
    return spelling(text) or None


def one_of(content: object, answers: Mapping[str, str], field: str) -> str:
    """The value in `answers` for `content`; LabelError if there is none."""
    answer = answers.get(answer_of(content, field) or "")
    if answer is None:
        choices = ", ".join(dict.fromkeys(answers.values()))
        raise LabelError(f"field {field!r} must be one of {choices}, not {clip(content)}", field)
    return answer


def object_of(content: object, field: str) -> dict[str, Any]:
    """`content`, which must be an object; else LabelError."""
    if not isinstance(content, dict):
        raise LabelError(f"field {field!r} must be an object, not {kind_of(content)}", field)
    return content


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """The text under `key`; LabelError if it is missing, empty or not a text."""
    if key not in fields:
        raise LabelError(f"field {key!r} is missing", key)
    try:
        return text(fields[key], {})
    except ValueError as error:
        raise LabelError(f"field {key!r} {error}", key) from None


def listed(content: object, field: str) -> list[Any]:
    """A list, given as JSON or as a Python literal in a text; LabelError for anything else."""
    entries = list_in(content.strip(), exact=False) if isinstance(content, str) else content
    if not isinstance(entries, list):
        raise LabelError(f"field {field!r} must be a list, not {clip(content)}", field)
    return entries


def slices_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The fields to group results by: every short scalar field as text, except the id."""
    texts = {key: scalar_text(content) or "" for key, content in fields.items()}
    return {
        key: text
        for key, text in texts.items()
        if text.strip() and len(text) <= MAX_SLICE and normalise(key) != "id"
    }

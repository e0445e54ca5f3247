"""The kinds of records of the papers, found by entry points `judge.kinds`; loads no LangGraph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.records.answers import spelling
from judge.records.base import clip
from judge.records.kinds import RecordKind, identifier, names, text

from .values import Value, parse_values, value_texts

LABELS = ("yes", "no", "neutral")


def _label(content: object, typed: Mapping[str, Any]) -> str:
    word = spelling(str(content)) if isinstance(content, str | bool) else content
    if word not in LABELS:
        raise ValueError(f"must be yes, no or neutral, not {clip(content)}")
    return str(word)


def _values(content: object, typed: Mapping[str, Any]) -> tuple[Value, ...]:
    return tuple(parse_values(content, story=typed["story"], setting=typed.get("setting")))


def _plain_values(content: object, typed: Mapping[str, Any]) -> tuple[Value, ...]:
    return tuple(Value(value, value) for value in _folded(content))


def _predicted(content: object, typed: Mapping[str, Any]) -> tuple[str, ...]:
    nothing = content == [] or (isinstance(content, str) and not content.strip())
    return () if nothing else _folded(content)


def _folded(content: object) -> tuple[str, ...]:
    return tuple(" ".join(value.split()) for value in value_texts(content))


STORY = RecordKind(
    fields={
        "id": identifier,
        **dict.fromkeys(("story", "setting", "location"), text),
        "characters": names,
        "values": _values,
    },
    needed=("story", "values"),
    each="values",
    first=("story", "location"),
    other_names={"situation": "story"},
)
NORM = RecordKind(
    fields={
        "id": identifier,
        **dict.fromkeys(("country", "cluster", "axis", "subcategory"), text),
        **dict.fromkeys(("background", "value", "rule_of_thumb", "story"), text),
        "label": _label,
        "explanation": text,
    },
    needed=("story", "rule_of_thumb"),
    first=(
        *("country", "background", "value", "rule_of_thumb", "story", "explanation"),
        "subcategory",
    ),
    other_names={
        "situation": "story",
        "rot": "rule_of_thumb",
        "subaxis": "subcategory",
        "goldlabel": "label",
    },
)
EXTRACTION = RecordKind(
    fields={
        "id": identifier,
        "category": text,
        "values": _plain_values,
        "predicted": _predicted,
    },
    needed=("values", "predicted"),
    each="values",
    listed=("predicted",),
    first=("predicted",),
    other_names={"predictedvalues": "predicted"},
)
# Kinds of label sets, which have no workflow.
PAIR = RecordKind(first=("premise", "hypothesis"))
EXCHANGE = RecordKind(first=("post", "reply"))
COMPARISON = RecordKind(first=("instruction", "output_1", "output_2"))

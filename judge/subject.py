"""The record as rubrics see it, with its current text."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from judge.digest import digest

if TYPE_CHECKING:
    from judge.backends.base import Prompt
    from judge.records import Record, Value

Kind = Literal["story", "norm", "extraction", "record", "pair", "exchange", "comparison"]
"""What a record is; workflows take the first four, calibration the others too."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A record in the middle of its workflow.

    `texts` holds the fields that have a text, by typed name, and the record's further fields by
    their own names. `values` are numbered from 1 in the order of the record, through all edits.
    `mark` fences the text in prompts and outlives edits too, so that a prompt's prefix stays the
    same up to the first edited word. `predicted` values stand numbered from 1 among the texts.
    `prompts` and `screened` keep what was made of this text.
    """

    id: str
    kind: Kind
    texts: Mapping[str, str]
    mark: str
    values: tuple[Value, ...] = ()
    characters: tuple[str, ...] = ()
    label: str | None = None
    predicted: tuple[str, ...] = ()
    prompts: dict[object, Prompt] = field(default_factory=dict, compare=False, repr=False)
    screened: dict[str, tuple[tuple[tuple[str, str], ...], str]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @classmethod
    def of(cls, record: Record) -> Subject:
        typed = record.typed
        skipped = {"id", "label"}
        texts = {n: text for n, text in typed.items() if isinstance(text, str) and n not in skipped}
        values: tuple[Value, ...] = tuple(typed.get("values", ()))
        predicted: tuple[str, ...] = tuple(typed.get("predicted", ()))
        if predicted:
            texts["predicted"] = _numbered(predicted)
        texts = record.other_texts() | texts
        own = texts.get("label", "").strip().lower() if record.kind == "record" else ""
        return cls(
            id=record.id,
            kind=record.kind,
            texts=texts,
            mark=fence_mark(record.content_hash(), [*texts.values(), *(v.text for v in values)]),
            values=values,
            characters=tuple(typed.get("characters", ())),
            label=typed.get("label") or own or None,
            predicted=predicted,
        )

    @classmethod
    def of_texts(cls, id: str, kind: Kind, texts: Mapping[str, str], label: str | None) -> Subject:
        """A subject out of texts alone, such as a pair of sentences; blank ones are left out."""
        filled = {name: text for name, text in texts.items() if text.strip()}
        return cls(id, kind, filled, fence_mark(digest(filled), list(filled.values())), label=label)

    @property
    def story(self) -> str:
        return self.texts["story"]

    @property
    def multiple(self) -> bool:
        """Whether each value belongs to one character (CQ-Bench's multiple attitude setting)."""
        return any(value.character is not None for value in self.values)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.values) + 1))

    def value(self, number: int) -> str:
        """The full text of the value with this number (from 1)."""
        return self.values[number - 1].text

    def about(self, number: int) -> str | None:
        """What a number asks about: a value's text, or None for the record (0)."""
        return self.values[number - 1].text if number else None

    def numbered(self, values: Collection[str]) -> tuple[int, ...]:
        """The numbers of the values with these texts."""
        return tuple(n for n, one in enumerate(self.values, 1) if one.text in values)

    def with_text(self, field: str, text: str) -> Subject:
        return replace(self, texts={**self.texts, field: text}, prompts={})

    def with_first_predicted(self, count: int) -> Subject:
        """The same with the first `count` predicted values (at least one) alone."""
        if len(self.predicted) <= count:
            return self
        kept = self.predicted[:count]
        texts = {**self.texts, "predicted": _numbered(kept)}
        return replace(self, texts=texts, predicted=kept, prompts={})

    def lacks(self, fields: Sequence[str]) -> tuple[str, ...]:
        """Which of these fields the record does not have."""
        there = {*self.texts, "values" if self.values else "", "label" if self.label else ""}
        return tuple(name for name in fields if name not in there)

    def as_mapping(self) -> dict[str, Any]:
        """The record as plain data, for scripted judges."""
        return {
            **self.texts,
            "values": [value.text for value in self.values],
            "characters": list(self.characters),
            "label": self.label,
            "predicted": list(self.predicted),
        }


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def fence_mark(seed: str, texts: Sequence[str]) -> str:
    """8 hex digits that none of the texts holds; `seed` is a hash of them, in hex digits."""
    mark = seed[:8]
    while any(mark in text for text in texts):
        mark = hashlib.blake2b(mark.encode() + seed.encode(), digest_size=4).hexdigest()
    return mark

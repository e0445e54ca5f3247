"""The values that a story must carry: parsing them, and writing them back in their own form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from judge.records.base import clip

_NAME_WORDS = 3


class BadValueError(ValueError):
    """A value, or a list of values, that cannot be read; the message names it."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value, `statement--attitude`, in the multiple setting with the character who holds it.

    `text` is the value as the record gives it; `attitude` is None where that is not parsed.
    """

    statement: str
    attitude: str | None
    text: str
    character: str | None = None

    @classmethod
    def parse(cls, text: str, *, named: bool = False) -> Value:
        """Read `statement--attitude`, or `Name:statement--attitude` where `named`.

        The attitude is what follows the last `--`, the name ends at the first colon. Raises
        BadValueError when a part is missing.
        """
        character, rest = None, text
        if named:
            character, colon, rest = (part.strip() for part in text.partition(":"))
            if not colon or not character:
                raise BadValueError(
                    f"has a value without a character: {clip(text)} is not "
                    "Name:statement--attitude, and the setting is multiple"
                )
        before, mark, after = rest.rpartition("--")
        if not mark:
            raise BadValueError(
                f"has a value without an attitude: {clip(text)} is not statement--attitude"
            )
        statement, attitude = before.strip().rstrip("-").strip(), after.strip()
        for name, part in (("statement", statement), ("attitude", attitude)):
            if not part:
                raise BadValueError(f"has a value with an empty {name}: {clip(text)}")
        return cls(statement, attitude, text, character)

    @property
    def display(self) -> str:
        """The value in one spelling, whatever form the record gives it in."""
        name = f"{self.character}: " if self.character else ""
        return f"{name}{self.statement}" + (f"--{self.attitude}" if self.attitude else "")


def parse_values(raw: object, *, story: str, setting: str | None) -> list[Value]:
    """Read a record's values: a list of texts, or one text with a value on each line.

    They are taken as `Name:statement--attitude` when the setting says "multiple", or, when it says
    nothing about it, when every value begins with a name that stands in the story.
    """
    texts = _texts(raw)
    word = (setting or "").strip().casefold()
    named = word == "multiple" or (
        word != "single" and all(_begins_with_name(text, story) for text in texts)
    )
    return [Value.parse(text, named=named) for text in texts]


def parse_plain(raw: object) -> list[Value]:
    """Values that may be any text, with or without an attitude, each folded to one line."""
    folded = [" ".join(text.split()) for text in _texts(raw)]
    return [Value(text, None, text) for text in folded]


def parse_predicted(raw: object) -> list[str]:
    """Predicted values, each folded to one line; there may be none."""
    if raw == [] or (isinstance(raw, str) and not raw.strip()):
        return []
    return [" ".join(text.split()) for text in _texts(raw)]


def in_form_of(raw: object, new: Sequence[Value | str]) -> list[str] | str:
    """`new` values in the form of the record's own ones: a list, or one text of lines."""
    texts = [value if isinstance(value, str) else value.text for value in new]
    return texts if isinstance(raw, list) else "\n".join(texts)


def _texts(raw: object) -> list[str]:
    """A list of texts, or a text with one on each line."""
    if isinstance(raw, str):
        text = raw.strip()
        if text.startswith("[") and text.endswith("]"):
            # Split at its last "--" it would pass for one value, silently.
            raise BadValueError("is a list written as text: give a list, or one value on each line")
        raw = [line.rstrip("\r") for line in raw.split("\n") if line.strip()]
    if not isinstance(raw, list):
        raise BadValueError("must be a list of values, or a text with one value on each line")
    for number, entry in enumerate(raw, 1):
        if not isinstance(entry, str):
            raise BadValueError(f"must hold texts, not {clip(entry)} (value {number})")
        if not entry.strip():
            raise BadValueError(f"has an empty value (value {number})")
    if not raw:
        raise BadValueError("is empty: a story needs at least one value")
    return raw


def _begins_with_name(text: str, story: str) -> bool:
    name, colon, _ = text.partition(":")
    name = name.strip()
    if not colon or not name or name[0].islower() or len(name.split()) > _NAME_WORDS:
        return False
    return re.search(rf"(?<![a-zA-Z]){re.escape(name)}(?![a-zA-Z])", story) is not None

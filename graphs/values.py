"""The values that a story must carry: reads lists of values, and looks up a record's values."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from unicodedata import normalize

from judge.records import Record
from judge.records.base import clip
from judge.records.kinds import ListEntry

_NAME_WORDS = 3
_COLON = re.compile("[:\uff1a]")


@dataclass(frozen=True)
class Value(ListEntry):
    """One value, `statement--attitude`; in the multiple setting, with the character who holds it.

    `text` is the value as the record gives it, on one line; `attitude` is None if it is not parsed.
    """

    statement: str
    attitude: str | None = None
    character: str | None = None

    @classmethod
    def parse(cls, text: str, *, named: bool = False) -> Value:
        """Read `statement--attitude`, or `Name:statement--attitude` if `named`.

        The attitude is what follows the last `--`; the name ends at the first colon. Raises
        ValueError if a part is missing.
        """
        character, tail = None, text
        if named:
            character, tail = _named(text)
            if not character:
                raise ValueError(
                    f"has a value without a character: {clip(text)} is not "
                    "Name:statement--attitude, and the setting is multiple"
                )
        before, mark, after = tail.rpartition("--")
        if not mark:
            raise ValueError(
                f"has a value without an attitude: {clip(text)} is not statement--attitude"
            )
        statement, attitude = before.strip().rstrip("-").strip(), after.strip()
        for name, part in (("statement", statement), ("attitude", attitude)):
            if not part:
                raise ValueError(f"has a value with an empty {name}: {clip(text)}")
        return cls(text, statement, attitude, character)

    @property
    def subject(self) -> str:
        return self.statement

    @property
    def claim(self) -> str:
        return self.statement + (f"--{self.attitude}" if self.attitude else "")

    def claiming(self, claim: str) -> str:
        if self.attitude and "--" not in claim:
            claim = f"{claim}--{claim}"
        return f"{self.character}:{claim}" if self.character else claim

    @property
    def display(self) -> str:
        """The value in a uniform spelling, whatever form the record gives it in."""
        return f"{self.character}: {self.claim}" if self.character else self.claim


def values_of(record: Record) -> tuple[Value, ...]:
    """The record's values. Their order, and so their numbers (from 1), survive all edits."""
    values: tuple[Value, ...] = record.typed.get("values", ())
    return values


def is_multiple(record: Record) -> bool:
    """Whether each value belongs to one character (CQ-Bench's multiple attitude setting)."""
    return any(value.character is not None for value in values_of(record))


def numbers_of(record: Record, texts: Collection[str | None]) -> tuple[int, ...]:
    """The numbers of the values with these texts."""
    return tuple(n for n, value in enumerate(values_of(record), 1) if value.text in texts)


def parse_values(raw: object, *, story: str, setting: str | None) -> list[Value]:
    """Read a story's values: a list of texts, or one text with a value on each line.

    They are read as `Name:statement--attitude` if the setting is "multiple", or, if it is neither
    "multiple" nor "single", if every value begins with a name from the story. Raises ValueError,
    which names the value.
    """
    # Each on one line: a line break would begin another numbered line in a prompt.
    texts = [" ".join(text.split()) for text in value_texts(raw)]
    word = (setting or "").strip().casefold()
    named = word == "multiple" or (
        word != "single" and all(_begins_with_name(text, story) for text in texts)
    )
    return [Value.parse(text, named=named) for text in texts]


def value_texts(raw: object) -> list[str]:
    """The texts of a list, or of a text with one on each line; raises ValueError for others."""
    if isinstance(raw, str):
        text = raw.strip()
        if text.startswith("[") and text.endswith("]"):
            # Split at its last "--", it would silently be read as one value.
            raise ValueError("is a list written as text: give a list, or one value on each line")
        raw = [line.rstrip("\r") for line in raw.split("\n") if line.strip()]
    if not isinstance(raw, list):
        raise ValueError("must be a list of values, or a text with one value on each line")
    for number, entry in enumerate(raw, 1):
        if not isinstance(entry, str):
            raise ValueError(f"must hold texts, not {clip(entry)} (value {number})")
        if not entry.strip():
            raise ValueError(f"has an empty value (value {number})")
    if not raw:
        raise ValueError("is empty: a story needs at least one value")
    return raw


def _named(text: str) -> tuple[str, str]:
    """The text before and after the first colon, also a full-width one; ("", text) if there is
    none."""
    name, *tail = _COLON.split(text, maxsplit=1)
    return (name.strip(), tail[0].strip()) if tail else ("", text)


def _begins_with_name(text: str, story: str) -> bool:
    name, _ = _named(text)
    if not name or name[0].islower() or len(name.split()) > _NAME_WORDS:
        return False
    name, story = normalize("NFC", name), normalize("NFC", story)
    return re.search(rf"(?<![a-zA-Z]){re.escape(name)}(?![a-zA-Z])", story) is not None

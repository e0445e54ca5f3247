"""The values that a story must carry: parsing them, and writing them back in their own form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

_HYPHENS = re.compile(r"-{2,}")
_DASHES = re.compile(r"[–—]+")
_NAME_WORDS = 3


class BadValueError(ValueError):
    """A value, or a list of values, that cannot be read; the message names it."""


class Value(BaseModel):
    """One value, `statement--attitude`, in the multiple setting with the character who holds it.

    `text` is the value as the record gives it; made from the parts where it is left out. `attitude`
    is None for a value that is taken as it stands, not parsed (`parse_plain`).
    """

    model_config = ConfigDict(frozen=True)

    statement: str
    attitude: str | None
    character: str | None = None
    text: str = ""

    @model_validator(mode="before")
    @classmethod
    def _text_from_parts(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("text"):
            name = f"{data['character']}:" if data.get("character") else ""
            held = "" if data.get("attitude") is None else f"--{data['attitude']}"
            return {**data, "text": f"{name}{data.get('statement')}{held}"}
        return data

    @classmethod
    def parse(cls, text: str, *, named: bool = False) -> Value:
        """Read `statement--attitude`, or `Name:statement--attitude` where `named`.

        The attitude is what follows the last `--`; a text without one is split at its last en or
        em dash. The name ends at the first colon. Raises BadValueError when a part is missing.
        """
        character, rest = None, text
        if named:
            character, colon, rest = (part.strip() for part in text.partition(":"))
            if not colon or not character:
                raise BadValueError(
                    f"has a value without a character: {clip(text)} is not "
                    "Name:statement--attitude, and the setting is multiple"
                )
        marks = list(_HYPHENS.finditer(rest)) or list(_DASHES.finditer(rest))
        if not marks:
            raise BadValueError(
                f"has a value without an attitude: {clip(text)} is not statement--attitude"
            )
        statement, attitude = rest[: marks[-1].start()].strip(), rest[marks[-1].end() :].strip()
        for name, part in (("statement", statement), ("attitude", attitude)):
            if not part:
                raise BadValueError(f"has a value with an empty {name}: {clip(text)}")
        return cls(statement=statement, attitude=attitude, character=character, text=text)

    @property
    def display(self) -> str:
        """The value in one spelling, whatever form the record gives it in."""
        name = f"{self.character}: " if self.character else ""
        return f"{name}{self.statement}" + (f"--{self.attitude}" if self.attitude else "")


def clip(text: object, limit: int = 80) -> str:
    """`text` quoted for a message, cut where it is long."""
    shown = repr(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def parse_values(raw: object, *, story: str, setting: str | None) -> list[Value]:
    """Read a record's values: a list of texts or objects, or one text with a value on each line.

    The values are taken as `Name:statement--attitude` when the setting says "multiple", or, when
    it says nothing about it, when every value begins with a name that stands in the story.
    Raises BadValueError, whose message names the value.
    """
    entries = _entries(raw)
    texts = [entry for entry in entries if isinstance(entry, str)]
    word = (setting or "").strip().casefold()
    named = word == "multiple" or (
        word != "single" and bool(texts) and all(_begins_with_name(text, story) for text in texts)
    )
    return [
        Value.parse(entry, named=named) if isinstance(entry, str) else _from_object(entry)
        for entry in entries
    ]


def parse_plain(raw: object) -> list[Value]:
    """Read values that may be any text, in the forms of `parse_values`.

    A text is folded to one line and taken as it stands, with or without an attitude. Raises
    BadValueError, whose message names the value.
    """
    found = []
    for entry in _entries(raw):
        if isinstance(entry, str):
            text = " ".join(entry.split())
            found.append(Value(statement=text, attitude=None, text=text))
        else:
            found.append(_from_object(entry))
    return found


def parse_predicted(raw: object) -> list[str]:
    """Read predicted values: a list of texts, or one text with a value on each line; none is fine.

    Each is folded to one line. Raises BadValueError, whose message names the value.
    """
    if raw == [] or (isinstance(raw, str) and not raw.strip()):
        return []
    entries = _entries(raw)
    texts = [" ".join(entry.split()) for entry in entries if isinstance(entry, str)]
    if len(texts) < len(entries):
        raise BadValueError("must hold texts, not objects")
    return texts


def in_form_of(raw: object, old: Sequence[Value], new: Sequence[Value | str]) -> Any:
    """`new` values in the form in which the record holds its `old` ones.

    One text stays one text, a list stays a list, and an element that is kept stays as it is.
    """
    texts = [value if isinstance(value, str) else value.text for value in new]
    if not isinstance(raw, list):
        return "\n".join(texts)
    own = {value.text: element for value, element in zip(old, raw, strict=True)}
    as_objects = bool(raw) and all(isinstance(element, dict) for element in raw)
    return [
        own[text]
        if text in own
        else _to_object(value)
        if as_objects and isinstance(value, Value)
        else text
        for text, value in zip(texts, new, strict=True)
    ]


def _entries(raw: object) -> list[str | dict[str, Any]]:
    if isinstance(raw, str):
        text = raw.strip()
        if text.startswith("[") and text.endswith("]"):
            # Split at its last "--" it would pass for one value, silently.
            raise BadValueError("is a list written as text: give a list, or one value on each line")
        return _checked([line.rstrip("\r") for line in raw.split("\n") if line.strip()])
    if not isinstance(raw, list):
        raise BadValueError("must be a list of values, or a text with one value on each line")
    for number, entry in enumerate(raw, 1):
        if not isinstance(entry, str | dict):
            raise BadValueError(f"must hold texts or objects, not {clip(entry)} (value {number})")
        if isinstance(entry, str) and not entry.strip():
            raise BadValueError(f"has an empty value (value {number})")
    return _checked(list(raw))


def _checked(entries: list[str | dict[str, Any]]) -> list[str | dict[str, Any]]:
    if not entries:
        raise BadValueError("is empty: a story needs at least one value")
    return entries


def _begins_with_name(text: str, story: str) -> bool:
    name, colon, _ = text.partition(":")
    name = name.strip()
    if not colon or not name or len(name.split()) > _NAME_WORDS:
        return False
    first = name[0]
    if first.isupper():
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", story) is not None
    # Scripts without capitals mostly write without spaces too, so there are no words to match.
    return first.isalpha() and not first.islower() and name in story


def _from_object(entry: dict[str, Any]) -> Value:
    parts = {key.strip().casefold(): part for key, part in entry.items()}
    for key in ("statement", "attitude"):
        if not isinstance(parts.get(key), str) or not parts[key].strip():
            raise BadValueError(f"has a value without {key}: {clip(entry)}")
    character = parts.get("character")
    if character is not None and not isinstance(character, str):
        raise BadValueError(f"has a value whose character is no text: {clip(entry)}")
    return Value(
        statement=parts["statement"].strip(),
        attitude=parts["attitude"].strip(),
        character=(character or "").strip() or None,
    )


def _to_object(value: Value) -> dict[str, str]:
    parts = {"statement": value.statement}
    if value.attitude is not None:
        parts["attitude"] = value.attitude
    return {**parts, "character": value.character} if value.character else parts

"""Items, problems and typed records: what the readers give and every other room works on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from judge.records.names import Kind, typed_name
from judge.records.values import Value, clip, in_form_of

__all__ = [
    "RESERVED",
    "AnyRecord",
    "ExtractionRecord",
    "Item",
    "Kind",
    "NormRecord",
    "Problem",
    "Record",
    "StoryRecord",
    "Value",
    "content_hash",
]

RESERVED = "judge"
"""The key under which a verdict is written, and an earlier one is found."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an item cannot be judged: a message that names what and where, and the field at fault."""

    message: str
    field: str | None = None
    type: str = "bad-input"


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of input, readable or not.

    `source` is the file's name or `<stdin>`; `line` counts from 1 (for Parquet it is the row).
    Exactly one of `fields` (the record as it stands) and `problem` is there. `raw` is the source
    text: of a record in JSON the object, on one line; of an unreadable item the text that could
    not be read, bytes that are no UTF-8 written as `\\xNN`, of one over the size limit only the
    beginning, with its full size. `among` says that it is one of several sources'.
    """

    source: str
    line: int
    fields: dict[str, Any] | None
    raw: str | None = None
    problem: Problem | None = None
    among: bool = False

    @property
    def found_at(self) -> dict[str, Any]:
        """Where to look for it, as output lines say: the line, of several sources the file, too."""
        where: dict[str, Any] = {"line": self.line}
        return {"file": self.source, **where} if self.among else where


_NAME_BREAK = re.compile(r"[,;\n]")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _as_text(id: object) -> object:
    return str(id) if isinstance(id, int | float) and not isinstance(id, bool) else id


Id = Annotated[str | None, BeforeValidator(_as_text)]


class StoryRecord(BaseModel):
    """A story and the values that it must carry (CQ-Bench)."""

    model_config = ConfigDict(frozen=True)

    id: Id = None
    story: str
    values: list[Value] = Field(min_length=1)
    setting: str | None = None
    characters: list[str] = Field(default_factory=list)
    location: str | None = None

    check_story = field_validator("story")(_not_blank)

    @field_validator("characters", mode="before")
    @classmethod
    def _split_names(cls, names: object) -> object:
        if isinstance(names, str):
            return [part.strip() for part in _NAME_BREAK.split(names) if part.strip()]
        return names


class NormRecord(BaseModel):
    """A rule of thumb and a situation that follows it, breaks it, or has nothing to do with it."""

    model_config = ConfigDict(frozen=True)

    id: Id = None
    country: str | None = None
    cluster: str | None = None
    axis: str | None = None
    subcategory: str | None = None
    background: str | None = None
    value: str | None = None
    rule_of_thumb: str
    story: str
    label: Literal["yes", "no", "neutral"] | None = None
    explanation: str | None = None

    check_text = field_validator("story", "rule_of_thumb")(_not_blank)

    @field_validator("label", mode="before")
    @classmethod
    def _fold_label(cls, label: object) -> object:
        if label is None:
            return None
        word = label.strip().casefold() if isinstance(label, str) else label
        if word not in ("yes", "no", "neutral"):
            raise ValueError(f"must be yes, no or neutral, not {clip(label)}")
        return word


class ExtractionRecord(BaseModel):
    """The values that a story was made to carry, and those that somebody read out of it.

    The task is CQ-Bench's value extraction; `category` is whatever the means are taken by.
    """

    model_config = ConfigDict(frozen=True)

    id: Id = None
    values: list[Value] = Field(min_length=1)
    predicted: list[str]
    category: str | None = None


class AnyRecord(BaseModel):
    """A record of no known kind: any fields, of which only the id has a meaning here."""

    model_config = ConfigDict(frozen=True)

    id: Id = None


@dataclass(slots=True)
class Record:
    """A typed record beside the item it was read from.

    `names` maps a typed field's name to the record's own key, for the fields that it has.
    """

    item: Item
    kind: Kind
    data: StoryRecord | NormRecord | ExtractionRecord | AnyRecord
    names: dict[str, str]

    @property
    def id(self) -> str:
        """The record's own id, or its position: `#17` for line 17."""
        return self.data.id if self.data.id is not None else f"#{self.item.line}"

    @property
    def fields(self) -> dict[str, Any]:
        """The record's own fields, as they were read."""
        return self.item.fields or {}

    def text(self, field: str) -> str:
        """A field's text: a typed field under its typed name, or any text field under its own.

        `a.b` names the field b of the object a. Values, predicted ones too, come one a line,
        characters with commas between. Raises KeyError for a field that the record lacks or leaves
        empty.
        """
        found: object = self.fields.get(field)
        if field in type(self.data).model_fields:
            found = getattr(self.data, field)
        elif field not in self.fields and "." in field:
            found = _inside(self.fields, field)
        if field == "values" and isinstance(self.data, StoryRecord | ExtractionRecord):
            found = "\n".join(value.text for value in self.data.values)
        elif field == "predicted" and isinstance(self.data, ExtractionRecord):
            found = "\n".join(self.data.predicted)
        elif field == "characters" and isinstance(self.data, StoryRecord):
            found = ", ".join(self.data.characters)
        if not isinstance(found, str) or not found.strip():
            raise KeyError(field)
        return found

    def content_hash(self) -> str:
        """The hash of the record's own fields, the same in whatever order they stand."""
        return content_hash(self.fields)

    def with_changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The record's own fields, in their order and form, with `changes` in their place.

        `changes` maps typed names to new contents (values: a sequence of Value or text). A field
        that the record lacks comes last, under its typed name. An earlier verdict is left out.
        """
        out: dict[str, Any] = {}
        placed: set[str] = set()
        for key, content in self.fields.items():
            name = typed_name(self.kind, key)
            if name is not None and name in changes:
                out[key] = self._in_own_form(name, content, changes[name])
                placed.add(name)
            elif key != RESERVED:
                out[key] = content
        for name, content in changes.items():
            if name not in placed:
                out[name] = content
        return out

    def _in_own_form(self, name: str, old: object, new: Any) -> Any:
        if name == "values" and isinstance(self.data, StoryRecord):
            return in_form_of(old, new)
        return new


def _inside(content: object, path: str) -> object:
    """What stands under a dotted path; None where nothing does."""
    for key in path.split("."):
        content = content.get(key) if isinstance(content, dict) else None
    return content


def content_hash(fields: Mapping[str, Any]) -> str:
    """32 hex digits over a record's fields, the same in whatever order they stand.

    An earlier verdict (key `judge`) is no part of it.
    """
    own = {key: content for key, content in fields.items() if key != RESERVED}
    # Escaped to ASCII, because a lone surrogate has no UTF-8 form.
    text = json.dumps(own, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()

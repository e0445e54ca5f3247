"""Typed records: their kinds, which kind an item is, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from judge.records.base import RESERVED, Item, Problem, content_hash
from judge.records.ids import SeenIds
from judge.records.jsonfiles import kind_of
from judge.records.values import (
    Value,
    clip,
    in_form_of,
    parse_plain,
    parse_predicted,
    parse_values,
)

LONGEST_TEXT = 4_000_000
"""Characters of a typed field: about a million tokens, more than a model can be shown."""

Kind = Literal["story", "norm", "extraction", "record"]
"""The known kinds of records; `record` is any other one, whose fields have their own names only."""

_NAME_BREAK = re.compile(r"[,;\n]")
_IGNORED = str.maketrans("", "", " \t\n\r-_")
_SHOWN_KEYS = 12


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _as_text(id: object) -> object:
    return str(id) if isinstance(id, int | float) and not isinstance(id, bool) else id


class AnyRecord(BaseModel):
    """A record of no known kind: any fields, of which only the id has a meaning here."""

    model_config = ConfigDict(frozen=True)

    id: Annotated[str | None, BeforeValidator(_as_text)] = None


class StoryRecord(AnyRecord):
    """A story and the values that it must carry (CQ-Bench)."""

    story: str
    setting: str | None = None
    values: list[Value] = Field(min_length=1)
    characters: list[str] = Field(default_factory=list)
    location: str | None = None

    check_story = field_validator("story")(_not_blank)

    @field_validator("values", mode="before")
    @classmethod
    def _parse_values(cls, raw: object, info: ValidationInfo) -> object:
        return parse_values(raw, story=info.data.get("story"), setting=info.data.get("setting"))

    @field_validator("characters", mode="before")
    @classmethod
    def _split_names(cls, names: object) -> object:
        if isinstance(names, str):
            return [part.strip() for part in _NAME_BREAK.split(names) if part.strip()]
        return names


class NormRecord(AnyRecord):
    """A rule of thumb and a situation that follows it, breaks it, or has nothing to do with it."""

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
        word = label.strip().casefold() if isinstance(label, str) else label
        if word not in ("yes", "no", "neutral", None):
            raise ValueError(f"must be yes, no or neutral, not {clip(label)}")
        return word


class ExtractionRecord(AnyRecord):
    """The values that a story was made to carry, and those that somebody read out of it.

    The task is CQ-Bench's value extraction; `category` is whatever the means are taken by.
    """

    values: Annotated[list[Value], BeforeValidator(parse_plain)]
    predicted: Annotated[list[str], BeforeValidator(parse_predicted)]
    category: str | None = None


_MODELS: dict[Kind, type[AnyRecord]] = {
    "story": StoryRecord,
    "norm": NormRecord,
    "extraction": ExtractionRecord,
    "record": AnyRecord,
}
_NEEDED: dict[Kind, tuple[str, ...]] = {
    "story": ("story", "values"),
    "norm": ("story", "rule_of_thumb"),
    "extraction": ("values", "predicted"),
}
_OTHER_NAMES = {
    "situation": "story",
    "rot": "rule_of_thumb",
    "subaxis": "subcategory",
    "goldlabel": "label",
    "predictedvalues": "predicted",
}


@lru_cache(maxsize=1024)
def normalise(key: str) -> str:
    """`key` without case, spaces, hyphens and underscores."""
    return key.translate(_IGNORED).casefold()


def normalised(keys: Iterable[str]) -> set[str]:
    """All `keys`, normalised."""
    return {normalise(key) for key in keys}


@lru_cache(maxsize=4096)
def typed_name(kind: Kind, key: str) -> str | None:
    """The typed field that `key` stands for in a record of `kind`, or None."""
    word = normalise(key)
    word = normalise(_OTHER_NAMES.get(word, word))
    return next((name for name in _MODELS[kind].model_fields if normalise(name) == word), None)


class ClashError(ValueError):
    """Two keys of one record stand for the same typed field and do not agree; `key` is one."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


def find_names(kind: Kind, fields: Mapping[str, Any]) -> dict[str, str]:
    """Typed field name to the record's own key, for those it has.

    Raises ClashError where two keys stand for one field and hold different things.
    """
    names: dict[str, str] = {}
    for key, content in fields.items():
        if (name := typed_name(kind, key)) is None:
            continue
        other = names.setdefault(name, key)
        if other != key and fields[other] != content:
            raise ClashError(f"fields {other!r} and {key!r} both stand for {name} and differ", key)
    return names


@dataclass(slots=True)
class Record:
    """A typed record beside the item it was read from.

    `names` maps a typed field's name to the record's own key, for the fields that it has.
    """

    item: Item
    kind: Kind
    data: AnyRecord
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
            found = self.fields
            for key in field.split("."):
                found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, list) and field in type(self.data).model_fields:
            texts = [one.text if isinstance(one, Value) else one for one in found]
            found = (", " if field == "characters" else "\n").join(texts)
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
        left = dict(changes)
        for key, content in self.fields.items():
            name = typed_name(self.kind, key)
            if name is not None and name in changes:
                left.pop(name, None)
                as_values = name == "values" and self.kind == "story"
                out[key] = in_form_of(content, changes[name]) if as_values else changes[name]
            elif key != RESERVED:
                out[key] = content
        return {**out, **left}


def recognise(fields: Mapping[str, Any]) -> Kind | None:
    """The kind of record that these fields make.

    A `story` has values, a `norm` a rule of thumb, an `extraction` values and predicted ones. Where
    there are several of these, the one that is filled decides. None where that does not settle it,
    and for records of no kind.
    """
    candidates = _candidates(fields)
    if len(candidates) > 1:
        candidates = [kind for kind in candidates if _filled(kind, fields)]
    return candidates[0] if len(candidates) == 1 else None


def build(
    item: Item,
    kind: Kind | None = None,
    ids: SeenIds | None = None,
    *,
    otherwise: Kind | None = None,
) -> Record | Problem:
    """The typed record that an item holds, or the problem that keeps it from being one.

    `kind` None recognises it by its fields; `otherwise` is the kind (say `record`, any fields) that
    it is built as where these tell none. With `ids`, an id that was seen before is a problem of
    type `duplicate-id`; the ids of records with another problem are not remembered.
    """
    if item.problem is not None or item.fields is None:
        return item.problem or Problem("there is no record")
    fields = item.fields
    earlier = fields.get(RESERVED)
    if RESERVED in fields and not (isinstance(earlier, dict) and "verdict" in earlier):
        message = f"field {RESERVED!r} is reserved for the verdict: rename it"
        return Problem(message, RESERVED)
    kind = kind or recognise(fields) or otherwise
    if kind is None:
        return Problem(_why_unrecognised(fields))
    try:
        names = find_names(kind, fields)
    except ClashError as error:
        return Problem(str(error), error.key)
    data = _typed(kind, fields, names)
    if isinstance(data, Problem):
        return data
    if ids is not None and data.id is not None:
        first = ids.already(data.id, item)
        if first is not None:
            message = f"id {clip(data.id)} was already on {first}"
            return Problem(message, names["id"], "duplicate-id")
    return Record(item, kind, data, names)


def _candidates(fields: Mapping[str, Any]) -> list[Kind]:
    return [
        kind
        for kind, needed in _NEEDED.items()
        if {typed_name(kind, key) for key in fields}.issuperset(needed)
    ]


def _filled(kind: Kind, fields: Mapping[str, Any]) -> bool:
    # What stands first is needed by another kind, too, so that it says nothing about the kind.
    mark = _NEEDED[kind][1]
    found = [fields[key] for key in fields if typed_name(kind, key) == mark]
    # To have predicted nothing is an answer, too.
    return any(not _blank(one) or (kind == "extraction" and one == []) for one in found)


def _blank(content: object) -> bool:
    return content is None or content == [] or (isinstance(content, str) and not content.strip())


def _why_unrecognised(fields: Mapping[str, Any]) -> str:
    candidates = _candidates(fields)
    if candidates:
        return f"may be of kind {', '.join(candidates)}: say which it is, or leave one's fields out"
    shown = ", ".join(clip(key, 40) for key in list(fields)[:_SHOWN_KEYS]) or "none"
    more = ", …" if len(fields) > _SHOWN_KEYS else ""
    return (
        "neither a story record (story, values) nor a norm record (story, rule of thumb) nor an "
        f"extraction record (values, predicted): its fields are {shown}{more}"
    )


def _typed(kind: Kind, fields: Mapping[str, Any], names: Mapping[str, str]) -> AnyRecord | Problem:
    needed = _NEEDED.get(kind, ())
    for name in needed:
        if name not in names:
            return Problem(f"field {name!r} is missing", name)
    given = {}
    for name, key in names.items():
        content = fields[key]
        if isinstance(content, str) and len(content) > LONGEST_TEXT:
            message = f"has {len(content)} characters, the limit is {LONGEST_TEXT}"
            return Problem(f"field {key!r} {message}", key)
        if name in needed or not _blank(content):
            given[name] = content
    try:
        return _MODELS[kind].model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    key = names.get(name, name)
    if first["type"] == "value_error":
        return Problem(f"field {key!r} {first['ctx']['error']}", key)
    wanted = {"string_type": "a text", "list_type": "a list of texts"}.get(first["type"])
    if wanted is None:
        return Problem(f"field {key!r}: {first['msg']}", key)
    where = f" at position {first['loc'][1]}" if len(first["loc"]) > 1 else ""
    return Problem(f"field {key!r} must be {wanted}, not {kind_of(first['input'])}{where}", key)

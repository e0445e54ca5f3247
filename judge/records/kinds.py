"""Records: the known kinds, each a declaration of its fields, and any other record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from judge.answers import spelling
from judge.records.base import (
    RESERVED,
    Item,
    LabelError,
    Problem,
    SeenIds,
    clip,
    content_hash,
    keys_of,
    kind_of,
    own_fields,
)
from judge.records.base import normalise as normalise
from judge.records.values import Value, parse_values, value_texts

LONGEST_TEXT = 4_000_000
"""Characters of a typed field: about a million tokens, more than a model can be shown."""

Kind = Literal["story", "norm", "extraction", "record"]
"""The known kinds of records; `record` is any other one."""

_NAME_BREAK = re.compile(r"[,;\n]")

Parser = Callable[[Any, Mapping[str, Any]], Any]
"""From a field's content, and the typed fields before it, to what is kept, or to a ValueError."""


def _text(content: object, typed: Mapping[str, Any]) -> str:
    if not isinstance(content, str):
        raise ValueError(f"must be a text, not {kind_of(content)}")
    if not content.strip():
        raise ValueError("is empty")
    return content


def _id(content: object, typed: Mapping[str, Any]) -> str:
    number = isinstance(content, int | float) and not isinstance(content, bool)
    return str(content) if number else _text(content, typed)


def _label(content: object, typed: Mapping[str, Any]) -> str:
    word = spelling(str(content)) if isinstance(content, str | bool) else content
    if word not in ("yes", "no", "neutral"):
        raise ValueError(f"must be yes, no or neutral, not {clip(content)}")
    return str(word)


def _names(content: object, typed: Mapping[str, Any]) -> list[str]:
    if isinstance(content, str):
        return [part.strip() for part in _NAME_BREAK.split(content) if part.strip()]
    if not isinstance(content, list):
        raise ValueError(f"must be a list of texts, not {kind_of(content)}")
    for name in content:
        if not isinstance(name, str):
            raise ValueError(f"must be a list of texts, and holds {kind_of(name)}")
    return content


def _values(content: object, typed: Mapping[str, Any]) -> list[Value]:
    return parse_values(content, story=typed["story"], setting=typed.get("setting"))


def _folded(content: object) -> list[str]:
    return [" ".join(text.split()) for text in value_texts(content)]


def _predicted(content: object, typed: Mapping[str, Any]) -> list[str]:
    nothing = content is not None and _blank(content)
    return [] if nothing else _folded(content)


def _blank(content: object) -> bool:
    return content is None or content == [] or (isinstance(content, str) and not content.strip())


_FIELDS: Mapping[Kind, Mapping[str, Parser]] = {
    "story": {
        "id": _id,
        **dict.fromkeys(("story", "setting", "location"), _text),
        "characters": _names,
        "values": _values,
    },
    "norm": {
        "id": _id,
        **dict.fromkeys(("country", "cluster", "axis", "subcategory"), _text),
        **dict.fromkeys(("background", "value", "rule_of_thumb", "story"), _text),
        "label": _label,
        "explanation": _text,
    },
    "extraction": {
        "id": _id,
        "category": _text,
        "values": lambda content, typed: [Value(one, None, one) for one in _folded(content)],
        "predicted": _predicted,
    },
    "record": {"id": _id},
}
_TEXTS: Mapping[Kind, frozenset[str]] = {
    kind: frozenset(name for name, parse in fields.items() if parse is _text or name == "predicted")
    for kind, fields in _FIELDS.items()
}
"""The fields of a kind that a judge reads as they stand."""
_LABELS = re.compile(
    r"(gold|human|true|final|majority|crowd|expert)?labels?\d*|gold|winner(model[ab]|tie)?|"
    r"(annotat(or|ion)|rater)s?[a-e]?\d*(labels?)?|(better|safer)responseid|g[12]winner"
)
"""Normalised names of fields that hold people's answers."""
_NEEDED: Mapping[Kind, tuple[str, ...]] = {
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


def normalised(keys: Iterable[str]) -> set[str]:
    """All `keys`, normalised."""
    return {normalise(key) for key in keys}


_NAMES: Mapping[Kind, Mapping[str, str]] = {
    kind: {normalise(name): name for name in fields}
    | {other: name for other, name in _OTHER_NAMES.items() if name in fields}
    for kind, fields in _FIELDS.items()
}


def find_names(kind: Kind, fields: Mapping[str, Any]) -> dict[str, str]:
    """Typed field name to the record's own key; LabelError as `keys_of`."""
    return keys_of(_NAMES[kind], fields)


@dataclass(slots=True)
class Record:
    """A record of a kind beside the item it was read from.

    `typed` holds the fields that its kind knows and that it fills: texts, `values` a list of Value,
    `characters` and `predicted` lists of texts. `names` maps typed names to the keys that the
    fields have for judges (`item.shown`).
    """

    item: Item
    kind: Kind
    typed: dict[str, Any]
    names: dict[str, str]

    @property
    def id(self) -> str:
        """The record's own id, or its position: `#17` for line 17."""
        return str(self.typed.get("id", f"#{self.item.line}"))

    @property
    def fields(self) -> dict[str, Any]:
        """The record's own fields, as they were read."""
        return self.item.fields or {}

    def contents(self) -> dict[str, Any]:
        """What judges are shown where a rubric names no field, as it was read: first the fields
        that the kind does not know, by their own names, then its texts, by typed names."""
        kept, own = {RESERVED, *self.names.values()}, self.item.shown
        typed = {name: own[key] for name, key in self.names.items() if name in _TEXTS[self.kind]}
        others = {k: one for k, one in own.items() if k not in kept and not _holds_labels(k)}
        return others | typed

    def hidden(self) -> dict[str, str]:
        """The fields that are shown only where a rubric names them, and why."""
        why = {RESERVED: "a verdict"} if RESERVED in self.item.shown else {}
        why |= {key: "labels" for key in self.item.shown if _holds_labels(key)}
        for name, key in self.names.items():
            if name not in _TEXTS[self.kind]:
                why[key] = {"id": "the id", "label": "labels"}.get(name, "a list of the workflow")
        return why

    def content_hash(self) -> str:
        """The hash of the record's own fields, the same in whatever order they stand."""
        return content_hash(self.fields)

    def originals(self, names: Iterable[str]) -> dict[str, Any]:
        """The record's own fields that changes of these typed fields touch, as they were read."""
        paths = [self._path(self.names[name]) for name in names]
        keys = [path if path in self.fields else path.partition(".")[0] for path in paths]
        return {key: self.fields[key] for key in keys}

    def with_changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The record's own fields, in their order and form, with `changes` in their place.

        `changes` maps typed names to new contents (values: a sequence of Value or text); what the
        record lacks comes last. An earlier verdict is left out.
        """
        fields = own_fields(self.fields)
        for name, new in changes.items():
            key = self.names.get(name, name)
            if name == "values" and key in self.names.values():
                new = [one if isinstance(one, str) else one.text for one in new]
                new = new if isinstance(self.item.shown[key], list) else "\n".join(new)
            put(fields, self._path(key), new)
        return fields

    def _path(self, key: str) -> str:
        """Where the field that judges see under this key stands in the record itself."""
        return self.item.columns.get(key, key)


@lru_cache(maxsize=1024)
def _holds_labels(key: str) -> bool:
    return _LABELS.fullmatch(normalise(key)) is not None


def put(fields: dict[str, Any] | list[Any], path: str, content: object) -> None:
    """Set what `at` finds there; objects and lists on the way are copied."""
    head, _, rest = path.partition(".")
    whole: Any = isinstance(fields, dict) and (path in fields or not rest)
    place: Any = path if whole else head if isinstance(fields, dict) else int(head)
    found: Any = fields
    if whole or not rest:
        found[place] = content
    else:
        found[place] = found[place].copy()
        put(found[place], rest, content)


def _size(content: object) -> int:
    """The characters of all texts and names in a JSON value."""
    size, left = 0, [content]
    while left:
        one = left.pop()
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, list):
            left += one
    return size


def recognise(fields: Mapping[str, Any]) -> Kind | None:
    """The one kind whose needed fields are filled or, where no kind's are, there; else None."""
    candidates = _candidates(fields)
    return candidates[0] if len(candidates) == 1 else None


def _candidates(fields: Mapping[str, Any]) -> list[Kind]:
    # To have predicted nothing is an answer, too.
    filled = {
        k for k, c in fields.items() if not _blank(c) or (c == [] and normalise(k) != "values")
    }
    for keys in (filled, fields):
        if found := [
            kind
            for kind, needed in _NEEDED.items()
            if {_NAMES[kind].get(normalise(key)) for key in keys}.issuperset(needed)
        ]:
            return found
    return []


def build(item: Item, kind: Kind | None = None, ids: SeenIds | None = None) -> Record | Problem:
    """The typed record that an item holds, or the problem that keeps it from being one.

    `kind` None recognises it by its fields. With `ids`, an id that was seen before is a problem of
    type `duplicate-id`.
    """
    try:
        return built(item, kind, ids)
    except LabelError as error:
        return error.problem


def built(item: Item, kind: Kind | None = None, ids: SeenIds | None = None) -> Record:
    """As `build`; LabelError for an item that is no such record."""
    if item.problem is not None or item.fields is None:
        problem = item.problem or Problem("there is no record")
        raise LabelError(problem.message, problem.field, problem.type)
    fields = item.shown
    kind = kind or recognise(fields)
    if kind is None:
        raise LabelError(_why_unrecognised(fields))
    names = find_names(kind, fields)
    typed = _typed(kind, fields, names)
    shown = fields if kind == "record" else {key: fields[key] for key in names.values()}
    for key, content in shown.items():
        if (size := _size(content)) > LONGEST_TEXT:
            told = f"has {size} characters, the limit is {LONGEST_TEXT}"
            raise LabelError(f"field {key!r} {told}", key)
    if ids is not None and "id" in typed and (first := ids.already(typed["id"], item)):
        message = f"id {clip(typed['id'])} was already on {first}"
        raise LabelError(message, names["id"], "duplicate-id")
    return Record(item, kind, typed, names)


def _typed(kind: Kind, fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    needed = _NEEDED.get(kind, ())
    for name in needed:
        if name not in names:
            raise LabelError(f"field {name!r} is missing", name)
    typed: dict[str, Any] = {}
    for name, parse in _FIELDS[kind].items():
        key = names.get(name)
        if key is not None and (name in needed or not _blank(fields[key])):
            try:
                typed[name] = parse(fields[key], typed)
            except ValueError as error:
                raise LabelError(f"field {key!r} {error}", key) from None
    return typed


def _why_unrecognised(fields: Mapping[str, Any]) -> str:
    if candidates := _candidates(fields):
        return f"may be of kind {', '.join(candidates)}: say which it is, or leave one's fields out"
    return (
        "neither a story record (story, values) nor a norm record (story, rule of thumb) nor an "
        f"extraction record (values, predicted): its fields are {clip([*fields], 300)}; --ask and "
        "--rubric put questions of your own to any record"
    )

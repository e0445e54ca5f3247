"""The known kinds of records, each a declaration of its fields, and any other record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from judge.answers import spelling
from judge.records.base import LabelError, clip, keys_of, kind_of
from judge.records.base import normalise as normalise
from judge.records.text import shown
from judge.records.values import Value, parse_values, value_texts

MAX_TEXT = 4_000_000
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


def _names(content: object, typed: Mapping[str, Any]) -> tuple[str, ...]:
    if isinstance(content, str):
        return tuple(part.strip() for part in _NAME_BREAK.split(content) if part.strip())
    if not isinstance(content, list):
        raise ValueError(f"must be a list of texts, not {kind_of(content)}")
    for name in content:
        if not isinstance(name, str):
            raise ValueError(f"must be a list of texts, and holds {kind_of(name)}")
    return tuple(content)


def _values(content: object, typed: Mapping[str, Any]) -> tuple[Value, ...]:
    return tuple(parse_values(content, story=typed["story"], setting=typed.get("setting")))


def _plain_values(content: object, typed: Mapping[str, Any]) -> tuple[Value, ...]:
    return tuple(Value(text, None, text) for text in _folded(content))


def _folded(content: object) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in value_texts(content))


def _predicted(content: object, typed: Mapping[str, Any]) -> tuple[str, ...]:
    nothing = content is not None and _blank(content)
    return () if nothing else _folded(content)


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
        "values": _plain_values,
        "predicted": _predicted,
    },
    "record": {"id": _id},
}
_TEXTS: Mapping[Kind, frozenset[str]] = {
    kind: frozenset(name for name, parse in fields.items() if parse is _text or name == "predicted")
    for kind, fields in _FIELDS.items()
}
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


def text_fields(kind: Kind) -> frozenset[str]:
    """The typed fields of a kind that a judge reads as they stand."""
    return _TEXTS[kind]


@lru_cache(maxsize=1024)
def holds_labels(key: str) -> bool:
    """Whether a field of this name holds people's answers."""
    return _LABELS.fullmatch(normalise(key)) is not None


def _size(content: object) -> int:
    """The characters of all texts and names in a JSON value."""
    size, stack = 0, [content]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            size += len(node)
        elif isinstance(node, dict):
            stack += [*node, *node.values()]
        elif isinstance(node, list):
            stack += node
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
        if kinds := [
            kind
            for kind, names in _NEEDED.items()
            if {_NAMES[kind].get(normalise(key)) for key in keys}.issuperset(names)
        ]:
            return kinds
    return []


def typed_fields(kind: Kind, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields that a kind knows and that are filled, parsed, by typed name; and the record's own
    keys of all that are there.

    Raises LabelError: one is missing, of another form, given twice, or over MAX_TEXT.
    """
    names = find_names(kind, fields)
    typed = _parsed(kind, fields, names)
    contents = fields if kind == "record" else {key: fields[key] for key in names.values()}
    for key, content in contents.items():
        if (size := _size(content)) > MAX_TEXT:
            message = f"field {key!r} has {size} characters, the limit is {MAX_TEXT}"
            raise LabelError(message, key)
    if kind == "record" and (label := shown(fields.get("label")).text.strip().lower()):
        typed["label"] = label
    return typed, names


def _parsed(kind: Kind, fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    required = _NEEDED.get(kind, ())
    for name in required:
        if name not in names:
            raise LabelError(f"field {name!r} is missing", name)
    typed: dict[str, Any] = {}
    for name, parse in _FIELDS[kind].items():
        key = names.get(name)
        if key is not None and (name in required or not _blank(fields[key])):
            try:
                typed[name] = parse(fields[key], typed)
            except ValueError as error:
                raise LabelError(f"field {key!r} {error}", key) from None
    return typed


def the_kind_of(fields: Mapping[str, Any]) -> Kind:
    """As `recognise`; LabelError where there is no such kind, or more than one."""
    candidates = _candidates(fields)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        kinds = ", ".join(candidates)
        raise LabelError(
            f"may be of kind {kinds}: choose a workflow, or remove the fields of the other"
        )
    raise LabelError(
        "neither a story record (story, values) nor a norm record (story, rule of thumb) nor an "
        f"extraction record (values, predicted): its fields are {clip([*fields], 300)}; --ask and "
        "--rubric ask your own question about any record"
    )

"""Which of a record's own keys stands for which typed field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

Kind = Literal["story", "norm", "extraction", "record"]
"""The known kinds of records; `record` is any other one, whose fields have their own names only."""

_TYPED: dict[Kind, dict[str, tuple[str, ...]]] = {
    "story": {
        "id": ("id",),
        "story": ("story", "situation"),
        "values": ("values",),
        "setting": ("setting",),
        "characters": ("characters",),
        "location": ("location",),
    },
    "norm": {
        "id": ("id",),
        "country": ("country",),
        "cluster": ("cluster",),
        "axis": ("axis",),
        "subcategory": ("subcategory", "subaxis"),
        "background": ("background",),
        "value": ("value",),
        "rule_of_thumb": ("ruleofthumb", "rot"),
        "story": ("story", "situation"),
        "label": ("goldlabel", "label"),
        "explanation": ("explanation",),
    },
    "extraction": {
        "id": ("id",),
        "values": ("values",),
        "predicted": ("predicted", "predictedvalues"),
        "category": ("category",),
    },
    "record": {"id": ("id",)},
}
_BY_ALIAS: dict[Kind, dict[str, str]] = {
    kind: {alias: name for name, aliases in fields.items() for alias in aliases}
    for kind, fields in _TYPED.items()
}
_IGNORED = str.maketrans("", "", " \t\n\r-_")


class ClashError(ValueError):
    """Two keys of one record stand for the same typed field and do not agree; `key` is one."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


@lru_cache(maxsize=1024)
def normalise(key: str) -> str:
    """`key` without case, spaces, hyphens and underscores."""
    return key.translate(_IGNORED).casefold()


def normalised(keys: Iterable[str]) -> set[str]:
    """All `keys`, normalised."""
    return {normalise(key) for key in keys}


def typed_name(kind: Kind, key: str) -> str | None:
    """The typed field that `key` stands for in a record of `kind`, or None."""
    return _BY_ALIAS[kind].get(normalise(key))


def find_names(kind: Kind, fields: Mapping[str, Any]) -> dict[str, str]:
    """Typed field name to the record's own key, for those it has.

    Raises ClashError where two keys stand for one field and hold different things.
    """
    names: dict[str, str] = {}
    for key, content in fields.items():
        name = typed_name(kind, key)
        if name is None:
            continue
        other = names.setdefault(name, key)
        if other != key and fields[other] != content:
            raise ClashError(f"fields {other!r} and {key!r} both stand for {name} and differ", key)
    return names

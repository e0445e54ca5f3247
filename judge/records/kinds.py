"""From an item to a typed record: which kind it is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from judge.records.base import RESERVED, Item, NormRecord, Problem, Record, StoryRecord
from judge.records.ids import SeenIds
from judge.records.jsontext import kind_of
from judge.records.names import Clash, Kind, find_names, normalised
from judge.records.values import BadValue, clip, parse_values

_NEEDED: dict[Kind, tuple[str, ...]] = {
    "story": ("story", "values"),
    "norm": ("story", "rule_of_thumb"),
}
_SHOWN_KEYS = 12


def recognise(fields: Mapping[str, Any]) -> Kind | None:
    """The kind of record that these fields make: `story` has values, `norm` a rule of thumb.

    Where it has the fields of both, those that are filled decide. None where that does not settle
    it, or the record is of neither kind.
    """
    candidates = _candidates(fields)
    if len(candidates) > 1:
        candidates = _candidates({key: part for key, part in fields.items() if not _blank(part)})
    return candidates[0] if len(candidates) == 1 else None


def build(item: Item, kind: Kind | None = None, ids: SeenIds | None = None) -> Record | Problem:
    """The typed record that an item holds, or the problem that keeps it from being one.

    `kind` None recognises it by its fields. With `ids`, an id that was seen before is a problem of
    type `duplicate-id`; records without an id, or with another problem, are not counted.
    """
    if item.problem is not None or item.fields is None:
        return item.problem or Problem("there is no record")
    fields = item.fields
    problem = _reserved(fields)
    if problem is None and kind is None:
        kind = recognise(fields)
        problem = None if kind else _unrecognised(fields)
    if problem is not None or kind is None:
        return problem or _unrecognised(fields)
    try:
        names = find_names(kind, fields)
    except Clash as error:
        return Problem(str(error), error.field)
    data = _typed(kind, fields, names)
    if isinstance(data, Problem):
        return data
    if ids is not None and data.id is not None:
        first = ids.first_line(data.id, item.line)
        if first is not None:
            message = f"id {clip(data.id)} was already on line {first}"
            return Problem(message, names["id"], "duplicate-id")
    return Record(item, kind, data, names)


def _candidates(fields: Mapping[str, Any]) -> list[Kind]:
    return [
        kind
        for kind, needed in _NEEDED.items()
        if all(name in found for name in needed) 
    ]


def _blank(content: object) -> bool:
    return content is None or content == [] or (isinstance(content, str) and not content.strip())

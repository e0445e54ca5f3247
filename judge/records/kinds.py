"""From an item to a typed record: which kind it is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from judge.records.base import (
    RESERVED,
    AnyRecord,
    ExtractionRecord,
    Item,
    NormRecord,
    Problem,
    Record,
    StoryRecord,
)
from judge.records.ids import SeenIds
from judge.records.jsontext import kind_of
from judge.records.names import ClashError, Kind, find_names, normalised, typed_name
from judge.records.values import (
    BadValueError,
    clip,
    parse_plain,
    parse_predicted,
    parse_values,
)

_NEEDED: dict[Kind, tuple[str, ...]] = {
    "story": ("story", "values"),
    "norm": ("story", "rule_of_thumb"),
    "extraction": ("values", "predicted"),
}
_Data = StoryRecord | NormRecord | ExtractionRecord | AnyRecord
LONGEST_TEXT = 4_000_000
"""Characters of a typed field: about a million tokens, more than a model can be shown."""
_SHOWN_KEYS = 12


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
    if RESERVED in fields and not _is_earlier_verdict(fields[RESERVED]):
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


def _is_earlier_verdict(content: object) -> bool:
    return isinstance(content, dict) and "verdict" in content


def _why_unrecognised(fields: Mapping[str, Any]) -> str:
    keys = normalised(fields)
    if {"qcontent", "option"} <= keys:
        return "this is an item of a list of values (q_content, option), not a story"
    if {"story", "questions"} <= keys:
        return (
            "this is an attitude-detection item (story, questions): another command scores answers "
            "to it, there is nothing in it to validate"
        )
    candidates = _candidates(fields)
    if candidates == ["story", "norm"]:
        return "has both values and a rule of thumb: say whether it is a story or a norm record"
    if len(candidates) > 1:
        return f"has predicted values, and may be of kind {', '.join(candidates)}: say which it is"
    shown = ", ".join(clip(key, 40) for key in list(fields)[:_SHOWN_KEYS]) or "none"
    more = ", …" if len(fields) > _SHOWN_KEYS else ""
    return (
        "neither a story record (story, values) nor a norm record (story, rule of thumb) nor an "
        f"extraction record (values, predicted): its fields are {shown}{more}"
    )


def _typed(kind: Kind, fields: Mapping[str, Any], names: Mapping[str, str]) -> _Data | Problem:
    needed = _NEEDED.get(kind, ())
    for name in needed:
        if name not in names:
            return Problem(f"field {name!r} is missing", name)
    for key in names.values():
        size = len(content) if isinstance(content := fields[key], str) else 0
        if size > LONGEST_TEXT:
            return Problem(f"field {key!r} has {size} characters, the limit is {LONGEST_TEXT}", key)
    given = {
        name: fields[key]
        for name, key in names.items()
        if name in needed or not _blank(fields[key])
    }
    try:
        if kind == "norm":
            return NormRecord.model_validate(given)
        if kind == "extraction":
            return _extraction(given, names)
        if kind == "record":
            return AnyRecord.model_validate(given)
        values = parse_values(given["values"], story=given["story"], setting=given.get("setting"))
        return StoryRecord.model_validate({**given, "values": values})
    except BadValueError as error:
        key = names["values"]
        return Problem(f"field {key!r} {error}", key)
    except ValidationError as error:
        return _first_problem(error, names)


def _extraction(given: Mapping[str, Any], names: Mapping[str, str]) -> ExtractionRecord | Problem:
    try:
        predicted = parse_predicted(given["predicted"])
    except BadValueError as error:
        key = names["predicted"]
        return Problem(f"field {key!r} {error}", key)
    values = parse_plain(given["values"])
    return ExtractionRecord.model_validate({**given, "values": values, "predicted": predicted})


def _first_problem(error: ValidationError, names: Mapping[str, str]) -> Problem:
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

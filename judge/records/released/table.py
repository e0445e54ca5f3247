"""A plain table of labels: one row for each answer of each annotator.

Columns `item`, `annotator`, `label`, in any format that is read, case of their names aside; as
well `group` (the annotator's), `check`, `gold` (the reference answer), and any others, which say
something of the item and so are the same in all of its rows. An empty label is none. A row may
hold a gold answer and neither annotator nor label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.records.base import Item
from judge.records.labelled import Annotation, LabelledItem
from judge.records.names import normalise, normalised
from judge.records.released.common import (
    Form,
    LabelError,
    Labelled,
    Place,
    answer_of,
    id_text,
    refused,
    scalar_text,
    slices_of,
)
from judge.records.values import clip

_NEEDED = {"item", "annotator", "label"}
_OWN = (*sorted(_NEEDED), "group", "check", "gold")
_CHECK = "label"


@dataclass(slots=True)
class _Rows:
    """What the rows of one item and check say."""

    source: str
    line: int
    fields: dict[str, Any]
    gold: str | None = None
    given: dict[str, tuple[Annotation, int]] = field(default_factory=dict)


def read_table(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """One item for each `item` and check, in the order of their first rows; problems come first.

    The check is the row's `check`, else the one that was asked for, else `label`. Fields are the
    other columns as they stand, slices the short ones. A row is a problem where it contradicts an
    earlier one of its item, or its annotator has labelled the item before. Holds all items in
    memory.
    """
    found: dict[tuple[str, str], _Rows] = {}
    for item in items:
        if item.problem is not None or item.fields is None:
            yield item
            continue
        try:
            _take(found, item, item.fields, place.check or _CHECK)
        except LabelError as error:
            yield refused(item, error.problem)
    for (record, check), rows in found.items():
        yield LabelledItem(
            record,
            check,
            rows.fields,
            gold=rows.gold,
            annotations=tuple(annotation for annotation, _ in rows.given.values()),
            slices=slices_of(rows.fields),
            source=rows.source,
            line=rows.line,
        )


def is_table(fields: Mapping[str, Any]) -> bool:
    """Whether a row is of such a table."""
    return normalised(fields) >= _NEEDED


def _take(found: dict[tuple[str, str], _Rows], item: Item, row: dict[str, Any], check: str) -> None:
    keys = {normalise(key): key for key in row if normalise(key) in _OWN}
    for name in sorted(_NEEDED):
        if name not in keys:
            raise LabelError(f"field {name!r} is missing", name)
    record = id_text(row[keys["item"]], keys["item"])
    if record is None:
        raise LabelError(f"field {keys['item']!r} is empty", keys["item"])
    check = _text(row, keys, "check") or check
    gold = _answer(row, keys, "gold")
    annotation = _annotation(row, keys)
    if annotation is None and gold is None:
        return
    own = {key: content for key, content in row.items() if key not in keys.values()}
    rows = found.get((record, check)) or _Rows(item.source, item.line, own, gold)
    _agree(rows, own, gold, keys)
    if annotation is not None:
        name = annotation.annotator
        if name in rows.given:
            line = rows.given[name][1]
            message = f"annotator {clip(name)} labelled item {clip(record)} on line {line} already"
            raise LabelError(message, keys["annotator"])
        rows.given[name] = (annotation, item.line)
    rows.gold = gold if rows.gold is None else rows.gold
    found[record, check] = rows


def _agree(rows: _Rows, own: Mapping[str, Any], gold: str | None, keys: Mapping[str, str]) -> None:
    """Raises LabelError where a row says something else of its item than an earlier one."""
    changed = [key for key in (*own, *rows.fields) if own.get(key) != rows.fields.get(key)]
    if gold is not None and rows.gold not in (None, gold):
        changed.append(keys["gold"])
    if changed:
        message = f"field {changed[0]!r} says something else than line {rows.line} of this item"
        raise LabelError(message, changed[0])


def _annotation(row: Mapping[str, Any], keys: Mapping[str, str]) -> Annotation | None:
    answer = _answer(row, keys, "label")
    if answer is None:
        return None
    name = id_text(row[keys["annotator"]], keys["annotator"])
    if name is None:
        key = keys["annotator"]
        raise LabelError(f"field {key!r} is empty beside a label", key)
    return Annotation(name, answer, _text(row, keys, "group"))


def _answer(row: Mapping[str, Any], keys: Mapping[str, str], name: str) -> str | None:
    content = row[keys[name]] if name in keys else None
    if isinstance(content, str) and not content.strip():
        return None
    return answer_of(content, keys.get(name, name))


def _text(row: Mapping[str, Any], keys: Mapping[str, str], name: str) -> str | None:
    content = row[keys[name]] if name in keys else None
    text = scalar_text(content)
    if content is not None and text is None:
        raise LabelError(f"field {keys[name]!r} must be a text", keys[name])
    return text.strip() or None if text is not None else None


FORM = Form("table", read_table, is_table)

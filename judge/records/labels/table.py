"""A plain table of labels: one row for each answer of each annotator.

Columns `item`, `annotator`, `label`, in any format that is read, in any case; further `group` (the
annotator's), `check`, `gold` (the reference answer), and any others, which describe the item: its
first row tells. An empty label is none. A row may hold a gold answer without annotator and label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.records.base import Item
from judge.records.fields import (
    LabelError,
    answer_of,
    id_text,
    scalar_text,
    slices_of,
)
from judge.records.labels.items import Annotation, LabelledItem, LabelSet
from judge.records.names import normalise, normalised
from judge.records.values import clip

_NEEDED = ("annotator", "item", "label")
_OWN = (*_NEEDED, "group", "check", "gold")


@dataclass(slots=True)
class _Labels:
    """What the rows of one item and check say; `given` holds each annotator's line, too."""

    source: str
    line: int
    fields: dict[str, Any]
    gold: str | None = None
    given: dict[str, tuple[Annotation, int]] = field(default_factory=dict)


class Table(LabelSet):
    """One item for each `item` and check, in the order of their first rows; problems come first.

    The check is the row's `check`, else the one that was asked for, else `label`. Fields are the
    other columns as they stand, slices the short ones. A row is a problem where its gold answer
    differs from an earlier one of its item, or its annotator has labelled the item before. Holds
    all items in memory.
    """

    name = "table"

    def start(self) -> None:
        self._found: dict[tuple[str, str], _Labels] = {}

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return normalised(fields) >= set(_NEEDED)

    def items(self, item: Item, fields: dict[str, Any]) -> tuple[()]:
        keys = {normalise(key): key for key in fields if normalise(key) in _OWN}
        for name in _NEEDED:
            if name not in keys:
                raise LabelError(f"field {name!r} is missing", name)
        own = {name: fields[key] for name, key in keys.items()}
        record = id_text(own["item"], keys["item"])
        if record is None:
            raise LabelError(f"field {keys['item']!r} is empty", keys["item"])
        gold, annotation = _answer(own, keys, "gold"), _annotation(own, keys)
        if annotation is None and gold is None:
            return ()
        check = _text(own, keys, "check") or self.place.check or "label"
        about = {key: content for key, content in fields.items() if key not in keys.values()}
        first = _Labels(item.source, item.line, about, gold)
        labels = self._found.get((record, check), first)
        if gold is not None and labels.gold not in (None, gold):
            key = keys["gold"]
            message = f"field {key!r} differs from line {labels.line} of this item"
            raise LabelError(message, key)
        if annotation is not None:
            name = annotation.annotator
            if name in labels.given:
                before = f"on line {labels.given[name][1]} already"
                message = f"annotator {clip(name)} labelled item {clip(record)} {before}"
                raise LabelError(message, keys["annotator"])
            labels.given[name] = (annotation, item.line)
        labels.gold = gold if labels.gold is None else labels.gold
        self._found[record, check] = labels
        return ()

    def rest(self) -> Iterator[LabelledItem]:
        for (record, check), labels in self._found.items():
            yield LabelledItem(
                record,
                check,
                labels.fields,
                gold=labels.gold,
                annotations=tuple(annotation for annotation, _ in labels.given.values()),
                slices=slices_of(labels.fields),
                source=labels.source,
                line=labels.line,
            )


def _annotation(own: Mapping[str, Any], keys: Mapping[str, str]) -> Annotation | None:
    answer = _answer(own, keys, "label")
    if answer is None:
        return None
    name = id_text(own["annotator"], keys["annotator"])
    if name is None:
        key = keys["annotator"]
        raise LabelError(f"field {key!r} is empty beside a label", key)
    return Annotation(name, answer, _text(own, keys, "group"))


def _answer(own: Mapping[str, Any], keys: Mapping[str, str], name: str) -> str | None:
    content = own.get(name)
    if isinstance(content, str) and not content.strip():
        return None
    return answer_of(content, keys.get(name, name))


def _text(own: Mapping[str, Any], keys: Mapping[str, str], name: str) -> str | None:
    text = scalar_text(own.get(name))
    if own.get(name) is not None and text is None:
        raise LabelError(f"field {keys[name]!r} must be a text", keys[name])
    return text.strip() or None if text is not None else None

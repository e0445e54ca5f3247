"""The rows of a benchmark's sources, and the items that are made of each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from judge.errors import UsageError
from judge.records import RESERVED, Item, read
from judge.records.fields import LabelError, id_text, refused
from judge.records.kinds import normalise
from judge.records.values import clip

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a source: its name, which no other row has, and its fields."""

    id: str
    item: Item
    fields: dict[str, Any]

    @property
    def own(self) -> dict[str, Any]:
        """The fields without what judge wrote."""
        return {key: content for key, content in self.fields.items() if key != RESERVED}


class Names:
    """Names rows: by their id, else `SOURCE#LINE`; an id that another source had is `SOURCE:ID`."""

    def __init__(self) -> None:
        self._seen: dict[str, Item] = {}

    def name(self, item: Item, id: object, field: str = "id") -> str:
        """The row's name.

        Raises:
            LabelError: the id is no text or number, or the same source had it before.
        """
        own = id_text(id, field)
        if own is None:
            return f"{item.source}#{item.line}"
        first = self._seen.setdefault(own, item)
        if first is item:
            return own
        name = f"{item.source}:{own}"
        if first.source == item.source or self._seen.setdefault(name, item) is not item:
            message = f"id {clip(own)} was already on line {self._seen[own].line} of {first.source}"
            raise LabelError(message, field, "duplicate-id")
        return name


def read_sources(sources: Sequence[str]) -> Iterator[Item]:
    """The items of all sources in their order; sources of one name go by their paths.

    Raises:
        UsageError: a source cannot be read, or is named twice.
    """
    if twice := [source for source, times in Counter(sources).items() if times > 1]:
        raise UsageError(f"{twice[0]} is named twice")
    names = Counter(Path(source).name for source in sources)
    for source in sources:
        for item in read(source):
            yield item if names[Path(source).name] == 1 else replace(item, source=source)


def each_row(
    items: Iterable[Item], convert: Callable[[Row], Iterable[T]], id_field: str = "id"
) -> Iterator[T | Item]:
    """What `convert` makes of each row; lines that cannot be used come as items with a problem.

    Args:
        convert: raises LabelError for a row that it cannot use; nothing of such a row is given.
        id_field: the field that names rows, however it is written.
    """
    names = Names()
    for item in items:
        if item.problem is not None or item.fields is None:
            yield item
            continue
        try:
            wanted = normalise(id_field)
            key = next((key for key in item.fields if normalise(key) == wanted), id_field)
            name = names.name(item, item.fields.get(key), id_field)
            found = list(convert(Row(name, item, item.fields)))
        except LabelError as error:
            yield refused(item, error.problem)
        else:
            yield from found


def asked(
    item: Item, condition: str, fields: Mapping[str, Any], *, row: str, key: str | None = None
) -> Item:
    """An item that is asked in a condition.

    Args:
        item: the line it is made from.
        fields: what is asked about, and `gold`.
        row: the row's name; items of one row are drawn together for intervals.
        key: the question's name within the condition, if a row makes several.
    """
    head = {"id": f"{key or row}/{condition}", "condition": condition, "row": row}
    rest = {name: content for name, content in fields.items() if name not in head}
    return Item(item.source, item.line, {**head, **rest})


def each_condition(sources: Sequence[str], conditions: Sequence[str]) -> Iterator[Item]:
    """Every row of the sources in every condition, with its fields as they are.

    Raises:
        UsageError: as `read_sources`.
    """

    def of_row(row: Row) -> Iterator[Item]:
        for condition in conditions:
            yield asked(row.item, condition, row.own, row=row.id)

    return each_row(read_sources(sources), of_row)


def first_rows(items: Iterable[Item], count: int) -> Iterator[Item]:
    """The items of the first `count` rows."""
    seen: set[str] = set()
    for item in items:
        row = _row_of(item)
        if row not in seen and len(seen) == count:
            continue
        seen.add(row)
        yield item


def sampled_rows(items: Iterable[Item], count: int, seed: int) -> Iterator[Item]:
    """The items of `count` rows, each set of rows equally likely, in the order of the items.

    Holds all items in memory.
    """
    every = list(items)
    rows = list(dict.fromkeys(map(_row_of, every)))
    chosen = set(random.Random(seed).sample(rows, min(count, len(rows))))
    yield from (item for item in every if _row_of(item) in chosen)


def _row_of(item: Item) -> str:
    """The row that an item was made from; of an unreadable one its place in the source."""
    fields = item.fields or {}
    row = fields.get("row", fields.get("id"))
    return f"{item.source}:{item.line}" if row is None else str(row)

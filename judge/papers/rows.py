"""The rows of a benchmark's sources, and the items made of each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from judge.errors import UsageError
from judge.records import Record, read, renamed
from judge.records.base import clip, own_fields, strata_of
from judge.records.fields import LabelError, id_text, slices_of
from judge.records.kinds import normalise
from judge.run.job import sampled

T = TypeVar("T")

LOOK = 1_000
"""Most records or items that are searched for a field."""

REJECTED = "rejected"
"""The problem type of a sound row that a rule leaves out."""


def head_of(source: str) -> Mapping[str, Any]:
    """The fields of a source's first record; empty if it has no record."""
    return look_ahead(source, {})[0]


def look_ahead(
    source: str, columns: Mapping[str, str]
) -> tuple[Mapping[str, Any], Iterator[Record]]:
    """The fields of a source's first record, and all its records: standard input cannot be read
    twice."""
    items = renamed(read(source), columns)
    before: list[Record] = []
    for item in items:
        before.append(item)
        if item.problem is None:
            return item.fields, chain(before, items)
    return {}, iter(before)


def each_row(
    sources: Sequence[str],
    convert: Callable[[Record], Iterable[T]],
    id_field: str = "id",
    columns: Mapping[str, str] = MappingProxyType({}),
    records: Mapping[str, Iterable[Record]] = MappingProxyType({}),
) -> Iterator[T | Record]:
    """What `convert` makes of each row; lines that cannot be used become items with a problem.

    A row is named by its id, else `SOURCE#LINE`. A row that gives nothing does not reserve its id.

    Args:
        convert: raises LabelError for a row that it cannot use; such a row gives nothing.
        id_field: the field that names rows, in any spelling.
        columns: columns of the sources to rename.
        records: the records of sources that are read already (`look_ahead`).

    Raises:
        UsageError: a source cannot be read, or two have the same name.
    """
    names = Counter(Path(source).name for source in sources)
    if twice := [name for name, times in names.items() if times > 1]:
        raise UsageError(f"two sources are called {twice[0]}: rename one")
    places: dict[str, str] = {}
    id_key = normalise(id_field)
    of_sources = (records.get(source) or renamed(read(source), columns) for source in sources)
    for item in chain.from_iterable(of_sources):
        if item.raw is not None:
            yield item
            continue
        try:
            key = next((key for key in item.fields if normalise(key) == id_key), id_field)
            name = id_text(item.fields.get(key), id_field) or f"{item.source}#{item.line}"
            if name in places:
                message = f"id {clip(name)} was already on {places[name]}"
                raise LabelError(message, id_field, "duplicate-id")
            converted = list(convert(replace(item, name=name)))
        except LabelError as error:
            yield replace(item, problem=error.problem)
            continue
        if converted:
            places[name] = f"line {item.line} of {item.source}"
        yield from converted


def own_slices(row: Record, asked_about: Collection[str]) -> dict[str, str]:
    """The row's short fields that results can be sliced by, except those in `asked_about`, whatever
    their spelling."""
    names = set(map(normalise, asked_about))
    columns = own_fields(row.visible).items()
    return slices_of({key: content for key, content in columns if normalise(key) not in names})


def asked(
    item: Record,
    condition: str,
    fields: Mapping[str, Any],
    *,
    row: str | None = None,
    key: str | None = None,
) -> Record:
    """An item that is asked in a condition.

    Args:
        item: the line it is made from.
        fields: what is asked about, and `gold`.
        row: the row's name, if it is not the line's; items of one row are resampled together for
            intervals.
        key: the question's name within the condition, if a row makes several.
    """
    row = row or item.id
    head = {"id": f"{key or row}/{condition}", "condition": condition, "row": row}
    content_fields = {name: content for name, content in fields.items() if name not in head}
    return Record(item.source, item.line, {**head, **content_fields})


def taken(
    items: Iterable[Record],
    limit: int | None,
    sample: int | None,
    seed: int,
    by: Sequence[str] = (),
) -> Iterator[Record]:
    """The items of the first `limit` rows, or of those of `sample` rows drawn at random.

    A sample holds all items in memory; each set of rows is equally likely, in the items' order.
    With `by` the rows are spread evenly over the contents of these fields.

    Raises:
        UsageError: none of the first `LOOK` items has a field of `by`.
    """
    items = iter(items)
    if by:
        head = list(islice(items, LOOK))
        sound = [item for item in head if item.problem is None]
        strata_of(sound, lambda item: item.fields, by if sound else ())
        items = chain(head, items)
    if sample is not None:
        items = list(items)
        rows = {_row_of(item): item for item in items}
        if by:
            drawn = {_row_of(item) for item in sampled(rows.values(), sample, seed, by)}
        else:
            drawn = {*random.Random(seed).sample([*rows], min(sample, len(rows)))}
        items = [item for item in items if _row_of(item) in drawn]
    names: set[str] = set()
    for item in items:
        row = _row_of(item)
        if limit is None or row in names or len(names) < limit:
            names.add(row)
            yield item


def _row_of(item: Record) -> str:
    """The row that an item was made from; for an unreadable one its place in the source."""
    fields = item.fields
    row = fields.get("row", fields.get("id"))
    return f"{item.source}:{item.line}" if row is None else str(row)

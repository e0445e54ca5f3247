"""The first rows of a benchmark, or some at random: a row with all the items made from it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from judge.records import Item


def row_of(item: Item) -> str:
    """The row that an item was made from; of an unreadable one its place in the source."""
    fields = item.fields or {}
    row = fields.get("row", fields.get("id"))
    return f"{item.source}:{item.line}" if row is None else str(row)


def first_rows(items: Iterable[Item], count: int) -> Iterator[Item]:
    """The items of the first `count` rows."""
    seen: set[str] = set()
    for item in items:
        row = row_of(item)
        if row not in seen and len(seen) == count:
            continue
        seen.add(row)
        yield item


def sampled_rows(items: Iterable[Item], count: int, seed: int) -> Iterator[Item]:
    """The items of `count` rows, each set of rows equally likely, in the order of the items.

    Holds all items in memory.
    """
    every = list(items)
    rows = list(dict.fromkeys(map(row_of, every)))
    chosen = set(random.Random(seed).sample(rows, min(count, len(rows))))
    yield from (item for item in every if row_of(item) in chosen)

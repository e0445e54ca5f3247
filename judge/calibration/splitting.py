"""Which labelled records are fitted to, and which are kept to see how well that went."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol


class HasReference(Protocol):
    """As much of a labelled item as splitting looks at."""

    @property
    def record(self) -> str: ...
    @property
    def reference(self) -> str | None: ...


def split(items: Sequence[HasReference], shares: Sequence[float], seed: int = 0) -> list[list[int]]:
    """The places of the items of each part; all items of a record fall into one part.

    Records are taken in an order that depends on their name and the seed only, reference by
    reference (that of a record's first item), so that every part has its share of each.

    Args:
        shares: the size of each part as a share of the records; they add up to 1.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        places[item.record].append(place)
    strata: dict[str, list[str]] = defaultdict(list)
    for record, where in places.items():
        strata[str(items[where[0]].reference)].append(record)
    parts: list[list[int]] = [[] for _ in shares]
    filled = [0.0] * len(shares)
    for stratum in sorted(strata):
        for record in sorted(strata[stratum], key=lambda name: _drawn(name, seed)):
            behind = [
                have / share if share else float("inf")
                for have, share in zip(filled, shares, strict=True)
            ]
            part = behind.index(min(behind))
            filled[part] += 1
            parts[part] += places[record]
    return [sorted(part) for part in parts]


def sample(items: Sequence[HasReference], records: int, seed: int = 0) -> list[int]:
    """The places of all items of so many records, drawn with the seed."""
    names = sorted({item.record for item in items}, key=lambda name: _drawn(name, seed))
    chosen = set(names[:records])
    return [place for place, item in enumerate(items) if item.record in chosen]


def _drawn(name: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\n{name}".encode("utf-8", "surrogatepass")).digest()

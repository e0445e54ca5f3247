"""Clusters of labelled items: those that are about one record, of one group, or of nearly one text.

Items of a cluster are not independent of one another. They are never on both sides of fitting and
reporting, are drawn together in the bootstrap, and count once in a guarantee.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import xor

import numpy as np

from judge.calibration.labels import CalibrationJob, drawn
from judge.calibration.observe import texts_of
from judge.questions.rubric import Rubric
from judge.records.labels import LabelledItem
from judge.stats.text import MIN_WORDS, words_of

Bag = frozenset[tuple[str, int]]
"""The words of a text, a repeated one by its repetitions' numbers as well."""

_TENTHS = 9
"""Of the words of two texts that are nearly the same, so many tenths are in both (Jaccard)."""


def clustered(
    sets: Sequence[Sequence[LabelledItem]], rubric: Rubric
) -> tuple[list[list[LabelledItem]], int]:
    """The items of each set with their cluster's name as group, the same in all sets; and how many
    records or groups of the first set were joined to others of it because of their texts.

    Two items have nearly the same text where each text that a judge is shown has nine tenths of its
    words in both. A cluster has the first of its members' names in the order of the alphabet.
    """
    items = [item for part in sets for item in part]
    joined = _Joined(len(items))
    joined.join_equal([item.record.id for item in items])
    joined.join_equal([item.group or None for item in items])
    first = len(sets[0]) if sets else 0
    before = joined.count(first)
    bags = [_bags(texts_of(item, rubric)) for item in items]
    joined.join_equal([frozenset(fields.items()) or None for fields in bags])
    _join_near(bags, joined)
    names: dict[int, str] = {}
    for n, item in zip(joined.numbers.tolist(), items, strict=True):
        names[n] = min(names.get(n, item.cluster), item.cluster)
    items_named = iter(
        replace(item, group=names[n])
        for n, item in zip(joined.numbers.tolist(), items, strict=True)
    )
    return [[next(items_named) for _ in part] for part in sets], before - joined.count(first)


class _Joined:
    """A partition of places, by the number of each place's part; it only grows coarser."""

    def __init__(self, size: int) -> None:
        self.numbers = np.arange(size)

    def count(self, first: int) -> int:
        """How many parts the first places are in."""
        return len(np.unique(self.numbers[:first]))

    def join(self, first: int, second: int) -> None:
        self.numbers[self.numbers == self.numbers[first]] = self.numbers[second]

    def join_equal(self, keys: Sequence[Hashable | None]) -> None:
        """Join the places of equal keys, those of None with no other."""
        place: dict[Hashable, int] = {}
        for n, key in enumerate(keys):
            if key is not None and self.numbers[place.setdefault(key, n)] != self.numbers[n]:
                self.join(n, place[key])


def _bags(texts: Mapping[str, str]) -> dict[str, Bag]:
    """The words of each field that is a text; of all fields where none is."""
    bags = {name: _bag(text) for name, text in texts.items()}
    return {name: bag for name, bag in bags.items() if len(bag) >= MIN_WORDS} or bags


def _bag(text: str) -> Bag:
    counts = Counter(words_of(text))
    return frozenset((word, n) for word, count in counts.items() for n in range(count))


def _join_near(bags: Sequence[Mapping[str, Bag]], joined: _Joined) -> None:
    """Join the items whose texts are nearly the same.

    The search is exact: two items are compared unless their sketches rule it out. A sketch has 64
    bits, each turned by every word that falls on it; two of them differ in at most as many bits as
    the texts do in words, which for near ones is a nineteenth of the words of both.
    """
    words = [[(name, *word) for name, bag in fields.items() for word in bag] for fields in bags]
    order = sorted((n for n, bag in enumerate(words) if bag), key=lambda n: len(words[n]))
    places, sizes = np.array(order, dtype=np.intp), np.array([len(words[n]) for n in order])
    sketches = np.array(
        [reduce(xor, (1 << (hash(word) & 63) for word in words[n])) for n in order], dtype=np.uint64
    )
    for n, place in enumerate(order):
        start = int(np.searchsorted(sizes, _TENTHS * sizes[n] / 10 - 1))
        differ = np.bitwise_count(sketches[start:n] ^ sketches[n]).astype(np.intp)
        near = places[start:n][19 * differ <= sizes[start:n] + sizes[n]]
        while len(near := near[joined.numbers[near] != joined.numbers[place]]):
            if _alike(bags[place], bags[near[0]]):
                joined.join(place, near[0])
            near = near[1:]


def _alike(first: Mapping[str, Bag], second: Mapping[str, Bag]) -> bool:
    return first.keys() == second.keys() and all(
        10 * len(bag & second[name]) >= _TENTHS * len(bag | second[name])
        for name, bag in first.items()
    )


# ---------------------------------------------------------------- parts


def split(items: Sequence[LabelledItem], shares: Sequence[float], seed: int = 0) -> list[list[int]]:
    """The places of the items of each part; all items of a record, or group, fall into one part.

    These are taken in an order that depends on their name and the seed only, reference by reference
    (that of the first item), so that every part has its share of each. `shares` are the parts'
    shares of them.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        places[item.cluster].append(place)
    strata: dict[str, list[str]] = defaultdict(list)
    for record, where in places.items():
        strata[str(items[where[0]].reference)].append(record)
    parts: list[list[int]] = [[] for _ in shares]
    filled = [0] * len(shares)
    for stratum in sorted(strata):
        for record in sorted(strata[stratum], key=lambda name: drawn(name, seed)):
            behind = [
                have / share if share else float("inf")
                for have, share in zip(filled, shares, strict=True)
            ]
            part = behind.index(min(behind))
            filled[part] += 1
            parts[part] += places[record]
    return [sorted(part) for part in parts]


_HELD_OUT = 0.5
"""Share of the records that nothing is fitted to."""

_GUARANTEED = 0.6
"""The same where a guarantee is wanted, which is tested on two thirds of them."""


@dataclass(frozen=True, slots=True)
class Split:
    """The places of the items to fit to, of those that each stage of a guarantee is tested on, and
    of those kept apart for the report.

    With `folds` all items serve for both: each fold is reported on by what was fitted to the others
    (Stone 1974), and the profile gets what was fitted to all.
    """

    fitted: list[int]
    stages: list[list[int]]
    held_out: list[int]
    folds: Sequence[list[int]] = ()

    @classmethod
    def of(cls, job: CalibrationJob, items: Sequence[LabelledItem], judges: int) -> Split:
        """A guarantee takes more labels than the report of it."""
        if job.folds is not None:
            folds = split(items, [1 / job.folds] * job.folds, job.seed)
            everything = [*range(len(items))]
            return cls(everything, [], everything, [fold for fold in folds if fold])
        usual = _HELD_OUT if job.agreement is None else _GUARANTEED
        apart = usual if job.held_out is None else job.held_out
        stages = 0 if job.agreement is None else judges
        share = apart / (2 * stages + 1)
        shares = [1 - apart, *[2 * share] * stages, share]
        fitted, *tested, held_out = split(items, shares, job.seed)
        return cls(fitted, tested, held_out)

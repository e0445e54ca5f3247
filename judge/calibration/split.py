"""Clusters of labelled items: items about one record, of one group, or with nearly the same text.

The items of a cluster are dependent. They are never used both for fitting and for reporting, are
drawn together in the bootstrap, and count once in a guarantee.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import xor

import numpy as np

from judge.calibration.labels import CalibrationJob, drawn
from judge.calibration.observe import key_of, texts_of
from judge.errors import UsageError
from judge.judging.judge import Judge
from judge.questions.rubric import Rubric
from judge.records.labels import LabelledItem
from judge.records.words import MIN_WORDS, words_of

Bag = frozenset[tuple[str, int]]
"""A text's words as a multiset: each word with the number of its repetition (from 0)."""

_TENTHS = 9
"""Least Jaccard similarity, in tenths, of the words of two nearly equal texts."""


def clustered(
    sets: Sequence[Sequence[LabelledItem]], rubric: Rubric
) -> tuple[list[list[LabelledItem]], int]:
    """Names each item's cluster, in its `group`, across all sets.

    Two items have nearly the same text if for each text shown to a judge the Jaccard similarity of
    its words is at least nine tenths. A cluster's name is the alphabetically first of its members'.

    Returns:
        The items of each set, and how many records or groups of the first set were joined to others
        of it because of their texts.
    """
    items = [item for part in sets for item in part]
    joined = _Joined(len(items))
    joined.join_equal([item.record.id for item in items])
    joined.join_equal([item.group or None for item in items])
    first = len(sets[0])
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
    """A partition of indices, as the number of each index's part. Parts are only ever joined."""

    def __init__(self, size: int) -> None:
        self.numbers = np.arange(size)

    def count(self, first: int) -> int:
        """How many parts the first `first` indices are in."""
        return len(np.unique(self.numbers[:first]))

    def join(self, first: int, second: int) -> None:
        self.numbers[self.numbers == self.numbers[first]] = self.numbers[second]

    def join_equal(self, keys: Sequence[Hashable | None]) -> None:
        """Join the indices of equal keys; None is equal to no key."""
        place: dict[Hashable, int] = {}
        for n, key in enumerate(keys):
            if key is not None and self.numbers[place.setdefault(key, n)] != self.numbers[n]:
                self.join(n, place[key])


def _bags(texts: Mapping[str, str]) -> dict[str, Bag]:
    """The words of each field with at least MIN_WORDS; of all fields if none has."""
    bags = {name: _bag(text) for name, text in texts.items()}
    return {name: bag for name, bag in bags.items() if len(bag) >= MIN_WORDS} or bags


def _bag(text: str) -> Bag:
    counts = Counter(words_of(text))
    return frozenset((word, n) for word, count in counts.items() for n in range(count))


def _join_near(bags: Sequence[Mapping[str, Bag]], joined: _Joined) -> None:
    """Join the items whose texts are nearly the same.

    The search is exact: two items are compared unless their sketches rule it out. A sketch has 64
    bits, and each word flips the bit of its hash. So two sketches differ in at most as many bits as
    the texts do in words, which for near texts is a nineteenth of the words of both.
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


def untaught(
    sets: Sequence[list[LabelledItem]], judges: Sequence[Judge]
) -> Sequence[list[LabelledItem]]:
    """The items of clusters on which no judge's adapter was trained.

    Raises:
        UsageError: a set that had items has none left.
    """
    keys = frozenset(key for judge in judges for key in judge.client.backend.taught_by())
    if not keys:
        return sets
    rubric = judges[0].rubric
    clusters = {item.cluster for part in sets for item in part if key_of(item, rubric) in keys}
    parts = [[item for item in part if item.cluster not in clusters] for part in sets]
    if any(items and not part for items, part in zip(sets, parts, strict=True)):
        raise UsageError(f"{rubric.name}: the model was taught by all of these labels: give others")
    return parts


# ---------------------------------------------------------------- parts


def split(items: Sequence[LabelledItem], shares: Sequence[float], seed: int = 0) -> list[list[int]]:
    """The indices of the items of each part; a cluster's items are all in one part.

    Clusters are assigned in an order that depends on their name and the seed only, stratified by
    the reference of their first item. `shares` are the parts' shares of the clusters.
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
"""Default share of the clusters that are held out."""

_GUARANTEED = 0.6
"""The same with a guarantee, which for one judge is tested on two thirds of them."""


@dataclass(frozen=True, slots=True)
class Split:
    """The indices of the items for fitting, for each stage of a guarantee, and for the report
    (`held_out`).

    With `folds`, all items are used for both: each fold is reported on by a fit to the others
    (Stone 1974), and the profile gets the fit to all.
    """

    fitted: list[int]
    stages: list[list[int]]
    held_out: list[int]
    folds: Sequence[list[int]] = ()

    @classmethod
    def of(cls, job: CalibrationJob, items: Sequence[LabelledItem], judges: int) -> Split:
        """The split of a job. Each test of a guarantee gets twice as many labels as the report."""
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

"""Splits keep records together, use every item once, and depend on names and the seed alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from judge.calibration.labels import sample, split


@dataclass(frozen=True)
class Item:
    record: str
    reference: str | None = "yes"


Items = st.lists(
    st.builds(
        Item,
        st.integers(0, 12).map(lambda number: f"r{number}"),
        st.sampled_from(["yes", "no", None]),
    ),
    max_size=40,
)
Shares = st.sampled_from([[0.5, 0.5], [0.9, 0.1], [0.5, 0.25, 0.25], [0.5, 0.2, 0.15, 0.15]])


@given(Items, Shares, st.integers(0, 5))
def test_every_item_is_in_one_part_and_every_record_whole(
    items: list[Item], shares: list[float], seed: int
) -> None:
    parts = split(items, shares, seed)
    assert len(parts) == len(shares)
    assert sorted(place for part in parts for place in part) == list(range(len(items)))
    assert all(part == sorted(part) for part in parts)
    records = [{items[place].record for place in part} for part in parts]
    assert sum(map(len, records)) == len(set.union(*records))


@given(Items, Shares, st.integers(0, 5), st.randoms(use_true_random=False))
def test_the_order_of_the_records_changes_nothing(
    items: list[Item], shares: list[float], seed: int, random: object
) -> None:
    # Only the first item of a record gives it its stratum, so whole records change places.
    names = list(dict.fromkeys(item.record for item in items))
    random.shuffle(names)  # type: ignore[attr-defined]
    moved = [item for name in names for item in items if item.record == name]
    before = [{items[place].record for place in part} for part in split(items, shares, seed)]
    after = [{moved[place].record for place in part} for part in split(moved, shares, seed)]
    assert before == after


def test_another_seed_splits_otherwise() -> None:
    items = [Item(f"r{number}") for number in range(40)]
    assert split(items, [0.5, 0.5], 0) == split(items, [0.5, 0.5], 0)
    assert split(items, [0.5, 0.5], 0) != split(items, [0.5, 0.5], 1)


@given(
    st.dictionaries(st.sampled_from(["yes", "no", "neutral"]), st.integers(0, 60)),
    Shares,
    st.integers(0, 3),
)
def test_every_part_has_its_share_of_every_reference(
    sizes: dict[str, int], shares: list[float], seed: int
) -> None:
    items = [
        Item(f"{reference}{number}", reference)
        for reference, size in sizes.items()
        for number in range(size)
    ]
    parts = split(items, shares, seed)
    for part, share in zip(parts, shares, strict=True):
        assert abs(len(part) - share * len(items)) < len(shares)
        counts = Counter(items[place].reference for place in part)
        for reference, size in sizes.items():
            assert abs(counts[reference] - share * size) <= len(shares)


def test_a_part_without_a_share_stays_empty() -> None:
    assert split([Item("a"), Item("b")], [1.0, 0.0]) == [[0, 1], []]
    assert split([], [0.5, 0.5]) == [[], []]


@given(Items, st.integers(1, 15), st.integers(0, 3))
def test_a_sample_has_whole_records_and_grows_with_its_size(
    items: list[Item], records: int, seed: int
) -> None:
    drawn = sample(items, records, seed)
    names = {items[place].record for place in drawn}
    assert len(names) == min(records, len({item.record for item in items}))
    assert drawn == [place for place, item in enumerate(items) if item.record in names]
    assert set(drawn) <= set(sample(items, records + 1, seed))

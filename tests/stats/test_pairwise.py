"""Pairwise agreement, within a group and across two, and the table of counts it starts from."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.agreement import agreement_across, count_table, percent_agreement

RATINGS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=12)


def by_pairs(ratings: list[list[str]]) -> float | None:
    """Every pair of raters looked at."""
    shares = [
        sum(a == b for a, b in combinations(answers, 2)) / (len(answers) * (len(answers) - 1) / 2)
        for answers in ratings
        if len(answers) >= 2
    ]
    return sum(shares) / len(shares) if shares else None


def test_counts() -> None:
    table = count_table([["b", "a", "b"], [], ["c", "?"]], ["a", "b", "c"])
    assert table.tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="once each"):
        count_table([], ["a", "a"])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([[3, 0], [2, 1]], (1 + 1 / 3) / 2),
        ([[2, 2]], 2 / 6),
        ([[1, 1], [1, 0]], 0.0),
        ([[5, 0], [0, 2]], 1.0),
        ([[1, 0], [0, 1]], None),
        ([[0, 0]], None),
    ],
)
def test_by_hand(counts: list[list[int]], expected: float | None) -> None:
    assert percent_agreement(counts) == (None if expected is None else pytest.approx(expected))


def test_every_item_weighs_the_same_however_many_raters() -> None:
    assert percent_agreement([[10, 0], [1, 1]]) == pytest.approx(0.5)


def test_no_items() -> None:
    assert percent_agreement(count_table([], ["a", "b"])) is None
    assert agreement_across(count_table([], ["a"]), count_table([], ["a"])) is None


@given(RATINGS)
def test_against_every_pair(ratings: list[list[str]]) -> None:
    expected = by_pairs(ratings)
    found = percent_agreement(count_table(ratings, "abc"))
    assert found == (None if expected is None else pytest.approx(expected))
    assert found is None or 0 <= found <= 1


def test_across_by_hand() -> None:
    first, second = [[2, 0], [1, 1], [0, 0]], [[1, 3], [0, 2], [4, 0]]
    assert agreement_across(first, second) == pytest.approx((2 / 8 + 2 / 4) / 2)


@given(st.lists(st.tuples(*[st.lists(st.sampled_from("abc"), max_size=4)] * 2), max_size=8))
def test_across_against_every_pair(both: list[tuple[list[str], list[str]]]) -> None:
    shares = [
        sum(a == b for a, b in product(one, other)) / (len(one) * len(other))
        for one, other in both
        if one and other
    ]
    first = count_table([one for one, _ in both], "abc")
    second = count_table([other for _, other in both], "abc")
    found = agreement_across(first, second)
    assert found == (pytest.approx(sum(shares) / len(shares)) if shares else None)
    assert agreement_across(second, first) == found


def test_across_wants_the_same_items() -> None:
    with pytest.raises(ValueError, match="same items"):
        agreement_across([[1, 0]], [[1, 0], [0, 1]])

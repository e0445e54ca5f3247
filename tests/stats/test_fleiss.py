"""Kappas of many raters: the worked example, statsmodels, brute force, and the limits."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from judge.stats.agreement import (
    class_kappa,
    count_table,
    draw_raters,
    fleiss_kappa,
    randolph_kappa,
)

WORKED = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""Ten items, fourteen raters, five classes: P is 0.378, E is 0.213."""

RATINGS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=12)


def by_definition(ratings: list[list[str]]) -> float | None:
    """Fleiss's kappa from pairs and shares, item by item, without a table."""
    paired = [answers for answers in ratings if len(answers) >= 2]
    if not paired:
        return None
    observed = sum(
        sum(a == b for a, b in pairs) / len(pairs)
        for pairs in (list(combinations(answers, 2)) for answers in paired)
    ) / len(paired)
    shares: dict[str, float] = defaultdict(float)
    for answers in paired:
        for answer in answers:
            shares[answer] += 1 / (len(answers) * len(paired))
    expected = sum(share**2 for share in shares.values())
    return None if len(shares) == 1 else (observed - expected) / (1 - expected)


def test_worked_example() -> None:
    assert fleiss_kappa(WORKED) == pytest.approx(0.210, abs=5e-4)
    assert randolph_kappa(WORKED) == pytest.approx((0.378 - 0.2) / 0.8, abs=5e-4)


def test_two_items_by_hand() -> None:
    # P = (1 + 1/3) / 2 = 2/3; shares 5/6 and 1/6, E = 26/36.
    assert fleiss_kappa([[3, 0], [2, 1]]) == pytest.approx((2 / 3 - 26 / 36) / (10 / 36))


def test_items_with_different_numbers_of_raters_by_hand() -> None:
    # P = (1 + 0) / 2; shares (3/3 + 1/2) / 2 = 3/4 and 1/4, E = 5/8. The single rating is left out.
    assert fleiss_kappa([[3, 0], [1, 1], [0, 1]]) == pytest.approx((1 / 2 - 5 / 8) / (3 / 8))


@pytest.mark.parametrize("raters", [2, 3, 9])
def test_against_statsmodels(raters: int) -> None:
    chance = random.Random(raters)
    ratings = [[chance.choice("aaab") for _ in range(raters)] for _ in range(30)]
    table = count_table(ratings, "abc")
    assert fleiss_kappa(table) == pytest.approx(statsmodels_kappa(table, method="fleiss"))
    assert randolph_kappa(table) == pytest.approx(statsmodels_kappa(table, method="randolph"))
    for column in (0, 1):
        binary = [[row[column], raters - row[column]] for row in table.tolist()]
        assert class_kappa(table, column) == pytest.approx(statsmodels_kappa(binary))


@given(RATINGS)
def test_against_the_definition(ratings: list[list[str]]) -> None:
    expected = by_definition(ratings)
    found = fleiss_kappa(count_table(ratings, "abc"))
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


@given(RATINGS, st.randoms(use_true_random=False))
def test_range_and_order(ratings: list[list[str]], chance: random.Random) -> None:
    found = fleiss_kappa(count_table(ratings, "abc"))
    if found is not None:
        fewest = min(len(answers) for answers in ratings if len(answers) >= 2)
        assert -1 / (fewest - 1) - 1e-9 <= found <= 1
    shuffled = [chance.sample(answers, len(answers)) for answers in ratings]
    chance.shuffle(shuffled)
    again = fleiss_kappa(count_table(shuffled, "cab"))
    assert again == (None if found is None else pytest.approx(found, abs=1e-9))


@given(RATINGS)
def test_free_marginals_range(ratings: list[list[str]]) -> None:
    found = randolph_kappa(count_table(ratings, "abc"))
    assert found is None or -1 / 2 - 1e-9 <= found <= 1


@pytest.mark.parametrize(
    ("counts", "fixed", "free"),
    [
        ([[3, 0], [0, 3]], 1.0, 1.0),
        ([[1, 1], [1, 1]], -1.0, -1.0),
        ([[3, 0], [3, 0]], None, 1.0),
        ([[1, 0], [0, 1]], None, None),
        ([[2], [2]], None, None),
    ],
)
def test_limits(counts: list[list[int]], fixed: float | None, free: float | None) -> None:
    assert fleiss_kappa(counts) == (None if fixed is None else pytest.approx(fixed))
    assert randolph_kappa(counts) == (None if free is None else pytest.approx(free))


def test_free_marginals_count_classes_that_nobody_chose() -> None:
    half = [[2, 0], [1, 1]]
    assert randolph_kappa(half) == pytest.approx(0.0)
    assert randolph_kappa([[*row, 0] for row in half]) == pytest.approx((1 / 2 - 1 / 3) / (2 / 3))


def test_a_class_that_nobody_chose_has_no_kappa() -> None:
    assert class_kappa([[2, 1, 0], [0, 3, 0]], 2) is None
    with pytest.raises(IndexError):
        class_kappa([[2, 1]], 2)


def test_of_two_classes_both_have_the_kappa_of_all() -> None:
    table = [[3, 1], [0, 4], [2, 2], [4, 0]]
    assert class_kappa(table, 0) == class_kappa(table, 1) == pytest.approx(fleiss_kappa(table))


def test_raters_are_drawn_from_the_items_own() -> None:
    ratings = [list("aabbbcc"), list("ab"), list("aaaaa")]
    drawn = draw_raters(ratings, 5, seed=1)
    assert [len(answers) for answers in drawn] == [5, 0, 5]
    assert not Counter(drawn[0]) - Counter(ratings[0])
    assert drawn == draw_raters(ratings, 5, seed=1)
    assert any(draw_raters(ratings, 5, seed=seed)[0] != drawn[0] for seed in range(2, 9))
    with pytest.raises(ValueError, match="at least two"):
        draw_raters(ratings, 1)


def test_all_raters_drawn_are_all_raters() -> None:
    ratings = [list("aab"), list("abc"), list("ccc")]
    drawn = count_table(draw_raters(ratings, 3, seed=7), "abc")
    assert drawn.tolist() == count_table(ratings, "abc").tolist()

"""Votes: majorities, effective votes of a panel, flips between seeds, position effect."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.stats.intervals import Estimate
from judge.stats.votes import (
    Threshold,
    effective_votes,
    flip_rate,
    majorities,
    majority,
    position_effect,
)

# ---------------------------------------------------------------- majority


FOUR_OF_FIVE = Threshold.parse("4/5")


@pytest.mark.parametrize(
    ("text", "share", "least"),
    [
        ("0.75", Fraction(3, 4), 1),
        ("75%", Fraction(3, 4), 1),
        ("4/5", Fraction(4, 5), 4),
        (" 1 ", Fraction(1), 1),
    ],
)
def test_parsed(text: str, share: Fraction, least: int) -> None:
    assert Threshold.parse(text) == Threshold(share, least)


@pytest.mark.parametrize(
    "text", ["", "most", "0", "1.2", "-0.5", "5/4", "4/0", "a/b", "1/2/3", "-4/-5"]
)
def test_what_is_no_threshold(text: str) -> None:
    with pytest.raises(UsageError, match="majority"):
        Threshold.parse(text)


@pytest.mark.parametrize(
    ("answers", "threshold", "expected"),
    [
        ("yyn", "half", "y"),
        ("yn", "half", None),
        ("yynm", "half", None),
        ("y", "half", "y"),
        ("", "half", None),
        ("yyyn", "0.75", "y"),
        ("yyn", "0.75", None),
        ("yyyyn", "4/5", "y"),
        ("yyynn", "4/5", None),
        ("yyyy", "4/5", "y"),
        ("yyy", "4/5", None),
        ("yyyynn", "4/5", None),
        ("yynn", "0.5", None),
        ("yyn", "2/3", "y"),
    ],
)
def test_majority(answers: str, threshold: str, expected: str | None) -> None:
    assert majority(answers, Threshold.parse(threshold)) == expected


def test_culturalbench_modes() -> None:
    single = ["a", "a", "a", "ab", "b"]
    several = ["ab", "ab", "ab", "abc", "c"]
    none = ["a", "a", "a", "b", "b"]
    found = [majorities(votes, FOUR_OF_FIVE) for votes in (single, several, none)]
    assert found == [["a"], ["a", "b"], []]


def test_a_rater_counts_once() -> None:
    assert majorities([["a", "a", "a", "a"], ["b"], ["b"], ["b"], ["b"]], FOUR_OF_FIVE) == ["b"]


# ---------------------------------------------------------------- effective_votes


def test_effective_votes_by_hand() -> None:
    # Errors of the judges over four items: (1, 0, 0, 1), (1, 0, 1, 0), (1, 0, 0, 1); correlations
    # 0, 1 and 0, mean 1/3, so 3 / (1 + 2/3).
    correct = [[False] * 3, [True] * 3, [True, False, True], [False, True, False]]
    assert effective_votes(correct) == pytest.approx(3 / (1 + 2 / 3))


def test_effective_votes_limits() -> None:
    assert effective_votes([[True] * 4, [False] * 4]) == pytest.approx(1)
    assert effective_votes([[True, False], [False, True]]) is None
    assert effective_votes([[True, True], [True, False]]) is None
    assert effective_votes([[True], [False]]) is None
    assert effective_votes([]) is None
    with pytest.raises(ValueError, match="rows of 1 and of 2 judges"):
        effective_votes([[True], [True, False]])


def test_shared_errors_with_known_correlation() -> None:
    """Each judge copies a common draw with probability c, so errors correlate by c²."""
    rng = np.random.default_rng(1)
    common = rng.random((20_000, 1)) < 0.7
    correct = np.where(rng.random((20_000, 5)) < 0.8, common, rng.random((20_000, 5)) < 0.7)
    assert effective_votes(correct.tolist()) == pytest.approx(5 / (1 + 4 * 0.64), rel=0.03)


@given(
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1), st.permutations("012")
)
def test_effective_votes_range_and_order(correct: list[list[bool]], order: list[str]) -> None:
    votes = effective_votes(correct)
    turned = effective_votes([[row[int(place)] for place in order] for row in correct])
    assert turned == (None if votes is None else pytest.approx(votes))
    assert votes is None or votes >= 1 - 1e-9


# ---------------------------------------------------------------- flips


asked = st.lists(st.lists(st.sampled_from(["yes", "no", None]), max_size=5), max_size=12)


def test_flips_by_hand() -> None:
    answers = [["yes", "yes", "yes"], ["yes", "no", "yes"], ["no", None], ["no"], []]
    estimate = flip_rate(answers, "abcde")
    # 0 of 3 pairs, 2 of 3, 1 of 1; two items were asked less than twice.
    assert estimate.value == pytest.approx((0 + 2 / 3 + 1) / 3)
    assert (estimate.n, estimate.of) == (3, 5)


@settings(deadline=None, max_examples=50)
@given(asked)
def test_counting_pairs(answers: list[list[str | None]]) -> None:
    rates = []
    for given_answers in answers:
        pairs = list(combinations(given_answers, 2))
        if pairs:
            rates.append(sum(a != b for a, b in pairs) / len(pairs))
    estimate = flip_rate(answers, range(len(answers)), draws=10)
    assert estimate.value == (pytest.approx(sum(rates) / len(rates)) if rates else None)


# ---------------------------------------------------------------- position


def test_position_by_hand() -> None:
    # Named a, b, c and then c, b, a.
    answers = [("a", "c"), ("a", "a"), ("c", "a"), ("b", "b"), ("a", "b"), (None, "a"), ("a", None)]
    effect = position_effect(answers, ["a", "b", "c"], range(7))
    assert effect.changed.value == 3 / 5
    assert effect.first.value == effect.last.value == 1 / 5
    assert (effect.changed.n, effect.changed.of) == (5, 7)
    turned = position_effect(answers, ["c", "b", "a"], range(7))
    assert (turned.first, turned.last) == (effect.last, effect.first)


def test_position_limits_and_errors() -> None:
    nothing = position_effect([(None, "a")], ["a", "b"], ["r"])
    assert nothing.changed == nothing.first == nothing.last == Estimate(None, n=0, of=1)
    with pytest.raises(ValueError, match="no order"):
        position_effect([], ["a"], [])
    with pytest.raises(ValueError, match="'c' is none of a, b"):
        position_effect([("a", "c")], ["a", "b"], ["r"])

"""Flip rate over seeds, by hand and by counting pairs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.votes import flip_rate

asked = st.lists(st.lists(st.sampled_from(["yes", "no", None]), max_size=5), max_size=12)


def test_by_hand() -> None:
    answers = [["yes", "yes", "yes"], ["yes", "no", "yes"], ["no", None], ["no"], []]
    estimate = flip_rate(answers, "abcde")
    # 0 of 3 pairs, 2 of 3, 1 of 1; two items were asked less than twice.
    assert estimate.value == pytest.approx((0 + 2 / 3 + 1) / 3)
    assert (estimate.n, estimate.of) == (3, 5)


def test_steady_judge_has_an_upper_bound() -> None:
    estimate = flip_rate([["yes", "yes"]] * 30, range(30))
    assert (estimate.value, estimate.low) == (0.0, 0.0)
    assert estimate.high == pytest.approx(1 - 0.025 ** (1 / 30))


def test_more_seeds_do_not_raise_it() -> None:
    """Half the answers yes: two askings differ half the time, whatever the number of seeds."""
    few = flip_rate([["yes", "no"], ["yes", "yes"], ["no", "yes"], ["no", "no"]], range(4))
    many = flip_rate([["yes", "no"] * 500], ["a"])
    assert few.value == 0.5
    assert many.value == pytest.approx(0.5, abs=0.001)


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

"""Effective votes and the panel against its best judge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.intervals import Estimate
from judge.stats.votes import (
    effective_votes,
    effective_votes_estimate,
    panel_against_best,
)


def test_by_hand() -> None:
    # Errors of the judges over four items: (1, 0, 0, 1), (1, 0, 1, 0), (1, 0, 0, 1); correlations
    # 0, 1 and 0, mean 1/3, so 3 / (1 + 2/3).
    correct = [[False] * 3, [True] * 3, [True, False, True], [False, True, False]]
    assert effective_votes(correct) == pytest.approx(3 / (1 + 2 / 3))


def test_limits() -> None:
    assert effective_votes([[True] * 4, [False] * 4]) == pytest.approx(1)
    assert effective_votes([[True, False], [False, True]]) is None
    assert effective_votes([[True, True], [True, False]]) is None
    assert effective_votes([[True], [False]]) is None
    assert effective_votes([]) is None
    with pytest.raises(ValueError, match="rows of 1 and of 2 judges"):
        effective_votes([[True], [True, False]])


def test_a_judge_that_never_errs_has_no_correlation_and_counts_as_the_others() -> None:
    two_alike = [[True, True, True], [False, False, True]]
    assert effective_votes(two_alike) == pytest.approx(1)


def test_independent_judges_are_worth_their_number() -> None:
    correct = (np.random.default_rng(0).random((4000, 3)) < 0.8).tolist()
    assert effective_votes(correct) == pytest.approx(3, abs=0.15)
    estimate = effective_votes_estimate(correct[:300], range(300), draws=200)
    assert estimate.low is not None and estimate.high is not None
    assert estimate.low < 3 < estimate.high
    assert estimate.n == 300


def test_shared_errors_with_known_correlation() -> None:
    """Each judge copies a common draw with probability c, so errors correlate by c²."""
    rng = np.random.default_rng(1)
    common = rng.random((20_000, 1)) < 0.7
    correct = np.where(rng.random((20_000, 5)) < 0.8, common, rng.random((20_000, 5)) < 0.7)
    assert effective_votes(correct.tolist()) == pytest.approx(5 / (1 + 4 * 0.64), rel=0.03)


@given(
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1), st.permutations("012")
)
def test_range_and_order(correct: list[list[bool]], order: list[str]) -> None:
    votes = effective_votes(correct)
    turned = effective_votes([[row[int(place)] for place in order] for row in correct])
    assert turned == (None if votes is None else pytest.approx(votes))
    assert votes is None or votes >= 1 - 1e-9


def test_panel_against_best() -> None:
    correct = [[True, False], [True, True], [False, True], [True, False]] * 10
    panel = [True, True, True, False] * 10
    compared = panel_against_best(panel, correct, range(40))
    assert compared is not None
    assert (compared.best, compared.panel.value, compared.single.value) == (0, 0.75, 0.75)
    assert compared.difference.value == 0
    assert compared.difference.low is not None and compared.difference.high is not None
    assert compared.difference.low < 0 < compared.difference.high
    # Paired: a panel that is its best judge differs from it nowhere.
    same = panel_against_best([row[0] for row in correct], correct, range(40))
    assert same is not None
    assert same.difference == Estimate(0.0, n=40, of=40)


def test_panel_without_items_or_judges() -> None:
    assert panel_against_best([], [], []) is None
    with pytest.raises(ValueError, match="at least one judge"):
        panel_against_best([True], [[]], ["a"])
    with pytest.raises(ValueError, match="1 answers, 0 rows, 1 clusters"):
        panel_against_best([True], [], ["a"])

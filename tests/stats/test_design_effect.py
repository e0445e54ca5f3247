"""Kish's design effect: by hand, by scipy's analysis of variance, by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import f_oneway

from judge.stats.labels import design_effect

Clusters = st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=2, max_size=8)


def flat(clusters: list[list[bool]]) -> list[tuple[int, bool]]:
    return [(name, outcome) for name, members in enumerate(clusters) for outcome in members]


def test_by_hand() -> None:
    # Clusters go together wholly: three of four tell nothing new.
    assert design_effect(flat([[True] * 4, [False] * 4])) == 4
    # Halves in each: MSB 0, so r is negative and counts as 0.
    assert design_effect(flat([[True, False], [True, False]])) == 1
    # One whole, one mixed: mean 3/4, MSB = 2 (1/16 + 1/16) = 1/4, MSW = (1/2) / 2 = 1/4, r 0.
    assert design_effect(flat([[True, True], [True, False]])) == 1
    # Sizes 2, 2, 2 with 2, 1, 0 passed: MSB = 2 (1/4 + 1/4) / 2 = 1/2, MSW = (1/2) / 3 = 1/6,
    # r = (1/2 - 1/6) / (1/2 + 1/6) = 1/2.
    assert design_effect(flat([[True] * 2, [True, False], [False] * 2])) == pytest.approx(1.5)


def test_undefined_and_single_members() -> None:
    assert design_effect([]) is None
    assert design_effect([("a", True), ("a", False)]) is None
    assert design_effect(flat([[True, True], [True]])) is None
    assert design_effect(flat([[True], [False], [True]])) == 1


@given(Clusters)
def test_against_an_analysis_of_variance(clusters: list[list[bool]]) -> None:
    sizes = np.array([len(one) for one in clusters])
    n = int(sizes.sum())
    outcomes = {outcome for one in clusters for outcome in one}
    assume(len(outcomes) == 2 and n > len(clusters))
    assume(any(len(set(one)) == 2 for one in clusters))
    ratio = f_oneway(*[np.array(one, dtype=float) for one in clusters]).statistic
    usual = (n - (sizes**2).sum() / n) / (len(clusters) - 1)
    correlation = max(0.0, (ratio - 1) / (ratio + usual - 1))
    expected = 1 + ((sizes**2).sum() / n - 1) * correlation
    assert design_effect(flat(clusters)) == pytest.approx(expected, abs=1e-9)


@given(Clusters, st.randoms(use_true_random=False))
def test_range_and_order(clusters: list[list[bool]], order: object) -> None:
    given_order = flat(clusters)
    found = design_effect(given_order)
    shuffled = list(given_order)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert design_effect(shuffled) == (None if found is None else pytest.approx(found))
    if found is not None:
        n = len(given_order)
        assert 1 <= found <= sum(len(one) ** 2 for one in clusters) / n + 1e-9


def test_it_is_the_variance_that_clustering_adds() -> None:
    random = np.random.default_rng(7)
    stories, values, draws = 60, 5, 1500
    # Beta(2, 2) chances a story: correlation 1 / (2 + 2 + 1), so deff = 1 + 4 / 5.
    passed = random.random((draws, stories, values)) < random.beta(2, 2, (draws, stories, 1))
    widened = passed.mean(axis=(1, 2)).var() / (0.25 / (stories * values))
    told = [design_effect(flat(passed[draw].tolist())) for draw in range(200)]
    assert widened == pytest.approx(1.8, rel=0.1)
    assert np.mean([one for one in told if one is not None]) == pytest.approx(1.8, rel=0.05)

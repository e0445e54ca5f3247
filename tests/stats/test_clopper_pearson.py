"""The exact one-sided bounds, by hand, against scipy's and by their definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from judge.stats.intervals import lower_bound, upper_bound


def test_by_hand() -> None:
    # None of 10 fails: p^10 = 0.05 at the lower bound.
    assert lower_bound(10, 10) == pytest.approx(0.05**0.1)
    assert upper_bound(0, 10) == pytest.approx(1 - 0.05**0.1)
    # The rule of three: no failure in n leaves up to about 3 / n.
    assert upper_bound(0, 300) == pytest.approx(0.01, abs=2e-4)
    assert (lower_bound(0, 0), upper_bound(0, 0)) == (0.0, 1.0)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_against_two_libraries(counted: tuple[int, int]) -> None:
    successes, n = counted
    by_scipy = binomtest(successes, n, alternative="greater").proportion_ci(0.95)
    assert lower_bound(successes, n) == pytest.approx(by_scipy.low, abs=1e-9)
    low, high = proportion_confint(successes, n, alpha=0.1, method="beta")
    assert lower_bound(successes, n) == pytest.approx(low, abs=1e-9)
    assert upper_bound(successes, n) == pytest.approx(high, abs=1e-9)


@given(st.integers(1, 80), st.floats(0.01, 0.99), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_errs_no_more_often_than_it_says(n: int, share: float, level: float) -> None:
    wrong = sum(
        binom.pmf(seen, n, share)
        for seen in range(n + 1)
        if lower_bound(seen, n, level=level) > share
    )
    assert wrong <= 1 - level + 1e-9


@pytest.mark.parametrize(("successes", "n", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_impossible(successes: int, n: int, level: float) -> None:
    with pytest.raises(ValueError, match=r"trials|level"):
        lower_bound(successes, n, level=level)

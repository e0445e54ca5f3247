"""Intervals of a share: by hand, against scipy and statsmodels, by their definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from judge.stats.intervals import Estimate, exact_interval, lower_bound, wilson

Counted = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_by_hand() -> None:
    # 0 of 10: the upper limit is z^2 / (n + z^2) = 3.8415 / 13.8415.
    found = wilson(0, 10)
    assert (found.value, found.low, found.n, found.of) == (0.0, 0.0, 10, 10)
    assert found.high == pytest.approx(0.277533, abs=1e-6)
    assert wilson(0, 0) == Estimate(None)
    # None of 10 fails: p^10 = 0.05 at the lower bound.
    assert lower_bound(10, 10) == pytest.approx(0.05**0.1)
    assert lower_bound(0, 0) == 0.0
    # Clopper and Pearson's interval of 4 in 10 is 0.1216 to 0.7376 in every table of it.
    assert exact_interval(4, 10) == pytest.approx((0.1216, 0.7376), abs=5e-5)
    assert exact_interval(0, 0) is None


@given(Counted, st.sampled_from([0.8, 0.95, 0.99]))
def test_against_other_libraries(counted: tuple[int, int], level: float) -> None:
    successes, n = counted
    found = wilson(successes, n, level=level)
    wanted = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    assert (found.low, found.high) == pytest.approx(wanted, abs=1e-9)
    wanted = proportion_confint(successes, n, alpha=1 - level, method="beta")
    assert exact_interval(successes, n, level=level) == pytest.approx(wanted, abs=1e-9)
    one_sided = binomtest(successes, n, alternative="greater").proportion_ci(level)
    assert lower_bound(successes, n, level=level) == pytest.approx(one_sided.low, abs=1e-9)


@given(st.integers(1, 80), st.floats(0.01, 0.99), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_bound_errs_no_more_often_than_it_says(n: int, share: float, level: float) -> None:
    wrong = sum(
        binom.pmf(seen, n, share)
        for seen in range(n + 1)
        if lower_bound(seen, n, level=level) > share
    )
    assert wrong <= 1 - level + 1e-9


@pytest.mark.parametrize(("successes", "n", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_impossible(successes: int, n: int, level: float) -> None:
    for interval in (wilson, lower_bound, exact_interval):
        with pytest.raises(ValueError, match=r"trials|level"):
            interval(successes, n, level=level)


@pytest.mark.parametrize(
    ("estimate", "told"),
    [
        (Estimate(0.7123, 0.654, 0.766), "0.71 (0.65 to 0.77)"),
        (Estimate(0.7123, low=0.654), "0.71"),
        (Estimate(None, n=0, of=4), "–"),
    ],
)
def test_an_estimate_as_it_is_printed(estimate: Estimate, told: str) -> None:
    assert str(estimate) == told

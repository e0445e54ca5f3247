"""Means and shares with intervals; the exact binomial interval at the limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.bootstrap import Resamples, bootstrap, mean_estimate, share_estimate
from judge.stats.intervals import Estimate, exact_interval

VALUES = [1.0, 0.0, None, 1.0, 0.5, None, 1.0, 0.0, 1.0, 1.0]
CLUSTERS = list("aabbccddee")


def test_same_as_the_plain_bootstrap() -> None:
    def mean(values: object) -> float | None:
        there = [value for value in values if value is not None]  # type: ignore[attr-defined]
        return sum(there) / len(there) if there else None

    plain = bootstrap(mean, VALUES, CLUSTERS, seed=4)
    estimate = mean_estimate(VALUES, Resamples(CLUSTERS, seed=4))
    assert estimate.value == pytest.approx(5.5 / 8)
    assert (estimate.low, estimate.high) == (pytest.approx(plain.low), pytest.approx(plain.high))
    assert (estimate.n, estimate.of) == (8, 10)
    assert share_estimate(VALUES, Resamples(CLUSTERS, seed=4)) == estimate


@pytest.mark.parametrize(
    ("value", "low", "high"), [(1.0, 0.025**0.2, 1.0), (0.0, 0, 1 - 0.025**0.2)]
)
def test_all_alike_counts_clusters(value: float, low: float, high: float) -> None:
    estimate = share_estimate([value] * 10, Resamples(CLUSTERS))
    assert estimate.value == value
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))
    assert mean_estimate([value] * 10, Resamples(CLUSTERS)) == Estimate(value, n=10, of=10)


def test_a_cluster_that_the_mean_leaves_out_is_none() -> None:
    values = [float(number % 2) for number in range(12)]
    resamples = Resamples(range(12), fewest=10)
    assert mean_estimate(values, resamples).low is not None
    few = mean_estimate([*values[:9], None, None, None], resamples)
    assert few.value == pytest.approx(4 / 9)
    assert (few.low, few.high, few.n, few.of) == (None, None, 9, 12)
    assert mean_estimate([*values[:10], None, None], resamples).low is not None


def test_nothing_there() -> None:
    assert share_estimate([None, None], Resamples("ab")) == Estimate(None, n=0, of=2)
    assert share_estimate([], Resamples("")) == Estimate(None)


def test_errors() -> None:
    with pytest.raises(ValueError, match="1 values for 2 items"):
        mean_estimate([1.0], Resamples("ab"))
    with pytest.raises(ValueError, match="outside"):
        share_estimate([1.5, 0.0], Resamples("ab"))


def test_exact_interval() -> None:
    """Clopper and Pearson's interval of 4 in 10 is 0.1216 to 0.7376 in every table of it."""
    assert exact_interval(4, 10) == (
        pytest.approx(0.1216, abs=5e-5),
        pytest.approx(0.7376, abs=5e-5),
    )
    assert exact_interval(0, 0) is None
    with pytest.raises(ValueError, match="3 hits in 2 trials"):
        exact_interval(3, 2)


@given(st.integers(1, 50).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_exact_interval_holds_the_share(pair: tuple[int, int]) -> None:
    hits, n = pair
    ends = exact_interval(hits, n)
    assert ends is not None
    assert 0 <= ends[0] <= hits / n <= ends[1] <= 1

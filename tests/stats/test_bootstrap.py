"""Cluster bootstrap: draws, intervals, means, shares, paired differences, and where none is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap as scipy_bootstrap

from judge.stats.bootstrap import (
    Resamples,
    bootstrap,
    mean_estimate,
    paired_difference,
    share_estimate,
)
from judge.stats.intervals import Estimate


def mean(values: object) -> float | None:
    numbers = list(values)  # type: ignore[call-overload]
    return sum(numbers) / len(numbers) if numbers else None


RNG = np.random.default_rng(5)
SKEWED: list[float] = RNG.exponential(size=60).tolist()


def variance(values: Sequence[float]) -> float:
    """Divided by n: biased and skewed, so that plain percentiles lie elsewhere."""
    return float(np.var(values))


@pytest.mark.parametrize(("statistic", "within"), [(mean, 0.02), (variance, 0.015)])
def test_same_as_scipys_bca_where_every_item_is_its_own_cluster(
    statistic: Callable[[Sequence[float]], float | None], within: float
) -> None:
    ours = bootstrap(statistic, SKEWED, range(60), draws=8000)
    theirs = scipy_bootstrap(
        (SKEWED,),
        statistic,
        n_resamples=8000,
        method="BCa",
        vectorized=False,
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert ours.value == pytest.approx(statistic(SKEWED))
    assert (ours.n, ours.of) == (60, 60)
    assert ours.low == pytest.approx(theirs.low, abs=within)
    assert ours.high == pytest.approx(theirs.high, abs=within)


def test_bias_correction_by_hand() -> None:
    """30 % of the draws lie below the sample's value: z0 is -0.5244, and the ends are the draws at
    the normal curve's shares below 2 z0 - 1.96 = -3.009 and 2 z0 + 1.96 = 0.911."""
    draws = np.arange(10_000) / 10_000
    no_acceleration = np.full(2, 0.3)
    estimate = Resamples("ab", draws=10_000).estimate(
        np.concatenate([[0.3], draws, no_acceleration]), n=2, of=2
    )
    assert estimate.low == pytest.approx(0.00131, abs=2e-4)
    assert estimate.high == pytest.approx(0.8189, abs=2e-4)


def test_items_that_only_repeat_their_cluster_bring_no_certainty() -> None:
    once = bootstrap(mean, SKEWED, range(60))
    fourfold = bootstrap(
        mean, [x for x in SKEWED for _ in range(4)], [i for i in range(60) for _ in range(4)]
    )
    assert fourfold.low == pytest.approx(once.low)
    assert fourfold.high == pytest.approx(once.high)
    assert fourfold.n == 240


@pytest.mark.parametrize(("known", "has_interval"), [(1, False), (2, False), (3, True)])
def test_undefined_draws(known: int, has_interval: bool) -> None:
    """A draw misses k of 60 items with probability (1 - k / 60)^60: 0.36, 0.13, 0.046."""
    items = [float(i) if i < known else None for i in range(60)]
    estimate = bootstrap(lambda drawn: mean(x for x in drawn if x is not None), items, range(60))
    assert estimate.value == pytest.approx((known - 1) / 2)
    assert (estimate.low is not None) == has_interval


def test_errors() -> None:
    with pytest.raises(ValueError, match="2 items and 1 clusters"):
        bootstrap(mean, [1.0, 2.0], ["a"])
    with pytest.raises(ValueError, match="draws is 0"):
        bootstrap(mean, [1.0], ["a"], draws=0)
    with pytest.raises(ValueError, match=r"level is 1\.0"):
        bootstrap(mean, SKEWED, range(60), level=1.0)
    with pytest.raises(ValueError, match="1 values for 2 items"):
        mean_estimate([1.0], Resamples("ab"))
    with pytest.raises(ValueError, match="outside"):
        share_estimate([1.5, 0.0], Resamples("ab"))
    with pytest.raises(ValueError, match="1 scores and 2"):
        paired_difference([1.0], [1.0, 0.0], Resamples("a"))


def test_nothing_to_draw_from_and_draws_that_do_not_differ() -> None:
    assert bootstrap(mean, [], []) == share_estimate([], Resamples("")) == Estimate(None)
    assert bootstrap(lambda items: None, SKEWED, range(60)) == Estimate(None, n=60, of=60)
    assert bootstrap(mean, [1.0] * 20, range(20)) == Estimate(1.0, n=20, of=20)
    assert bootstrap(mean, [0.0, 1.0], ["a", "a"]) == Estimate(0.5, n=2, of=2)
    found = paired_difference([1.0, 0.0], [1.0, 0.0], Resamples("ab"))
    assert found == Estimate(0.0, n=2, of=2)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 6)), min_size=1, max_size=30))
def test_sums_are_weighted_sums(items: list[tuple[float, int]]) -> None:
    values = np.array([value for value, _ in items])
    clusters = [cluster for _, cluster in items]
    resamples = Resamples(clusters, draws=20)
    weights = resamples.weights()
    assert np.allclose(resamples.sums(values[:, None])[:, 0], weights @ values)
    assert (weights[0] == 1).all()
    first_of_cluster = [clusters.index(name) for name in dict.fromkeys(clusters)]
    assert (weights[1:21][:, first_of_cluster].sum(axis=1) == len(first_of_cluster)).all()
    estimate = resamples.estimate(weights @ values, n=len(items), of=len(items))
    if estimate.low is not None and estimate.high is not None:
        drawn = (weights @ values)[1:21]
        assert drawn.min() <= estimate.low <= estimate.high <= drawn.max()


# ---------------------------------------------------------------- means and shares

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


# ---------------------------------------------------------------- paired differences

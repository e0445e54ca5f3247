"""Cluster bootstrap: draws, intervals, means, shares, paired differences, undefined cases."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from judge.stats.bootstrap import (
    FEWEST,
    Resamples,
    _bca_levels,
    mean_estimate,
    paired_difference,
    share_estimate,
)
from judge.stats.intervals import Estimate, paired_shares

SKEWED: list[float] = np.random.default_rng(5).exponential(size=60).tolist()


def mean(values: Sequence[float | None], clusters: Iterable[Hashable], **more: int) -> Estimate:
    return mean_estimate(values, Resamples(list(clusters), **more))


def test_same_as_scipys_bca_where_every_item_is_its_own_cluster() -> None:
    ours = mean(SKEWED, range(60), draws=8000)
    theirs = scipy_bootstrap(
        (SKEWED,), np.mean, n_resamples=8000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.value == pytest.approx(np.mean(SKEWED))
    assert (ours.n, ours.of) == (60, 60)
    assert ours.low == pytest.approx(theirs.low, abs=0.002)
    assert ours.high == pytest.approx(theirs.high, abs=0.002)


def test_draws_on_both_sides_alike_are_cut_at_plain_percentiles() -> None:
    levels = _bca_levels(0.0, np.array([-1.0, 0.0, 1.0]), np.zeros(0))
    assert levels == pytest.approx([0.025, 0.975])


@pytest.mark.parametrize(("known", "has_interval"), [(1, False), (2, False), (3, True)])
def test_undefined_draws(known: int, has_interval: bool) -> None:
    """A draw misses k of 60 items with probability (1 - k / 60)^60: 0.36, 0.13, 0.046."""
    estimate = mean([float(i) if i < known else None for i in range(60)], range(60))
    assert estimate.value == pytest.approx((known - 1) / 2)
    assert (estimate.low is not None) == has_interval


def test_nothing_to_draw_from_and_draws_that_do_not_differ() -> None:
    assert mean([], []) == share_estimate([], Resamples("")) == Estimate(None)
    assert mean([None] * 60, range(60)) == Estimate(None, n=0, of=60)
    assert mean([1.0] * 20, range(20)) == Estimate(1.0, n=20, of=20)
    assert mean([0.0, 1.0], ["a", "a"]) == Estimate(0.5, n=2, of=2)
    found = paired_difference([1.0, 0.0], [1.0, 0.0], Resamples("aa"))
    assert found == Estimate(0.0, n=2, of=2)


def test_a_difference_of_independent_hits_has_the_interval_for_few() -> None:
    """Of five pairs one lacks a score, and only the second is right on one of four."""
    first, second = [1.0, 0.0, 0.0, None, 1.0], [1.0, 1.0, 0.0, 1.0, 1.0]
    for fewest in (1, FEWEST):
        assert paired_difference(first, second, Resamples("abcde", fewest=fewest)) == replace(
            paired_shares(0, 1, 4), of=5
        )
    for other in (Resamples("abcaa"), Resamples("abcde", by_weight=[1, 2, 1, 1, 1])):
        found = paired_difference(first, second, other)
        assert found.low is None or found.low != paired_shares(0, 1, 4).low
    halves = paired_difference(first, [one and one / 2 for one in second], Resamples("abcde"))
    assert halves.value == pytest.approx(-0.125)


# ---------------------------------------------------------------- means and shares

VALUES = [1.0, 0.0, None, 1.0, 0.5, None, 1.0, 0.0, 1.0, 1.0]
CLUSTERS = list("aabbccddee")


def test_the_mean_of_what_is_there() -> None:
    estimate = mean(VALUES, CLUSTERS, seed=4)
    assert (estimate.value, estimate.n, estimate.of) == (pytest.approx(5.5 / 8), 8, 10)
    assert share_estimate(VALUES, Resamples(CLUSTERS, seed=4)) == estimate


@pytest.mark.parametrize(
    ("value", "low", "high"), [(1.0, 0.025**0.2, 1.0), (0.0, 0, 1 - 0.025**0.2)]
)
def test_all_alike_counts_clusters(value: float, low: float, high: float) -> None:
    estimate = share_estimate([value] * 10, Resamples(CLUSTERS))
    assert estimate.value == value
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))
    assert mean_estimate([value] * 10, Resamples(CLUSTERS)) == Estimate(value, n=10, of=10)
    # One item of ten stands for nine: the ten are worth 18^2 / (81 + 9) = 3.6, the clusters 1.8.
    weighted = share_estimate([value] * 10, Resamples(CLUSTERS, by_weight=[9] + [1] * 9))
    assert weighted.low == pytest.approx(value * 0.025 ** (1 / 1.8))


def test_a_cluster_that_the_mean_leaves_out_is_none() -> None:
    values = [float(number % 2) for number in range(12)]
    resamples = Resamples(range(12), fewest=10)
    assert mean_estimate(values, resamples).low is not None
    few = mean_estimate([*values[:9], None, None, None], resamples)
    assert few.value == pytest.approx(4 / 9)
    assert (few.low, few.high, few.n, few.of) == (None, None, 9, 12)
    assert mean_estimate([*values[:10], None, None], resamples).low is not None

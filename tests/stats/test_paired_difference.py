"""Paired differences: by hand, against a bootstrap written out, and at the limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.bootstrap import Resamples, bootstrap, mean_estimate, paired_difference
from judge.stats.intervals import Estimate
from judge.stats.significance import mcnemar

FIRST = [1.0, 0.0, 1.0, 0.0, 0.5, None, 1.0, 0.0, 0.0, 1.0]
SECOND = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, None, 1.0]
CLUSTERS = list("aabbccddee")


def test_by_hand_and_against_a_bootstrap_of_pairs() -> None:
    pairs = list(zip(FIRST, SECOND, strict=True))

    def difference(drawn: object) -> float | None:
        both = [(a, b) for a, b in drawn if a is not None and b is not None]  # type: ignore[attr-defined]
        return sum(b for _, b in both) / len(both) - sum(a for a, _ in both) / len(both)

    plain = bootstrap(difference, pairs, CLUSTERS, seed=3)
    found = paired_difference(FIRST, SECOND, Resamples(CLUSTERS, seed=3))
    # 0, 1, 0, 0, 0.5, -, -1, 1, -, 0 over eight.
    assert found.value == pytest.approx(1.5 / 8)
    assert (found.n, found.of) == (8, 10)
    assert (found.low, found.high) == (pytest.approx(plain.low), pytest.approx(plain.high))


def test_what_makes_items_hard_for_both_cancels_out() -> None:
    first = [float(number % 2) for number in range(40)]
    second = [*first[:38], 1.0, 1.0]
    resamples = Resamples(range(40))
    found = paired_difference(first, second, resamples)
    alone = mean_estimate(first, resamples)
    assert found.low is not None and found.high is not None
    assert alone.low is not None and alone.high is not None
    assert found.high - found.low < (alone.high - alone.low) / 2


def test_two_that_never_differ() -> None:
    found = paired_difference([1.0, 0.0], [1.0, 0.0], Resamples("ab"))
    assert found == Estimate(0.0, n=2, of=2)
    assert paired_difference([None], [1.0], Resamples("a")) == Estimate(None, n=0, of=1)
    assert paired_difference([], [], Resamples("")) == Estimate(None)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30))
def test_of_hits_it_is_the_discordant_counts(pairs: list[tuple[int, int]]) -> None:
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    resamples = Resamples(range(len(pairs)), draws=20)
    found = paired_difference(first, second, resamples)
    counts = mcnemar(first, second)
    assert found.value == pytest.approx((counts.only_second - counts.only_first) / len(pairs))
    back = paired_difference(second, first, resamples)
    assert back.value == pytest.approx(-found.value if found.value else 0.0)


def test_different_items() -> None:
    with pytest.raises(ValueError, match="1 scores and 2"):
        paired_difference([1.0], [1.0, 0.0], Resamples("a"))
    with pytest.raises(ValueError, match="2 values for 1 items"):
        paired_difference([1.0, 0.0], [1.0, 0.0], Resamples("a"))

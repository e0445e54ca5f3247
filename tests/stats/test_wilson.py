"""Wilson's interval, by hand and against statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judge.stats.intervals import Estimate, score_limits, wilson


def test_by_hand() -> None:
    # 0 of 10: the upper limit is z^2 / (n + z^2) = 3.8415 / 13.8415.
    found = wilson(0, 10)
    assert (found.value, found.low, found.n, found.of) == (0.0, 0.0, 10, 10)
    assert found.high == pytest.approx(0.277533, abs=1e-6)
    assert wilson(0, 0) == Estimate(None)


@given(
    st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_against_statsmodels(counted: tuple[int, int], level: float) -> None:
    found = wilson(*counted, level=level)
    assert found.value is not None and found.low is not None and found.high is not None
    low, high = proportion_confint(*counted, alpha=1 - level, method="wilson")
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_half_the_items_make_it_wider() -> None:
    narrow, wide = score_limits(0.3, 100, 1.96), score_limits(0.3, 50, 1.96)
    assert wide[0] < narrow[0] and narrow[1] < wide[1]


@pytest.mark.parametrize(("successes", "n", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_impossible(successes: int, n: int, level: float) -> None:
    with pytest.raises(ValueError, match=r"trials|level"):
        wilson(successes, n, level=level)

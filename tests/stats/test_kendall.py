"""tau-c: the paper's worked example (appendix C.2), limits, and scipy as the second way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from judge.stats.significance import kendall_tau_c


def test_the_papers_example() -> None:
    # For the anchor A: [B, D, C] by text, [D, C, B] by values. Only C and D keep their order.
    by_text = {"B": 1, "D": 2, "C": 3}
    by_values = {"D": 1, "C": 2, "B": 3}
    found = kendall_tau_c(*([ranks[name] for name in "BCD"] for ranks in (by_text, by_values)))
    assert found == pytest.approx((1 - 2) / 3)


def test_limits() -> None:
    assert kendall_tau_c([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert kendall_tau_c([1, 2, 3, 4], [4, 3, 2, 1]) == -1


def test_ties_by_hand() -> None:
    # P = 4, Q = 0 of four things, two values in the first: 2 * 4 / (16 * 1/2).
    assert kendall_tau_c([1, 1, 2, 2], [1, 2, 3, 4]) == 1


@pytest.mark.parametrize("values", [([], []), ([1], [2]), ([1, 1, 1], [1, 2, 3])])
def test_undefined(values: tuple[list[float], list[float]]) -> None:
    assert kendall_tau_c(*values) is None


def test_bad_values() -> None:
    with pytest.raises(ValueError, match="one length"):
        kendall_tau_c([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="nan"):
        kendall_tau_c([1, np.nan], [1, 2])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=2, max_size=25))
def test_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = kendall_tau_c(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert found is None
    else:
        assert found == pytest.approx(kendalltau(first, second, variant="c").statistic)

"""Lexical variance: the paper's formula (appendix B.1) by hand, its rules, its interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.bootstrap import bootstrap
from judge.stats.text import lexical_variance, lexical_variance_estimate

THREE = np.array([[0.0, 0.2, 0.4], [0.2, 0.0, 0.6], [0.4, 0.6, 0.0]])


def test_by_hand() -> None:
    # 2 (0.04 + 0.16 + 0.36) = 1.12 over all pairs.
    assert lexical_variance(THREE) == pytest.approx(1.12 / 2 / 9)
    assert lexical_variance(THREE, rule="released") == pytest.approx(1.12 / 9)
    assert lexical_variance(THREE, rule="distinct") == pytest.approx(1.12 / 2 / 6)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8))
def test_of_numbers_it_is_their_variance(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.float64)
    distances = np.abs(values[:, None] - values)
    assert lexical_variance(distances) == pytest.approx(values.var(), abs=1e-9)
    assert lexical_variance(distances, rule="distinct") == pytest.approx(values.var(ddof=1))


def test_limits() -> None:
    assert lexical_variance(np.zeros((4, 4))) == 0
    assert lexical_variance(1 - np.eye(5)) == pytest.approx((5 - 1) / (2 * 5))


def test_a_texts_distance_to_itself_is_nothing() -> None:
    assert lexical_variance(THREE + np.eye(3)) == lexical_variance(THREE)


def test_undefined_below_two_texts() -> None:
    assert lexical_variance(np.zeros((1, 1))) is None
    assert lexical_variance(np.zeros((0, 0))) is None
    assert lexical_variance_estimate(np.zeros((0, 0)), of=3).as_json() == {
        "value": None,
        "low": None,
        "high": None,
        "n": 0,
        "of": 3,
    }


def test_bad_matrices() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        lexical_variance(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="nan"):
        lexical_variance(np.array([[0.0, np.nan], [np.nan, 0.0]]))


def test_interval_is_that_of_the_variance_of_numbers() -> None:
    values = np.random.default_rng(0).normal(size=30)
    found = lexical_variance_estimate(np.abs(values[:, None] - values), of=35)
    expected = bootstrap(lambda drawn: float(np.var(drawn)), values.tolist(), range(30))
    assert found.value == pytest.approx(expected.value)
    assert found.low == pytest.approx(expected.low)
    assert found.high == pytest.approx(expected.high)
    assert (found.n, found.of) == (30, 35)

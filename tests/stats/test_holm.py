"""Holm's adjustment, by hand and against statsmodels."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from judge.stats.significance import holm


def test_by_hand() -> None:
    # Sorted 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.04: the last two are carried up to 0.06.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.7]) == [0.7]
    assert holm([]) == []


@pytest.fixture(scope="module")
def no_collection() -> Iterator[None]:
    """statsmodels collects garbage at every call: a second where many tests ran before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)
        yield


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_against_statsmodels(no_collection: None, p_values: list[float]) -> None:
    expected = multipletests(p_values, method="holm")[1].tolist()
    assert holm(p_values) == pytest.approx(expected, abs=1e-12)


def test_no_p_value() -> None:
    with pytest.raises(ValueError, match="outside"):
        holm([0.5, 1.1])

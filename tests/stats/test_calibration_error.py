"""Calibration error and reliability bins: by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from judge.stats.classification import (
    ReliabilityBin,
    calibration_errors,
)


def found(
    probabilities: list[float], outcomes: list[bool], bins: int
) -> tuple[float, list[ReliabilityBin]]:
    weights = np.ones((1, len(outcomes)))
    errors, made = calibration_errors(
        np.array(probabilities), np.array(outcomes), weights, bins=bins
    )
    return float(errors[0]), made


def test_equal_probabilities_are_never_parted() -> None:
    assert [one.n for one in found([0.5] * 7 + [0.9], [True] * 8, bins=4)[1]] == [7, 1]
    error, bins = found([], [], bins=10)
    assert np.isnan(error) and bins == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60))
def test_against_scikit_learn(items: list[tuple[int, bool]]) -> None:
    probabilities, outcomes = [p / 20 for p, _ in items], [o for _, o in items]
    error, held = found(probabilities, outcomes, bins=5)
    if len(set(outcomes)) == 2:
        observed, promised = calibration_curve(
            outcomes, probabilities, n_bins=5, strategy="quantile", pos_label=True
        )
        assert [one.observed for one in held] == pytest.approx(list(observed))
        assert [one.mean_probability for one in held] == pytest.approx(list(promised))
    assert sum(one.n for one in held) == len(items)
    by_bins = sum(one.n * abs(one.mean_probability - one.observed) for one in held) / len(items)
    assert error == pytest.approx(by_bins)

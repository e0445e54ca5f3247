"""Calibration error and reliability bins, by hand and against scikit-learn's curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from judge.stats.calibration_error import (
    ReliabilityBin,
    calibration_error,
    error_if_calibrated,
    reliability_bins,
)

promises = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60)


def test_by_hand() -> None:
    probabilities, outcomes = [0.1, 0.2, 0.8, 1.0], [False, True, True, True]
    assert reliability_bins(probabilities, outcomes, bins=2, equal="width") == [
        ReliabilityBin(0.0, 0.5, pytest.approx(0.15), 0.5, 2),
        ReliabilityBin(0.5, 1.0, pytest.approx(0.9), 1.0, 2),
    ]
    # Half the items off by 0.35, half by 0.1.
    assert calibration_error(probabilities, outcomes, bins=2, equal="width") == pytest.approx(0.225)
    assert calibration_error(probabilities, outcomes, bins=1) == pytest.approx(0.75 - 0.525)


def test_error_if_calibrated() -> None:
    # One item of 0.5 is always off by a half; one of 1 never; of 0.2 by 0.2 or 0.8.
    assert error_if_calibrated([0.5]) == 0.5
    assert error_if_calibrated([1.0, 0.0]) == 0.0
    assert error_if_calibrated([0.2], draws=20_000) == pytest.approx(2 * 0.2 * 0.8, abs=0.01)
    assert error_if_calibrated([]) is None


def test_calibrated_probabilities_show_the_error_of_chance() -> None:
    rng = np.random.default_rng(4)
    probabilities = rng.random(200)
    shown = [
        calibration_error(probabilities.tolist(), list(rng.random(200) < probabilities))
        for _ in range(200)
    ]
    expected = error_if_calibrated(probabilities.tolist())
    assert expected == pytest.approx(np.mean([one for one in shown if one is not None]), abs=0.003)
    assert expected is not None and expected > 0.05


def test_equal_mass_halves_skewed_probabilities() -> None:
    probabilities = [0.01, 0.02, 0.03, 0.9]
    held = reliability_bins(probabilities, [False] * 4, bins=2)
    assert [one.n for one in held] == [2, 2]
    assert [
        one.n for one in reliability_bins(probabilities, [False] * 4, bins=2, equal="width")
    ] == [
        3,
        1,
    ]


def test_equal_probabilities_stay_together() -> None:
    held = reliability_bins([0.5] * 7 + [0.9], [True] * 8, bins=4)
    assert [one.n for one in held] == [7, 1]


def test_limits_and_errors() -> None:
    assert reliability_bins([], []) == []
    assert calibration_error([], []) is None
    with pytest.raises(ValueError, match="outside"):
        calibration_error([1.2], [True])
    with pytest.raises(ValueError, match="outside"):
        calibration_error([float("nan")], [True])
    with pytest.raises(ValueError, match="0 bins"):
        calibration_error([0.5], [True], bins=0)
    with pytest.raises(ValueError, match="2 probabilities and 1 outcomes"):
        calibration_error([0.5, 0.5], [True])


@settings(deadline=None)
@pytest.mark.parametrize(("equal", "strategy"), [("mass", "quantile"), ("width", "uniform")])
@given(items=promises)
def test_against_scikit_learn(equal: str, strategy: str, items: list[tuple[int, bool]]) -> None:
    probabilities, outcomes = [p / 20 for p, _ in items], [o for _, o in items]
    held = reliability_bins(probabilities, outcomes, bins=5, equal=equal)  # type: ignore[arg-type]
    observed, promised = (
        calibration_curve(outcomes, probabilities, n_bins=5, strategy=strategy, pos_label=True)
        if len(set(outcomes)) == 2
        else (
            [one.observed for one in held],
            [one.mean_probability for one in held],
        )
    )
    assert [one.observed for one in held] == pytest.approx(list(observed))
    assert [one.mean_probability for one in held] == pytest.approx(list(promised))
    assert sum(one.n for one in held) == len(items)
    error = calibration_error(probabilities, outcomes, bins=5, equal=equal)  # type: ignore[arg-type]
    by_bins = sum(one.n * abs(one.mean_probability - one.observed) for one in held) / len(items)
    assert error == pytest.approx(by_bins)
    assert error is not None and 0 <= error <= 1
    assert abs(np.mean(probabilities) - np.mean(outcomes)) <= error + 1e-9

"""Calibration error, reliability bins, risk against coverage: by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from judge.stats.calibration_error import (
    ReliabilityBin,
    RiskPoint,
    calibration_errors,
    error_if_calibrated,
    reliability_bins,
    risk_coverage,
)


def error(probabilities: list[float], outcomes: list[bool], bins: int = 10) -> float:
    found = calibration_errors(
        np.array(probabilities), np.array(outcomes), np.ones((1, len(outcomes))), bins=bins
    )
    return float(found[0])


def test_by_hand() -> None:
    probabilities, outcomes = [0.1, 0.2, 0.8, 1.0], [False, True, True, True]
    assert reliability_bins(probabilities, outcomes, bins=2) == [
        ReliabilityBin(0.1, 0.5, pytest.approx(0.15), 0.5, 2),
        ReliabilityBin(0.5, 1.0, pytest.approx(0.9), 1.0, 2),
    ]
    # Half the items off by 0.35, half by 0.1.
    assert error(probabilities, outcomes, bins=2) == pytest.approx(0.225)
    assert error(probabilities, outcomes, bins=1) == pytest.approx(0.75 - 0.525)
    # Equal probabilities are never parted.
    assert [one.n for one in reliability_bins([0.5] * 7 + [0.9], [True] * 8, bins=4)] == [7, 1]


def test_calibrated_probabilities_show_the_error_of_chance() -> None:
    # One item of 0.5 is always off by a half; one of 1 never; of 0.2 by 0.2 or 0.8.
    assert error_if_calibrated([0.5]) == 0.5
    assert error_if_calibrated([1.0, 0.0]) == 0.0
    assert error_if_calibrated([0.2], draws=20_000) == pytest.approx(2 * 0.2 * 0.8, abs=0.01)
    assert error_if_calibrated([]) is None
    rng = np.random.default_rng(4)
    drawn = rng.random(200)
    shown = [error(drawn.tolist(), list(rng.random(200) < drawn)) for _ in range(200)]
    expected = error_if_calibrated(drawn.tolist())
    assert expected is not None and expected > 0.05
    assert expected == pytest.approx(np.mean(shown), abs=0.003)


def test_limits_and_errors() -> None:
    assert reliability_bins([], []) == []
    assert np.isnan(error([], []))
    for probability in (1.2, float("nan")):
        with pytest.raises(ValueError, match="outside"):
            reliability_bins([probability], [True])
    with pytest.raises(ValueError, match="0 bins"):
        reliability_bins([0.5], [True], bins=0)
    with pytest.raises(ValueError, match="2 probabilities and 1 outcomes"):
        reliability_bins([0.5, 0.5], [True])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60))
def test_against_scikit_learn(items: list[tuple[int, bool]]) -> None:
    probabilities, outcomes = [p / 20 for p, _ in items], [o for _, o in items]
    held = reliability_bins(probabilities, outcomes, bins=5)
    if len(set(outcomes)) == 2:
        observed, promised = calibration_curve(
            outcomes, probabilities, n_bins=5, strategy="quantile", pos_label=True
        )
        assert [one.observed for one in held] == pytest.approx(list(observed))
        assert [one.mean_probability for one in held] == pytest.approx(list(promised))
    assert sum(one.n for one in held) == len(items)
    by_bins = sum(one.n * abs(one.mean_probability - one.observed) for one in held) / len(items)
    assert error(probabilities, outcomes, bins=5) == pytest.approx(by_bins)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1), st.randoms())
def test_risk_at_each_threshold_by_itself(items: list[tuple[int, bool]], random: object) -> None:
    points = risk_coverage([float(c) for c, _ in items], [hit for _, hit in items])
    for point in points:
        kept = [hit for c, hit in items if c >= point.threshold]
        assert (point.n, point.coverage) == (len(kept), len(kept) / len(items))
        assert point.risk == pytest.approx(kept.count(False) / len(kept))
    assert len(points) == len({c for c, _ in items})
    random.shuffle(items)  # type: ignore[attr-defined]
    assert risk_coverage([float(c) for c, _ in items], [hit for _, hit in items]) == points


def test_risk_by_hand() -> None:
    assert risk_coverage([0.6, 0.9, 0.8, 0.8], [False, True, True, False]) == [
        RiskPoint(0.9, 0.25, 0.0, 1),
        RiskPoint(0.8, 0.75, pytest.approx(1 / 3), 3),
        RiskPoint(0.6, 1.0, 0.5, 4),
    ]
    with pytest.raises(ValueError, match="1 confidences and 0 answers"):
        risk_coverage([0.5], [])

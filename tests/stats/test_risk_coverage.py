"""Risk against coverage, by hand and by brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.calibration_error import RiskPoint, risk_coverage


def test_by_hand() -> None:
    points = risk_coverage([0.6, 0.9, 0.8, 0.8], [False, True, True, False])
    assert points == [
        RiskPoint(0.9, 0.25, 0.0, 1),
        RiskPoint(0.8, 0.75, pytest.approx(1 / 3), 3),
        RiskPoint(0.6, 1.0, 0.5, 4),
    ]


def test_limits() -> None:
    assert risk_coverage([], []) == []
    with pytest.raises(ValueError, match="1 confidences and 0 answers"):
        risk_coverage([0.5], [])


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1), st.randoms())
def test_each_threshold_by_itself(items: list[tuple[int, bool]], random: object) -> None:
    points = risk_coverage([float(c) for c, _ in items], [hit for _, hit in items])
    for point in points:
        kept = [hit for c, hit in items if c >= point.threshold]
        assert point.n == len(kept)
        assert point.coverage == len(kept) / len(items)
        assert point.risk == pytest.approx(kept.count(False) / len(kept))
    assert len(points) == len({c for c, _ in items})
    random.shuffle(items)  # type: ignore[attr-defined]
    assert risk_coverage([float(c) for c, _ in items], [hit for _, hit in items]) == points

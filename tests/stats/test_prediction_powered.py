"""Prediction-powered pass rates: by hand, against the paper's own formulas, at their limits."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.corrected_rate import prediction_powered
from judge.stats.intervals import score_limits, wilson

Tables = st.tuples(*[st.integers(0, 60)] * 4)
KINDS = ((True, True), (True, False), (False, True), (False, False))


def pairs_of(table: tuple[int, ...]) -> list[tuple[bool, bool]]:
    return [kind for kind, often in zip(KINDS, table, strict=True) for _ in range(often)]


def power_tuned(passed: int, judged: int, pairs: list[tuple[bool, bool]]) -> float:
    """PPI++ as published: mean and slope from the arrays, the rest without labels."""
    f, y = np.array(pairs, dtype=float).T
    n, others = len(pairs), judged - len(pairs)
    slope = np.cov(y, f, ddof=0)[0, 1] / ((1 + n / others) * f.var())
    rest = (passed - f.sum()) / others
    return float(y.mean() + slope * (rest - f.mean()))


def test_by_hand() -> None:
    # People pass 60 of the 70 labelled that the judge passed, and 5 of the 30 that it failed.
    found = prediction_powered(800, 1000, pairs_of((60, 10, 5, 25)))
    assert found.estimate.value == pytest.approx(0.8 * 60 / 70 + 0.2 * 5 / 30)
    assert (found.estimate.n, found.estimate.of) == (100, 1000)
    assert found.raw == wilson(800, 1000)
    # Half an item more: q 800.5 / 1001, a 60.5 / 71, b 5.5 / 31; V = 0.0011513 + 0.0001952 +
    # 0.0000729, t (1 - t) / V = 142.966 labels, and Wilson's limits there.
    low, high = score_limits(0.8 * 60 / 70 + 0.2 * 5 / 30, 142.966, 1.959964)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((low, high), abs=2e-5)
    assert (low, high) == pytest.approx((0.6404, 0.7862), abs=5e-5)
    assert prediction_powered(800, 1000, dict(zip(KINDS, (60, 10, 5, 25), strict=True))) == found


@given(Tables, st.integers(1, 300), st.integers(0, 300))
def test_against_the_published_estimator(table: tuple[int, ...], more: int, passing: int) -> None:
    pairs = pairs_of(table)
    passed = table[0] + table[1] + min(more, passing)
    found = prediction_powered(passed, len(pairs) + more, pairs)
    value, low, high = found.estimate.value, found.estimate.low, found.estimate.high
    if not pairs:
        assert value is low is high is None and found.reason
        return
    assert value is not None and low is not None and high is not None
    assert 0 <= low <= value + 1e-12 and value - 1e-12 <= high <= 1
    if table[0] + table[1] and table[2] + table[3]:
        assert value == pytest.approx(power_tuned(passed, len(pairs) + more, pairs))
    else:
        assert found.estimate == wilson_over(table, len(pairs) + more)


def wilson_over(table: tuple[int, ...], judged: int) -> object:
    from dataclasses import replace

    return replace(wilson(table[0] + table[2], sum(table)), of=judged)


def test_order_does_not_matter() -> None:
    pairs = pairs_of((12, 3, 4, 30))
    mixed = random.Random(1).sample(pairs, len(pairs))
    assert prediction_powered(200, 500, pairs) == prediction_powered(200, 500, iter(mixed))


def test_a_good_judge_narrows_and_a_useless_one_does_not() -> None:
    def width(table: tuple[int, ...], judged: int) -> float:
        found = prediction_powered(judged // 2, judged, pairs_of(table)).estimate
        assert found.low is not None and found.high is not None
        return found.high - found.low

    labels_only = wilson(50, 100)
    assert labels_only.low is not None and labels_only.high is not None
    alone = labels_only.high - labels_only.low
    assert width((48, 2, 2, 48), 10_000) < 0.5 * alone
    assert width((25, 25, 25, 25), 10_000) == pytest.approx(alone, rel=0.01)
    # Nothing judged beyond the labels: nothing to gain, nothing lost.
    assert width((48, 2, 2, 48), 100) == pytest.approx(alone, rel=0.01)


def test_design_effects_widen() -> None:
    plain = prediction_powered(500, 1000, pairs_of((40, 10, 10, 40))).estimate
    for more in ({"deff_judged": 9.0}, {"deff_labelled": 2.0}):
        wide = prediction_powered(500, 1000, pairs_of((40, 10, 10, 40)), **more).estimate
        assert wide.value == plain.value
        assert wide.low < plain.low and wide.high > plain.high  # type: ignore[operator]
    labels = prediction_powered(60, 60, pairs_of((40, 20, 0, 0)), deff_labelled=2.0).estimate
    assert (labels.low, labels.high) == pytest.approx((wilson(20, 30).low, wilson(20, 30).high))


def test_nothing_judged() -> None:
    found = prediction_powered(0, 0, [])
    assert found.raw.value is found.estimate.value is None
    assert found.reason == "no judged record has a label"


@pytest.mark.parametrize(
    ("passed", "judged", "deff"),
    [(11, 10, 1.0), (0, 10, 1.0), (10, 10, 1.0), (1, 1, 1.0), (5, 10, 0.9)],
)
def test_impossible(passed: int, judged: int, deff: float) -> None:
    with pytest.raises(ValueError, match=r"records|design effect"):
        prediction_powered(passed, judged, [(True, True), (False, True)], deff_labelled=deff)

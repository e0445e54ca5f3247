"""Corrected pass rates: by hand, by brute force, against the published formulas, refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t as student

from judge.stats.corrected_rate import (
    CONTRADICTED,
    design_effect,
    rogan_gladen,
)
from judge.stats.intervals import wilson

Z = 1.959963984540054


def part_of(least: int, most: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.integers(least, most).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_by_hand() -> None:
    # 0.7 passed, TPR 0.9, TNR 0.8: (0.7 + 0.8 - 1) / (0.9 + 0.8 - 1) = 5 / 7.
    found = rogan_gladen(700, 1000, 90, 100, 80, 100)
    assert found.reason is None
    assert found.raw == wilson(700, 1000)
    estimate = found.estimate
    assert estimate.value == pytest.approx(5 / 7)
    assert (estimate.n, estimate.of) == (200, 1200)
    # Delta method: t (TPR) 0.03 and (1 - t) (TNR) 0.04 and 0.01449 for the judged, over 0.7.
    for passed, t in ((700, 5 / 7), (300, 1 / 7)):
        half = Z * ((t * 0.03) ** 2 + ((1 - t) * 0.04) ** 2 + 0.01449**2) ** 0.5 / 0.7
        limits = rogan_gladen(passed, 1000, 90, 100, 80, 100).estimate
        assert limits.low is not None and limits.high is not None
        assert limits.high - limits.low == pytest.approx(2 * half, rel=0.08)


@pytest.mark.slow
@given(part_of(5, 300), part_of(30, 200), part_of(30, 200))
def test_limits_against_brute_force(
    judged: tuple[int, int], good: tuple[int, int], bad: tuple[int, int]
) -> None:
    """A pass rate is in the interval exactly if the interval of D(t) contains 0."""
    found = rogan_gladen(*judged, *good, bad[1] - bad[0], bad[1])
    assume(found.reason is None or found.reason.startswith(CONTRADICTED))
    passing, hits, alarms = (wilson(*counts) for counts in (judged, good, bad))
    low, high = found.estimate.low, found.estimate.high

    def holds_zero(t: float) -> bool:
        values = passing.value, hits.value, alarms.value
        gap = values[0] - t * values[1] - (1 - t) * values[2]  # type: ignore[operator]
        sides = (
            (passing.low, hits.high, alarms.high)
            if gap > 0
            else (passing.high, hits.low, alarms.low)
        )
        away = [side - value for side, value in zip(sides, values, strict=True)]  # type: ignore[operator]
        return gap * gap <= away[0] ** 2 + (t * away[1]) ** 2 + ((1 - t) * away[2]) ** 2

    for step in range(101):
        t = step / 100
        if low is None or high is None:
            assert not holds_zero(t)
        elif min(abs(t - low), abs(t - high)) > 1e-6:
            assert holds_zero(t) == (low <= t <= high), t


def test_clustered_labels_count_as_the_independent_ones_that_they_are_worth() -> None:
    found = rogan_gladen(50, 100, 90, 100, 80, 100, deff_labelled=4.0)
    assert found.reason == (
        "200 labels worth 50 independent ones: an interval that holds takes 60 at least"
    )


def test_design_effects_widen_and_leave_the_value() -> None:
    counts = (700, 1000, 90, 100, 80, 100)
    plain = rogan_gladen(*counts).estimate
    for judged, labelled in ((4.0, 1.0), (1.0, 2.0)):
        wider = rogan_gladen(*counts, deff_judged=judged, deff_labelled=labelled).estimate
        assert wider.value == plain.value
        assert wider.low < plain.low and wider.high > plain.high  # type: ignore[operator]
    # Four times the items at a design effect of 4 are worth the same.
    same = rogan_gladen(2800, 4000, 180, 200, 160, 200, deff_judged=4, deff_labelled=2).estimate
    assert (same.low, same.high) == pytest.approx((plain.low, plain.high))


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((0, 0, 9, 10, 9, 10), "no item was judged"),
        ((5, 10, 0, 0, 9, 10), "no labelled item that people passed"),
        ((5, 10, 9, 10, 0, 0), "no labelled item that people failed"),
        ((5, 10, 29, 30, 28, 29), "59 labels: an interval that holds takes 60"),
        ((5, 10, 20, 40, 20, 40), "TPR \\+ TNR - 1 is 0.00"),
        ((5, 10, 17, 30, 17, 30), "not clearly above 0"),
        ((50, 100, 0, 30, 0, 30), "TPR \\+ TNR - 1 is -1.00"),
        ((10, 1000, 90, 100, 80, 100), CONTRADICTED),
        ((990, 1000, 80, 100, 90, 100), CONTRADICTED),
    ],
)
def test_refused(counts: tuple[int, int, int, int, int, int], why: str) -> None:
    found = rogan_gladen(*counts)
    assert found.estimate.value is found.estimate.low is found.estimate.high is None
    assert found.reason and re.search(why, found.reason)
    assert found.raw.value == (counts[0] / counts[1] if counts[1] else None)


# ---------------------------------------------------------------- design effect


def effect(clusters: list[list[bool]]) -> float:
    n = sum(map(len, clusters))
    share = sum(map(sum, clusters)) / n if n else 0.0
    residuals = [sum(members) - len(members) * share for members in clusters]
    return design_effect(residuals, [*map(len, clusters)], n * share * (1 - share))


def test_design_effect_by_hand() -> None:
    def t(freedom: int) -> float:
        return float(student.ppf(0.975, freedom) / Z) ** 2

    # Clusters go together wholly: sums 2 and -2, squared 8, against 8 / 4, times 2 / 1.
    assert effect([[True] * 4, [False] * 4]) == pytest.approx(8 * t(1))
    # One cluster, or all alike: the data cannot tell, and three of a kind may be worth one.
    assert effect([[True, False]]) == 2
    assert effect([[True, True], [True]]) == pytest.approx(5 / 3)
    assert effect([[True], [False], [True]]) == effect([]) == 1
    # Halves in each: clusters are more alike than chance has it, which narrows nothing.
    assert effect([[True, False], [True, False]]) == pytest.approx(t(1))
    # Sizes 2, 2, 2 with 2, 1, 0 passed: sums 1, 0, -1, squared 2, against 6 / 4, times 3 / 2.
    assert effect([[True] * 2, [True, False], [False] * 2]) == pytest.approx(2 * t(2))

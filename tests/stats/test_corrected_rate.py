"""Rogan and Gladen's correction: by hand, by brute force over pass rates, at its refusals."""

from __future__ import annotations

import re
from math import inf

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.stats.corrected_rate import (
    CONTRADICTED,
    Share,
    corrected_limits,
    rogan_gladen,
    youden_limits,
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
    half = Z * ((5 / 7 * 0.03) ** 2 + (2 / 7 * 0.04) ** 2 + 0.01449**2) ** 0.5 / 0.7
    assert estimate.low is not None and estimate.high is not None
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.08)


def test_without_labelling_error_it_is_the_raw_interval() -> None:
    limits = corrected_limits(Share(0.3, 0.25, 0.36), Share(1, 1, 1), Share(0, 0, 0))
    assert limits == pytest.approx((0.25, 0.36))


def test_limits_without_bound() -> None:
    # The hits' limit alone reaches the alarms: no pass rate is too high.
    passing, alarms = Share(0.5, 0.4, 0.6), Share(0.1, 0.1, 0.1)
    assert corrected_limits(passing, Share(0.6, 0.05, 0.9), alarms)[1] == inf


@given(part_of(5, 300), part_of(5, 200), part_of(5, 200))
def test_limits_against_brute_force(
    judged: tuple[int, int], good: tuple[int, int], bad: tuple[int, int]
) -> None:
    """A pass rate is inside exactly where the interval of D(t) holds 0."""
    passing, hits, alarms = (Share.of(part / n, n, Z) for part, n in (judged, good, bad))
    assume(youden_limits(hits, alarms).low > 0)
    low, high = corrected_limits(passing, hits, alarms)

    def holds_zero(t: float) -> bool:
        gap = passing.value - t * hits.value - (1 - t) * alarms.value
        sides = (
            (passing.low, hits.high, alarms.high)
            if gap > 0
            else (passing.high, hits.low, alarms.low)
        )
        distances = (
            sides[0] - passing.value,
            t * (sides[1] - hits.value),
            (1 - t) * (sides[2] - alarms.value),
        )
        return gap * gap <= sum(one * one for one in distances)

    for step in range(101):
        t = step / 100
        if min(abs(t - low), abs(t - high)) > 1e-6:
            assert holds_zero(t) == (low <= t <= high), t


@given(part_of(1, 200), part_of(1, 200), part_of(1, 200))
def test_range_and_mirror(
    judged: tuple[int, int], good: tuple[int, int], bad: tuple[int, int]
) -> None:
    found = rogan_gladen(*judged, *good, *bad)
    swapped = rogan_gladen(judged[1] - judged[0], judged[1], *bad, *good)
    value, low, high = found.estimate.value, found.estimate.low, found.estimate.high
    if value is None or low is None or high is None:
        assert found.reason and swapped.estimate.value is None
        return
    assert 0 <= low <= value <= high <= 1
    # Passing turned into failing: the rates trade places, the pass rate becomes its complement.
    assert swapped.estimate.value == pytest.approx(1 - value)
    assert swapped.estimate.low == pytest.approx(1 - high)
    assert swapped.estimate.high == pytest.approx(1 - low)


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
        ((5, 10, 5, 10, 5, 10), "TPR \\+ TNR - 1 is 0.00"),
        ((5, 10, 7, 10, 7, 10), "not clearly above 0"),
        ((50, 100, 0, 10, 0, 10), "TPR \\+ TNR - 1 is -1.00"),
        ((10, 1000, 90, 100, 80, 100), CONTRADICTED),
        ((990, 1000, 80, 100, 90, 100), CONTRADICTED),
    ],
)
def test_refused(counts: tuple[int, int, int, int, int, int], why: str) -> None:
    found = rogan_gladen(*counts)
    assert found.estimate.value is found.estimate.low is found.estimate.high is None
    assert found.reason and re.search(why, found.reason)
    assert found.raw.value == (counts[0] / counts[1] if counts[1] else None)


def test_youden_against_statsmodels() -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    found = youden_limits(Share.of(0.9, 50, Z), Share.of(0.3, 40, Z))
    by_library = confint_proportions_2indep(45, 50, 12, 40, compare="diff", method="newcomb")
    assert (found.low, found.high) == pytest.approx(by_library, abs=1e-9)
    assert found.value == pytest.approx(0.6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"passed": 11},
        {"true_positives": -1},
        {"true_negatives": 11},
        {"deff_judged": 0.5},
        {"level": 1.0},
    ],
)
def test_impossible(wrong: dict[str, float]) -> None:
    given_counts = {
        "passed": 5,
        "judged": 10,
        "true_positives": 9,
        "positives": 10,
        "true_negatives": 9,
        "negatives": 10,
    }
    with pytest.raises(ValueError, match=r"items|design effect|level"):
        rogan_gladen(**{**given_counts, **wrong})  # type: ignore[arg-type]

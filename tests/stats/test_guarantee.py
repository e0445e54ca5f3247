"""The guarantee: by hand, against a brute-force search, and kept over simulated data sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from judge.stats.guarantee import grid_from, threshold_with_guarantee


def block(confidence: float, agreed: int, n: int) -> tuple[list[float], list[bool]]:
    return [confidence] * n, [True] * agreed + [False] * (n - agreed)


def blocks(*parts: tuple[float, int, int]) -> tuple[list[float], list[bool]]:
    made = [block(*part) for part in parts]
    return [c for one, _ in made for c in one], [a for _, one in made for a in one]


def test_by_hand() -> None:
    # 29 of 29: the bound 0.05^(1/29) = 0.9018 holds. 57 of 60: 0.876 does not.
    confidences, agrees = blocks((0.9, 29, 29), (0.8, 28, 31), (0.7, 40, 40))
    found = threshold_with_guarantee(confidences, agrees, [0.7, 0.9, 0.8])
    assert found.threshold == 0.9
    assert found.coverage.value == pytest.approx(0.29)
    assert (found.coverage.n, found.coverage.of) == (100, 100)
    assert (found.agreement.value, found.agreement.n, found.agreement.of) == (1.0, 29, 100)
    assert found.agreement.low == pytest.approx(0.05 ** (1 / 29))
    assert found.agreement.high is None
    # 0.7 is never looked at, though the 97 of 100 at it would hold.
    assert (found.missing, found.reason) == (None, None)
    assert threshold_with_guarantee(confidences, agrees, [0.7]).threshold == 0.7


def test_missing_labels_would_do() -> None:
    """Given so many more, agreeing as before, the bound holds; with fewer it does not."""
    found = threshold_with_guarantee(*block(0.9, 38, 40), [0.9])
    assert found.missing is not None
    n = 40 + found.missing
    # 95 % agree, so a whole number of disagreements comes at every 20th item.
    for size in range(20, 1000, 20):
        holds = binomtest(size * 19 // 20, size, alternative="greater").proportion_ci(0.95).low
        assert (holds >= 0.9) == (size >= n), size


@pytest.mark.parametrize(
    ("data", "level", "missing", "why"),
    [
        (([], []), 0.95, 29, "no labels: agreement of 90% with 95% confidence takes at least 29"),
        (([], []), 0.975, 36, "agreement of 90% with 97.5% confidence takes at least 36"),
        (block(0.9, 90, 100), 0.95, None, "the 100 surest of the 100 items agree 90.0%"),
        (block(0.1, 90, 90), 0.95, None, "none of the 90 items is as sure as 0.9"),
    ],
)
def test_refused(
    data: tuple[list[float], list[bool]], level: float, missing: int | None, why: str
) -> None:
    found = threshold_with_guarantee(*data, [0.9, 0.8], level=level)
    assert found.threshold is None
    assert found.missing == missing
    assert why in str(found.reason)


Items = st.lists(st.tuples(st.sampled_from([0.2, 0.4, 0.6, 0.8]), st.integers(0, 20)), max_size=150)


@given(Items, st.sampled_from([0.6, 0.8, 0.9]), st.sampled_from([0.8, 0.95]))
def test_against_brute_force(
    items: list[tuple[float, int]], agreement: float, level: float
) -> None:
    confidences = [confidence for confidence, _ in items]
    agrees = [luck > 1 for _, luck in items]
    grid = [0.1, 0.4, 0.6, 0.8]
    expected = None
    for threshold in sorted(grid, reverse=True):
        kept = [a for c, a in zip(confidences, agrees, strict=True) if c >= threshold]
        # The bound holds where so many agreements are unlikely at the wanted rate.
        if not kept:
            break
        if binomtest(sum(kept), len(kept), agreement, alternative="greater").pvalue > 1 - level:
            break
        expected = threshold
    found = threshold_with_guarantee(confidences, agrees, grid, agreement=agreement, level=level)
    assert found.threshold == expected
    assert (found.reason is None) == (expected is not None)


def test_grid() -> None:
    elsewhere = [place / 1000 for place in range(1000)]
    grid = grid_from(elsewhere, 200)
    assert len(grid) == 20 and grid == sorted(grid, reverse=True)
    # From twice 29 of 200 items to all; one that is too small at everything.
    assert grid[0] == pytest.approx(1 - 58 / 200, abs=0.002) and grid[-1] == 0.0
    assert grid_from(elsewhere, 20) == [0.0]
    assert grid_from([0.5, 1.0, 1.0], 1000) == [1.0, 0.5]
    assert grid_from([], 200) == [1.0]

"""Krippendorff's alpha: his own example, a coincidence matrix by brute force, and the limits."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.agreement import Level, count_table, fleiss_kappa, krippendorff_alpha

UNITS = [
    [1, 1, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [5, 5, 5],
    [1, 1],
    [3],
]
"""Four observers, twelve units, some missing: Krippendorff (2011), section C to E."""
SCALE = [1, 2, 3, 4, 5]


def by_coincidences(units: list[list[int]], level: Level) -> float | None:
    """1 - D_o / D_e from the matrix of coincidences, after Krippendorff (2011)."""
    pairs: dict[tuple[int, int], float] = defaultdict(float)
    for answers in units:
        for one, other in permutations(range(len(answers)), 2):
            pairs[answers[one], answers[other]] += 1 / (len(answers) - 1)
    totals: dict[int, float] = defaultdict(float)
    for (one, _), count in pairs.items():
        totals[one] += count
    if len(totals) < 2:
        return None

    def distance(one: int, other: int) -> float:
        if level == "nominal":
            return float(one != other)
        if level == "interval":
            return float((one - other) ** 2)
        low, high = sorted((one, other))
        between = sum(totals.get(value, 0) for value in range(low, high + 1))
        return (between - (totals[low] + totals[high]) / 2) ** 2

    observed = sum(count * distance(*pair) for pair, count in pairs.items())
    expected = sum(totals[a] * totals[b] * distance(a, b) for a in totals for b in totals)
    return 1 - (sum(totals.values()) - 1) * observed / expected


@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorffs_example(level: Level, expected: float) -> None:
    counts = count_table(UNITS, SCALE)
    values = SCALE if level == "interval" else None
    found = krippendorff_alpha(counts, level=level, values=values)
    assert found == pytest.approx(expected, abs=5e-4)
    assert found == pytest.approx(by_coincidences(UNITS, level))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(SCALE), max_size=5), max_size=10),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_against_coincidences(units: list[list[int]], level: Level) -> None:
    expected = by_coincidences(units, level)
    values = SCALE if level == "interval" else None
    found = krippendorff_alpha(count_table(units, SCALE), level=level, values=values)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))
    assert found is None or found <= 1 + 1e-9


def test_nominal_does_not_mind_the_order_and_ordinal_does() -> None:
    turned = [3, 1, 5, 2, 4]
    one, other = count_table(UNITS, SCALE), count_table(UNITS, turned)
    assert krippendorff_alpha(one) == pytest.approx(krippendorff_alpha(other))
    assert krippendorff_alpha(one, level="ordinal") != pytest.approx(
        krippendorff_alpha(other, level="ordinal")
    )


def test_interval_minds_how_far_apart_values_are() -> None:
    counts = count_table([[1, 2], [2, 2], [3, 3], [1, 1]], [1, 2, 3])
    near = krippendorff_alpha(counts, level="interval", values=[1, 2, 3])
    far = krippendorff_alpha(counts, level="interval", values=[1, 2, 30])
    assert near is not None and far is not None and far > near


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([[3, 0], [0, 3]], 1.0),
        ([[3, 0], [2, 0]], None),
        ([[1, 0], [0, 1]], None),
        ([[2, 0], [0, 1]], None),
        ([[0, 0]], None),
    ],
)
def test_limits(counts: list[list[int]], expected: float | None) -> None:
    assert krippendorff_alpha(counts) == expected


def test_nears_fleiss_with_many_items() -> None:
    counts = [[3, 0], [2, 1], [0, 3]] * 200
    assert krippendorff_alpha(counts) == pytest.approx(fleiss_kappa(counts), abs=1e-3)


def test_wrong_values() -> None:
    for values in (None, [2, 1], [1, 1]):
        with pytest.raises(ValueError, match="rise"):
            krippendorff_alpha([[1, 1]], level="interval", values=values)
    with pytest.raises(ValueError, match="3 values for 2 classes"):
        krippendorff_alpha([[1, 1]], level="interval", values=[1, 2, 3])

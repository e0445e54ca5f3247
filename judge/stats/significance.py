"""Tests of differences (McNemar, ANOVA, Kruskal-Wallis, Holm's adjustment) and Kendall's tau-c."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def p_text(p: float) -> str:
    """A p-value to three digits: 3.81e-06."""
    return f"{p:.3g}"


@dataclass(frozen=True, slots=True)
class McNemar:
    """The numbers of items that only the first, or only the second, got right; and the p-value."""

    only_first: int
    only_second: int
    p: float


def mcnemar(first: Sequence[float], second: Sequence[float]) -> McNemar:
    """The exact test of McNemar (1947), "Note on the sampling error of the difference between
    correlated proportions or percentages", Psychometrika 12.

    `first` and `second` are scores, each 0 (wrong) or 1 (right), of the same items in the same
    order; the items are assumed to be independent. If both are equally good, each is right on
    Binomial(n, 1/2) of the n items on which they differ; p is the two-sided probability of a split
    at least as uneven, and 1 if they never differ.
    """
    from scipy.stats import binomtest

    pairs = list(zip(first, second, strict=True))
    only_first = sum(a > b for a, b in pairs)
    only_second = sum(a < b for a, b in pairs)
    split = only_first + only_second
    p = float(binomtest(only_first, split, 0.5).pvalue) if split else 1.0
    return McNemar(only_first, only_second, p)


@dataclass(frozen=True, slots=True)
class Anova:
    """F and p, None if undefined, and the degrees of freedom between and within groups."""

    f: float | None
    p: float | None
    between: int
    within: int


def one_way_anova(groups: Sequence[Sequence[float]]) -> Anova:
    """Compares the groups' means; groups without values are left out.

    F and p are None for fewer than two groups, for groups of one value each, and if every value
    equals its group's mean.
    """
    from scipy.stats import f_oneway

    there = [list(group) for group in groups if group]
    between = len(there) - 1
    within = sum(len(group) for group in there) - len(there)
    spread = any(min(group) < max(group) for group in there)
    if between < 1 or not spread:
        return Anova(None, None, max(between, 0), within)
    result = f_oneway(*there)
    return Anova(float(result.statistic), float(result.pvalue), between, within)


def kruskal_wallis(groups: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    """H and p of Kruskal and Wallis (1952), "Use of ranks in one-criterion variance analysis",
    JASA 47: a rank test of whether groups have the same distribution, corrected for ties.

    None for fewer than two groups with values, and if all values are equal.
    """
    from scipy.stats import kruskal

    there = [list(group) for group in groups if group]
    if len(there) < 2 or len({value for group in there for value in group}) < 2:
        return None, None
    result = kruskal(*there)
    return float(result.statistic), float(result.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for multiple testing, in the order given.

    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6: the k-th smallest of m (from 1) becomes the largest of (m - i + 1) p_i over i up
    to k, and at most 1. Rejecting those at most alpha makes any false rejection with probability at
    most alpha, however the tests depend on one another.
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    ordered = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, place in enumerate(ordered):
        least = max(least, min(1.0, (len(ordered) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def kendall_tau_c(
    first: Sequence[float] | NDArray[np.float64], second: Sequence[float] | NDArray[np.float64]
) -> float | None:
    """Kendall's tau_c of two measures of the same items; None if it is undefined.

    It compares all pairs, which for a few hundred items is ten times as fast as
    `scipy.stats.kendalltau` with its p-value.
    """
    import numpy as np

    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    values = min(len(np.unique(a)), len(np.unique(b)))
    if values < 2:
        return None
    # The sum has every pair twice, once in each order.
    excess = float((np.sign(a[:, None] - a) * np.sign(b[:, None] - b)).sum()) / 2
    return 2 * excess / (len(a) ** 2 * (values - 1) / values)


def kendall_p(
    first: Sequence[float] | NDArray[np.float64], second: Sequence[float] | NDArray[np.float64]
) -> float | None:
    """Two-sided p of Kendall's tau; None if it is undefined.

    scipy chooses the method: exact for few numbers without ties, else a normal approximation.
    """
    from scipy.stats import kendalltau

    p = kendalltau(first, second, variant="c").pvalue if len(first) > 2 else math.nan
    return None if math.isnan(p) else float(p)

"""McNemar's exact test: does one of two answers to the same items come out right more often?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class McNemar:
    """How many items only the first got right, how many only the second, and the p-value."""

    only_first: int
    only_second: int
    p: float


def mcnemar(first: Sequence[float], second: Sequence[float]) -> McNemar:
    """The exact test of McNemar (1947), "Note on the sampling error of the difference between
    correlated proportions or percentages", Psychometrika 12.

    Items on which both are right, or both wrong, say nothing. Of the `n` others, were both equally
    good, only the first would be right on Binomial(n, 1/2) many; p is the two-sided probability of
    a split at least as uneven, min(1, 2 P(X <= the smaller count)), in (0, 1]. Without such items
    nothing speaks against equality, and p is 1. It takes items to be independent.

    Args:
        first: the first one's scores, each 0 (wrong) or 1 (right).
        second: the second one's, of the same items in the same order.

    Raises:
        ValueError: they differ in number, or a score is neither 0 nor 1.
    """
    from scipy.stats import binomtest

    if len(first) != len(second):
        raise ValueError(f"{len(first)} scores and {len(second)}: both are of the same items")
    if stray := next((score for score in (*first, *second) if score not in (0, 1)), None):
        raise ValueError(f"a score is {stray}, McNemar's test takes 0 and 1")
    pairs = list(zip(first, second, strict=True))
    only_first = sum(a > b for a, b in pairs)
    only_second = sum(a < b for a, b in pairs)
    split = only_first + only_second
    p = float(binomtest(only_first, split, 0.5).pvalue) if split else 1.0
    return McNemar(only_first, only_second, p)

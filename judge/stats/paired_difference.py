"""How much better the second of two is than the first, on the same items."""

from __future__ import annotations

from collections.abc import Sequence

from judge.stats.bootstrap import Resamples
from judge.stats.interval import Estimate
from judge.stats.mean import mean_estimate


def paired_difference(
    first: Sequence[float | None],
    second: Sequence[float | None],
    resamples: Resamples,
    *,
    level: float = 0.95,
) -> Estimate:
    """Mean of second minus first over the items that both have a score for, with a BCa interval.

    The paired bootstrap (Efron and Tibshirani 1993, *An Introduction to the Bootstrap*, chapters 8
    and 14): an item is drawn with both its scores, so that what makes it hard for both cancels out;
    items of one cluster are drawn together. With scores in [0, 1] it lies in [-1, 1].

    Args:
        first: one score for each item of `resamples`, None where it has none.
        second: the same of the other.
        resamples: the items' clusters and draws.
        level: the interval's nominal coverage, in (0, 1).

    Returns:
        `n` items with both scores out of `of`; `value` is None where there is none. `low` and
        `high` are None where every draw gives the same difference (`Resamples.estimate`), as for
        two that never differ: that shows no difference, and not that there is none.

    Raises:
        ValueError: not one score of each for each item, or level outside (0, 1).
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} scores and {len(second)}: both are of the same items")
    differences = [
        None if a is None or b is None else b - a for a, b in zip(first, second, strict=True)
    ]
    return mean_estimate(differences, resamples, level=level)

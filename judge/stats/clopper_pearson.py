"""Clopper and Pearson's exact one-sided bounds of a share: valid at every sample size.

The interval of both sides at once is in exact_binomial.py.
"""

from __future__ import annotations


def lower_bound(successes: float, n: float, *, level: float = 0.95) -> float:
    """The least share under which `successes` or more of n had a chance of 1 - level or more.

    The true share lies above it with confidence `level` or more (Clopper & Pearson 1934): the
    1 - level quantile of Beta(successes, n - successes + 1), 0 where successes is 0 (so for n = 0,
    too). Counts may be fractions, for planning; then it is the same quantile.

    Raises:
        ValueError: successes is outside 0 to n, or level is outside (0, 1).
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, a share strictly between 0 and 1")
    if successes == 0:
        return 0.0
    from scipy.stats import beta

    return float(beta.ppf(1 - level, successes, n - successes + 1))


def upper_bound(successes: float, n: float, *, level: float = 0.95) -> float:
    """The greatest share under which `successes` or fewer of n had a chance of 1 - level or more.

    The mirror of `lower_bound`: one minus the lower bound of the failures' share, 1 for n = 0.

    Raises:
        ValueError: successes is outside 0 to n, or level is outside (0, 1).
    """
    return 1 - lower_bound(n - successes, n, level=level)

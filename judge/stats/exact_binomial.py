"""The exact interval of a share: for shares of 0 or 1, of which a bootstrap can say nothing."""

from __future__ import annotations


def exact_interval(hits: int, n: int, *, level: float = 0.95) -> tuple[float, float] | None:
    """Clopper and Pearson (1934): all shares that a two-sided binomial test would not reject.

    Of 0 hits in n the upper end is 1 - ((1 - level) / 2)^(1/n); of n in n, the mirror of it.

    Args:
        hits: how many of `n` independent trials were hits, in [0, n].
        n: how many trials.
        level: at least this share of such intervals holds the true share, in (0, 1).

    Returns:
        The ends, in [0, 1]; None for no trials.

    Raises:
        ValueError: hits outside [0, n].
    """
    from scipy.stats import binomtest

    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits in {n} trials")
    if n == 0:
        return None
    ends = binomtest(hits, n).proportion_ci(confidence_level=level, method="exact")
    return float(ends.low), float(ends.high)

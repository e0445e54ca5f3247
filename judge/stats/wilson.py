"""Wilson's score interval of a share: in closed form, without any library."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from judge.stats.interval import Estimate


def wilson(successes: int, n: int, *, level: float = 0.95) -> Estimate:
    """The share of successes with its score interval (Wilson 1927), over n trials.

    With z the normal quantile of `level` (two-sided, in (0, 1)), p = successes / n:
    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), always in [0, 1]. Unlike
    Wald's interval it holds near 0 and 1 and is never a point. None where n is 0.

    Raises:
        ValueError: successes is outside 0 to n, or level is outside (0, 1).
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    z = normal_quantile(level)
    if not n:
        return Estimate(None)
    low, high = score_limits(successes / n, n, z)
    return Estimate(successes / n, low, high, n=n, of=n)


def score_limits(share: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's limits of a share observed over n trials, which may be an effective number.

    `share` in [0, 1], n above 0, z above 0. The limits never exclude the share itself.
    """
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / shrink
    # At 0 and 1 the limit equals the share, which rounding may miss by an ulp.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def normal_quantile(level: float) -> float:
    """z so that a standard normal lies in [-z, z] with chance `level`.

    Raises:
        ValueError: level is outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, a share strictly between 0 and 1")
    return NormalDist().inv_cdf((1 + level) / 2)

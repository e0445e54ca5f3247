"""An estimate with its interval, and the intervals of a share: Wilson's, Clopper and Pearson's."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, over how many items (`n`), out of how many (`of`).

    `value` is None where the statistic is undefined; `low` and `high` are None where no interval
    could be had.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    of: int = 0

    def __str__(self) -> str:
        """Value and interval to two places: 0.71 (0.65 to 0.77); a dash where it is undefined."""
        if self.value is None:
            return "–"
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"

    def as_json(self) -> dict[str, Any]:
        """The fields, numbers rounded to 6 places."""
        return {
            name: round(number, 6) if isinstance(number, float) else number
            for name, number in asdict(self).items()
        }


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
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits in {n} trials")
    if n == 0:
        return None
    side = (1 + level) / 2
    return lower_bound(hits, n, level=side), 1 - lower_bound(n - hits, n, level=side)


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

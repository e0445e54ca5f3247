"""An estimate with its interval; the intervals of a share: Wilson's, Clopper and Pearson's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import inf, sqrt
from statistics import NormalDist
from typing import Any

Z_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval, over how many items (`n`), out of how many (`of`).

    `value` is None where the statistic is undefined; `low` and `high` are None where no interval
    could be had.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    of: int = 0

    def spanning(self, second: Estimate) -> Estimate:
        """The mean of two estimates of one number, with an interval that has both of theirs;
        undefined where either has none."""
        pairs = (self.value, second.value), (self.low, second.low), (self.high, second.high)
        ends = [(first, two) for first, two in pairs if first is not None and two is not None]
        if len(ends) < len(pairs):
            return Estimate(None, n=self.n, of=self.of)
        values, lows, highs = ends
        return Estimate(sum(values) / 2, min(lows), max(highs), self.n, self.of)

    def __str__(self) -> str:
        """Value and interval to two places: 0.71 (0.65 to 0.77); a dash where it is undefined."""
        if self.value is None:
            return "–"
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Quartiles:
    """How numbers lie: their median and quartiles, and the least and greatest that are within one
    and a half times the quartiles' distance of these (Tukey 1977), as a box shows them."""

    median: float
    lower: float
    upper: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Quartiles | None:
        """None for no numbers."""
        import numpy as np

        if not numbers:
            return None
        lower, median, upper = np.quantile(numbers, (0.25, 0.5, 0.75)).tolist()
        reach = 1.5 * (upper - lower)
        near = [number for number in numbers if lower - reach <= number <= upper + reach]
        return cls(median, lower, upper, min(near), max(near))

    def __str__(self) -> str:
        """Median and quartiles to three places: 0.104 (0.095 to 0.112)."""
        return f"{self.median:.3f} ({self.lower:.3f} to {self.upper:.3f})"


def mean_of_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates of one number, of their values and of their ends; undefined where one
    of these is."""

    def mean(numbers: Sequence[float | None]) -> float | None:
        there = [number for number in numbers if number is not None]
        return sum(there) / len(there) if there and len(there) == len(numbers) else None

    values, lows, highs = zip(*((e.value, e.low, e.high) for e in estimates), strict=True)
    return Estimate(mean(values), mean(lows), mean(highs), estimates[0].n, estimates[0].of)


def plain(value: Any) -> Any:
    """Plain JSON: dataclasses and mappings as dicts, sequences as lists, floats to 6 places."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return round(value, 6) if isinstance(value, float) else value


def mean_of_sums(
    n: int, total: float, squares: float, *, of: int, scale: tuple[float, float] = (-inf, inf)
) -> Estimate:
    """The mean of n numbers with its 95 % interval, from their sum and the sum of their squares.

    With s the sample's standard deviation: mean -+ t s / sqrt(n), t the quantile of Student's
    distribution with n - 1 degrees of freedom (by table up to 5, beyond that by the first four
    terms of Fisher's expansion around the normal quantile: within 0.06 %). No interval for fewer
    than two numbers. It is cut to `scale`, the least and greatest of the numbers that there can be:
    the mean lies within, so the cut takes nothing from the interval's confidence.
    """
    if not n:
        return Estimate(None, of=of)
    mean = total / n
    if n < 2:
        return Estimate(mean, n=n, of=of)
    deviation = sqrt(max(0.0, squares - n * mean * mean) / (n - 1))
    half = student_95(n - 1) * deviation / sqrt(n)
    least, most = scale
    return Estimate(mean, max(least, mean - half), min(most, mean + half), n=n, of=of)


def student_95(freedom: int) -> float:
    """The 97.5 % quantile of Student's t distribution."""
    if freedom <= len(_STUDENT_95):
        return _STUDENT_95[freedom - 1]
    z, v = Z_95, freedom
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )


# The quantiles for 1 to 5 degrees of freedom.
_STUDENT_95 = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582)


def wilson(successes: int, n: int) -> Estimate:
    """The share of successes over n trials with its 95 % score interval (Wilson 1927).

    With z the normal quantile, p = successes / n: (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 /
    4n^2)) / (1 + z^2 / n), always in [0, 1]. Unlike Wald's interval it holds near 0 and 1 and is
    never a point. None where n is 0.
    """
    if not n:
        return Estimate(None)
    return Estimate(successes / n, *score_limits(successes / n, n), n=n, of=n)


def effective_size(weights: Sequence[float]) -> float:
    """As how many items of one weight items of these weights count (Kish 1965, *Survey Sampling*,
    section 11.7: the square of the weights' sum, by that of their squares)."""
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if weights else 0.0


def score_limits(share: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % limits of a share in [0, 1] over n trials, which may be an effective number.

    The limits never exclude the share itself.
    """
    shrink = 1 + Z_95**2 / n
    centre = (share + Z_95**2 / (2 * n)) / shrink
    half = Z_95 * sqrt(share * (1 - share) / n + Z_95**2 / (4 * n * n)) / shrink
    # At 0 and 1 the limit equals the share, which rounding may miss by an ulp.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def lower_bound(successes: float, n: float, *, level: float = 0.95) -> float:
    """The least share under which `successes` or more of n had a chance of 1 - level or more.

    The true share lies above it with confidence `level` or more (Clopper & Pearson 1934): the
    1 - level quantile of Beta(successes, n - successes + 1), 0 where successes is 0 (so for n = 0,
    too). Counts may be fractions, for planning; then it is the same quantile.
    """
    if successes == 0:
        return 0.0
    from scipy.stats import beta

    return float(beta.ppf(1 - level, successes, n - successes + 1))

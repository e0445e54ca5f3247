"""Estimates with intervals, and the intervals of a share: Wilson's, Clopper and Pearson's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import inf, sqrt
from statistics import NormalDist
from typing import Any

Z_95 = NormalDist().inv_cdf(0.975)

_SAME = 1e-6
"""A standard deviation, by the mean's size, that is but the rounding of sums."""


def percent(share: float) -> str:
    """A share in [0, 1] to a tenth of a percent, or more exactly if that would read as none or as
    all: 99.97%."""
    for digits in range(1, 7):
        text = f"{share:.{digits}%}"
        if share in (0, 1) or float(text[:-1]) not in (0, 100):
            return text
    return text


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval, over `n` items out of `of`.

    `value` is None if the statistic is undefined; `low` and `high` are None if there is no
    interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    of: int = 0

    def __neg__(self) -> Estimate:
        """The estimate of the negative number."""
        value, high, low = (None if x is None else -x for x in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.n, self.of)

    def spanning(self, second: Estimate) -> Estimate:
        """The mean of two estimates of one number, with an interval that contains both of theirs.

        Undefined if either has no interval.
        """
        pairs = (self.value, second.value), (self.low, second.low), (self.high, second.high)
        ends = [(first, two) for first, two in pairs if first is not None and two is not None]
        if len(ends) < len(pairs):
            return Estimate(None, n=self.n, of=self.of)
        values, lows, highs = ends
        return Estimate(sum(values) / 2, min(lows), max(highs), self.n, self.of)

    def __str__(self) -> str:
        """Value and interval to two places: 0.71 (0.65 to 0.77); a dash if it is undefined."""
        if self.value is None:
            return "–"
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The numbers of a box plot (Tukey 1977): median, quartiles and whiskers.

    The whiskers are the least and greatest number within 1.5 interquartile ranges of the quartiles,
    or end at these if no number is between.
    """

    median: float
    lower: float
    upper: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Quartiles | None:
        """The quartiles of these numbers; None if there are none."""
        import numpy as np

        if not numbers:
            return None
        lower, median, upper = np.quantile(numbers, (0.25, 0.5, 0.75)).tolist()
        reach = 1.5 * (upper - lower)
        near = [number for number in numbers if lower - reach <= number <= upper + reach]
        return cls(median, lower, upper, min(lower, *near), max(upper, *near))

    def __str__(self) -> str:
        """Median and quartiles to three places: 0.104 (0.095 to 0.112)."""
        return f"{self.median:.3f} ({self.lower:.3f} to {self.upper:.3f})"


def mean_of_estimates(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates of one number: of their values, and of their interval ends.

    Each is None if it is None in any of the estimates.
    """

    def mean(numbers: Sequence[float | None]) -> float | None:
        there = [number for number in numbers if number is not None]
        return sum(there) / len(there) if there and len(there) == len(numbers) else None

    values, lows, highs = zip(*((e.value, e.low, e.high) for e in estimates), strict=True)
    return Estimate(mean(values), mean(lows), mean(highs), estimates[0].n, estimates[0].of)


def plain(value: Any) -> Any:
    """`value` as plain JSON: dataclasses and mappings become dicts, floats have 6 places.

    A float that would read as 0, such as a small p-value, has 6 digits instead; of an estimate it
    may be but the rounding of a difference.
    """
    if isinstance(value, Estimate):
        numbers = ((name, getattr(value, name)) for name in Estimate.__slots__)
        return {n: None if x is None else round(x, 6) + 0 for n, x in numbers}  # -0.0 is 0.0
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if not isinstance(value, float):
        return value
    return round(value, 6) or float(f"{value:.6g}")


def mean_of_sums(
    n: int, total: float, squares: float, *, of: int, scale: tuple[float, float] = (-inf, inf)
) -> Estimate:
    """The mean of n numbers with its 95 % interval, from their sum and the sum of their squares.

    With s the sample's standard deviation: mean -+ t s / sqrt(n), t the quantile of Student's
    distribution with n - 1 degrees of freedom (by table up to 5, beyond that by the first four
    terms of Fisher's expansion around the normal quantile: within 0.06 %). No interval for fewer
    than two numbers, nor if all are the same: zero width would claim certainty. The interval is cut
    to `scale`, the least and greatest possible number. The mean is within it, so the cut does not
    lower the confidence.
    """
    if not n:
        return Estimate(None, of=of)
    mean = total / n
    deviation = sqrt(max(0.0, squares - n * mean * mean) / (n - 1)) if n > 1 else 0.0
    if deviation <= _SAME * max(1.0, abs(mean)):
        return Estimate(mean, n=n, of=of)
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
    4n^2)) / (1 + z^2 / n), always in [0, 1]. Unlike Wald's interval it is valid near 0 and 1, and
    never has zero width. None if n is 0.
    """
    if not n:
        return Estimate(None)
    return Estimate(successes / n, *score_limits(successes / n, n), n=n, of=n)


def effective_size(weights: Sequence[float]) -> float:
    """The effective number of items with these weights: (sum of w)^2 / sum of w^2.

    Kish (1965), *Survey Sampling*, section 11.7. 0 without weights.
    """
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if weights else 0.0


def score_limits(share: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % limits of a share in [0, 1] over n trials; n can be an effective number.

    The limits always include the share itself.
    """
    shrink = 1 + Z_95**2 / n
    centre = (share + Z_95**2 / (2 * n)) / shrink
    half = Z_95 * sqrt(share * (1 - share) / n + Z_95**2 / (4 * n * n)) / shrink
    # At 0 and 1 the limit equals the share; rounding could miss it by an ulp.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def paired_shares(only_first: int, only_second: int, n: int) -> Estimate:
    """The second share minus the first over n pairs of hits and misses, with its 95 % score
    interval.

    Tango (1998), "Equivalence test and confidence interval for the difference in proportions for
    the paired-sample design", Statistics in Medicine 17, section 4. With b and c the pairs in which
    only the second, or only the first, is a hit, the interval has every difference d with
    |b - c - n d| <= z sqrt(n (2 q + d (1 - d))), where q is the likeliest probability of c given d.
    It holds for few pairs, and never has zero width. None if n is 0.
    """
    if not n:
        return Estimate(None)
    from scipy.optimize import brentq

    b, c = only_second, only_first

    def score(d: float) -> float:
        half = -b - c + (2 * n - b + c) * d
        q = (sqrt(max(0.0, half**2 + 8 * n * c * d * (1 - d))) - half) / (4 * n)
        variance, away = n * (2 * q + d * (1 - d)), b - c - n * d
        return away / sqrt(variance) if variance > 0 else away * inf if away else 0.0

    value, end = (b - c) / n, 1 - 1e-12
    low = brentq(lambda d: score(d) - Z_95, -end, value) if score(-end) > Z_95 else -1.0
    high = brentq(lambda d: score(d) + Z_95, value, end) if score(end) < -Z_95 else 1.0
    return Estimate(value, float(low), float(high), n=n, of=n)


def lower_bound(successes: float, n: float, *, level: float = 0.95) -> float:
    """The exact one-sided lower bound of a share (Clopper & Pearson 1934).

    It is the least share at which `successes` or more of n have a probability of 1 - level or more.
    The true share is above it with confidence `level` or more. It is the 1 - level quantile of
    Beta(successes, n - successes + 1), and 0 if successes is 0 (so also for n = 0). Counts can be
    fractions, for planning.
    """
    if successes == 0:
        return 0.0
    from scipy.stats import beta

    return float(beta.ppf(1 - level, successes, n - successes + 1))

"""The agreement of two raters beyond chance, summed incrementally, and the effective number of
raters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from judge.stats.intervals import Estimate, student_95

PARTS = 400
"""Most parts (clusters, or groups of clusters) with their own sums."""

_SAME = 1e-12

Point = Mapping[str, float]
"""An answer as a vector: 1 on the axis of its name, or its position on a scale."""


@dataclass(slots=True)
class PairSums:
    """Sums over the answers of two raters to the same items, sufficient for kappa.

    `squares` is the sum of the squared lengths of both answers, `apart` that of their squared
    distances; `first` and `second` are the sums of each rater's answers, by axis.
    """

    n: int = 0
    agreeing: int = 0
    squares: float = 0.0
    apart: float = 0.0
    first: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    second: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, one: Point, two: Point) -> None:
        """Count one item."""
        self.n += 1
        self.agreeing += one == two
        self.squares += sum(x * x for point in (one, two) for x in point.values())
        self.apart += sum((one.get(axis, 0) - two.get(axis, 0)) ** 2 for axis in {*one, *two})
        for sums, point in ((self.first, one), (self.second, two)):
            for axis, x in point.items():
                sums[axis] += x

    def merge(self, part: PairSums) -> None:
        """Add the sums of `part`."""
        self.n, self.agreeing = self.n + part.n, self.agreeing + part.agreeing
        self.squares, self.apart = self.squares + part.squares, self.apart + part.apart
        for sums, sums_of_part in ((self.first, part.first), (self.second, part.second)):
            for axis, x in sums_of_part.items():
                sums[axis] += x

    def kappa(self, without: PairSums | None = None) -> float | None:
        """1 - observed / expected squared distance, over the items that are not in `without`.

        None if both give one and the same answer throughout.
        """
        part = without or PairSums()
        n = self.n - part.n
        products = sum(
            (total - part.first.get(axis, 0))
            * (self.second.get(axis, 0) - part.second.get(axis, 0))
            for axis, total in self.first.items()
        )
        expected = n * (self.squares - part.squares) - 2 * products
        return 1 - n * (self.apart - part.apart) / expected if expected > _SAME else None


@dataclass(slots=True)
class RaterPair:
    """Cohen's kappa of two raters (1960, "A Coefficient of Agreement for Nominal Scales"), or with
    quadratic weights (1968) if answers are positions on a scale.

    Items of one cluster are dependent. The interval is the jackknife's, leaving out one cluster at
    a time, with Student's t. To bound memory, clusters are summed in at most `PARTS` parts, by
    their number: the spread between random groups of clusters estimates the error as well as that
    between clusters (Wolter 2007, Introduction to Variance Estimation, chapters 2 and 4).
    """

    parts: dict[int, PairSums] = field(default_factory=dict)

    def add(self, cluster: int, one: Point, two: Point) -> None:
        """Count one item of a cluster."""
        part = cluster % PARTS
        if part not in self.parts:
            self.parts[part] = PairSums()
        self.parts[part].add(one, two)

    @property
    def whole(self) -> PairSums:
        """The sums over all parts."""
        whole = PairSums()
        for part in self.parts.values():
            whole.merge(part)
        return whole

    def kappa(self) -> Estimate:
        """Kappa, in [-1, 1]; None if both always give one and the same answer.

        There is no interval if they agree on all items, or there is one cluster: zero width would
        claim certainty.
        """
        whole = self.whole
        value, n, size = whole.kappa(), whole.n, len(self.parts)
        values = [k for part in self.parts.values() if (k := whole.kappa(part)) is not None]
        if value is None or size < 2 or len(values) < size:
            return Estimate(value, n=n, of=n)
        mean = sum(values) / size
        error = sqrt((size - 1) / size * sum((k - mean) ** 2 for k in values))
        if error <= _SAME:
            return Estimate(value, n=n, of=n)
        half = student_95(size - 1) * error
        return Estimate(value, max(-1.0, value - half), min(1.0, value + half), n=n, of=n)


def effective_votes(raters: int, kappas: Sequence[float]) -> float | None:
    """The effective number of independent raters among k = `raters`: k / (1 + (k - 1) r).

    This is the effective size of a cluster (Kish 1965, Survey Sampling, section 5.4), with the mean
    kappa of the pairs, at least 0, as its correlation r. From 1 to `raters`; None without a kappa.
    It is a lower bound, because raters also agree when both are right.
    """
    if not kappas:
        return None
    alike = max(0.0, sum(kappas) / len(kappas))
    return raters / (1 + (raters - 1) * alike)

"""Pass rates corrected for the judge's errors, with both samples' error in the interval.

And the design effect of outcomes in clusters, which divides a sample's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import NamedTuple

from judge.stats.intervals import Estimate, score_limits

CONTRADICTED = "the labelled and the judged items contradict each other"

LEAST_LABELS = 60
"""Independent labels from which on Rogan and Gladen's interval is given out.

Over a grid of pass rates from 0.05 to 0.95 and of TPR and TNR from 0.65 it then covers the truth in
94 % or more (bench/coverage.py); with 20 to 40 labels of a judge near chance in 84 % and less.
"""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A pass rate corrected for the judge's errors, beside the raw one; all rates in [0, 1].

    `estimate` is over the n labels it rests on, of the judged and labelled items together; `raw`
    is the judge's own pass rate with Wilson's interval, over the judged. `estimate.value` is None
    where the correction is refused, and `reason` says why, in plain words.
    """

    estimate: Estimate
    raw: Estimate
    reason: str | None = None


class Share(NamedTuple):
    """An observed share and the limits of its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, part: float, n: float, deff: float = 1.0) -> Share:
        """`part` of n trials with Wilson's limits, at a design effect."""
        return cls(part / n, *score_limits(part / n, n / deff))


def rogan_gladen(
    passed: int,
    judged: int,
    true_positives: int,
    positives: int,
    true_negatives: int,
    negatives: int,
    *,
    deff_judged: float = 1.0,
    deff_labelled: float = 1.0,
) -> Corrected:
    """The share of items that people would pass, from what the judge passed and how it errs.

    `passed` of `judged` items got a pass from the judge. On labelled items, the judge passed
    `true_positives` of the `positives` that people passed, and failed `true_negatives` of the
    `negatives` that people failed. Rogan & Gladen (1978): (passed share + TNR - 1) / (TPR + TNR -
    1), truncated to [0, 1], with a 95 % interval that carries the error of all three shares
    (`corrected_limits`). A design effect (`ClusterSums`) divides the size of its sample.

    The labelled items are taken as apart from the judged ones, and the judge as erring alike on
    both. Refused (value None, with a reason) where nothing was judged, where either class has no
    label, where the labels are worth fewer than `LEAST_LABELS` independent ones, where TPR + TNR -
    1 is not clearly above 0 (any pass rate fits what such a judge said), and where the interval
    lies outside [0, 1], so that none fits (`CONTRADICTED`).
    """
    labels = positives + negatives
    if not judged:
        return _refused(Estimate(None), labels, "no item was judged")
    passing = Share.of(passed, judged, deff_judged)
    raw = Estimate(*passing, n=judged, of=judged)
    if not (positives and negatives):
        missing = "passed" if negatives else "failed"
        return _refused(raw, labels, f"no labelled item that people {missing}")
    if labels / deff_labelled < LEAST_LABELS:
        worth = f" worth {labels / deff_labelled:.0f} independent ones" if deff_labelled > 1 else ""
        reason = f"{labels} labels{worth}: an interval that holds takes {LEAST_LABELS} at least"
        return _refused(raw, labels, reason)
    hits = Share.of(true_positives, positives, deff_labelled)
    # One minus the TNR; the complement of a Wilson interval is the complement's.
    alarms = Share.of(negatives - true_negatives, negatives, deff_labelled)
    youden = youden_limits(hits, alarms)
    if youden.low <= 0:
        reason = (
            f"TPR + TNR - 1 is {youden.value:.2f} (95% interval {youden.low:.2f} to "
            f"{youden.high:.2f}): not clearly above 0, so the judge may be no better than chance"
        )
        return _refused(raw, labels, reason)
    value = (passing.value - alarms.value) / youden.value
    low, high = corrected_limits(passing, hits, alarms)
    if low > 1 or high < 0:
        reason = (
            f"{CONTRADICTED}: a judge that passes {hits.value:.0%} of good and {alarms.value:.0%} "
            f"of bad items does not pass {passing.value:.0%} of any mix, so it errs otherwise here"
        )
        return _refused(raw, labels, reason)
    value, low, high = (min(1.0, max(0.0, one)) for one in (value, low, high))
    estimate = Estimate(value, low, high, n=labels, of=labels + judged)
    return Corrected(estimate, raw)


def youden_limits(hits: Share, alarms: Share) -> Share:
    """TPR + TNR - 1, which is `hits` (TPR) minus `alarms` (1 - TNR), in [-1, 1], with limits.

    The difference of two shares by Newcombe's (1998) method 10: each side's distances from
    Wilson's limits, added in squares.
    """
    value = hits.value - alarms.value
    low = value - hypot(hits.value - hits.low, alarms.high - alarms.value)
    high = value + hypot(hits.high - hits.value, alarms.value - alarms.low)
    return Share(value, low, high)


def corrected_limits(passing: Share, hits: Share, alarms: Share) -> tuple[float, float]:
    """The pass rates t that the three observed shares do not contradict, before truncation.

    At the true t, D(t) = passing - t hits - (1 - t) alarms is 0 but for sampling error. Its
    interval comes from the three Wilson intervals by variance recovery (MOVER; Zou & Donner 2008):
    the distances from the limits, weighted by 1, t and 1 - t and added in squares. A t is kept
    where the interval of D(t) holds 0, which is a quadratic on each side (Fieller's argument, so
    the small denominator does no harm). Needs TPR + TNR - 1 above 0, and holds the estimate
    itself; infinite where nothing bounds t on that side.

    bench/coverage.py compares its coverage with the nominal level over a grid. Lang & Reiczigel's
    (2014) closed form was tried: it fell below 93 % where a class has few labels.
    """
    gap, slope = passing.value - alarms.value, hits.value - alarms.value
    centre = gap / slope
    below = _crossings(
        gap, slope, passing.value - passing.low, hits.high - hits.value, alarms.high - alarms.value
    )
    above = _crossings(
        gap, slope, passing.high - passing.value, hits.value - hits.low, alarms.value - alarms.low
    )
    low = max((t for t in below if t <= centre), default=-inf)
    high = min((t for t in above if t >= centre), default=inf)
    return low, high


def _crossings(
    gap: float, slope: float, passing: float, hits: float, alarms: float
) -> Iterator[float]:
    """Where D(t)^2 equals the squares of the distances `passing`, t hits and (1 - t) alarms."""
    a = slope * slope - hits * hits - alarms * alarms
    half_b = alarms * alarms - gap * slope
    c = gap * gap - passing * passing - alarms * alarms
    under_root = half_b * half_b - a * c
    if under_root < 0:
        return
    # Both roots without cancellation, also where a is nearly 0 and one of them runs off.
    q = -(half_b + (sqrt(under_root) if half_b >= 0 else -sqrt(under_root)))
    if a:
        yield q / a
    if q:
        yield c / q


def _refused(raw: Estimate, labels: int, reason: str) -> Corrected:
    return Corrected(Estimate(None, n=labels, of=labels + raw.n), raw, reason)


@dataclass(slots=True)
class ClusterSums:
    """Outcomes in clusters (the verdicts on the values of a story, say), added up as they come."""

    clusters: int = 0
    n: int = 0
    passed: int = 0
    squared_sizes: int = 0
    squared_passes: float = 0.0

    def add(self, passed: int, size: int) -> None:
        """Count a cluster of `size` outcomes (at least 1) of which `passed` are true."""
        self.clusters += 1
        self.n += size
        self.passed += passed
        self.squared_sizes += size**2
        self.squared_passes += passed**2 / size

    @property
    def design_effect(self) -> float:
        """By how much clustering widens the variance of a share, at least 1.

        n outcomes in clusters are worth n / deff independent ones. deff = 1 + (m - 1) r (Kish 1965,
        Survey Sampling), with m = sum of squared cluster sizes / n and r the intraclass correlation
        from the analysis of variance (Donner & Klar 2000): (MSB - MSW) / (MSB + (m0 - 1) MSW), with
        m0 = (n - m) / (clusters - 1). A negative r counts as 0: it never narrows an interval.

        1 where every cluster holds one outcome, and without any. Where r is undefined, for one
        cluster or outcomes that are all alike, it is m, the most that such clusters could bring.
        """
        if self.clusters == self.n:
            return 1.0
        if self.clusters < 2 or self.passed in (0, self.n):
            return self.squared_sizes / self.n
        mean = self.passed / self.n
        between = self.squared_passes - self.n * mean**2
        within = self.n * mean * (1 - mean) - between
        mean_between = between / (self.clusters - 1)
        mean_within = max(0.0, within) / (self.n - self.clusters)
        size = self.squared_sizes / self.n
        usual_size = (self.n - size) / (self.clusters - 1)
        correlation = (mean_between - mean_within) / (mean_between + (usual_size - 1) * mean_within)
        return 1 + (size - 1) * max(0.0, correlation)

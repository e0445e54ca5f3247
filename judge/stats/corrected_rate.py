"""Pass rates corrected for the judge's errors, with both samples' error in the interval.

And the design effect of outcomes in clusters, which divides a sample's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot
from typing import NamedTuple

from judge.stats.intervals import Z_95, Estimate, score_limits, student_95

CONTRADICTED = "the labelled and the judged items contradict each other"

MIN_LABELS = 60
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


class _Share(NamedTuple):
    """An observed share and Wilson's limits, of n trials at a design effect."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, part: float, n: float, deff: float) -> _Share:
        return cls(part / n, *score_limits(part / n, n / deff))

    def distance(self, *, up: bool) -> float:
        """From the share to one of its limits."""
        return self.high - self.value if up else self.value - self.low


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
    1), truncated to [0, 1], with a 95 % interval that carries the error of all three shares. A
    `design_effect` divides the size of its sample.

    The interval: at the true pass rate t, D(t) = passed share - t TPR - (1 - t) (1 - TNR) is 0 but
    for sampling error. The interval of D(t) comes from the Wilson intervals of the three shares
    (MOVER; Zou & Donner 2008): the distances from their limits, weighted by 1, t and 1 - t and
    added in squares. A t is kept where that interval holds 0, so that a small denominator does no
    harm (Fieller's argument). bench/coverage.py compares its coverage with the nominal level; Lang
    & Reiczigel's (2014) closed form fell below 93 % where a class has few labels.

    The labelled items are taken as apart from the judged ones, and the judge as erring alike on
    both. Refused (value None, with a reason) where nothing was judged, where either class has no
    label, where the labels are worth fewer than `MIN_LABELS` independent ones, where TPR + TNR -
    1 is not clearly above 0 (any pass rate fits what such a judge said), and where no pass rate
    is kept (`CONTRADICTED`).
    """
    labels = positives + negatives
    if not judged:
        return _refused(Estimate(None), labels, "no item was judged")
    passing = _Share.of(passed, judged, deff_judged)
    raw = Estimate(*passing, n=judged, of=judged)
    if not (positives and negatives):
        verdict = "passed" if negatives else "failed"
        return _refused(raw, labels, f"no labelled item that people {verdict}")
    if labels / deff_labelled < MIN_LABELS:
        worth = f" worth {labels / deff_labelled:.0f} independent ones" if deff_labelled > 1 else ""
        reason = f"{labels} labels{worth}: an interval that holds takes {MIN_LABELS} at least"
        return _refused(raw, labels, reason)
    hits = _Share.of(true_positives, positives, deff_labelled)
    # One minus the TNR; the complement of a Wilson interval is the complement's.
    alarms = _Share.of(negatives - true_negatives, negatives, deff_labelled)
    # TPR + TNR - 1 is a difference of two shares: Newcombe's (1998) method 10.
    youden = hits.value - alarms.value
    least = youden - hypot(hits.distance(up=False), alarms.distance(up=True))
    if least <= 0:
        most = youden + hypot(hits.distance(up=True), alarms.distance(up=False))
        reason = (
            f"TPR + TNR - 1 is {youden:.2f} (95 % interval {least:.2f} to "
            f"{most:.2f}): not clearly above 0, so the judge may be no better than chance"
        )
        return _refused(raw, labels, reason)

    def kept(t: float) -> bool:
        gap = passing.value - t * hits.value - (1 - t) * alarms.value
        sides = passing.distance(up=gap < 0), hits.distance(up=gap > 0), alarms.distance(up=gap > 0)
        return abs(gap) <= hypot(sides[0], t * sides[1], (1 - t) * sides[2])

    value = min(1.0, max(0.0, (passing.value - alarms.value) / youden))
    if not kept(value):
        reason = (
            f"{CONTRADICTED}: a judge that passes {hits.value:.0%} of good and {alarms.value:.0%} "
            f"of bad items does not pass {passing.value:.0%} of any mix, so it errs otherwise here"
        )
        return _refused(raw, labels, reason)
    low, high = (_farthest(kept, value, end) for end in (0.0, 1.0))
    return Corrected(Estimate(value, low, high, n=labels, of=labels + judged), raw)


def _farthest(fits: Callable[[float], bool], inside: float, end: float) -> float:
    """The rate farthest on the way to `end` that is kept, by halving."""
    if fits(end):
        return end
    for _ in range(40):
        middle = (inside + end) / 2
        inside, end = (middle, end) if fits(middle) else (inside, middle)
    return inside


def _refused(raw: Estimate, labels: int, reason: str) -> Corrected:
    return Corrected(Estimate(None, n=labels, of=labels + raw.n), raw, reason)


def design_effect(residuals: Sequence[float], sizes: Sequence[int], squares: float) -> float:
    """By how much clusters widen the variance of a share, or a weighted sum of shares, at least 1.

    n outcomes in clusters are worth n / deff independent ones: deff is the variance of the share by
    sums over clusters (Kish 1965, Survey Sampling, section 6.5) over that by single outcomes, and
    (t / z)^2, because it is itself estimated from so few clusters (t with one degree of freedom
    fewer than there are).

    Args:
        residuals: for each cluster the sum over its outcomes (0 or 1) of outcome minus share.
        sizes: how many outcomes each cluster has.
        squares: the sum of all outcomes' squared residuals.

    Returns:
        1 where every cluster holds one outcome, and without any. Where the outcomes are all alike,
        or there is one cluster, the sum of squared sizes over n: the most that such clusters could
        bring.
    """
    n, clusters = sum(sizes), len(sizes)
    if clusters == n:
        return 1.0
    if clusters < 2 or not squares:
        return sum(size * size for size in sizes) / n
    between = sum(residual * residual for residual in residuals) * clusters / (clusters - 1)
    return max(1.0, between / squares) * (student_95(clusters - 1) / Z_95) ** 2

"""Pass rates corrected for the judge's errors, with both samples' error in the interval.

Also the design effect of clustered outcomes, which divides a sample's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot
from typing import NamedTuple

from judge.stats.intervals import Z_95, Estimate, score_limits, student_95

CONTRADICTED = "the labelled and the judged items contradict each other"

MIN_LABELS = 60
"""Fewest independent labels for Rogan and Gladen's interval.

Over a grid of pass rates from 0.05 to 0.95 and of TPR and TNR from 0.65, its coverage is then 94 %
or more (bench/coverage.py); with 20 to 40 labels of a judge near chance it is 84 % or less.
"""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A pass rate corrected for the judge's errors, and the raw one; all rates in [0, 1].

    `estimate`: its `n` is the number of labels, its `of` that of judged and labelled items
    together. `raw` is the judge's own pass rate over the judged items, with Wilson's interval. If
    the correction is refused, `estimate.value` is None, and `reason` says why.
    """

    estimate: Estimate
    raw: Estimate
    reason: str | None = None


class _Share(NamedTuple):
    """An observed share and its Wilson limits, over n trials with a design effect."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, part: float, n: float, deff: float) -> _Share:
        return cls(part / n, *score_limits(part / n, n / deff))

    def distance(self, *, up: bool) -> float:
        """The distance from the share to its upper or lower limit."""
        return self.high - self.value if up else self.value - self.low


def rogan_gladen(
    passed: int,
    judged: int,
    true_positives: float,
    positives: float,
    true_negatives: float,
    negatives: float,
    *,
    deff_judged: float = 1.0,
    deff_labelled: float = 1.0,
) -> Corrected:
    """The share of items that people would pass, from the judge's pass rate and error rates.

    The judge passed `passed` of `judged` items. On labelled items, it passed `true_positives` of
    the `positives` that people passed, and failed `true_negatives` of the `negatives` that people
    failed. Rogan & Gladen (1978): (passed share + TNR - 1) / (TPR + TNR - 1), truncated to [0, 1],
    with a 95 % interval that includes the sampling error of all three shares. `deff_judged` and
    `deff_labelled` are design effects (`design_effect`), which divide the samples' sizes.

    The interval: at the true pass rate t, D(t) = passed share - t TPR - (1 - t) (1 - TNR) is 0
    except for sampling error. The interval of D(t) is computed from the Wilson intervals of the
    three shares (MOVER; Zou & Donner 2008): the distances to their limits, weighted by 1, t and
    1 - t, are added in squares. The interval of t is where that of D(t) includes 0, so that a small
    denominator does no harm (Fieller's argument). bench/coverage.py compares its coverage with the
    nominal level; that of Lang & Reiczigel's (2014) closed form was below 93 % if a class has few
    labels.

    Assumes that the labelled items are separate from the judged ones, and that the judge's error
    rates are the same on both. Refused (value None, with a reason) if nothing was judged, if either
    class has no label, if the labels are worth fewer than `MIN_LABELS` independent ones, if TPR +
    TNR - 1 is not clearly above 0 (any pass rate would fit such a judge), and if no pass rate fits
    (`CONTRADICTED`).
    """
    labels = round(positives + negatives)
    if not judged:
        return _refused(Estimate(None), labels, "no item was judged")
    passing = _Share.of(passed, judged, deff_judged)
    raw = Estimate(*passing, n=judged, of=judged)
    counts = true_positives, positives, true_negatives, negatives
    if reason := unfit(*counts, deff_labelled=deff_labelled):
        return _refused(raw, labels, reason)
    hits, alarms = _hits_and_alarms(*counts, deff_labelled)
    youden = hits.value - alarms.value

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


def unfit(
    true_positives: float,
    positives: float,
    true_negatives: float,
    negatives: float,
    *,
    deff_labelled: float = 1.0,
) -> str | None:
    """Why `rogan_gladen` refuses to correct any rate by these labels; None if it does not."""
    labels = round(positives + negatives)
    if not (positives and negatives):
        return f"no labelled item that people {'passed' if negatives else 'failed'}"
    if labels / deff_labelled < MIN_LABELS:
        worth = f" worth {labels / deff_labelled:.0f} independent ones" if deff_labelled > 1 else ""
        return f"{labels} labels{worth}: an interval that holds takes {MIN_LABELS} at least"
    hits, alarms = _hits_and_alarms(
        true_positives, positives, true_negatives, negatives, deff_labelled
    )
    # TPR + TNR - 1 is a difference of two shares: Newcombe's (1998) method 10.
    youden = hits.value - alarms.value
    least = youden - hypot(hits.distance(up=False), alarms.distance(up=True))
    if least > 0:
        return None
    most = youden + hypot(hits.distance(up=True), alarms.distance(up=False))
    return (
        f"TPR + TNR - 1 is {youden:.2f} (95% interval {least:.2f} to "
        f"{most:.2f}): not clearly above 0, so the judge may be no better than chance"
    )


def _hits_and_alarms(
    true_positives: float, positives: float, true_negatives: float, negatives: float, deff: float
) -> tuple[_Share, _Share]:
    # 1 - TNR. The Wilson interval of a complement is the complement of the interval.
    return (
        _Share.of(true_positives, positives, deff),
        _Share.of(negatives - true_negatives, negatives, deff),
    )


def _farthest(fits: Callable[[float], bool], inside: float, end: float) -> float:
    """The rate farthest from `inside` towards `end` that fits, by bisection."""
    if fits(end):
        return end
    for _ in range(40):
        middle = (inside + end) / 2
        inside, end = (middle, end) if fits(middle) else (inside, middle)
    return inside


def _refused(raw: Estimate, labels: int, reason: str) -> Corrected:
    return Corrected(Estimate(None, n=labels, of=labels + raw.n), raw, reason)


def design_effect(residuals: Sequence[float], sizes: Sequence[int], squares: float) -> float:
    """The factor by which clusters increase the variance of a share, or a weighted sum of shares.

    n outcomes in clusters are worth n / deff independent ones. deff is the variance of the share by
    sums over clusters (Kish 1965, Survey Sampling, section 6.5) divided by that by single outcomes,
    times (t / z)^2 because it is itself estimated from few clusters (t with one degree of freedom
    fewer than clusters). At least 1.

    Args:
        residuals: for each cluster, the sum over its outcomes (0 or 1) of outcome minus share.
        sizes: the number of outcomes of each cluster.
        squares: the sum of all outcomes' squared residuals.

    Returns:
        1 if every cluster has one outcome, or there are none. If all outcomes are equal, or there
        is one cluster, the sum of squared sizes over n: the largest possible for such clusters.
    """
    n, clusters = sum(sizes), len(sizes)
    if clusters == n:
        return 1.0
    if clusters < 2 or not squares:
        return sum(size * size for size in sizes) / n
    between = sum(residual * residual for residual in residuals) * clusters / (clusters - 1)
    return max(1.0, between / squares) * (student_95(clusters - 1) / Z_95) ** 2

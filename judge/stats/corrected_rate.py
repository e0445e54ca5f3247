"""Pass rates corrected for the judge's errors, with both samples' error in the interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import NamedTuple

from judge.stats.intervals import Estimate, normal_quantile, score_limits

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
    def of(cls, value: float, n: float, z: float) -> Share:
        """Wilson's limits over n trials, which may be an effective number."""
        return cls(value, *score_limits(value, n, z))


def rogan_gladen(
    passed: int,
    judged: int,
    true_positives: int,
    positives: int,
    true_negatives: int,
    negatives: int,
    *,
    level: float = 0.95,
    deff_judged: float = 1.0,
    deff_labelled: float = 1.0,
) -> Corrected:
    """The share of items that people would pass, from what the judge passed and how it errs.

    `passed` of `judged` items got a pass from the judge. On labelled items, the judge passed
    `true_positives` of the `positives` that people passed, and failed `true_negatives` of the
    `negatives` that people failed. Rogan & Gladen (1978): (passed share + TNR - 1) / (TPR + TNR -
    1), truncated to [0, 1].

    The interval carries the error of all three shares (`corrected_limits`). The labelled items
    are taken as apart from the judged ones, and the judge as erring alike on both; where labels
    lie on the judged records themselves, `prediction_powered` is the better estimate. A design
    effect (Kish, at least 1; `design_effect`) divides the size of its sample.

    Refused (value None, with a reason) where nothing was judged, where either class has no label,
    where the labels are worth fewer than `LEAST_LABELS` independent ones, where TPR + TNR - 1 is
    not clearly above 0 (its lower limit at `level` is 0 or less, so the judge may be no better than
    a coin, and any pass rate at all fits what it said), and where the interval lies outside [0, 1]
    altogether, so that no pass rate fits (reason `CONTRADICTED`).

    Raises:
        ValueError: a count outside its total, a design effect below 1, a level outside (0, 1).
    """
    for part, whole in (
        (passed, judged),
        (true_positives, positives),
        (true_negatives, negatives),
    ):
        if not 0 <= part <= whole:
            raise ValueError(f"{part} of {whole} items")
    if min(deff_judged, deff_labelled) < 1:
        raise ValueError("a design effect is at least 1")
    z = normal_quantile(level)
    labels = positives + negatives
    if not judged:
        return _refused(Estimate(None), labels, "no item was judged")
    passing = Share.of(passed / judged, judged / deff_judged, z)
    raw = Estimate(*passing, n=judged, of=judged)
    if not (positives and negatives):
        missing = "passed" if negatives else "failed"
        return _refused(raw, labels, f"no labelled item that people {missing}")
    if labels / deff_labelled < LEAST_LABELS:
        worth = f" worth {labels / deff_labelled:.0f} independent ones" if deff_labelled > 1 else ""
        reason = f"{labels} labels{worth}: an interval that holds takes {LEAST_LABELS} at least"
        return _refused(raw, labels, reason)
    hits = Share.of(true_positives / positives, positives / deff_labelled, z)
    # One minus the TNR; the complement of a Wilson interval is the complement's.
    alarms = Share.of((negatives - true_negatives) / negatives, negatives / deff_labelled, z)
    youden = youden_limits(hits, alarms)
    if youden.low <= 0:
        reason = (
            f"TPR + TNR - 1 is {youden.value:.2f} ({level:.0%} interval {youden.low:.2f} to "
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


def prediction_powered(
    passed: int,
    judged: int,
    pairs: Iterable[tuple[bool, bool]] | Mapping[tuple[bool, bool], int],
    *,
    level: float = 0.95,
    deff_judged: float = 1.0,
    deff_labelled: float = 1.0,
) -> Corrected:
    """The share of judged records that people would pass, where people labelled some of them.

    The judge passed `passed` of all `judged` records; `pairs` holds (judge passed, people passed)
    for each labelled one, or how often each such pair came. The labelled are among the judged and
    drawn from them at random. No assumption is made on how the judge errs: one that says nothing
    only brings no gain.

    The estimate is that of power-tuned prediction-powered inference (PPI++; Angelopoulos, Duchi &
    Zrnic 2023, arXiv 2311.01453): mean of people's labels + c (judge's share over the records
    without a label - judge's share over those with one). Verdicts being 0 or 1, the best c makes
    it q a + (1 - q) b: q the judge's pass share over all records, a and b people's pass shares
    among the labelled ones that the judge passed and failed (Tenenbein's 1970 double sampling).

    The interval is Wilson's at the number of labels that would bring the same variance without
    any judge, t (1 - t) / V with V = q^2 a (1 - a) / n_a + (1 - q)^2 b (1 - b) / n_b +
    (a - b)^2 q (1 - q) / judged. In V and t, half an item is added to each count, since perfect
    agreement on a few labels is no proof of it. PPI's own normal interval covers down to 43 % at
    60 labels; bench/coverage.py shows this one's. Design effects as in `rogan_gladen`.

    Where the judge gave all labelled records one verdict, c is undefined and taken as 0: the mean
    of the labels with Wilson's interval. Refused (value None, with a reason) without any label.

    Raises:
        ValueError: counts that cannot be (more pairs than judged records, say), a design effect
            below 1, a level outside (0, 1).
    """
    cells = Counter(pairs)
    labels = cells.total()
    good_passed, good_failed = cells[True, True], cells[False, True]
    judge_passed = good_passed + cells[True, False]
    judge_failed = labels - judge_passed
    if not 0 <= passed <= judged:
        raise ValueError(f"{passed} of {judged} records passed")
    if judge_passed > passed or judge_failed > judged - passed:
        raise ValueError("the labelled records are not all among the judged ones")
    if min(deff_judged, deff_labelled) < 1:
        raise ValueError("a design effect is at least 1")
    z = normal_quantile(level)
    raw = Estimate(None)
    if judged:
        share = passed / judged
        raw = Estimate(share, *score_limits(share, judged / deff_judged, z), n=judged, of=judged)
    if not labels:
        reason = "no judged record has a label"
        return Corrected(Estimate(None, of=judged), raw, reason)

    if not (judge_passed and judge_failed):
        value = (good_passed + good_failed) / labels
        size = labels / deff_labelled
    else:
        value = (
            passed * good_passed / judge_passed + (judged - passed) * good_failed / judge_failed
        ) / judged
        q = (passed + 0.5) / (judged + 1)
        a = (good_passed + 0.5) / (judge_passed + 1)
        b = (good_failed + 0.5) / (judge_failed + 1)
        variance = deff_labelled * (
            q * q * a * (1 - a) / judge_passed + (1 - q) ** 2 * b * (1 - b) / judge_failed
        ) + deff_judged * ((a - b) ** 2 * q * (1 - q) / judged)
        rate = q * a + (1 - q) * b
        size = rate * (1 - rate) / variance
    return Corrected(Estimate(value, *score_limits(value, size, z), n=labels, of=judged), raw)

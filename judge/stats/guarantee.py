"""A confidence threshold above which a judge provably agrees with people often enough."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log

from judge.stats.intervals import Estimate, lower_bound, wilson

_STEPS = 20
_MAX_LABELS = 1_000_000
"""If more would be needed, the agreement is below the goal or too close to it."""


@dataclass(frozen=True, slots=True)
class ThresholdTest:
    """The lowest threshold that passed, or why there is none.

    Args:
        threshold: the judge decides items with at least this confidence; None if no threshold can
            be guaranteed.
        coverage: the share of items that the judge decides.
        agreement: the observed agreement on these; `low` is the exact one-sided bound at the level
            of the test, `high` is None.
        missing: without a threshold, how many more labels would suffice at the same agreement; None
            if no number is known to suffice.
        reason: why there is no threshold.
    """

    threshold: float | None
    coverage: Estimate
    agreement: Estimate
    missing: int | None = None
    reason: str | None = None


def threshold_with_guarantee(
    confidences: Sequence[float],
    agrees: Sequence[bool],
    grid: Iterable[float],
    *,
    agreement: float = 0.9,
    level: float = 0.95,
) -> ThresholdTest:
    """The lowest threshold at which the judge agrees with people at least `agreement` of the time.

    With confidence `level` over the draw of the labelled items, the agreement on new items from the
    same distribution with at least the threshold's confidence is at least `agreement`. `agrees`
    says for each item whether the judge's answer equals people's.

    Fixed-sequence testing (Jung et al. 2025, Trust or Escalate, arXiv 2407.18370; Bauer 1991): from
    the highest threshold of `grid` downward, each is tested on the items at or above it by the
    exact binomial bound at the full `level`; the first failure ends the search. A wrong threshold
    is returned only if the first truly bad one in that order passes its test, and that one test
    errs with probability 1 - level, so no correction for the number of thresholds is needed.

    This holds only if `grid` and its order are fixed without these items: see `grid_from`. It also
    assumes that the items are drawn independently from the population to be judged. Several entries
    of one text are not independent, so keep one of each text. Adding labels after a failure and
    testing again is a second test: each then needs half of 1 - level.

    `missing` is from the bound at the first threshold that failed, at its observed agreement.
    """
    n = len(agrees)
    best: ThresholdTest | None = None
    for threshold in sorted(set(grid), reverse=True):
        agreements = [
            agree for sure, agree in zip(confidences, agrees, strict=True) if sure >= threshold
        ]
        agreed, size = sum(agreements), len(agreements)
        low = lower_bound(agreed, size, level=level)
        if low < agreement:
            return best or _refused(threshold, agreed, size, n, agreement, level)
        observed = Estimate(agreed / size, low=low, n=size, of=n)
        best = ThresholdTest(threshold, wilson(size, n), observed)
    assert best is not None, "the grid has a threshold"
    return best


def grid_from(
    confidences_elsewhere: Sequence[float],
    calibration_size: int,
    *,
    agreement: float = 0.9,
    level: float = 0.95,
) -> list[float]:
    """Thresholds to test, highest first, from the confidences of items that are not tested on.

    `least_items` items, all agreeing, just pass the test. The first threshold is expected to keep
    twice as many of a calibration part of `calibration_size` items (58 at 0.9 and 0.95), so that
    neither chance nor a single disagreement ends the search; and at least a tenth of the part. The
    others are quantiles at even steps of the share kept, down to the lowest confidence, at which
    every item is decided. There are at most 20, fewer if confidences repeat; if the part is too
    small, only the lowest confidence; without confidences, only 1.

    Why from other items: a threshold chosen because the tested items' own scores or agreements look
    good is selected by the chance that the test must rule out. With too few items above the first
    threshold its test fails too often, with too many too late. The training part can be used, and
    so can unlabelled items, which cost nothing.
    """
    if not confidences_elsewhere:
        return [1.0]
    least = least_items(agreement=agreement, level=level)
    highest_first = sorted(confidences_elsewhere, reverse=True)
    size = len(highest_first)
    first = min(1.0, max(0.1, 2 * least / max(1, calibration_size)))
    shares = [first + (1 - first) * step / (_STEPS - 1) for step in range(_STEPS - 1)] + [1.0]
    thresholds = {
        highest_first[min(size, max(1, ceil(size * share - 1e-9))) - 1] for share in shares
    }
    return sorted(thresholds, reverse=True)


def least_items(*, agreement: float = 0.9, level: float = 0.95) -> int:
    """The fewest items that can pass the test if all agree: 29 at 0.9 and 0.95.

    The least n with agreement^n <= 1 - level: ceil(log(1 - level) / log(agreement)).
    """
    return ceil(log(1 - level) / log(agreement))


def _refused(
    threshold: float, agreed: int, count: int, n: int, agreement: float, level: float
) -> ThresholdTest:
    """The outcome without a threshold: the number of missing labels, and the reason."""
    goal = f"agreement of {100 * agreement:g}% with {100 * level:g}% confidence"
    labels = None
    if not n:
        labels = least_items(agreement=agreement, level=level)
        reason = f"no labels: {goal} takes at least {labels}"
    elif not count:
        reason = f"{goal} cannot be shown: none of the {n} items is as sure as {threshold:g}"
    elif (items := _items_needed(agreed / count, agreement, level)) is None:
        why = f"the {count} surest of the {n} items agree {agreed / count:.1%}"
        reason = f"{goal} cannot be shown by more labels: {why}"
    else:
        labels = ceil(items * n / count) - n
        reason = f"{goal} cannot be shown with {n} labels"
    return ThresholdTest(None, Estimate(None, of=n), Estimate(None), labels, reason)


def _items_needed(rate: float, agreement: float, level: float) -> int | None:
    """The fewest items at or above a threshold that pass the test if `rate` of them agree."""

    def passes(items: int) -> bool:
        return lower_bound(rate * items, items, level=level) >= agreement

    sizes = range(1, _MAX_LABELS)
    place = bisect_left(sizes, True, key=passes)
    return sizes[place] if place < len(sizes) else None

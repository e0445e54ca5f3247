"""A threshold of confidence above which a judge provably agrees with people often enough."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log

from judge.stats.intervals import Estimate, lower_bound, wilson

_STEPS = 20
_MAX_LABELS = 1_000_000
"""A rate that would take more is too close to the wanted one, or below it."""


@dataclass(frozen=True, slots=True)
class ThresholdTest:
    """The lowest threshold that passed, or why there is none.

    `threshold`: the judge decides items whose confidence is at least this; None where no threshold
    can be guaranteed, and then `reason` says why and `missing` how many labels are still to be
    given before the same agreement would suffice (None where no number is known to help).
    `coverage`: the share that it decides. `agreement`: the observed agreement among those; its
    `low` is the one-sided exact bound at the level of the test, its `high` None.
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

    With confidence `level` over the draw of the labelled items, the agreement on new items like
    them whose confidence is at or above the threshold is at least `agreement`. `agrees` says for
    each item whether the judge's answer is people's.

    Fixed-sequence testing (Jung et al. 2025, Trust or Escalate, arXiv 2407.18370; Bauer 1991): from
    the highest threshold of `grid` downward, each is tested on the items at or above it by the
    exact binomial bound at the full `level`; the first that fails ends the search. A threshold is
    given out wrongly only if the first one in that order that is truly bad passes its test, and
    that one test errs with chance 1 - level, so the number of thresholds costs nothing.

    This holds only if `grid` and its order are fixed without these items: see `grid_from`. It also
    takes the items as drawn independently from what will be judged; several entries of one text
    are not, so keep one of each text. Adding labels after a failure and testing again is a second
    try: it needs half of 1 - level for each.

    `missing` reads the bound of the first threshold at the agreement observed so far.
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
    """Thresholds to test, highest first, from the confidences of items that will not be tested on.

    `least_items` all agreeing just pass the test. The first threshold is expected to keep twice as
    many of a calibration part of `calibration_size` items (58 at 0.9 and 0.95), so that neither the
    luck of the draw nor a single disagreement ends the search, and a tenth of the part or more. The
    rest are quantiles at even steps of the share kept, down to the lowest confidence, where all is
    decided; 20 at most, fewer where confidences repeat. Where the part is too small for that,
    the lowest confidence alone.

    Why from elsewhere: a threshold set where the tested items' own scores or agreements look good
    is chosen by the luck that the test must rule out, and the first test fails too often with too
    few items above it, too late with too many. The training part serves, and so do unlabelled
    items, which cost nothing.
    """
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
    """The fewest items that can pass the test, all of them agreeing: 29 at 0.9 and 0.95.

    The least n with agreement^n <= 1 - level: ceil(log(1 - level) / log(agreement)).
    """
    return ceil(log(1 - level) / log(agreement))


def _refused(
    threshold: float, agreed: int, count: int, n: int, agreement: float, level: float
) -> ThresholdTest:
    """No threshold, with the number of labels that are missing, and the reason."""
    goal = f"agreement of {agreement:.0%} with {level:.0%} confidence"
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
    """The least number of items at or above a threshold that pass, `rate` of them agreeing."""

    def passes(items: int) -> bool:
        return lower_bound(rate * items, items, level=level) >= agreement

    sizes = range(1, _MAX_LABELS)
    place = bisect_left(sizes, True, key=passes)
    return sizes[place] if place < len(sizes) else None

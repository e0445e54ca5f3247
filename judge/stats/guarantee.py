"""A threshold of confidence above which a judge provably agrees with people often enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log

from judge.stats.intervals import Estimate, lower_bound, wilson

_NEVER = 1e-9
"""A rate this close to the wanted one would need more labels than anybody can give."""


@dataclass(frozen=True, slots=True)
class Tested:
    """One threshold's test: of `kept` items at or above it, `agreed` agree with people.

    `low` is the one-sided exact lower bound of the agreement, `holds` whether it suffices.
    """

    threshold: float
    kept: int
    agreed: int
    low: float
    holds: bool


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The lowest threshold that passed, or why there is none.

    `threshold`: the judge decides items whose confidence is at least this; None where no threshold
    can be guaranteed, and then `reason` says why and `missing` how many labels are still to be
    given before the same agreement would suffice (None where no number is known to help).
    `coverage`: the share that it decides, with Wilson's interval. `agreement`: the observed
    agreement among those; its `low` is the one-sided exact bound at the level of the test, its
    `high` None. `tested`: the thresholds in the order of testing, the failed one last.
    """

    threshold: float | None
    coverage: Estimate
    agreement: Estimate
    tested: tuple[Tested, ...]
    missing: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StageData:
    """One stage's own part of the labelled items; no other stage's part shares an item with it.

    `confidences` and `agrees` are this stage's judge on the part's items, `grid` its thresholds.
    `earlier` holds, for each stage before it in order, that stage's confidences on the same items.
    """

    confidences: Sequence[float]
    agrees: Sequence[bool]
    grid: Sequence[float]
    earlier: tuple[Sequence[float], ...] = ()


@dataclass(frozen=True, slots=True)
class CascadePolicy:
    """A guarantee for each stage; `decided` and `passed_on` in [0, 1] are shares of all items.

    A stage's `coverage` and `missing` are over the items that reach it. `decided[k]` is the share
    of all items that stage k decides, 0 for a stage without a threshold; `passed_on` is what goes
    on to people.
    """

    stages: tuple[Guarantee, ...]
    decided: tuple[float, ...]
    passed_on: float


def threshold_with_guarantee(
    confidences: Sequence[float],
    agrees: Sequence[bool],
    grid: Iterable[float],
    *,
    agreement: float = 0.9,
    level: float = 0.95,
) -> Guarantee:
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
    takes the items as drawn independently from what will be judged; several values of one story
    are not, so keep one of each story. Adding labels after a failure and testing again is a second
    try: it needs half of 1 - level for each.

    `missing` reads the bound at the agreement observed so far. Kept with this grid, its first
    threshold must pass; a grid that starts lower may need less, but then all its labels must be
    new, because these have chosen it. The least of both is given.

    Raises:
        ValueError: lengths differ, the grid is empty, or a rate is outside (0, 1).
    """
    if len(confidences) != len(agrees):
        raise ValueError(f"{len(confidences)} confidences, {len(agrees)} agreements")
    _check_rates(agreement, level)
    order = sorted(set(grid), reverse=True)
    if not order:
        raise ValueError("the grid holds no threshold")
    tested: list[Tested] = []
    for threshold in order:
        kept, agreed = _counts(confidences, agrees, threshold)
        low = lower_bound(agreed, kept, level=level)
        tested.append(Tested(threshold, kept, agreed, low, low >= agreement))
        if not tested[-1].holds:
            break
    n = len(agrees)
    last = next((one for one in reversed(tested) if one.holds), None)
    if last is None:
        counts = [(threshold, *_counts(confidences, agrees, threshold)) for threshold in order]
        missing, reason = _missing(counts, n, agreement, level)
        return Guarantee(None, Estimate(None, of=n), Estimate(None), tuple(tested), missing, reason)
    share = last.agreed / last.kept
    observed = Estimate(share, low=last.low, n=last.kept, of=n)
    coverage = wilson(last.kept, n, level=level)
    return Guarantee(last.threshold, coverage, observed, tuple(tested))


def cascade_policy(
    stages: Sequence[StageData], *, agreement: float = 0.9, level: float = 0.95
) -> CascadePolicy:
    """Thresholds for a cheap judge, a stronger one and so on, that hold together at `level`.

    Stage k decides an item where its confidence reaches its threshold and no stage before did;
    what none decides goes on to people. Each stage is tested at 1 - (1 - level) / stages, on the
    items of its own part that the stages before would have passed on.

    Why that keeps the guarantee: which items reach stage k depends on earlier parts only. Given
    those, the items of part k that reach it are an independent sample of all items that ever will,
    and its test errs with chance at most (1 - level) / stages. With chance `level` none errs (the
    union bound), and then every stage agrees at least `agreement` of the time on what it decides;
    so does the cascade, whose agreement is their weighted mean. Had one part served two stages, the
    first threshold would have chosen the second test's items by looking at them.

    Raises:
        ValueError: no stage, a stage without the confidences of each stage before it, lengths that
            differ, an empty grid, or a rate outside (0, 1).
    """
    if not stages:
        raise ValueError("a cascade has at least one stage")
    _check_rates(agreement, level)
    each = 1 - (1 - level) / len(stages)
    found: list[Guarantee] = []
    decided: list[float] = []
    left = 1.0
    for number, stage in enumerate(stages):
        if len(stage.earlier) != number:
            raise ValueError(
                f"stage {number + 1} has the confidences of {len(stage.earlier)} earlier stages, "
                f"not of {number}"
            )
        reaching = _passed_on(stage, [guarantee.threshold for guarantee in found])
        one = threshold_with_guarantee(
            [stage.confidences[index] for index in reaching],
            [stage.agrees[index] for index in reaching],
            stage.grid,
            agreement=agreement,
            level=each,
        )
        found.append(one)
        decided.append(left * (one.coverage.value or 0.0))
        left -= decided[-1]
    return CascadePolicy(tuple(found), tuple(decided), left)


def grid_from(
    confidences_elsewhere: Sequence[float],
    calibration_size: int,
    *,
    agreement: float = 0.9,
    level: float = 0.95,
    steps: int = 20,
) -> list[float]:
    """Thresholds to test, highest first, from the confidences of items that will not be tested on.

    `least_items` all agreeing just pass the test. The first threshold is expected to keep twice as
    many of a calibration part of `calibration_size` items (58 at 0.9 and 0.95), so that neither the
    luck of the draw nor a single disagreement ends the search, and a tenth of the part or more. The
    rest are quantiles at even steps of the share kept, down to the lowest confidence, where all is
    decided; at most `steps`, fewer where confidences repeat. Where the part is too small for that,
    the lowest confidence alone.

    Why from elsewhere: a threshold set where the tested items' own scores or agreements look good
    is chosen by the luck that the test must rule out, and the first test fails too often with too
    few items above it, too late with too many. The training part serves, and so do unlabelled
    items, which cost nothing.

    Raises:
        ValueError: no confidence is given, steps is below 1, or a rate is outside (0, 1).
    """
    if not confidences_elsewhere or steps < 1:
        raise ValueError("a grid needs confidences and at least one step")
    least = least_items(agreement=agreement, level=level)
    highest_first = sorted(confidences_elsewhere, reverse=True)
    size = len(highest_first)
    first = min(1.0, max(0.1, 2 * least / max(1, calibration_size)))
    shares = [first + (1 - first) * step / max(1, steps - 1) for step in range(steps - 1)] + [1.0]
    chosen = {highest_first[min(size, max(1, ceil(size * share - 1e-9))) - 1] for share in shares}
    return sorted(chosen, reverse=True)


def least_items(*, agreement: float = 0.9, level: float = 0.95) -> int:
    """The fewest items that can pass the test, all of them agreeing: 29 at 0.9 and 0.95.

    The least n with agreement^n <= 1 - level: ceil(log(1 - level) / log(agreement)).

    Raises:
        ValueError: a rate is outside (0, 1).
    """
    _check_rates(agreement, level)
    return ceil(log(1 - level) / log(agreement))


def _passed_on(stage: StageData, thresholds: Sequence[float | None]) -> list[int]:
    """The places of the part's items that no earlier stage decides."""
    size = len(stage.confidences)
    if any(len(other) != size for other in (stage.agrees, *stage.earlier)):
        raise ValueError("a stage's sequences differ in length")
    return [
        index
        for index in range(size)
        if not any(
            threshold is not None and scores[index] >= threshold
            for scores, threshold in zip(stage.earlier, thresholds, strict=True)
        )
    ]


def _counts(
    confidences: Sequence[float], agrees: Sequence[bool], threshold: float
) -> tuple[int, int]:
    kept = [
        bool(agree)
        for confidence, agree in zip(confidences, agrees, strict=True)
        if confidence >= threshold
    ]
    return len(kept), sum(kept)


def _missing(
    counts: Sequence[tuple[float, int, int]], n: int, agreement: float, level: float
) -> tuple[int | None, str]:
    """How many labels are still to be given, and the words that say so."""
    wanted = f"agreement of {agreement:.0%} with {level:.0%} confidence"
    if not n:
        least = least_items(agreement=agreement, level=level)
        return least, f"no labels: {wanted} takes at least {least}"
    ways: list[tuple[int, int]] = []
    for place, (_, kept, agreed) in enumerate(counts):
        needed = _items_needed(agreed / kept, agreement, level) if kept else None
        if needed is not None:
            labels = ceil(needed * n / kept)
            # A grid that starts lower was chosen by these labels: all that test it must be new.
            ways.append((labels if place else labels - n, place))
    if not ways:
        best = max((agreed / kept for _, kept, agreed in counts if kept), default=None)
        why = (
            f"none of the {n} items reaches a threshold"
            if best is None
            else f"the best that any threshold reaches on these {n} items is {best:.1%}"
        )
        return None, f"{wanted} cannot be shown by more labels: {why}"
    labels, place = min(ways)
    more = f"{labels} new labels on a grid from {counts[place][0]:g}" if place else f"{labels} more"
    return labels, (
        f"{wanted} cannot be shown with {n} labels: it takes about {more}, if the judge goes on "
        "agreeing as it did"
    )


def _items_needed(rate: float, agreement: float, level: float) -> int | None:
    """The least number of items at or above a threshold that pass, `rate` of them agreeing."""
    if rate <= agreement + _NEVER:
        return None
    most = 1
    while lower_bound(rate * most, most, level=level) < agreement:
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        if lower_bound(rate * middle, middle, level=level) < agreement:
            least = middle
        else:
            most = middle
    return most


def _check_rates(agreement: float, level: float) -> None:
    if not (0 < agreement < 1 and 0 < level < 1):
        raise ValueError(f"agreement {agreement} and level {level} lie strictly between 0 and 1")

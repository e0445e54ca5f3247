"""How many independent votes a panel is worth, and whether it beats its best single judge."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from judge.stats.bootstrap import Resamples, bootstrap
from judge.stats.interval import Estimate
from judge.stats.mean import mean_estimate, share_estimate


@dataclass(frozen=True, slots=True)
class PanelAgainstBest:
    """The panel's accuracy, its best judge's, and panel less best, on the same items.

    The best judge is picked on these items too, which flatters it by luck: the comparison leans
    against the panel, the more so the more judges and the fewer items there are.
    """

    panel: Estimate
    best: int
    single: Estimate
    difference: Estimate


def effective_votes(correct: Sequence[Sequence[bool]]) -> float | None:
    """n_eff = k / (1 + (k - 1) r): as many independent judges would scatter as much.

    r is the mean correlation (phi) of the errors of two judges, over the pairs of judges of whom
    both err on some item and not on all; 1 + (k - 1) r is the design effect of clusters of k (Kish
    1965, *Survey Sampling*). k judges with independent errors are worth k, judges that
    always err together are worth 1; errors that exclude one another give more than k.

    Args:
        correct: one row for each item, one entry for each judge: whether its answer was right.

    Returns:
        None for fewer than two judges, where no pair has a correlation, and where r is so negative
        that the design effect is 0 or less.

    Raises:
        ValueError: rows differ in length.
    """
    import numpy as np

    judges = _judges(correct)
    if judges < 2:
        return None
    errors = 1.0 - np.array(correct, dtype=np.float64)
    varies = errors.std(axis=0) > 0
    if varies.sum() < 2:
        return None
    correlations = np.asarray(np.corrcoef(errors[:, varies], rowvar=False))
    r = float(correlations[np.triu_indices(int(varies.sum()), 1)].mean())
    design_effect = 1 + (judges - 1) * r
    return None if design_effect <= 1e-9 else judges / design_effect


def effective_votes_estimate(
    correct: Sequence[Sequence[bool]],
    clusters: Sequence[Hashable],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """`effective_votes` with its interval; arguments and None as there and in `bootstrap`."""
    _judges(correct)
    return bootstrap(effective_votes, correct, clusters, draws=draws, seed=seed)


def panel_against_best(
    panel: Sequence[bool],
    correct: Sequence[Sequence[bool]],
    clusters: Sequence[Hashable],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> PanelAgainstBest | None:
    """The panel's accuracy beside that of its most accurate judge (the first of equals).

    Args:
        panel: whether the panel's answer was right, for each item.
        correct: for the same items, whether each judge's was.
        clusters: one name for each item; items of the same name are drawn together.
        draws: how many resamples. The difference is taken in each draw (paired).
        seed: the same seed gives the same intervals.

    Returns:
        None where there is no item.

    Raises:
        ValueError: lengths differ, or there is no judge.
    """
    judges = _judges(correct)
    if not len(panel) == len(correct) == len(clusters):
        raise ValueError(f"{len(panel)} answers, {len(correct)} rows, {len(clusters)} clusters")
    if not panel:
        return None
    if not judges:
        raise ValueError("a panel has at least one judge")
    best = max(range(judges), key=lambda judge: sum(row[judge] for row in correct))
    single = [row[best] for row in correct]
    resamples = Resamples(clusters, draws=draws, seed=seed)
    differences = [float(mine) - float(its) for mine, its in zip(panel, single, strict=True)]
    return PanelAgainstBest(
        panel=share_estimate([float(hit) for hit in panel], resamples),
        best=best,
        single=share_estimate([float(hit) for hit in single], resamples),
        difference=mean_estimate(differences, resamples),
    )


def _judges(correct: Sequence[Sequence[bool]]) -> int:
    widths = {len(row) for row in correct}
    if len(widths) > 1:
        raise ValueError(f"rows of {min(widths)} and of {max(widths)} judges")
    return widths.pop() if widths else 0

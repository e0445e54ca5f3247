"""Measures of a classifier: from the confusion matrix, the area under the ROC curve, and the
calibration error of its probabilities.

Measures of counts (`f1s`, `kappas`, ...) take a stack of square matrices, of
shape (..., K, K), rows the reference and columns the answer, whole or weighted counts, and give an
array of shape (...) with nan where the measure is undefined: an array holds no None. So a bootstrap
computes a measure of all its draws at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """part / whole, nan where whole is 0."""
    import numpy as np

    part, whole = np.broadcast_arrays(part, whole)
    result = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=result, where=whole != 0)
    return result


def f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) in, (..., K) out: each class's F1, 2 hits / (answers + items), in [0, 1].

    The harmonic mean of precision and recall (van Rijsbergen 1979, *Information Retrieval*, chapter
    7, with beta = 1).
    """
    return ratio(2 * _hits(counts), counts.sum(axis=-2) + counts.sum(axis=-1))


def precisions(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) in, (..., K) out: each class's hits / answers, 0 for one that is never answered,
    nan for one that no item is of either."""
    import numpy as np

    items, answers = counts.sum(axis=-1), counts.sum(axis=-2)
    return ratio(_hits(counts), np.where(answers > 0, answers, items))


def recalls(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `precisions`: each class's hits / items, 0 for one that is answered and no item is of."""
    import numpy as np

    return precisions(np.swapaxes(counts, -2, -1))


def macro_f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean F1 over the classes that items are of or that are answered."""
    return known_means(f1s(counts))


def known_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K) in, (...) out: the mean of the values that are not nan; nan where all are."""
    import numpy as np

    counts = np.asarray((~np.isnan(values)).sum(axis=-1), dtype=np.float64)
    return ratio(np.nansum(values, axis=-1), counts)


def _hits(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.diagonal(counts, axis1=-2, axis2=-1)


def kappas(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's (1960) kappa of each of a stack: 1 - observed / expected disagreement, at most 1.

    Expected is what the rows' and columns' sums give by chance. nan where that is 0: no items, or
    one class takes all answers of both sides. Written out because a bootstrap computes thousands at
    once.
    """
    import numpy as np

    return _weighted(counts, 1 - np.eye(counts.shape[-1]))


def numbers_of(classes: Sequence[str]) -> list[float] | None:
    """The classes as the points of a scale: three different finite numbers or more, else None."""
    try:
        numbers = [float(name) for name in classes]
    except ValueError:
        return None
    return (
        numbers if len(set(numbers)) == len(numbers) > 2 and all(map(isfinite, numbers)) else None
    )


def weighted_kappas(counts: NDArray[np.float64], points: Sequence[float]) -> NDArray[np.float64]:
    """Cohen's (1968) weighted kappa of each of a stack with quadratic weights, at most 1.

    1 - observed / expected squared distance of the two sides' points on the scale, "Weighted
    kappa", Psychological Bulletin 70(4). `points` are the classes' numbers; where they are evenly
    spaced this is scikit-learn's. nan where the expected distance is 0: no items, or one class
    takes all answers of both sides.
    """
    import numpy as np

    scale = np.array(points)
    return _weighted(counts, (scale[:, None] - scale) ** 2)


def _weighted(counts: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kappa of each of a stack, each cell's disagreement weighing so much."""
    by_chance = counts.sum(axis=-1)[..., :, None] * counts.sum(axis=-2)[..., None, :]
    apart = (counts * weights).sum(axis=(-2, -1))
    items = counts.sum(axis=(-2, -1))
    return 1.0 - ratio(apart * items, (by_chance * weights).sum(axis=(-2, -1)))


def spearmans(counts: NDArray[np.float64], points: Sequence[float]) -> NDArray[np.float64]:
    """Spearman's (1904) rank correlation of the two sides of each of a stack, in [-1, 1].

    Pearson's correlation of the ranks, items of one class at their mean rank. nan where one side
    has one class alone, or there are no items.
    """
    import numpy as np

    order = np.argsort(points)
    ordered = counts[..., order[:, None], order]
    sides = [ordered.sum(axis=-1), ordered.sum(axis=-2)]
    items = ordered.sum(axis=(-2, -1))[..., None]
    # The mean rank of a class less the mean rank of all, which is half of one more than the items.
    first, second = (np.cumsum(side, axis=-1) - side / 2 - items / 2 for side in sides)
    together = (ordered * first[..., :, None] * second[..., None, :]).sum(axis=(-2, -1))
    squares = [(n * rank**2).sum(axis=-1) for n, rank in zip(sides, (first, second), strict=True)]
    return ratio(together, np.sqrt(squares[0] * squares[1]))


def aucs(
    positive: NDArray[np.bool_], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Area under the ROC curve under each row of item weights: (samples, items) in, (samples,) out.

    P(score of a positive > score of a negative), ties counted half, in [0, 1]; the Mann-Whitney
    form (Hanley and McNeil 1982). nan where all items are positive or all are negative.
    """
    import numpy as np

    if not len(scores):
        return np.full(len(weights), np.nan)
    order = np.argsort(scores, kind="stable")
    ties = np.flatnonzero(np.r_[True, np.diff(scores[order]) != 0])
    positives, negatives = (
        np.add.reduceat((weights * flags)[:, order], ties, axis=1)
        for flags in (positive, ~positive)
    )
    below = np.cumsum(negatives, axis=1) - negatives
    won = (positives * (below + negatives / 2)).sum(axis=1)
    return ratio(won, positives.sum(axis=1) * negatives.sum(axis=1))


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a reliability diagram: what was promised and came true in it, of `n` items."""

    mean_probability: float
    observed: float
    n: int


def calibration_errors(
    probabilities: NDArray[np.float64],
    outcomes: NDArray[np.bool_],
    weights: NDArray[np.float64],
    *,
    bins: int = 10,
) -> tuple[NDArray[np.float64], list[ReliabilityBin]]:
    """Calibration error under each row of item weights: (samples, items) in, (samples,) out.

    Naeini, Cooper and Hauskrecht (2015), "Obtaining Well Calibrated Probabilities Using Bayesian
    Binning", AAAI; bins of equal mass: Nixon et al. (2019), "Measuring Calibration in Deep
    Learning".

    Sum over bins of (share of items) x |mean probability - share that came true|, in [0, 1]. Small
    samples raise it, because the shares of well-calibrated probabilities scatter too. nan where a
    sample weighs nothing.

    The bins, of all items as they are, come with it, from low to high; they hold still from sample
    to sample. Their edges are quantiles of the probabilities: a bin takes its upper edge and, but
    for the first, not its lower one; equal probabilities are never parted, so fewer bins come out
    where some repeat. `outcomes` says whether each came true.
    """
    import numpy as np

    if not len(probabilities):
        return np.full(len(weights), np.nan), []
    edges = np.quantile(probabilities, np.linspace(0.0, 1.0, bins + 1))
    place = np.searchsorted(edges[1:-1], probabilities)
    members = (place[:, None] == np.unique(place)).astype(np.float64)
    gaps = weights @ (members * (probabilities - outcomes)[:, None])
    diagram = [
        ReliabilityBin(
            mean_probability=float(probabilities[inside].mean()),
            observed=float(outcomes[inside].mean()),
            n=int(inside.sum()),
        )
        for inside in (members > 0).T
    ]
    return ratio(np.abs(gaps).sum(axis=1), weights.sum(axis=1)), diagram

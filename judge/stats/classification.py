"""Measures of a classifier: from the confusion matrix, the area under the ROC curve, and the
calibration error of its probabilities.

Measures of counts (`f1s`, `kappas`, ...) take a stack of confusion matrices, of shape (..., K, K),
with the reference in rows, the answer in columns, and whole or weighted counts. They give an array
of shape (...), with nan where the measure is undefined. So a bootstrap computes a measure of all
its draws at once.
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
    """part / whole; nan where whole is 0."""
    import numpy as np

    part, whole = np.broadcast_arrays(part, whole)
    result = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=result, where=whole != 0)
    return result


def f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each class's F1, 2 hits / (answers + items), in [0, 1]: (..., K, K) in, (..., K) out.

    The harmonic mean of precision and recall (van Rijsbergen 1979, *Information Retrieval*, chapter
    7, with beta = 1).
    """
    return ratio(2 * _hits(counts), counts.sum(axis=-2) + counts.sum(axis=-1))


def precisions(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each class's precision, hits / answers: (..., K, K) in, (..., K) out.

    0 for a class that is never answered; nan if no item is of it, either.
    """
    import numpy as np

    items, answers = counts.sum(axis=-1), counts.sum(axis=-2)
    return ratio(_hits(counts), np.where(answers > 0, answers, items))


def recalls(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each class's recall, hits / items: (..., K, K) in, (..., K) out.

    0 for a class of no item; nan if it is never answered, either.
    """
    import numpy as np

    return precisions(np.swapaxes(counts, -2, -1))


def macro_f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean F1 over the classes that occur in the reference or the answers."""
    return known_means(f1s(counts))


def known_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the values that are not nan, nan if all are: (..., K) in, (...) out."""
    import numpy as np

    counts = np.asarray((~np.isnan(values)).sum(axis=-1), dtype=np.float64)
    return ratio(np.nansum(values, axis=-1), counts)


def _hits(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.diagonal(counts, axis1=-2, axis2=-1)


def kappas(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's (1960) kappa of each matrix: 1 - observed / expected disagreement, at most 1.

    The expected disagreement is by chance, from the row and column sums. nan where it is 0: there
    are no items, or both sides give the same one class only. Vectorised because a bootstrap
    computes thousands at once.
    """
    import numpy as np

    return _weighted(counts, 1 - np.eye(counts.shape[-1]))


def numbers_of(classes: Sequence[str]) -> list[float] | None:
    """The classes as the points of a scale; None unless they are three or more distinct finite
    numbers."""
    try:
        numbers = [float(name) for name in classes]
    except ValueError:
        return None
    return (
        numbers if len(set(numbers)) == len(numbers) > 2 and all(map(isfinite, numbers)) else None
    )


def weighted_kappas(counts: NDArray[np.float64], points: Sequence[float]) -> NDArray[np.float64]:
    """Cohen's (1968) weighted kappa of each matrix with quadratic weights, at most 1.

    1 - observed / expected squared distance of the two sides' points on the scale, "Weighted
    kappa", Psychological Bulletin 70(4). `points` are the classes' numbers; if they are evenly
    spaced, this equals scikit-learn's. nan where the expected distance is 0: there are no items, or
    both sides give the same one class only.
    """
    import numpy as np

    scale = np.array(points)
    return _weighted(counts, (scale[:, None] - scale) ** 2)


def _weighted(counts: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kappa of each matrix, with each cell's weight of disagreement."""
    by_chance = counts.sum(axis=-1)[..., :, None] * counts.sum(axis=-2)[..., None, :]
    apart = (counts * weights).sum(axis=(-2, -1))
    items = counts.sum(axis=(-2, -1))
    return 1.0 - ratio(apart * items, (by_chance * weights).sum(axis=(-2, -1)))


def spearmans(counts: NDArray[np.float64], points: Sequence[float]) -> NDArray[np.float64]:
    """Spearman's (1904) rank correlation of each matrix's two sides, in [-1, 1].

    Pearson's correlation of the ranks; items of one class share their mean rank. nan where one side
    has a single class, or there are no items.
    """
    import numpy as np

    order = np.argsort(points)
    ordered = counts[..., order[:, None], order]
    sides = [ordered.sum(axis=-1), ordered.sum(axis=-2)]
    items = ordered.sum(axis=(-2, -1))[..., None]
    # The mean rank of a class minus the mean rank of all, (items + 1) / 2.
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
    """One bin of a reliability diagram: mean probability and observed share, over `n` items."""

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

    Sum over bins of (share of items) x |mean probability - share that came true|, in [0, 1]. It is
    biased upwards in small samples, because the shares of well-calibrated probabilities scatter
    too. nan where a sample's weights sum to 0.

    Also returned are the bins, from low to high, over the unweighted items; they are fixed across
    samples. Their edges are quantiles of the probabilities. A bin includes its upper edge but not
    its lower one, except for the first; equal probabilities are never split, so there are fewer
    bins if some repeat. `outcomes` says whether each item's event came true.
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

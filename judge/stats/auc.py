"""Area under the ROC curve: how often a positive item is scored above a negative one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from judge.stats.confusion import defined, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def auc(positive: Sequence[bool], scores: Sequence[float]) -> float | None:
    """P(score of a positive > score of a negative), ties counted half, in [0, 1].

    The Mann-Whitney form (Hanley and McNeil 1982, "The meaning and use of the area under a ROC
    curve", *Radiology* 143). None where all items are positive or all are negative.

    Raises:
        ValueError: the sequences differ in length.
    """
    import numpy as np

    _same_length(positive, scores)
    weights = np.ones((1, len(scores)))
    return defined(aucs(np.array(positive, dtype=bool), np.array(scores), weights)[0])


def macro_auc(
    reference: Sequence[str], probabilities: Sequence[Mapping[str, float]], classes: Sequence[str]
) -> float | None:
    """Mean of each class's AUC against the rest, over the classes that items are of.

    An item's score for a class is its probability of it, 0 where the mapping lacks it. None where
    all items are of one class.

    Raises:
        ValueError: the sequences differ in length.
    """
    import numpy as np

    _same_length(reference, probabilities)
    weights = np.ones((1, len(reference)))
    return defined(macro_aucs(reference, probabilities, classes, weights)[0])


def aucs(
    positive: NDArray[np.bool_], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """AUC under each row of item weights: (samples, items) in, (samples,) out, nan if undefined."""
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


def macro_aucs(
    reference: Sequence[str],
    probabilities: Sequence[Mapping[str, float]],
    classes: Sequence[str],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """`macro_auc` under each row of item weights: (samples, items) in, (samples,) out."""
    import numpy as np

    true = np.array(reference, dtype=object)
    of_class = np.array(
        [
            aucs(
                np.asarray(true == name, dtype=bool),
                np.array([mapping.get(name, 0.0) for mapping in probabilities]),
                weights,
            )
            for name in classes
        ]
    )
    found = (~np.isnan(of_class)).sum(axis=0).astype(np.float64)
    return ratio(np.nansum(of_class, axis=0), found)


def _same_length(a: Sequence[object], b: Sequence[object]) -> None:
    if len(a) != len(b):
        raise ValueError(f"{len(a)} labels and {len(b)} scores")

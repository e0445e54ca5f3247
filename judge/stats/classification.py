"""Measures of a classifier: from the confusion matrix, and the area under the ROC curve.

Measures of counts (`precisions`, `recalls`, `kappas`, ...) take a stack of square matrices, of
shape (..., K, K), rows the reference and columns the answer, whole or weighted counts, and give an
array of shape (...) with nan where the measure is undefined: an array holds no None. So a bootstrap
computes a measure of all its draws at once. `defined` turns such a number into a float or None.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Weights = Literal["none", "linear", "quadratic"]


def confusion_matrix(
    reference: Sequence[Hashable],
    answers: Sequence[Hashable],
    classes: Sequence[Hashable],
    columns: Sequence[Hashable] | None = None,
) -> list[list[int]]:
    """Counts of (reference, answer), rows in the order of `classes`, columns of `columns`.

    Args:
        reference: the true class of each item.
        answers: the given class of each item.
        classes: what a reference may be, in the order of the rows.
        columns: what an answer may be, in the order of the columns; `classes` if not given.

    Raises:
        ValueError: the sequences differ in length, a class or column comes twice, or a reference
            or an answer is none of them.
    """
    if len(reference) != len(answers):
        raise ValueError(f"{len(reference)} references and {len(answers)} answers")
    row_of, column_of = _places(classes), _places(classes if columns is None else columns)
    counts = [[0] * len(column_of) for _ in row_of]
    for true, given in zip(reference, answers, strict=True):
        if true not in row_of:
            raise ValueError(f"reference {true!r} is none of {', '.join(map(str, row_of))}")
        if given not in column_of:
            raise ValueError(f"answer {given!r} is none of {', '.join(map(str, column_of))}")
        counts[row_of[true]][column_of[given]] += 1
    return counts


def counted(
    reference: Sequence[Hashable], answers: Sequence[Hashable], classes: Sequence[Hashable]
) -> NDArray[np.float64]:
    """`confusion_matrix` as an array of shape (K, K), for the measures of counts."""
    import numpy as np

    matrix = confusion_matrix(reference, answers, classes)
    return np.array(matrix, dtype=np.float64).reshape(len(classes), len(classes))


def ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """part / whole, nan where whole is 0."""
    import numpy as np

    part, whole = np.broadcast_arrays(part, whole)
    result = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=result, where=whole != 0)
    return result


def defined(number: NDArray[np.float64] | float) -> float | None:
    """A single number of an array as a float, None for nan."""
    value = float(number)
    return None if value != value else value


def _places(names: Sequence[Hashable]) -> dict[Hashable, int]:
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        raise ValueError(f"a class is named twice: {', '.join(map(str, names))}")
    return places


def precisions(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) confusion matrices in, (..., K) out: each class's hits / answers, in [0, 1]."""
    return ratio(_hits(counts), counts.sum(axis=-2))


def recalls(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) confusion matrices in, (..., K) out: each class's hits / items, in [0, 1]."""
    return ratio(_hits(counts), counts.sum(axis=-1))


def f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) in, (..., K) out: each class's F1, 2 hits / (answers + items), in [0, 1].

    The harmonic mean of precision and recall (van Rijsbergen 1979, *Information Retrieval*, chapter
    7, with beta = 1).
    """
    return ratio(2 * _hits(counts), counts.sum(axis=-2) + counts.sum(axis=-1))


def macro_f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean F1 over the classes that items are of or that are answered."""
    import numpy as np

    scores = f1s(counts)
    known = np.asarray((~np.isnan(scores)).sum(axis=-1), dtype=np.float64)
    return ratio(np.nansum(scores, axis=-1), known)


def _hits(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.diagonal(counts, axis1=-2, axis2=-1)


def kappas(counts: NDArray[np.float64], weights: Weights = "none") -> NDArray[np.float64]:
    """Cohen's kappa of each of a stack: 1 - observed / expected disagreement, at most 1.

    A disagreement between classes i and j weighs 1 (Cohen 1960), or |i - j| (linear) or (i - j)²
    (quadratic; Cohen 1968, "Weighted kappa"), classes in their order; expected is what the rows'
    and columns' sums give by chance. nan where that is 0: no items, or one class takes all answers
    of both sides. Written out because a bootstrap computes thousands at once.
    """
    import numpy as np

    places = np.arange(counts.shape[-1])
    apart = np.abs(places[:, None] - places).astype(np.float64)
    if weights == "none":
        apart = np.minimum(apart, 1.0)
    elif weights == "quadratic":
        apart = apart**2
    by_chance = counts.sum(axis=-1)[..., :, None] * counts.sum(axis=-2)[..., None, :]
    observed = (apart * counts).sum(axis=(-2, -1)) * counts.sum(axis=(-2, -1))
    return 1.0 - ratio(observed, (apart * by_chance).sum(axis=(-2, -1)))


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


def macro_aucs(
    reference: Sequence[str],
    probabilities: Sequence[Mapping[str, float]],
    classes: Sequence[str],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Mean of each class's AUC against the rest, over the classes that items are of.

    An item's score for a class is its probability of it, 0 where the mapping lacks it. Shapes as
    for `aucs`.
    """
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

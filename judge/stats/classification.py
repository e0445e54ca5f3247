"""Measures of a classifier: from the confusion matrix, and the area under the ROC curve.

Measures of counts (`precisions`, `correlations`, `kappas`, ...) take a stack of square matrices, of
shape (..., K, K), rows the reference and columns the answer, whole or weighted counts, and give an
array of shape (...) with nan where the measure is undefined: an array holds no None. So a bootstrap
computes a measure of all its draws at once. `defined` turns such a number into a float or None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judge.stats.agreement import Weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def confusion_matrix(
    reference: Sequence[str],
    answers: Sequence[str],
    classes: Sequence[str],
    columns: Sequence[str] | None = None,
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
            raise ValueError(f"reference {true!r} is none of {', '.join(row_of)}")
        if given not in column_of:
            raise ValueError(f"answer {given!r} is none of {', '.join(column_of)}")
        counts[row_of[true]][column_of[given]] += 1
    return counts


def counted(
    reference: Sequence[str], answers: Sequence[str], classes: Sequence[str]
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


def _places(names: Sequence[str]) -> dict[str, int]:
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        raise ValueError(f"a class is named twice: {', '.join(names)}")
    return places


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Precision, recall and F1 of one class, or their means over classes."""

    precision: float | None
    recall: float | None
    f1: float | None


def class_scores(
    reference: Sequence[str], answers: Sequence[str], classes: Sequence[str]
) -> dict[str, ClassScores]:
    """Scores of each class, in the order of `classes`.

    Precision is None where the class is never answered, recall where no item is of it, F1 where
    neither happens.

    Raises:
        ValueError: as `confusion_matrix`.
    """
    counts = counted(reference, answers, classes)
    triples = zip(precisions(counts), recalls(counts), f1s(counts), strict=True)
    return {
        name: ClassScores(*(defined(number) for number in triple))
        for name, triple in zip(classes, triples, strict=True)
    }


def macro_scores(
    reference: Sequence[str], answers: Sequence[str], classes: Sequence[str]
) -> ClassScores:
    """Unweighted means over classes, each over the classes it can speak of.

    Recall: over the classes that items are of. F1: over those that items are of or that are
    answered. Precision: over the same as F1, and None where one of them is never answered; to leave
    that class out would reward a judge for never answering it. None where there is no item.

    Raises:
        ValueError: as `confusion_matrix`.
    """
    counts = counted(reference, answers, classes)
    macros = (macro_precisions(counts), macro_recalls(counts), macro_f1s(counts))
    return ClassScores(*(defined(number) for number in macros))


def precisions(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) confusion matrices in, (..., K) out: each class's precision."""
    return ratio(_hits(counts), counts.sum(axis=-2))


def recalls(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) confusion matrices in, (..., K) out: each class's recall."""
    return ratio(_hits(counts), counts.sum(axis=-1))


def f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., K, K) confusion matrices in, (..., K) out: each class's F1."""
    return ratio(2 * _hits(counts), counts.sum(axis=-2) + counts.sum(axis=-1))


def macro_precisions(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Macro precision of each of a stack of confusion matrices, as in `macro_scores`."""
    import numpy as np

    occurs = counts.sum(axis=-2) + counts.sum(axis=-1) > 0
    # A sum over nan is nan: a class that occurs and is never answered leaves no mean.
    return ratio(np.where(occurs, precisions(counts), 0.0).sum(axis=-1), _count(occurs))


def macro_recalls(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Macro recall (balanced accuracy) of each of a stack, as in `macro_scores`."""
    return _mean_of_defined(recalls(counts))


def macro_f1s(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Macro F1 of each of a stack of confusion matrices, as in `macro_scores`."""
    return _mean_of_defined(f1s(counts))


def _mean_of_defined(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return ratio(np.nansum(scores, axis=-1), _count(~np.isnan(scores)))


def _count(flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    import numpy as np

    count: NDArray[np.float64] = flags.sum(axis=-1).astype(np.float64)
    return count


def _hits(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.diagonal(counts, axis1=-2, axis2=-1)


def matthews(
    reference: Sequence[str], answers: Sequence[str], classes: Sequence[str]
) -> float | None:
    """R_K = (s h - sum t_k g_k) / sqrt((s² - sum g_k²)(s² - sum t_k²)), in [-1, 1].

    s items, h of them hits; t_k items are of class k, g_k are answered as it. 1 is full agreement,
    0 what independent answers give. None where all items are of one class or all answers are the
    same: a constant correlates with nothing.

    Raises:
        ValueError: as `confusion_matrix`.
    """
    return defined(correlations(counted(reference, answers, classes)))


def correlations(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """R_K of each of a stack of confusion matrices (see `confusion`)."""
    import numpy as np

    size = counts.sum(axis=(-2, -1))
    true, given = counts.sum(axis=-1), counts.sum(axis=-2)
    above = size * np.trace(counts, axis1=-2, axis2=-1) - (true * given).sum(axis=-1)
    below = (size**2 - (given**2).sum(axis=-1)) * (size**2 - (true**2).sum(axis=-1))
    return ratio(above, np.sqrt(np.maximum(below, 0.0)))


def kappas(counts: NDArray[np.float64], weights: Weights = "none") -> NDArray[np.float64]:
    """1 - observed over expected disagreement of each of a stack (see `confusion`), at most 1.

    A disagreement between classes i and j weighs 1, or |i - j| (linear), or (i - j)² (quadratic),
    classes in their order; expected is what the rows' and columns' sums give by chance. nan where
    that is 0: no items, or one class takes all answers of both sides.
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

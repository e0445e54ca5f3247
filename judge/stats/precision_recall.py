"""Precision, recall and F1 of each class, and their macro means.

With `hits` items of the class answered as it, `given` items answered as it, and `true` items of it:
precision = hits / given, recall = hits / true, F1 = 2 hits / (given + true), the harmonic mean of
the two (van Rijsbergen 1979, *Information Retrieval*, chapter 7, with beta = 1). All lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judge.stats.confusion import counted, defined, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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

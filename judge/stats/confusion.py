"""The confusion matrix: how often each reference class got each answer.

Measures of counts (`precisions`, `correlations`, `kappas`, ...) take a stack of square matrices, of
shape (..., K, K), rows the reference and columns the answer, whole or weighted counts, and give an
array of shape (...) with nan where the measure is undefined: an array holds no None. So a bootstrap
computes a measure of all its draws at once. `defined` turns such a number into a float or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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

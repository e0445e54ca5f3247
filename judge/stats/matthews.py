"""Matthews correlation of reference and answer, for two classes or more.

Gorodkin (2004), "Comparing two K-category assignments by a K-category correlation coefficient",
*Computational Biology and Chemistry* 28; for two classes the coefficient of Matthews (1975).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from judge.stats.confusion import counted, defined, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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

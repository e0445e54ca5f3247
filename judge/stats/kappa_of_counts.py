"""Cohen's kappa, plain and weighted, of many confusion matrices at once.

Cohen (1960), "A coefficient of agreement for nominal scales"; weighted: Cohen (1968), "Weighted
kappa", *Psychological Bulletin* 70.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from judge.stats.cohen import Weights
from judge.stats.confusion import ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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

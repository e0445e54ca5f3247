"""Lexical variance: how far texts spread, from the distances between them alone.

For numbers, Var(x) = 1/n^2 sum_i sum_j 1/2 (x_i - x_j)^2. With a distance d between texts in place
of the difference it is 1/n^2 sum_i sum_j 1/2 d_ij^2 (Bhatt and Diaz 2024, "Extrinsic Evaluation of
Cultural Competence in Large Language Models", appendix B.1). For distances in [0, 1] it lies in
[0, (n - 1) / 2n]. Undefined for fewer than two texts.

The sum runs over all n^2 pairs, of which the n pairs of a text with itself add nothing: five texts
give 4/5 of what the same distances give among many, 195 give 194/195. Three rules:

- `paper`: as above;
- `released`: as the authors' scripts compute it, without the 1/2, so twice the paper's;
- `distinct`: over the n (n - 1) pairs of different texts, which does not depend on n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from judge.stats.bootstrap import Resamples
from judge.stats.confusion import ratio
from judge.stats.interval import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Rule = Literal["paper", "released", "distinct"]


def lexical_variance(distances: NDArray[np.float64], *, rule: Rule = "paper") -> float | None:
    """The variance of texts from the matrix of their distances, (texts, texts).

    The diagonal counts as 0, whatever stands there. None for fewer than two texts.

    Raises:
        ValueError: the matrix is not square, or a distance is nan.
    """
    import numpy as np

    value = float(_variances(_squares(distances), np.ones((1, len(distances))), rule)[0])
    return None if np.isnan(value) else value


def lexical_variance_estimate(
    distances: NDArray[np.float64], *, of: int, rule: Rule = "paper", seed: int = 0
) -> Estimate:
    """`lexical_variance` with a 95 % BCa interval, the texts being drawn with their distances.

    Args:
        of: how many texts there should have been; `n` is how many there are.
    """
    import numpy as np

    resamples = Resamples(range(len(distances)), seed=seed)
    variances = _variances(_squares(distances), resamples.weights(), rule)
    return resamples.estimate(np.asarray(variances), n=len(distances), of=of)


def _squares(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise ValueError(f"distances have the shape {distances.shape}, not that of a square")
    squares: NDArray[np.float64] = distances**2
    np.fill_diagonal(squares, 0.0)
    if np.isnan(squares).any():
        raise ValueError("a distance is nan")
    return squares


def _variances(
    squares: NDArray[np.float64], weights: NDArray[np.float64], rule: Rule
) -> NDArray[np.float64]:
    """For each row of weights, which say how often each text is there; nan for fewer than two."""
    import numpy as np

    total = ((weights @ squares) * weights).sum(axis=1)
    count = weights.sum(axis=1)
    pairs = count * (count - 1) if rule == "distinct" else count**2
    halved = total if rule == "released" else total / 2
    return ratio(halved, np.where(count > 1, pairs, 0.0))

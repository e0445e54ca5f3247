"""Calibration error: what a judge's probabilities are worth.

Naeini, Cooper and Hauskrecht (2015), "Obtaining Well Calibrated Probabilities Using Bayesian
Binning", AAAI; bins of equal mass: Nixon et al. (2019), "Measuring Calibration in Deep Learning".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judge.stats.classification import ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    held = (place[:, None] == np.unique(place)).astype(np.float64)
    gaps = weights @ (held * (probabilities - outcomes)[:, None])
    made = [
        ReliabilityBin(
            mean_probability=float(probabilities[inside].mean()),
            observed=float(outcomes[inside].mean()),
            n=int(inside.sum()),
        )
        for inside in (held > 0).T
    ]
    return ratio(np.abs(gaps).sum(axis=1), weights.sum(axis=1)), made

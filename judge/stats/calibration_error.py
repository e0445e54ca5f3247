"""Calibration error and risk against coverage: what a judge's probabilities are worth.

Naeini, Cooper and Hauskrecht (2015), "Obtaining Well Calibrated Probabilities Using Bayesian
Binning", AAAI; bins of equal mass: Nixon et al. (2019), "Measuring Calibration in Deep Learning".

Risk against coverage: El-Yaniv and Wiener (2010), "On the Foundations of Noise-free Selective
Classification", JMLR 11, section 2; Geifman and El-Yaniv (2017), "Selective Classification for Deep
Neural Networks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from judge.stats.classification import ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a reliability diagram: its edges, and what was promised and came true in it."""

    low: float
    high: float
    mean_probability: float
    observed: float
    n: int


def reliability_bins(
    probabilities: Sequence[float], outcomes: Sequence[bool], *, bins: int = 10
) -> list[ReliabilityBin]:
    """The bins that hold items, from low to high; their edges are quantiles of the probabilities.

    A bin takes its upper edge and, but for the first, not its lower one; equal probabilities are
    never parted, so fewer bins come out where some repeat.

    Args:
        probabilities: of each item, in [0, 1].
        outcomes: whether it came true.

    Raises:
        ValueError: bins below 1, lengths differ, or a probability outside [0, 1].
    """
    import numpy as np

    if bins < 1:
        raise ValueError(f"{bins} bins")
    if len(probabilities) != len(outcomes):
        raise ValueError(f"{len(probabilities)} probabilities and {len(outcomes)} outcomes")
    given, true = np.array(probabilities, dtype=np.float64), np.array(outcomes, dtype=bool)
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("a probability lies outside [0, 1]")
    if not len(given):
        return []
    edges = np.quantile(given, np.linspace(0.0, 1.0, bins + 1))
    place = _bin_of(given, edges)
    return [
        ReliabilityBin(
            low=float(edges[number]),
            high=float(edges[number + 1]),
            mean_probability=float(given[place == number].mean()),
            observed=float(true[place == number].mean()),
            n=int((place == number).sum()),
        )
        for number in np.unique(place).tolist()
    ]


def calibration_errors(
    probabilities: NDArray[np.float64],
    outcomes: NDArray[np.bool_],
    weights: NDArray[np.float64],
    *,
    bins: int = 10,
) -> NDArray[np.float64]:
    """Calibration error under each row of item weights: (samples, items) in, (samples,) out.

    Sum over bins of (share of items) x |mean probability - share that came true|, in [0, 1]; the
    bins of `reliability_bins`, which hold still from sample to sample. Small samples raise it,
    because the shares of well-calibrated probabilities scatter too: compare it with
    `error_if_calibrated`. nan where a sample weighs nothing.
    """
    import numpy as np

    if not len(probabilities):
        return np.full(len(weights), np.nan)
    held = _held(probabilities, bins)
    gaps = weights @ (held * (probabilities - outcomes)[:, None])
    return ratio(np.abs(gaps).sum(axis=1), weights.sum(axis=1))


def error_if_calibrated(
    probabilities: Sequence[float], *, bins: int = 10, draws: int = 1000, seed: int = 0
) -> float | None:
    """The calibration error to be expected where every probability is exactly right, in [0, 1].

    The mean over `draws` in which each item comes true with its own probability, items independent
    (consistency resampling, Bröcker and Smith 2007, "Increasing the Reliability of Reliability
    Diagrams"). An error no larger is no sign of bad probabilities. None where there is no item; the
    same seed gives the same number.
    """
    import numpy as np

    given = np.array(probabilities, dtype=np.float64)
    if not len(given):
        return None
    true = np.random.default_rng(seed).random((draws, len(given))) < given
    gaps = (given - true) @ _held(given, bins)
    return float(np.abs(gaps).sum(axis=1).mean() / len(given))


def _held(probabilities: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """(items, bins): 1 in the item's bin, else 0."""
    import numpy as np

    edges = np.quantile(probabilities, np.linspace(0.0, 1.0, bins + 1))
    held: NDArray[np.float64] = (_bin_of(probabilities, edges)[:, None] == np.arange(bins)).astype(
        np.float64
    )
    return held


def _bin_of(probabilities: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    import numpy as np

    return np.searchsorted(edges[1:-1], probabilities)


@dataclass(frozen=True, slots=True)
class RiskPoint:
    """Keeping answers at least `threshold` sure keeps `n`, `coverage` of all, `risk` of them wrong.

    Coverage lies in (0, 1], risk in [0, 1].
    """

    threshold: float
    coverage: float
    risk: float
    n: int


def risk_coverage(confidences: Sequence[float], correct: Sequence[bool]) -> list[RiskPoint]:
    """One point for each distinct confidence, from the surest answers alone to all answers.

    Equal confidences are kept or dropped together: no threshold tells them apart. No point where
    there is no item.

    Raises:
        ValueError: the sequences differ in length.
    """
    if len(confidences) != len(correct):
        raise ValueError(f"{len(confidences)} confidences and {len(correct)} answers")
    surest_first = sorted(zip(confidences, correct, strict=True), key=lambda pair: -pair[0])
    points, kept, wrong = [], 0, 0
    for threshold, pairs in groupby(surest_first, key=lambda pair: pair[0]):
        hits = [hit for _, hit in pairs]
        kept += len(hits)
        wrong += hits.count(False)
        points.append(RiskPoint(threshold, kept / len(correct), wrong / kept, kept))
    return points

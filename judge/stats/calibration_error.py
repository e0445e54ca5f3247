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
from typing import TYPE_CHECKING, Literal

from judge.stats.classification import defined, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Equal = Literal["mass", "width"]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a reliability diagram: its edges, and what was promised and came true in it."""

    low: float
    high: float
    mean_probability: float
    observed: float
    n: int


def reliability_bins(
    probabilities: Sequence[float],
    outcomes: Sequence[bool],
    *,
    bins: int = 10,
    equal: Equal = "mass",
) -> list[ReliabilityBin]:
    """The bins that hold items, from low to high; no bin where there is no item.

    Args:
        probabilities: of each item, in [0, 1].
        outcomes: whether it came true.
        bins: how many; fewer come out where some are empty.
        equal: `mass` puts the edges at the quantiles of the probabilities, `width` cuts [0, 1]
            evenly. A bin takes its upper edge and, but for the first, not its lower one; equal
            probabilities are never parted.

    Raises:
        ValueError: bins below 1, lengths differ, or a probability outside [0, 1].
    """
    import numpy as np

    given, true, edges = _checked(probabilities, outcomes, bins, equal)
    place = bin_of(given, edges)
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


def calibration_error(
    probabilities: Sequence[float],
    outcomes: Sequence[bool],
    *,
    bins: int = 10,
    equal: Equal = "mass",
) -> float | None:
    """Sum over bins of (share of items) x |mean probability - share that came true|, in [0, 1].

    Small samples raise it, because the shares of well-calibrated probabilities scatter too: hold it
    against `error_if_calibrated`. None where there is no item. Arguments and errors as in
    `reliability_bins`.
    """
    import numpy as np

    given, true, edges = _checked(probabilities, outcomes, bins, equal)
    held = bin_rows(given, true, edges).sum(axis=0)
    return defined(calibration_errors(held[np.newaxis])[0])


def error_if_calibrated(
    probabilities: Sequence[float],
    *,
    bins: int = 10,
    equal: Equal = "mass",
    draws: int = 1000,
    seed: int = 0,
) -> float | None:
    """The calibration error to be expected where every probability is exactly right, in [0, 1].

    The mean over `draws` in which each item comes true with its own probability, items independent
    (consistency resampling, Bröcker and Smith 2007, "Increasing the Reliability of Reliability
    Diagrams"). An error no larger is no sign of bad probabilities. None where there is no item.
    Arguments and errors as in `reliability_bins`; the same seed gives the same number.
    """
    import numpy as np

    given, _, edges = _checked(probabilities, [False] * len(probabilities), bins, equal)
    if not len(given):
        return None
    held = (bin_of(given, edges)[:, None] == np.arange(bins)).astype(np.float64)
    true = np.random.default_rng(seed).random((draws, len(given))) < given
    gaps = (given - true) @ held
    return float(np.abs(gaps).sum(axis=1).mean() / len(given))


def bin_edges(probabilities: NDArray[np.float64], bins: int, equal: Equal) -> NDArray[np.float64]:
    """The bins + 1 edges; quantiles (with doubles where probabilities repeat) or even steps."""
    import numpy as np

    steps = np.linspace(0.0, 1.0, bins + 1)
    return (
        steps if equal == "width" or not len(probabilities) else np.quantile(probabilities, steps)
    )


def bin_of(probabilities: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    """The number of each probability's bin, from 0."""
    import numpy as np

    return np.searchsorted(edges[1:-1], probabilities)


def bin_rows(
    probabilities: NDArray[np.float64], outcomes: NDArray[np.bool_], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(items, 2 bins): 1 in the item's bin, then (probability - outcome) in it, else 0."""
    import numpy as np

    held = (bin_of(probabilities, edges)[:, None] == np.arange(len(edges) - 1)).astype(np.float64)
    return np.hstack([held, held * (probabilities - outcomes)[:, None]])


def calibration_errors(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Calibration error of each row of sums of `bin_rows`: (samples, 2 bins) in, (samples,) out."""
    import numpy as np

    counts, gaps = np.split(sums, 2, axis=1)
    return ratio(np.abs(gaps).sum(axis=1), counts.sum(axis=1))


def _checked(
    probabilities: Sequence[float], outcomes: Sequence[bool], bins: int, equal: Equal
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    import numpy as np

    if bins < 1:
        raise ValueError(f"{bins} bins")
    if len(probabilities) != len(outcomes):
        raise ValueError(f"{len(probabilities)} probabilities and {len(outcomes)} outcomes")
    given = np.array(probabilities, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("a probability lies outside [0, 1]")
    return given, np.array(outcomes, dtype=bool), bin_edges(given, bins, equal)


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

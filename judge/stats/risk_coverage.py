"""Risk against coverage: how often the answers that are kept are wrong, the surest kept first.

El-Yaniv and Wiener (2010), "On the Foundations of Noise-free Selective Classification", JMLR 11,
section 2; the empirical curve as in Geifman and El-Yaniv (2017), "Selective Classification for Deep
Neural Networks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby


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

"""Ratings from 1 to 5 as entailment, neutral or contradiction, as each annotator means them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"


@dataclass(frozen=True, slots=True)
class ScaleMap:
    """What one annotator's ratings 2 and 4 stand for; 1, 3 and 5 mean the same for everybody.

    `two` is contradiction or neutral, `four` neutral or entailment; `support` tells for each of
    the two how many calibration items it rests on (0: nothing was known, so it is neutral).
    """

    two: str = NEUTRAL
    four: str = NEUTRAL
    support: Mapping[int, int] = field(default_factory=lambda: {2: 0, 4: 0})

    def label(self, rating: int) -> str:
        """The rating as a label.

        Raises:
            ValueError: it is not a whole number from 1 to 5.
        """
        labels = {1: CONTRADICTION, 2: self.two, 3: NEUTRAL, 4: self.four, 5: ENTAILMENT}
        if rating not in labels:
            raise ValueError(f"{rating} is no rating from 1 to 5")
        return labels[rating]


def fit_scales(calibration: Iterable[tuple[str, int, str]]) -> dict[str, ScaleMap]:
    """Each annotator's map, from (annotator, rating, known label) of calibration items.

    CALI (3.6, B.4): 1 is contradict, 3 neutral, 5 entail; 2 and 4 depend on the annotator, by 300
    MultiNLI items, and most of them map to neutral. The paper leaves the rule open. Here a 2 stands
    for contradiction (a 4 for entailment) if more of the annotator's calibration items so rated are
    labelled contradiction (entailment) than neutral, else for neutral; items with the label of the
    scale's far end say nothing about where the border to neutral lies, and are not counted.

    Returns:
        A map for every annotator who rated a calibration item; for others take `ScaleMap()`.
    """
    seen: dict[str, Counter[tuple[int, str]]] = defaultdict(Counter)
    for annotator, rating, label in calibration:
        seen[annotator][rating, label] += 1
    return {annotator: _fitted(counts) for annotator, counts in seen.items()}


def _fitted(counts: Counter[tuple[int, str]]) -> ScaleMap:
    chosen, support = {}, {}
    for rating, end in ((2, CONTRADICTION), (4, ENTAILMENT)):
        ends, neutral = counts[rating, end], counts[rating, NEUTRAL]
        chosen[rating] = end if ends > neutral else NEUTRAL
        support[rating] = ends + neutral
    return ScaleMap(chosen[2], chosen[4], support)

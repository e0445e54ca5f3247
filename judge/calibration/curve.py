"""The learning curve: agreement with fewer labels, and what more labels would bring."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judge.calibration.fitting import LEAST_ITEMS, Fit
from judge.calibration.training import TrainingItem
from judge.judging.classifiers import Classifier

_DRAWS = 5
"""Draws of each size; the curve has their mean."""

_LEAST_POINTS = 3
"""Fewest sizes from which more labels are guessed at."""


@dataclass(frozen=True, slots=True)
class Point:
    """Kappa with so many labels to fit to: the mean over so many draws of them."""

    labels: int
    kappa: float
    draws: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Kappa by number of labels, rising; `next` is what twice as many would bring: a guess, of half
    of what the last doubling brought."""

    points: tuple[Point, ...]
    next: Point | None = None

    def told(self) -> str:
        """The curve in one line."""
        found = ", ".join(f"{one.kappa:.2f} with {one.labels}" for one in self.points)
        if self.next is None:
            return f"kappa by labels fitted to: {found}"
        more = self.next.labels - self.points[-1].labels
        guess = f"about {more} more would bring {self.next.kappa:.2f}"
        return f"kappa by labels fitted to: {found}; {guess}"


def curve(
    fit: Fit,
    train: Sequence[TrainingItem],
    kappa: Callable[[Classifier], float | None],
    *,
    seed: int = 0,
) -> Curve | None:
    """The curve of what was fitted; None where nothing was, or there are too few labels for it.

    Args:
        train: what was fitted to; a smaller size takes whole groups of it.
        kappa: a classifier's agreement on items that nothing was fitted to.
    """
    if fit.classifier is None:
        return None
    whole, size = sum(one.natural for one in train), LEAST_ITEMS
    points: list[Point] = []
    while size < whole / 1.2:
        drawn = [fit.again(_drawn(train, size, f"{seed}\n{size}\n{n}")) for n in range(_DRAWS)]
        found = [agreed for made in drawn if made and (agreed := kappa(made)) is not None]
        if found:
            points.append(Point(size, sum(found) / len(found), len(found)))
        size *= 2
    if size == LEAST_ITEMS:
        return None
    if (best := kappa(fit.classifier)) is not None:
        points.append(Point(whole, best, 1))
    if not points:
        return None
    return Curve(tuple(points), _next(points) if len(points) >= _LEAST_POINTS else None)


def _drawn(train: Sequence[TrainingItem], size: int, seed: str) -> list[TrainingItem]:
    """Whole groups drawn at random, until they hold so many labels."""
    groups: dict[str, list[TrainingItem]] = {}
    for one in train:
        groups.setdefault(one.group, []).append(one)
    names = sorted(groups)
    random.Random(seed).shuffle(names)
    part: list[TrainingItem] = []
    for name in names:
        if sum(one.natural for one in part) < size:
            part += groups[name]
    return part


def _next(points: Sequence[Point]) -> Point:
    before, last = points[-2:]
    doublings = math.log2(last.labels / before.labels)
    gain = max(0.0, last.kappa - before.kappa) / doublings
    return Point(2 * last.labels, min(1.0, last.kappa + gain / 2), 0)

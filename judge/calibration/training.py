"""Labelled observations to fit to, and the logistic regression that all fits come down to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from judge.judging.classifiers import Observation, features


@dataclass(frozen=True, slots=True)
class TrainingItem:
    """A training item: what was observed of it, its reference answer, and its group.

    Items of a group, such as all about one record, are never on both sides of a fold. `natural` is
    false of a record with another's field: probes are fitted to it, and no choice is made by it.
    """

    observation: Observation
    answer: str
    group: str
    natural: bool = True


@dataclass(frozen=True, slots=True)
class Training:
    """Training items, all of whose answers are among `answers`; arrays have a row for each item."""

    reads: Sequence[TrainingItem]
    answers: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.reads)

    @property
    def truth(self) -> NDArray[Any]:
        """The number of each item's answer."""
        return np.array([self.answers.index(one.answer) for one in self.reads])

    @property
    def natural(self) -> NDArray[Any]:
        return np.array([one.natural for one in self.reads], dtype=bool)

    @property
    def states(self) -> NDArray[Any]:
        return np.array([one.observation.state for one in self.reads], dtype=np.float64)

    def tokens(self, questions: Sequence[int]) -> NDArray[Any]:
        """The features of these first-token questions, side by side."""
        rows = [
            [x for q in questions for x in features(one.observation.chances[q])]
            for one in self.reads
        ]
        return np.array(rows).reshape(len(rows), -1)

    def part(self, places: Sequence[int]) -> Training:
        return Training([self.reads[place] for place in places], self.answers)


def regression(
    x: NDArray[Any], truth: NDArray[Any], strength: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights (answers - 1, columns) and intercepts of a logistic regression with a ridge penalty:
    the scores of every answer but the first, whose score is 0."""
    model = LogisticRegression(C=strength, max_iter=5000).fit(x, truth)
    if len(model.classes_) == 2:
        return model.coef_, model.intercept_
    return model.coef_[1:] - model.coef_[0], model.intercept_[1:] - model.intercept_[0]

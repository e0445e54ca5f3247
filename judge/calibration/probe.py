"""Probes: linear classifiers over a model's hidden state, fitted to labels.

The state is standardised, turned into its principal components (all that the items span, or the
first few), and put through a logistic regression with a strong ridge penalty. Components and
penalty are chosen in cross-validation. One temperature brings the probabilities to the right
sharpness, fitted to the scores of the folds that a fit did not see (Guo et al. 2017). Swapped
records make their answer seem more frequent than it is: where they are fitted to as well, a shift
of each answer is fitted beside the temperature, both to records as they are. The result is one row
of weights for each answer but the first (`judge.judging.classifiers.Probe`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from judge.judging.classifiers import MIN_CHANCE, Observation, Probe, features


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
        return np.array([self.answers.index(item.answer) for item in self.reads])

    @property
    def natural(self) -> NDArray[Any]:
        return np.array([item.natural for item in self.reads], dtype=bool)

    @property
    def states(self) -> NDArray[Any]:
        return np.array([item.observation.state for item in self.reads], dtype=np.float64)

    def tokens(self, questions: Sequence[int]) -> NDArray[Any]:
        """The features of these first-token questions, side by side."""
        rows = [
            [x for q in questions for x in features(item.observation.chances[q])]
            for item in self.reads
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


STRENGTHS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
"""Inverse strengths of the ridge penalty, on states whose numbers have unit variance."""


COMPONENTS = (None, 32, 8)
"""Principal components that are kept: all, or the first few."""


_FAR = 0.99
"""Share of the labelled items that count as near."""


_AXES = 8
"""Principal components that a state should lie along to count as near. Measured on a public
set's texts and on our own, whose labels a probe fitted to that set cannot tell (kappa 0.06): 42 %
of our own lie farther outside 8 components than 99 % of that set's, 4 % by their length."""


_BESIDE = 0.25
"""The spread of first-token features, in units of the root of the state's width: the penalty, which
is made for a thousand numbers, leaves them their say."""


Fold = tuple[Sequence[int], Sequence[int]]
"""Places of items to fit to, and of items to try on."""


@dataclass(frozen=True, slots=True)
class ProbeWay:
    """One way to fit a probe; `temperature` divides the scores, to which `shift` is then added.

    `questions`: the first-token questions whose features stand beside the state. `far` and
    `outside` are the bounds within which a state counts as near.
    """

    components: int | None
    strength: float
    questions: tuple[int, ...] = ()
    temperature: float = 1.0
    shift: tuple[float, ...] = ()
    far: float = math.inf
    outside: float = 1.0

    @property
    def name(self) -> str:
        part = f" of {self.components} components" if self.components else ""
        return f"probe{part} and first tokens" if self.questions else f"probe{part}"

    def fitted(self, train: Training) -> Probe:
        """The probe, fitted to all items."""
        space = _Space.of(train.states, train.tokens(self.questions))
        points = space.points(train.states, train.tokens(self.questions))
        wide = len(space.stretch)
        columns = wide + self.components if self.components else points.shape[1]
        weights, intercepts = regression(points[:, :columns], train.truth, self.strength)
        weights, intercepts = weights / self.temperature, intercepts / self.temperature
        of_state = weights[:, wide:] @ space.axes[: weights.shape[1] - wide]
        return Probe(
            questions=self.questions,
            answers=train.answers,
            center=_row(space.center),
            spread=_row(space.spread),
            weights=tuple(map(_row, of_state)),
            beside=tuple(map(_row, weights[:, :wide] * space.stretch)) if wide else (),
            intercepts=_row(intercepts + np.array(self.shift or 0.0)),
            far=round(self.far, 4),
            axes=tuple(map(_row, space.axes[:_AXES])),
            outside=round(self.outside, 4),
        )


@dataclass(frozen=True, slots=True)
class _Space:
    """The principal components of some items' states, with first-token features beside them."""

    center: NDArray[Any]
    spread: NDArray[Any]
    axes: NDArray[Any]
    stretch: NDArray[Any]

    @classmethod
    def of(cls, states: NDArray[Any], tokens: NDArray[Any]) -> _Space:
        center, spread, scale = states.mean(axis=0), states.std(axis=0), tokens.std(axis=0)
        spread[spread < 1e-6] = scale[scale < 1e-6] = 1.0
        _, sizes, axes = np.linalg.svd((states - center) / spread, full_matrices=False)
        stretch = _BESIDE * math.sqrt(states.shape[1]) / scale
        return cls(center, spread, axes[sizes > max(1e-4 * sizes[0], 1e-9)], stretch)

    def points(self, states: NDArray[Any], tokens: NDArray[Any]) -> NDArray[Any]:
        """(items, features and components)"""
        scaled = (states - self.center) / self.spread
        return np.hstack([tokens * self.stretch, scaled @ self.axes.T])

    def distances(self, states: NDArray[Any]) -> NDArray[Any]:
        """Root mean square of each state, and its share outside of the first axes: (items, 2)."""
        scaled = (states - self.center) / self.spread
        size = (scaled**2).sum(axis=1)
        along = ((scaled @ self.axes[:_AXES].T) ** 2).sum(axis=1)
        outside = np.sqrt(np.clip(1 - along / np.maximum(size, 1e-12), 0, 1))
        return np.column_stack([np.sqrt(size / scaled.shape[1]), outside])


def ways(
    train: Training, folds: Sequence[Fold], questions: tuple[int, ...]
) -> Iterator[tuple[ProbeWay, NDArray[Any]]]:
    """Every way to fit, with the probabilities that it gives the items of the folds it did not see.

    The probabilities have a row for each item, nan where no fold tried it, and a column for each
    answer. There is no way where all states are the same.
    """
    states, tokens, truth = train.states, train.tokens(questions), train.truth
    if not np.ptp(states, axis=0).any():
        return
    near = np.full((len(train), 2), np.nan)
    scores = {
        way: np.full((len(train), len(train.answers)), np.nan)
        for way in product(COMPONENTS, STRENGTHS)
    }
    for inside, outside in folds:
        space = _Space.of(states[inside], tokens[inside])
        near[outside] = space.distances(states[outside])
        fitted = space.points(states[inside], tokens[inside])
        new = space.points(states[outside], tokens[outside])
        for (components, strength), score in scores.items():
            columns = tokens.shape[1] + components if components else fitted.shape[1]
            if components is None or columns < fitted.shape[1]:
                weights, intercepts = regression(fitted[:, :columns], truth[inside], strength)
                score[outside] = np.pad(new[:, :columns] @ weights.T + intercepts, ((0, 0), (1, 0)))
    far, outside_of = map(float, np.nanquantile(near, _FAR, axis=0))
    for (components, strength), score in scores.items():
        rows = ~np.isnan(score[:, 0])
        natural = rows & train.natural
        if natural.any():
            shifted = bool((rows & ~train.natural).any())
            temperature, shift = _sharpness(score[natural], truth[natural], shifted=shifted)
            way = ProbeWay(components, strength, questions, temperature, shift[1:])
            shares = softmax(score / temperature + np.array(shift), axis=1)
            yield replace(way, far=far, outside=outside_of), shares


def _sharpness(
    scores: NDArray[Any], truth: NDArray[Any], *, shifted: bool
) -> tuple[float, tuple[float, ...]]:
    """What to divide scores by, 1/50 to 50, and what to add then, for the least log loss."""

    answers = scores.shape[1]

    def read(x: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        return math.exp(x[0]), np.pad(x[1:], (1, answers - len(x)))

    def loss(x: NDArray[Any]) -> float:
        temperature, shift = read(x)
        shares = softmax(scores / temperature + shift, axis=1)[np.arange(len(truth)), truth]
        return float(-np.log(np.maximum(shares, MIN_CHANCE)).mean())

    bounds = [(-math.log(50), math.log(50)), *[(-20.0, 20.0)] * (answers - 1 if shifted else 0)]
    temperature, shift = read(minimize(loss, np.zeros(len(bounds)), bounds=bounds).x)
    return temperature, tuple(map(float, shift))


def _row(numbers: NDArray[Any]) -> tuple[float, ...]:
    """As a profile holds them: 4-byte floats."""
    return tuple(map(float, numbers.astype(np.float32)))

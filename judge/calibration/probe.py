"""Probes: linear classifiers over a model's hidden state, fitted to labels.

The state is standardised, projected on its principal components (all that the items span, or the
first few), and classified by a logistic regression with a strong ridge penalty. Components and
penalty are chosen by cross-validation. One temperature calibrates the probabilities; it is fitted
to out-of-fold scores (Guo et al. 2017). Swapped records make their answer seem more frequent than
it is, so if the fit includes some, a shift of each answer is fitted with the temperature, both on
natural records only. The result is one row of weights for each answer but the first
(`judge.judging.classifiers.Probe`).
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
    """A training item: its observation, reference answer and group.

    Items of a group, such as all about one record, are never on both sides of a fold. `natural` is
    false for a record with another record's field: probes are fitted to it, but it is not used for
    model selection.
    """

    observation: Observation
    answer: str
    group: str
    natural: bool = True


@dataclass(frozen=True, slots=True)
class Training:
    """Training items, all with an answer in `answers`. Arrays have one row per item."""

    reads: Sequence[TrainingItem]
    answers: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.reads)

    @property
    def truth(self) -> NDArray[Any]:
        """The index in `answers` of each item's answer."""
        return np.array([self.answers.index(item.answer) for item in self.reads])

    @property
    def natural(self) -> NDArray[Any]:
        return np.array([item.natural for item in self.reads], dtype=bool)

    @property
    def states(self) -> NDArray[Any]:
        return np.array([item.observation.state for item in self.reads], dtype=np.float64)

    def tokens(self, questions: Sequence[int]) -> NDArray[Any]:
        """The features of these first-token questions, concatenated."""
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
    """Weights (answers - 1, columns) and intercepts of a logistic regression with a ridge penalty.

    They give the score of every answer but the first, whose score is 0.
    """
    model = LogisticRegression(C=strength, max_iter=5000).fit(x, truth)
    if len(model.classes_) == 2:
        return model.coef_, model.intercept_
    return model.coef_[1:] - model.coef_[0], model.intercept_[1:] - model.intercept_[0]


STRENGTHS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
"""Inverse strengths of the ridge penalty, on states standardised to unit variance."""


COMPONENTS = (None, 32, 8)
"""Numbers of principal components to try; None: all."""


_FAR = 0.99
"""Share of the labelled items that count as near."""


_AXES = 8
"""Principal components whose span a near state must be close to. Measured on the texts of a public
set and on our own, whose labels a probe fitted to that set cannot predict (kappa 0.06): 42 % of our
own are farther outside 8 components than 99 % of that set's; by length alone only 4 % are."""


_BESIDE = 0.25
"""Standard deviation of first-token features, in units of the root of the state's width. With unit
variance the penalty, chosen for a thousand features, would suppress them."""


Fold = tuple[Sequence[int], Sequence[int]]
"""Indices of the items to fit to, and of the items to test on."""


@dataclass(frozen=True, slots=True)
class ProbeWay:
    """One way to fit a probe.

    Args:
        components: how many principal components are kept; None: all.
        strength: the inverse strength of the ridge penalty.
        questions: the first-token questions whose features are used beside the state.
        temperature: divides the scores.
        shift: is added to the scores after that.
        far: the largest root mean square of a near state.
        outside: the largest share of a near state outside the first components.
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
    """The principal components of some items' states, and the scale of first-token features."""

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
        """The items in this space: (items, features and components)."""
        scaled = (states - self.center) / self.spread
        return np.hstack([tokens * self.stretch, scaled @ self.axes.T])

    def distances(self, states: NDArray[Any]) -> NDArray[Any]:
        """Root mean square of each state, and its share outside the first axes: (items, 2)."""
        scaled = (states - self.center) / self.spread
        size = (scaled**2).sum(axis=1)
        along = ((scaled @ self.axes[:_AXES].T) ** 2).sum(axis=1)
        outside = np.sqrt(np.clip(1 - along / np.maximum(size, 1e-12), 0, 1))
        return np.column_stack([np.sqrt(size / scaled.shape[1]), outside])


def ways(
    train: Training, folds: Sequence[Fold], questions: tuple[int, ...]
) -> Iterator[tuple[ProbeWay, NDArray[Any]]]:
    """Every way to fit, with its out-of-fold probabilities.

    The probabilities have a row for each item, nan if no fold tested it, and a column for each
    answer. If all states are the same, there is no way to fit.
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
    """The temperature (1/50 to 50) and the shift with the least log loss."""

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
    """The numbers rounded to 4-byte floats, as in a profile."""
    return tuple(map(float, numbers.astype(np.float32)))

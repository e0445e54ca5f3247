"""Probes: linear classifiers over a model's hidden state, fitted to labels.

The state is standardised, turned into its principal components (all that the items span, or the
first few), and put through a logistic regression with a strong ridge penalty; components and
penalty are chosen in cross-validation, and the probabilities brought to the right sharpness by one
temperature on the scores of the folds that a fit did not see (Guo et al. 2017). Where swapped
records are fitted to as well, their answer would seem more frequent than it is: then a shift for
each answer is fitted beside the temperature, both to records as they are. Fitted for good,
all of it is one row of weights for each answer (`judge.judging.combinations.Probe`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from judge.backends.base import LAST_LAYER
from judge.judging.combinations import LEAST_CHANCE, Probe, Reading, features

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRENGTHS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
"""Inverse strengths of the ridge penalty, on states whose numbers have unit variance."""

COMPONENTS = (None, 32, 8)
"""Principal components that are kept: all, or the first few."""

_FAR = 0.99
"""Share of the labelled items that lie no farther from the others than a probe counts as near."""

_AXES = 8
"""Principal components that a state should lie along to count as near. Measured on NormAd's stories
and on our own, whose labels a probe fitted to NormAd cannot tell (kappa 0.06): 42 % of our own lie
farther outside 8 components than 99 % of NormAd's, 4 % are that much farther by their length."""

_BESIDE = 0.25
"""How much a first-token feature is spread, in units of the root of the state's width: so much that
the penalty, which is made for a thousand numbers, leaves it its say."""

Fold = tuple[Sequence[int], Sequence[int]]
"""Places of items to fit to, and of items to try on."""


@dataclass(frozen=True, slots=True)
class Examples:
    """What is fitted to: readings with a state each, and their answers by number of `answers`.

    `natural` says which are records as they are, and not swapped ones. `questions`: the first-token
    questions whose features stand beside the state, if any.
    """

    readings: Sequence[Reading]
    truth: Sequence[int]
    natural: Sequence[bool]
    answers: Sequence[str]
    questions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to fit a probe; `temperature` divides the scores, to which `shift` is then added."""

    components: int | None
    strength: float
    questions: tuple[int, ...] = ()
    temperature: float = 1.0
    shift: tuple[float, ...] = ()
    far: float = math.inf
    outside: float = 1.0

    @property
    def name(self) -> str:
        kept = f" of {self.components} components" if self.components else ""
        return f"probe{kept} and first tokens" if self.questions else f"probe{kept}"


@dataclass(frozen=True, slots=True)
class _Space:
    """The principal components of some items: how a state is brought into them."""

    center: NDArray[Any]
    spread: NDArray[Any]
    axes: NDArray[Any]
    beside: NDArray[Any]

    @classmethod
    def of(cls, states: NDArray[Any], beside: NDArray[Any]) -> _Space:
        import numpy as np

        center, spread = states.mean(axis=0), states.std(axis=0)
        spread[spread < 1e-6] = 1.0
        _, sizes, axes = np.linalg.svd((states - center) / spread, full_matrices=False)
        scale = beside.std(axis=0)
        scale[scale < 1e-6] = 1.0
        stretch = _BESIDE * math.sqrt(states.shape[1]) / scale
        return cls(center, spread, axes[sizes > max(1e-4 * sizes[0], 1e-9)], stretch)

    def scaled(self, states: NDArray[Any]) -> NDArray[Any]:
        scaled: NDArray[Any] = (states - self.center) / self.spread
        return scaled

    def points(self, scaled: NDArray[Any], beside: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        return np.hstack([beside * self.beside, scaled @ self.axes.T])

    def distances(self, scaled: NDArray[Any]) -> NDArray[Any]:
        """Root mean square of each state, and its share outside of the first axes: (items, 2)."""
        import numpy as np

        size = (scaled**2).sum(axis=1)
        along = ((scaled @ self.axes[:_AXES].T) ** 2).sum(axis=1)
        outside = np.sqrt(np.clip(1 - along / np.maximum(size, 1e-12), 0, 1))
        return np.column_stack([np.sqrt(size / scaled.shape[1]), outside])


def _arrays(examples: Examples) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """States, first-token features and answers, a row for each item."""
    import numpy as np

    states = np.array([reading.state for reading in examples.readings], dtype=np.float64)
    beside = [
        [x for place in examples.questions for x in features(reading.chances[place])]
        for reading in examples.readings
    ]
    return states, np.array(beside).reshape(len(states), -1), np.array(examples.truth)


def choices(examples: Examples, folds: Sequence[Fold]) -> Iterator[tuple[Choice, NDArray[Any]]]:
    """Every way to fit, with the probabilities that it gives the items of the folds it did not see.

    Returns pairs of a choice and an array of shape (items, answers), rows in the order of the
    items; a row that no fold tried is 0. There is none where all states are the same.
    """
    import numpy as np

    states, beside, truth = _arrays(examples)
    count, near = len(examples.answers), np.zeros((len(truth), 2))
    ways = [(k, c) for k, c in product(COMPONENTS, STRENGTHS)]
    scores = {way: np.full((len(truth), count), np.nan) for way in ways}
    for inside, outside in folds:
        space = _Space.of(states[inside], beside[inside])
        seen, new = space.scaled(states[inside]), space.scaled(states[outside])
        near[outside] = space.distances(new)
        fitted, tried = space.points(seen, beside[inside]), space.points(new, beside[outside])
        for way in ways:
            kept = _kept(way[0], beside.shape[1], fitted.shape[1])
            if not kept:
                continue
            weights, intercepts = _regression(fitted[:, :kept], truth[inside], count, way[1])
            scores[way][outside] = tried[:, :kept] @ weights.T + intercepts
    near = near[near[:, 0] > 0]
    if not len(near):
        return
    far, outside_of = map(float, np.quantile(near, _FAR, axis=0))
    for (components, strength), found in scores.items():
        used = ~np.isnan(found[:, 0])
        if not used.any():
            continue
        told = used & np.array(examples.natural)
        temperature, shift = _sharpness(
            found[told], truth[told], shifted=bool((used & ~told).any())
        )
        shares = np.zeros_like(found)
        shares[used] = _shares(found[used] / temperature + shift)
        choice = Choice(components, strength, examples.questions, temperature, shift)
        yield replace(choice, far=far, outside=outside_of), shares


def _kept(components: int | None, beside: int, columns: int) -> int | None:
    """Columns to fit to; None where there are fewer components than that."""
    if components is None:
        return columns
    return components + beside if components + beside < columns else None


def _regression(
    points: NDArray[Any], truth: NDArray[Any], answers: int, strength: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights (answers, columns) and intercepts (answers,) of a logistic regression."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, max_iter=1000)
    model.fit(points, truth)
    weights, intercepts = np.zeros((answers, points.shape[1])), np.full(answers, -30.0)
    if len(model.classes_) == 2:
        # scikit-learn gives two classes one row, for the second of them.
        weights[model.classes_] = np.vstack([0 * model.coef_, model.coef_])
        intercepts[model.classes_] = [0.0, model.intercept_[0]]
    else:
        weights[model.classes_], intercepts[model.classes_] = model.coef_, model.intercept_
    return weights, intercepts


def _shares(scores: NDArray[Any]) -> NDArray[Any]:
    from scipy.special import softmax

    return softmax(scores, axis=1)


def _sharpness(
    scores: NDArray[Any], truth: NDArray[Any], *, shifted: bool
) -> tuple[float, tuple[float, ...]]:
    """What to divide scores by, 1/50 to 50, and what to add then, for the least log loss."""
    import numpy as np
    from scipy.optimize import minimize

    rows, answers = np.arange(len(truth)), scores.shape[1]

    def read(x: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        return math.exp(x[0]), np.pad(x[1:], (1, answers - len(x)))

    def loss(x: NDArray[Any]) -> float:
        temperature, shift = read(x)
        given = _shares(scores / temperature + shift)[rows, truth]
        return float(-np.log(np.maximum(given, LEAST_CHANCE)).mean())

    bounds = [(-math.log(50), math.log(50)), *[(-20.0, 20.0)] * (answers - 1 if shifted else 0)]
    temperature, shift = read(minimize(loss, np.zeros(len(bounds)), bounds=bounds).x)
    return temperature, tuple(map(float, shift))


def fitted(examples: Examples, choice: Choice, layer: int = LAST_LAYER) -> Probe:
    """The probe of this choice, fitted to all the examples."""
    import numpy as np

    states, beside, truth = _arrays(examples)
    space = _Space.of(states, beside)
    points = space.points(space.scaled(states), beside)
    wide = beside.shape[1]
    kept = _kept(choice.components, wide, points.shape[1]) or points.shape[1]
    answers = len(examples.answers)
    weights, intercepts = _regression(points[:, :kept], truth, answers, choice.strength)
    weights = weights / choice.temperature
    intercepts = intercepts / choice.temperature + np.array(choice.shift or [0.0])
    of_state = (weights[:, wide:] @ space.axes[: kept - wide])[1:] - (
        weights[:1, wide:] @ space.axes[: kept - wide]
    )
    of_tokens = (weights[1:, :wide] - weights[:1, :wide]) * space.beside
    return Probe(
        questions=choice.questions,
        answers=tuple(examples.answers),
        layer=layer,
        center=_row(space.center),
        spread=_row(space.spread),
        weights=tuple(_row(row) for row in of_state),
        beside=tuple(_row(row) for row in of_tokens) if wide else (),
        intercepts=_row(intercepts[1:] - intercepts[0]),
        far=round(choice.far, 4),
        axes=tuple(_row(axis) for axis in space.axes[:_AXES]),
        outside=round(choice.outside, 4),
    )


def _row(numbers: NDArray[Any]) -> tuple[float, ...]:
    """As a profile holds them: 4-byte floats."""
    import numpy as np

    return tuple(map(float, numbers.astype(np.float32)))

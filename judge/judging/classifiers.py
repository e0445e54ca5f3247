"""Classifiers over first-token questions, and probes of a hidden state, as a profile stores them.

judge/calibration/fit.py fits them to labels. Here they are applied in plain arithmetic, so that a
run with a profile loads no statistics library.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from judge.backends.base import HiddenState, packed, unpacked
from judge.errors import UsageError
from judge.verdict import Usage

MIN_CHANCE = 1e-6
"""Probabilities are clipped to this distance from 0 and 1 before taking the logarithm."""

Chances = Sequence[float]
"""The probabilities of a question's words, in their order; they add up to 1."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read about one item, and the usage of reading it.

    By question number: `chances`; `open`, the share (0 to 1) of probability that no listed token
    has (`judge.judging.first_token.open_share`); `quotes`, the words of the text that the answer
    rests on. `state` is the hidden state.
    """

    chances: Mapping[int, Chances] = field(default_factory=dict)
    state: HiddenState | None = None
    open: Mapping[int, float] = field(default_factory=dict)
    quotes: Mapping[int, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def of_question(
        cls, place: int, chances: Chances, usage: Usage, *, open: float = 0.0, quote: str = ""
    ) -> Observation:
        """The observation of one question; `place` is its number."""
        shares = {place: open} if open else {}
        return cls({place: chances}, None, shares, {place: quote} if quote else {}, usage)

    def __or__(self, right: Observation) -> Observation:
        return Observation(
            {**self.chances, **right.chances},
            self.state if right.state is None else right.state,
            {**self.open, **right.open},
            {**self.quotes, **right.quotes},
            self.usage + right.usage,
        )

    @property
    def quote(self) -> str | None:
        """The first question's quote, or the shortest quote inside it; None without quotes."""
        first = next(iter(self.quotes.values()), None)
        within = (quote for quote in self.quotes.values() if quote in (first or ""))
        return min(within, key=len, default=first)


Floats = Annotated[
    tuple[float, ...],
    BeforeValidator(lambda row: unpacked(row, "f") if isinstance(row, str) else row),
    PlainSerializer(lambda row: packed(row, "f"), return_type=str),
]
"""A row of numbers; in a file, base64 of little-endian 4-byte floats."""


def features(chances: Chances) -> list[float]:
    """A question's features: the log-odds of the first of two words; for more words the logarithm
    of each minus the mean of all (centred log-ratio)."""
    logs = [math.log(min(max(chance, MIN_CHANCE), 1 - MIN_CHANCE)) for chance in chances]
    if len(logs) == 2:
        return [logs[0] - logs[1]]
    mean = sum(logs) / len(logs)
    return [log - mean for log in logs]


class _OfQuestions(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        defer_build=True,  # Most runs read no profile.
    )
    questions: tuple[int, ...]

    def _features(self, observation: Observation) -> list[float]:
        """Those of every question, one after the other."""
        return [f for place in self.questions for f in features(observation.chances[place])]


class Logistic(_OfQuestions):
    """A multinomial logistic model over the features of several questions.

    `questions` are numbered as in the rubric; `answers` are the classes; `weights` has a row per
    answer and a column per feature, question by question. With one question of two words and two
    answers it is Platt scaling (Platt 1999).
    """

    kind: Literal["logistic"] = "logistic"
    questions: Annotated[tuple[int, ...], Field(min_length=1)]
    answers: Annotated[tuple[str, ...], Field(min_length=2)]
    weights: tuple[tuple[float, ...], ...]
    intercepts: tuple[float, ...]

    @model_validator(mode="after")
    def _fits(self) -> Logistic:
        wide = {len(row) for row in self.weights}
        if len(self.weights) != len(self.answers) or len(wide) != 1:
            raise ValueError("weights: give one row for each answer, all of one length")
        if len(self.intercepts) != len(self.answers):
            raise ValueError("intercepts: give one for each answer")
        return self

    def probabilities(self, observation: Observation) -> dict[str, float]:
        """The probability of each answer; they add up to 1."""
        x = self._features(observation)
        scores = [
            intercept + _dot(row, x)
            for row, intercept in zip(self.weights, self.intercepts, strict=True)
        ]
        return _shares(self.answers, scores)


class Probe(_OfQuestions):
    """A multinomial logistic model over a hidden state and, optionally, first-token features.

    (Alain and Bengio 2016; arXiv 2601.22588.) The state is that of the first question's prompt
    after `layer`, minus `center` and divided by `spread`, number by number. `weights` has a row of
    the state's width for each answer but the first, whose score is 0; `beside` has the same rows
    for the features of `questions`. A state is far from the labelled ones if its root mean square
    exceeds `far`, or if more than the share `outside` (0 to 1) of its length is not along `axes`,
    the first principal components of the labelled ones; 99 % of these are within either bound.
    """

    kind: Literal["probe"] = "probe"
    answers: Annotated[tuple[str, ...], Field(min_length=2)]
    layer: int = -1
    center: Floats
    spread: Floats
    weights: tuple[Floats, ...]
    beside: tuple[tuple[float, ...], ...] = ()
    intercepts: tuple[float, ...]
    far: Annotated[float, Field(gt=0)]
    axes: tuple[Floats, ...] = ()
    outside: Annotated[float, Field(ge=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _fits(self) -> Probe:
        rows = len(self.answers) - 1
        wide = {len(row) for row in (self.center, *self.weights, *self.axes)}
        if len(self.weights) != rows or wide != {len(self.spread)} or not all(self.spread):
            raise ValueError(
                "weights: give a row for each answer but the first, as wide as the state"
            )
        if len(self.intercepts) != rows or len(self.beside) not in (0, rows):
            raise ValueError("intercepts, beside: give one for each answer but the first")
        return self

    def probabilities(self, observation: Observation) -> dict[str, float]:
        """The probability of each answer; they add up to 1."""
        scaled, x = self._scaled(observation), self._features(observation)
        scores = [0.0]
        for n, row in enumerate(self.weights):
            scores.append(self.intercepts[n] + _dot(row, scaled))
            if self.beside:
                scores[-1] += _dot(self.beside[n], x)
        return _shares(self.answers, scores)

    def is_far(self, observation: Observation) -> bool:
        """Whether the state is beyond a bound: `far`, or `outside`."""
        scaled = self._scaled(observation)
        size = _dot(scaled, scaled)
        along = math.fsum(_dot(axis, scaled) ** 2 for axis in self.axes)
        if math.sqrt(size / len(scaled)) > self.far:
            return True
        return size > 0 and math.sqrt(max(0.0, 1 - along / size)) > self.outside

    def _scaled(self, observation: Observation) -> list[float]:
        if observation.state is None or len(observation.state) != len(self.center):
            width = "none" if observation.state is None else f"{len(observation.state)} numbers"
            raise UsageError(f"the probe reads a state of {len(self.center)} numbers, not {width}")
        parts = zip(observation.state, self.center, self.spread, strict=True)
        return [(number - center) / spread for number, center, spread in parts]


Classifier = Logistic | Probe


def _dot(row: Sequence[float], x: Sequence[float]) -> float:
    return math.fsum(map(operator.mul, row, x))


def _shares(answers: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    """The softmax of the scores, by answer."""
    highest = max(scores)
    grown = [math.exp(score - highest) for score in scores]
    return {a: g / sum(grown) for a, g in zip(answers, grown, strict=True)}

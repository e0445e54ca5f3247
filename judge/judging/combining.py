"""From what was read off first tokens to the probability of each answer, as calibration found best.

A combination is fitted elsewhere (judge/calibration/fitting.py) and kept in a profile; here it is
only applied, in plain arithmetic, so that a run with a profile loads no statistics library.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

LEAST_CHANCE = 1e-6
"""Probabilities are held off 0 and 1 by this much before their logarithm is taken."""

Probability = Annotated[float, Field(ge=0, le=1)]

Chances = Sequence[float]
"""The probabilities of a question's words, in their order; they add up to 1."""


def features(chances: Chances) -> list[float]:
    """What a combination weighs: the log-odds of the first of two words; of more words each one's
    logarithm less the mean of all (the centred log-ratio)."""
    logs = [math.log(min(max(chance, LEAST_CHANCE), 1 - LEAST_CHANCE)) for chance in chances]
    if len(logs) == 2:
        return [logs[0] - logs[1]]
    mean = sum(logs) / len(logs)
    return [log - mean for log in logs]


class _Combination(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Logistic(_Combination):
    """A multinomial logistic model over the features of several questions.

    `questions` are numbered as in the rubric; `answers` the classes; `weights` has a row for each
    answer and a column for each feature, the questions' features one after the other. With one
    question of two words and two answers it is Platt scaling (Platt 1999).
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
            raise ValueError("weights: one row of equal length for each answer is wanted")
        if len(self.intercepts) != len(self.answers):
            raise ValueError("intercepts: one for each answer is wanted")
        return self

    def misfit(self, words: Sequence[int]) -> str | None:
        """Why it cannot be applied to questions with so many words each; None if it can."""
        if told := _missing(self.questions, words):
            return told
        wanted = sum(1 if words[place] == 2 else words[place] for place in self.questions)
        if len(self.weights[0]) != wanted:
            return f"{len(self.weights[0])} weights for questions that give {wanted} features"
        return None

    def probabilities(self, read: Mapping[int, Chances]) -> dict[str, float]:
        """The probability of each answer; they add up to 1."""
        x = [feature for question in self.questions for feature in features(read[question])]
        scores = [
            intercept + sum(w * f for w, f in zip(row, x, strict=True))
            for row, intercept in zip(self.weights, self.intercepts, strict=True)
        ]
        highest = max(scores)
        grown = [math.exp(score - highest) for score in scores]
        return {a: g / sum(grown) for a, g in zip(self.answers, grown, strict=True)}


class Isotonic(_Combination):
    """P(first answer) as a rising step-wise linear function of one question's P(first word).

    `xs` and `ys` are its corners (Zadrozny and Elkan 2002); outside of them it stays level.
    """

    kind: Literal["isotonic"] = "isotonic"
    questions: tuple[int]
    answers: tuple[str, str]
    xs: Annotated[tuple[Probability, ...], Field(min_length=1)]
    ys: Annotated[tuple[Probability, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Isotonic:
        if len(self.xs) != len(self.ys):
            raise ValueError("ys: as many as xs are wanted")
        if list(self.xs) != sorted(self.xs) or list(self.ys) != sorted(self.ys):
            raise ValueError("xs and ys: must not fall")
        return self

    def misfit(self, words: Sequence[int]) -> str | None:
        """See `Logistic.misfit`."""
        return _missing(self.questions, words)

    def probabilities(self, read: Mapping[int, Chances]) -> dict[str, float]:
        """The probability of each of the two answers; they add up to 1."""
        x = read[self.questions[0]][0]
        place = bisect_right(self.xs, x)
        if place == 0:
            y = self.ys[0]
        elif place == len(self.xs):
            y = self.ys[-1]
        else:
            left, right = self.xs[place - 1], self.xs[place]
            share = (x - left) / (right - left)
            y = self.ys[place - 1] + share * (self.ys[place] - self.ys[place - 1])
        return {self.answers[0]: y, self.answers[1]: 1 - y}


def _missing(questions: Sequence[int], words: Sequence[int]) -> str | None:
    lost = [place for place in questions if not 0 <= place < len(words)]
    return f"question {lost[0]} of {len(words)} (they are numbered from 0)" if lost else None


Combination = Annotated[Logistic | Isotonic, Field(discriminator="kind")]

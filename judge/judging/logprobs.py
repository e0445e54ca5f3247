"""What first tokens say: the probabilities of a question's words, and the answer they lead to.

A rubric's decision list leads to an answer, or a combination that calibration fitted
(judge/calibration/fitting.py) and a profile keeps. Here it is only applied, in plain arithmetic, so
that a run with a profile loads no statistics library.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from judge.questions import YES_NO
from judge.rubric import Rubric

TOP_TOKENS = 20
"""Alternatives asked for the first token; OpenAI's protocol allows at most 20."""

LEAST_MASS = 0.05
"""Least probability that a question's words must have together; below it nothing was read."""

_ABOVE_ZERO = 1e-3
_WORD = re.compile(r"[a-z0-9]+")


def word_chances(
    tokens: Mapping[str, float], words: Sequence[str] = YES_NO
) -> tuple[float, ...] | None:
    """The share of each word, from the first token's natural log-probabilities; they add up to 1.

    Tokens are folded to their letters in lower case, so " Yes" and "YES" count as yes. None where
    the words have less than `LEAST_MASS` together, or an alternative has no log-probability.
    """
    # No NaN, and not above 0 by more than rounding.
    if not all(logprob <= _ABOVE_ZERO for logprob in tokens.values()):
        return None
    mass = dict.fromkeys(words, 0.0)
    for token, logprob in tokens.items():
        word = _WORD.search(token.lower())
        if word is not None and word.group() in mass:
            mass[word.group()] += math.exp(logprob)
    total = sum(mass.values())
    if total < LEAST_MASS:
        return None
    return tuple(share / total for share in mass.values())


# ---------------------------------------------------------------- combinations

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
    questions: tuple[int, ...]

    def misfit(self, words: Sequence[int]) -> str | None:
        """Why it cannot be applied to questions with so many words each; None if it can."""
        lost = [place for place in self.questions if not 0 <= place < len(words)]
        return f"question {lost[0]} of {len(words)} (they are numbered from 0)" if lost else None


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
        if told := super().misfit(words):
            return told
        given = sum(1 if words[place] == 2 else words[place] for place in self.questions)
        weights = len(self.weights[0])
        return None if weights == given else f"{weights} weights for {given} features"

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
    def _rises(self) -> Isotonic:
        if len(self.xs) != len(self.ys):
            raise ValueError("ys: as many as xs are wanted")
        if list(self.xs) != sorted(self.xs) or list(self.ys) != sorted(self.ys):
            raise ValueError("xs and ys: must not fall")
        return self

    def probabilities(self, read: Mapping[int, Chances]) -> dict[str, float]:
        """The probability of each of the two answers; they add up to 1."""
        x = read[self.questions[0]][0]
        right = bisect_right(self.xs, x)
        y = self.ys[max(right - 1, 0)]
        if 0 < right < len(self.xs):
            share = (x - self.xs[right - 1]) / (self.xs[right] - self.xs[right - 1])
            y += share * (self.ys[right] - y)
        return {self.answers[0]: y, self.answers[1]: 1 - y}


Combination = Annotated[Logistic | Isotonic, Field(discriminator="kind")]


# ---------------------------------------------------------------- the answer


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer read, whether the method is sure enough of it, and every answer's probability.

    `torn` says that the two orders of a comparison do not agree.
    """

    answer: str
    sure: bool
    probabilities: Mapping[str, float]
    torn: bool = False


def mean_of(rubric: Rubric, probabilities: Mapping[str, float]) -> float | None:
    """The mean of a rubric's scores under these probabilities; None where it has no scale."""
    if rubric.scale is None or not (total := sum(probabilities.values())):
        return None
    parts = (probabilities.get(a, 0.0) * s for a, s in zip(rubric.own, rubric.scale, strict=True))
    return round(sum(parts) / total, 6)


@dataclass(frozen=True, slots=True)
class Reader:
    """How a rubric's `logprobs` method becomes an answer.

    Without a `combination` the rubric's decision list decides, and `margin` is the distance to a
    threshold (0 to 0.5) within which it is not sure.
    With one its likeliest answer is taken, and it is sure from the probability `sure_at` on.
    """

    margin: float = 0.0
    combination: Logistic | Isotonic | None = None
    sure_at: float = 0.0

    def wanted(self, rubric: Rubric) -> tuple[int, ...]:
        """The numbers of the rubric's questions that have to be asked."""
        assert rubric.methods.logprobs is not None
        if self.combination is not None:
            return self.combination.questions
        return tuple(range(len(rubric.methods.logprobs.steps or rubric.methods.logprobs.choices)))

    def decide(self, rubric: Rubric, read: Mapping[int, Chances]) -> Decision:
        """The answer to what was read: the chances of each wanted question's words."""
        if self.combination is None and rubric.own:
            return self._choose(rubric, [read[place] for place in self.wanted(rubric)])
        if self.combination is None:
            return self._walk(rubric, [read[place][0] for place in self.wanted(rubric)])
        found = self.combination.probabilities(read)
        answer = max(found, key=lambda one: found[one])
        return Decision(answer, found[answer] >= self.sure_at, found)

    def _choose(self, rubric: Rubric, chances: Sequence[Chances]) -> Decision:
        """The likeliest answer of a question with answers of its own.

        An order's words stand for the answers in their order, of the other order in reverse; it is
        sure where the orders agree, and the likeliest answer (of scores: pass or fail) leads the
        next one by twice the margin.
        """
        ways = [dict(zip(rubric.own, chances[0], strict=True))]
        ways += [dict(zip(rubric.own, way[::-1], strict=True)) for way in chances[1:]]
        mean = {answer: sum(way[answer] for way in ways) / len(ways) for answer in rubric.own}
        best = [max(way, key=lambda one: way[one]) for way in (mean, *ways)]
        torn = len({*best}) > 1
        first, second = sorted(mean.values(), reverse=True)[:2]
        if rubric.scale:
            first = sum(mean[answer] for answer in rubric.passing(None))
            second = 1 - first
        clear = abs(first - second) >= 2 * self.margin and mean[best[0]] >= self.sure_at
        return Decision(best[0], clear and not torn, mean, torn)

    def _walk(self, rubric: Rubric, chances: Sequence[float]) -> Decision:
        """Along the decision list; an answer's probability is the product along its branch."""
        assert rubric.methods.logprobs is not None
        answer, sure, reach = None, True, 1.0
        outcomes: dict[str, float] = {}
        for place, step in enumerate(rubric.methods.logprobs.steps):
            chance = chances[place]
            settled = step.yes if chance >= step.threshold else step.no
            if answer is None:
                sure = sure and abs(chance - step.threshold) >= self.margin
                answer = settled
            if step.yes:
                outcomes[step.yes] = outcomes.get(step.yes, 0.0) + reach * chance
            if step.no:
                outcomes[step.no] = outcomes.get(step.no, 0.0) + reach * (1 - chance)
            reach *= 1 - chance if step.yes else chance
        assert answer is not None, "the last step settles both yes and no"
        return Decision(answer, sure and outcomes[answer] >= self.sure_at, outcomes)

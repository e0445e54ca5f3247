"""What first tokens say: the probabilities of a question's words, and the answer they lead to."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.judging.combining import Chances, Isotonic, Logistic
from judge.rubric import YES_NO, Rubric

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
    if not all(map(is_log_probability, tokens.values())):
        return None
    mass = dict.fromkeys(words, 0.0)
    for token, logprob in tokens.items():
        if (word := spoken(token)) in mass:
            mass[word] += math.exp(logprob)
    total = sum(mass.values())
    if total < LEAST_MASS:
        return None
    return tuple(share / total for share in mass.values())


def is_log_probability(number: float) -> bool:
    """Whether a number may be a log-probability: no NaN, and not above 0 by more than rounding."""
    return number <= _ABOVE_ZERO


def spoken(token: str) -> str:
    """The word that a token stands for, in lower case; empty where it has no letter or digit."""
    found = _WORD.search(token.strip().lower())
    return found.group() if found else ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer read, whether the reading is sure enough of it, and every answer's probability."""

    answer: str
    sure: bool
    probabilities: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Reader:
    """How a rubric's probability reading becomes an answer.

    Without a `combination` the rubric's decision list decides: `thresholds` replaces its own, step
    by step, and `margin` is the distance to a threshold (0 to 0.5) within which it is not sure.
    With one its likeliest answer is taken, and it is sure from the probability `sure_at` on.
    """

    thresholds: tuple[float, ...] = ()
    margin: float = 0.0
    combination: Logistic | Isotonic | None = None
    sure_at: float = 0.0

    def wanted(self, rubric: Rubric) -> tuple[int, ...]:
        """The numbers of the rubric's questions that have to be asked."""
        assert rubric.readings.probability is not None
        if self.combination is not None:
            return self.combination.questions
        return tuple(range(len(rubric.readings.probability.steps)))

    def decide(self, rubric: Rubric, read: Mapping[int, Chances]) -> Decision:
        """The answer to what was read: the chances of each wanted question's words."""
        if self.combination is None:
            return self._walk(rubric, [read[place][0] for place in self.wanted(rubric)])
        found = self.combination.probabilities(read)
        answer = max(found, key=lambda one: found[one])
        return Decision(answer, found[answer] >= self.sure_at, found)

    def _walk(self, rubric: Rubric, chances: Sequence[float]) -> Decision:
        """Along the decision list; an answer's probability is the product along its branch."""
        assert rubric.readings.probability is not None
        answer, sure, reach = None, True, 1.0
        outcomes: dict[str, float] = {}
        for place, step in enumerate(rubric.readings.probability.steps):
            threshold = self.thresholds[place] if place < len(self.thresholds) else step.threshold
            chance = chances[place]
            settled = step.yes if chance >= threshold else step.no
            if answer is None:
                sure = sure and abs(chance - threshold) >= self.margin
                answer = settled
            if step.yes:
                outcomes[step.yes] = outcomes.get(step.yes, 0.0) + reach * chance
            if step.no:
                outcomes[step.no] = outcomes.get(step.no, 0.0) + reach * (1 - chance)
            reach *= 1 - chance if step.yes else chance
        assert answer is not None, "the last step settles both yes and no"
        return Decision(answer, sure and outcomes[answer] >= self.sure_at, outcomes)

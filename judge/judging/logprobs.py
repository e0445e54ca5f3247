"""From first-token probabilities, or a hidden state, to an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.judging.combinations import Chances, Combination, Probe, Reading
from judge.replies import YES_NO
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

    " Yes" and "YES" count as yes. None where the words have less than `LEAST_MASS` together, or an
    alternative has no log-probability.
    """
    # No NaN, and not above 0 by more than rounding.
    if not all(logprob <= _ABOVE_ZERO for logprob in tokens.values()):
        return None
    mass = dict.fromkeys(words, 0.0)
    for token, logprob in tokens.items():
        if (word := word_of(token)) in mass:
            mass[word] += math.exp(logprob)
    total = sum(mass.values())
    if total < LEAST_MASS:
        return None
    return tuple(share / total for share in mass.values())


def word_of(token: str) -> str:
    """The first letters and digits of a token, in lower case; "" for none."""
    found = _WORD.search(token.lower())
    return found.group() if found else ""


# ---------------------------------------------------------------- the answer


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer read, whether the method is sure enough of it, and every answer's probability.

    `torn`: the two orders of a comparison disagree; `far`: no labelled record is like this one.
    """

    answer: str
    sure: bool
    probabilities: Mapping[str, float]
    torn: bool = False
    far: bool = False


def mean_of(rubric: Rubric, probabilities: Mapping[str, float]) -> float | None:
    """The mean of a rubric's scores under these probabilities; None where it has no scale."""
    if rubric.scale is None or not (total := sum(probabilities.values())):
        return None
    parts = (probabilities.get(a, 0.0) * s for a, s in zip(rubric.own, rubric.scale, strict=True))
    return round(sum(parts) / total, 6)


@dataclass(frozen=True, slots=True)
class Reader:
    """How a reading becomes an answer.

    Without a `combination` the rubric's decision list decides, which is not sure within `margin`
    (0 to 0.5) of a threshold. With one its likeliest answer is taken, sure from `sure_at` on.
    """

    margin: float = 0.0
    combination: Combination | None = None
    sure_at: float = 0.0

    def wanted(self, rubric: Rubric) -> tuple[int, ...]:
        """The numbers of the rubric's questions that have to be asked."""
        assert rubric.methods.logprobs is not None
        if self.combination is not None:
            return self.combination.questions
        return tuple(range(len(rubric.methods.logprobs.steps or rubric.methods.logprobs.choices)))

    @property
    def probe(self) -> Probe | None:
        """The combination, where it takes a hidden state."""
        return self.combination if isinstance(self.combination, Probe) else None

    def decide(self, rubric: Rubric, read: Reading) -> Decision:
        """The answer to a reading of all that is wanted."""
        if self.combination is None:
            chances = [read.chances[place] for place in self.wanted(rubric)]
            return self._choose(rubric, chances) if rubric.own else self._walk(rubric, chances)
        found = self.combination.probabilities(read)
        answer = max(found, key=lambda one: found[one])
        far = self.probe is not None and self.probe.is_far(read)
        return Decision(answer, found[answer] >= self.sure_at and not far, found, far=far)

    def _choose(self, rubric: Rubric, chances: Sequence[Chances]) -> Decision:
        """The likeliest answer of a rubric with answers of its own.

        A comparison is asked in two orders, whose words stand for the answers in reverse. It is
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

    def _walk(self, rubric: Rubric, chances: Sequence[Chances]) -> Decision:
        """Along the decision list; an answer's probability is the product along its branch."""
        assert rubric.methods.logprobs is not None
        answer, sure, reach = None, True, 1.0
        outcomes: dict[str, float] = {}
        for place, step in enumerate(rubric.methods.logprobs.steps):
            chance = chances[place][0]
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

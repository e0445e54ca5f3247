"""From first-token probabilities, or a hidden state, to an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from judge.judging.classifiers import Chances, Classifier, Observation, Probe
from judge.replies import YES_NO
from judge.rubric import Rubric

TOP_TOKENS = 20
"""Alternatives asked for the first token; OpenAI's protocol allows at most 20."""

LEAST_MASS = 0.05
"""Least probability that a question's words must have together; below it nothing was read."""

SPELLINGS = 6
"""Tokens that a word has in a vocabulary: small, capital, in capitals; each with and without a
blank before it."""

NEGLIGIBLE = 0.02
"""A share of probability up to which it does not matter that no token is listed for it."""

MOST_MASS = 1.02
"""What the listed tokens have together at most: all there is, and what rounding adds."""

_ABOVE_ZERO = 1e-3
_AROUND = re.compile(r"^[\W_\u0120\u010a]+|[\W_]+$")
"""Marks and blanks around a word, with the letters that stand for a blank and a line break in the
vocabularies of byte-level tokenizers."""


def added_up(listed: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The log-probability of each token text; a text listed several times has the mass of all.

    Raises:
        ValueError: there is no such distribution; says why.
    """
    masses: dict[str, list[float]] = {}
    for token, logprob in listed:
        if not logprob <= _ABOVE_ZERO:  # NaN, too.
            raise ValueError(f"a log-probability is {logprob:g}")
        masses.setdefault(token, []).append(logprob)
    added = {token: _log_of_sum(logprobs) for token, logprobs in masses.items()}
    if (total := sum(map(math.exp, added.values()))) > MOST_MASS:
        raise ValueError(f"the listed tokens' probabilities add up to {total:.2f}")
    return added


def _log_of_sum(logprobs: Sequence[float]) -> float:
    if len(logprobs) == 1:
        return logprobs[0]
    total = sum(map(math.exp, logprobs))
    return math.log(total) if total else -math.inf


def word_chances(
    tokens: Mapping[str, float], words: Sequence[str] = YES_NO
) -> tuple[float, ...] | None:
    """The share of each word, from the first token's natural log-probabilities; they add up to 1.

    " Yes" and "YES" count as yes; a word without a token has none of it. None where the words have
    less than `LEAST_MASS` together.
    """
    mass = dict.fromkeys(words, 0.0)
    for token, logprob in tokens.items():
        if (word := word_of(token)) in mass:
            mass[word] += math.exp(logprob)
    total = sum(mass.values())
    if total < LEAST_MASS:
        return None
    return tuple(share / total for share in mass.values())


def open_share(tokens: Mapping[str, float], words: Sequence[str] = YES_NO) -> float:
    """The share (0 to 1) that might be any word's beside what `word_chances` counts: a word's
    probability lies between (1 - open) times its share and that plus open. 0 if `NEGLIGIBLE`.

    It is what no listed token has. The likeliest tokens are listed, so none of the others is
    likelier than the least of these, and a word has at most `SPELLINGS` of them. A token that a
    word begins with (Ye) may be that word: it counts where it is likelier than the word itself.
    """
    chances = {token: math.exp(logprob) for token, logprob in tokens.items()}
    rest, least = max(0.0, 1 - sum(chances.values())), min(chances.values(), default=1.0)
    read = [(word_of(token), chance) for token, chance in chances.items()]
    total = most = 0.0
    for word in words:
        spelt = [chance for found, chance in read if found == word]
        begun = sum(
            p for found, p in read if found and found not in words and word.startswith(found)
        )
        total += sum(spelt)
        lacking = min(rest, least * max(0, SPELLINGS - len(spelt)))
        most = max(most, lacking + (begun if begun > sum(spelt) else 0.0))
    share = most / (total + most) if most else 0.0
    return share if share > NEGLIGIBLE else 0.0


def word_of(token: str) -> str:
    """The token in lower case without the marks and blanks around it; "" for nothing else.

    The whole token: no option I in "I'm", no 1 in "1.5", no a in "As".
    """
    return _AROUND.sub("", token).lower()


# ---------------------------------------------------------------- the answer


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer read, whether the method is sure enough of it, and every answer's probability.

    `torn`: the two orders of a comparison disagree; `far`: no labelled record is like this one.
    `ends` are the probabilities wherever the open share of a question (`Observation`) is one
    word's: the answer's lie between these. Without an open share there are none.
    """

    answer: str
    sure: bool
    probabilities: Mapping[str, float]
    torn: bool = False
    far: bool = False
    ends: tuple[Mapping[str, float], ...] = ()


def _ends(read: Observation) -> Iterator[Observation]:
    """The reading with the open share of each question given to one of its words, in every way."""
    places = [place for place, share in read.open.items() if share]
    for words in product(*(range(len(read.chances[place])) for place in places)) if places else ():
        chances = dict(read.chances)
        for place, word in zip(places, words, strict=True):
            share = read.open[place]
            row = [chance * (1 - share) for chance in chances[place]]
            row[word] += share
            chances[place] = row
        yield replace(read, chances=chances, open={})


def mean_of(rubric: Rubric, probabilities: Mapping[str, float]) -> float | None:
    """The mean of a rubric's scores under these probabilities; None where it has no scale."""
    if rubric.scale is None or not (total := sum(probabilities.values())):
        return None
    parts = (probabilities.get(a, 0.0) * s for a, s in zip(rubric.own, rubric.scale, strict=True))
    return round(sum(parts) / total, 6)


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """How a reading becomes an answer.

    Without a `combination` the rubric's decision list decides, which is not sure within `margin`
    (0 to 0.5) of a threshold. With one its likeliest answer is taken, sure from `sure_at` on.
    """

    margin: float = 0.0
    combination: Classifier | None = None
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

    def decide(self, rubric: Rubric, read: Observation) -> Decision:
        """The answer to a reading of all that is wanted; sure only if it is the same, and sure,
        whichever words have the open shares."""
        decided = self._decide(rubric, read)
        ends = [self._decide(rubric, end) for end in _ends(read)]
        sure = decided.sure and all(end.sure and end.answer == decided.answer for end in ends)
        return replace(decided, sure=sure, ends=tuple(end.probabilities for end in ends))

    def _decide(self, rubric: Rubric, read: Observation) -> Decision:
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

"""Turns what was observed, first-token probabilities or a hidden state, into an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from judge.judging.classifiers import Chances, Classifier, Observation, Probe
from judge.questions.parts import NONE
from judge.questions.rubric import Rubric
from judge.verdict import Answer, Verdict

ORDERS_DISAGREE = "the orders disagree"
NONE_FITS = "the likeliest answer is that none of these fits"
FAR = "far from the labelled records that the probe was fitted to"
NOT_LISTED = "the model lists too little of the first token's probability"


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer, whether the method is sure of it, and the probability of each answer.

    `torn`: the orders of a question disagree. `far`: no labelled record is like this one. `ends`:
    the probabilities in each extreme case, where a question's open share (`Observation`) is all one
    word's; the true ones are between these. Empty without an open share.
    """

    answer: str
    sure: bool
    probabilities: Mapping[str, float]
    torn: bool = False
    far: bool = False
    ends: tuple[Mapping[str, float], ...] = ()

    def judged(self, rubric: Rubric, label: str | None, value: str | None) -> Answer:
        """The answer about a value (None: the record) with its verdict, for a record with this
        label. It abstains if it is not sure, or if the verdict or a mean score depends on the open
        shares."""
        if rubric.rule.counts:
            no_mean = self.ends and rubric.scale and not rubric.each
            verdict = Verdict.ANSWERED if self.sure and not no_mean else Verdict.ABSTAIN
            return Answer(value=value, verdict=verdict, answer=self.answer)
        passing, bound = rubric.passing(label), rubric.rule.bound
        shares = (self.probabilities, *self.ends)
        chances = [round(min(1.0, sum(share.get(a, 0.0) for a in passing)), 6) for share in shares]
        scores = [mean_of(rubric, share) for share in shares]
        passes = {self.answer in passing}
        if bound:
            passes = {bound.holds(score) for score in scores if score is not None} or passes
        verdict = Verdict.ABSTAIN
        if self.sure and len(passes) == 1:
            verdict = Verdict.PASS if True in passes else Verdict.FAIL
        return Answer(
            value=value,
            verdict=verdict,
            answer=self.answer,
            probability=None if self.ends else chances[0],
            probability_range=(min(chances), max(chances)) if self.ends else None,
        )

    def reason(self, answer: Answer) -> str | None:
        """Why the answer (from `judged`) is not sure; None if there is nothing to say."""
        if self.torn or self.far:
            return ORDERS_DISAGREE if self.torn else FAR
        if self.answer == NONE and answer.verdict is Verdict.ABSTAIN:
            return NONE_FITS
        if not self.ends or answer.verdict is not Verdict.ABSTAIN:
            return None
        if answer.probability_range is None:
            return NOT_LISTED
        low, high = answer.probability_range
        return f"P(pass) is between {low:.2f} and {high:.2f}: {NOT_LISTED}"


def _ends(observation: Observation) -> Iterator[Observation]:
    """The extreme cases: each question's open share goes to one word, in every combination."""
    places = [place for place, share in observation.open.items() if share]
    for words in (
        product(*(range(len(observation.chances[place])) for place in places)) if places else ()
    ):
        chances = dict(observation.chances)
        for place, word in zip(places, words, strict=True):
            share = observation.open[place]
            row = [chance * (1 - share) for chance in chances[place]]
            row[word] += share
            chances[place] = row
        yield replace(observation, chances=chances, open={})


def mean_of(rubric: Rubric, probabilities: Mapping[str, float]) -> float | None:
    """The mean score under these probabilities; None if the rubric has no scale."""
    if rubric.scale is None or not (total := sum(probabilities.values())):
        return None
    scores = zip(rubric.answers, rubric.scale, strict=True)
    parts = (probabilities.get(answer, 0.0) * score for answer, score in scores)
    return round(sum(parts) / total, 6)


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """How an observation becomes an answer.

    Without a `classifier` the rubric's decision list decides, and is unsure within `margin` (0 to
    0.5) of an even chance. With one its likeliest answer counts. Either is unsure of an answer
    whose probability is below `sure_at`.
    """

    margin: float = 0.0
    classifier: Classifier | None = None
    sure_at: float = 0.0

    def questions(self, rubric: Rubric) -> tuple[int, ...]:
        """Numbers of the rubric's questions that the answer depends on."""
        if self.classifier is not None:
            return self.classifier.questions
        return tuple(range(len(rubric.deciding_questions)))

    @property
    def probe(self) -> Probe | None:
        """The classifier if it reads a hidden state, else None."""
        return self.classifier if isinstance(self.classifier, Probe) else None

    def complete(self, rubric: Rubric, observation: Observation) -> bool:
        """Whether all its questions were read. (A missing hidden state raises when asked for.)"""
        return observation.chances.keys() >= {*self.questions(rubric)}

    def decide(self, rubric: Rubric, observation: Observation) -> Decision:
        """The decision on a complete observation. It is sure only if the answer is the same, and
        sure, whichever words get the open shares."""
        questions = self.questions(rubric)
        shares = {place: share for place, share in observation.open.items() if place in questions}
        decision = self._decide(rubric, observation)
        ends = [self._decide(rubric, end) for end in _ends(replace(observation, open=shares))]
        sure = decision.sure and all(end.sure and end.answer == decision.answer for end in ends)
        if self._none_fits(rubric, observation):
            decision, sure = replace(decision, answer=NONE), False
        return replace(decision, sure=sure, ends=tuple(end.probabilities for end in ends))

    def _none_fits(self, rubric: Rubric, observation: Observation) -> bool:
        """Whether the likeliest answer is that none of the rubric's fits; by the decision list,
        where the classifier was fitted to no such label."""
        if not rubric.none:
            return False
        learnt = self.classifier is None or NONE in self.classifier.answers
        reader = self if learnt else AnswerReader()
        complete = reader.complete(rubric, observation)
        return complete and reader._decide(rubric, observation).answer == NONE

    def _decide(self, rubric: Rubric, observation: Observation) -> Decision:
        if self.classifier is None:
            chances = [observation.chances[place] for place in self.questions(rubric)]
            decide = self._compare if rubric.comparing or rubric.rotations > 1 else self._walk
            return decide(rubric, chances)
        shares = self.classifier.probabilities(observation)
        answer = max(shares, key=lambda name: shares[name])
        far = self.probe is not None and self.probe.is_far(observation)
        return Decision(answer, shares[answer] >= self.sure_at and not far, shares, far=far)

    def _walk(self, rubric: Rubric, chances: Sequence[Chances]) -> Decision:
        """Follow the decision list; an answer's probability is the product along its branch.

        A question is sure if its likeliest word leads the next one by twice the margin; a score
        with a bound is sure if P(pass) and P(fail) differ by as much.
        """
        answer, sure, reach = None, True, 1.0
        outcomes: dict[str, float] = {}
        for question, shares in zip(rubric.deciding_questions, chances, strict=True):
            by_word = dict(zip(question.outcomes, shares, strict=True))
            if answer is None:
                answer = question.means.get(max(by_word, key=lambda word: by_word[word]))
                sure = sure and self._clear(by_word.values())
            for word, outcome in question.means.items():
                outcomes[outcome] = outcomes.get(outcome, 0.0) + reach * by_word[word]
            reach *= sum(share for word, share in by_word.items() if word not in question.means)
        assert answer is not None, "the last question settles every answer"
        if rubric.rule.bound:
            passing = sum(outcomes.get(name, 0.0) for name in rubric.passing(None))
            sure = self._clear((passing, 1 - passing))
        return Decision(answer, sure and outcomes[answer] >= self.sure_at, outcomes)

    def _compare(self, rubric: Rubric, chances: Sequence[Chances]) -> Decision:
        """The answer with the highest mean over all orders; sure only if the orders agree."""
        orders = [
            {question.means[w]: share for w, share in zip(question.outcomes, row, strict=True)}
            for question, row in zip(rubric.deciding_questions, chances, strict=True)
        ]
        mean = {
            answer: sum(order[answer] for order in orders) / len(orders)
            for answer in rubric.answers
        }
        best = [max(order, key=lambda answer: order[answer]) for order in (mean, *orders)]
        torn = len({*best}) > 1
        sure = self._clear(mean.values()) and mean[best[0]] >= self.sure_at
        return Decision(best[0], sure and not torn, mean, torn)

    def _clear(self, chances: Iterable[float]) -> bool:
        """Whether the highest leads the second by twice the margin."""
        first, second = sorted(chances, reverse=True)[:2]
        # Rounded, because 0.7 must lead 0.3 by 0.4 in binary floats, too.
        return round(first - second, 12) >= round(2 * self.margin, 12)

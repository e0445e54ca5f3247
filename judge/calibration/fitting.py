"""From what a judge reads off an item to the answers that labels give: fitted, and chosen.

Candidates are the rubric's own decision list, Platt scaling and isotonic regression of each single
question, regularised multinomial logistic models of several, and, where hidden states were read,
probes of these, alone and with the questions that did best beside them; the one with the least log
loss in cross-validation over the training part is taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from judge.backends.base import State
from judge.calibration import probes
from judge.judging.combinations import (
    LEAST_CHANCE,
    Chances,
    Combination,
    Isotonic,
    Logistic,
    Reading,
    features,
)
from judge.judging.logprobs import Reader
from judge.rubric import Rubric

LEAST_ITEMS = 30
"""Fewest training items that anything is fitted to."""

LEAST_OF_A_CLASS = 5
"""Fewest training items of each answer, so that every fold can have one."""

FOLDS = 5
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the ridge penalty, on features of unit variance."""


@dataclass(frozen=True, slots=True)
class Read:
    """A training item: what was read off it, its reference answer, and its group.

    Items of a group, such as all about one record, are never on both sides of a fold. `natural` is
    false of a record with another's field: probes are fitted to it, and no choice is made by it.
    """

    chances: Mapping[int, Chances]
    answer: str
    group: str
    state: State | None = None
    natural: bool = True

    @property
    def reading(self) -> Reading:
        return Reading(self.chances, self.state)


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate, and how it did in cross-validation: mean log loss in nats, accuracy (0 to 1)."""

    name: str
    questions: tuple[int, ...]
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The combination taken (None: the decision list as it stands), and all that was tried.

    `reason` says why nothing was fitted, where nothing was; `way` is how to fit the same anew.
    """

    combination: Combination | None = None
    how: str = "as it stands"
    tried: tuple[Tried, ...] = ()
    items: int = 0
    reason: str | None = None
    way: Way | None = None

    def again(self, train: Sequence[Read]) -> Combination | None:
        """What was taken, fitted to other items: None where they have fewer answers or nothing was
        fitted."""
        if self.combination is None or self.way is None:
            return None
        answers = self.combination.answers
        if {one.answer for one in train if one.natural} != set(answers):
            return None
        return self.way.fitted([one for one in train if one.answer in answers], answers)


class Way(Protocol):
    """A way to fit."""

    @property
    def name(self) -> str: ...

    def fitted(self, part: Sequence[Read], answers: Sequence[str]) -> Combination:
        """The combination of this way for these items, which have every answer."""
        ...


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    questions: tuple[int, ...]
    strength: float = 1.0

    def fitted(self, part: Sequence[Read], answers: Sequence[str]) -> Logistic | Isotonic:
        part = [one for one in part if one.natural]
        if self.name == "isotonic":
            return _isotonic(part, self.questions[0], answers)
        return _logistic(part, self, answers)


@dataclass(frozen=True, slots=True)
class _Probing:
    choice: probes.Choice

    @property
    def name(self) -> str:
        return self.choice.name

    def fitted(self, part: Sequence[Read], answers: Sequence[str]) -> Combination:
        return probes.fitted(_examples(part, answers, self.choice.questions), self.choice)


def _examples(
    part: Sequence[Read], answers: Sequence[str], questions: tuple[int, ...]
) -> probes.Examples:
    truth = [answers.index(one.answer) for one in part]
    natural = [one.natural for one in part]
    return probes.Examples([one.reading for one in part], truth, natural, answers, questions)


def fit(rubric: Rubric, reader: Reader, train: Sequence[Read], *, seed: int = 0) -> Fit:
    """The best combination for these items.

    Folds keep the items of a group together. Questions are added one at a time, the best first,
    as long as any is left; every set on the way is a candidate.

    Without a combination where there are too few items (`LEAST_ITEMS`), too few of an answer
    (`LEAST_OF_A_CLASS`) or of records, with the reason, and where the decision list, read by
    `reader`, does best.
    """
    counts = Counter(one.answer for one in train if one.natural)
    items, answers = counts.total(), [answer for answer in rubric.answers if counts[answer]]
    if items < LEAST_ITEMS:
        return Fit(items=items, reason=f"{items} items to fit to; {LEAST_ITEMS} wanted")
    if len(answers) < 2 or min(counts[a] for a in answers) < LEAST_OF_A_CLASS:
        told = ", ".join(f"{counts[a]} {a}" for a in rubric.answers)
        reason = f"each answer needs {LEAST_OF_A_CLASS} items to fit to; there are {told}"
        return Fit(items=items, reason=reason)
    # An answer that no record has as it is cannot be learnt from swapped ones alone.
    train = [one for one in train if one.answer in answers]
    folds = _folds(train, len(answers), seed)
    if not folds:
        reason = "the answers are not spread over enough records to fit to some and try on others"
        return Fit(items=items, reason=reason)
    found: list[tuple[Way | None, Tried]] = []
    if all(one.chances for one in train):
        found += _of_first_tokens(rubric, reader, train, answers, folds)
    if all(one.state is not None for one in train):
        best = min((tried for _, tried in found), key=lambda one: one.log_loss, default=None)
        for questions in dict.fromkeys(((), best.questions if best else ())):
            found += _of_states(train, answers, folds, questions)
    if not found:
        return Fit(items=items, reason="nothing was read that differs between items")
    way, taken = min(found, key=lambda pair: pair[1].log_loss)
    combination = None if way is None else way.fitted(train, answers)
    return Fit(combination, taken.name, tuple(score for _, score in found), items, way=way)


def _of_first_tokens(
    rubric: Rubric,
    reader: Reader,
    train: Sequence[Read],
    answers: Sequence[str],
    folds: Sequence[tuple[list[int], list[int]]],
) -> Iterator[tuple[Way | None, Tried]]:
    """The decision list, and every combination of first-token questions."""

    def tried(candidate: _Candidate) -> Tried:
        pairs = []
        for inside, outside in folds:
            made = candidate.fitted([train[place] for place in inside], answers)
            tried_on = (train[n] for n in outside if train[n].natural)
            pairs += [(made.probabilities(one.reading), one.answer) for one in tried_on]
        return _score(candidate.name, candidate.questions, pairs)

    decisions = [
        (reader.decide(rubric, train[place].reading).probabilities, train[place].answer)
        for _, outside in folds
        for place in outside
        if train[place].natural
    ]
    yield None, _score("as it stands", reader.wanted(rubric), decisions)
    yield from _candidates(train, answers, tried)


def _of_states(
    train: Sequence[Read],
    answers: Sequence[str],
    folds: Sequence[tuple[list[int], list[int]]],
    questions: tuple[int, ...],
) -> Iterator[tuple[Way, Tried]]:
    """Every probe, with the features of these questions beside the state."""
    places = [place for _, outside in folds for place in outside if train[place].natural]
    for choice, shares in probes.choices(_examples(train, answers, questions), folds):
        rows = ((dict(zip(answers, shares[n], strict=True)), train[n].answer) for n in places)
        yield _Probing(choice), _score(choice.name, questions, list(rows))


def _folds(train: Sequence[Read], answers: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """Places to fit to and to try on; the items of a group are on one side."""
    from sklearn.model_selection import StratifiedGroupKFold

    y, groups = [one.answer for one in train], [one.group for one in train]
    if len(set(groups)) < FOLDS:
        return []
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    return [
        (inside.tolist(), outside.tolist())
        for inside, outside in splitter.split([[0]] * len(y), y, groups)
        if len(outside) and len({y[place] for place in inside if train[place].natural}) == answers
    ]


def _candidates(
    train: Sequence[Read], answers: Sequence[str], tried: Callable[[_Candidate], Tried]
) -> Iterator[tuple[_Candidate, Tried]]:
    """Each question by itself, then sets that grow by the question that helps most."""
    questions = sorted(train[0].chances)
    single: dict[int, float] = {}
    for question in questions:
        two = len(train[0].chances[question]) == 2 and len(answers) == 2
        name = "platt" if two else "logistic"
        made = [_Candidate(name, (question,), strength) for strength in STRENGTHS]
        for candidate in [*made, _Candidate("isotonic", (question,))] if two else made:
            score = tried(candidate)
            single[question] = min(score.log_loss, single.get(question, math.inf))
            yield candidate, score
    chosen: tuple[int, ...] = (min(single, key=lambda q: single[q]),)
    while len(chosen) < len(questions):
        grown = [(*chosen, question) for question in questions if question not in chosen]
        chosen = min(grown, key=lambda some: tried(_Candidate("logistic", some, 0.1)).log_loss)
        for strength in STRENGTHS:
            candidate = _Candidate("logistic", tuple(sorted(chosen)), strength)
            yield candidate, tried(candidate)


def _score(
    name: str, questions: tuple[int, ...], pairs: Sequence[tuple[Mapping[str, float], str]]
) -> Tried:
    losses = [-math.log(max(found.get(true, 0.0), LEAST_CHANCE)) for found, true in pairs]
    right = [max(found, key=lambda a: found[a]) == true for found, true in pairs]
    return Tried(name, questions, sum(losses) / len(losses), sum(right) / len(right))


def _logistic(part: Sequence[Read], candidate: _Candidate, answers: Sequence[str]) -> Logistic:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    x = np.array([[f for q in candidate.questions for f in features(r.chances[q])] for r in part])
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0] = 1.0
    model = LogisticRegression(C=candidate.strength, max_iter=5000)
    model.fit((x - mean) / spread, [one.answer for one in part])
    weights, intercepts = model.coef_, model.intercept_
    if len(answers) == 2:
        # scikit-learn gives two classes one row, for the second of them.
        weights = np.vstack([-weights / 2, weights / 2])
        intercepts = np.concatenate([-intercepts / 2, intercepts / 2])
    order = [list(model.classes_).index(answer) for answer in answers]
    weights = weights[order] / spread
    intercepts = intercepts[order] - weights @ mean
    return Logistic(
        questions=candidate.questions,
        answers=tuple(answers),
        weights=tuple(tuple(round(float(w), 6) for w in row) for row in weights),
        intercepts=tuple(round(float(b), 6) for b in intercepts),
    )


def _isotonic(part: Sequence[Read], question: int, answers: Sequence[str]) -> Isotonic:
    from sklearn.isotonic import IsotonicRegression

    x = [one.chances[question][0] for one in part]
    y = [float(one.answer == answers[0]) for one in part]
    model = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    xs = [round(float(corner), 6) for corner in model.X_thresholds_]
    ys = [round(float(corner), 6) for corner in model.y_thresholds_]
    return Isotonic(
        questions=(question,), answers=(answers[0], answers[1]), xs=tuple(xs), ys=tuple(ys)
    )

"""Classifiers of what a judge reads that predict the labels: fitted, and chosen.

Candidates are the rubric's own decision list, regularised multinomial logistic models of one or
several first-token questions (of one with two words: Platt scaling), and, where hidden states were
read, probes of these, alone and with the questions that did best beside them. The one with the
least log loss in cross-validation over the training part is taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from judge.calibration import probes
from judge.calibration.probes import Fold, ProbeWay
from judge.calibration.training import Training, TrainingItem, regression
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import LEAST_CHANCE, Classifier, Logistic
from judge.rubric import Rubric

LEAST_ITEMS = 30
"""Fewest training items that anything is fitted to."""

LEAST_OF_A_CLASS = 5
"""Fewest training items of each answer, so that every fold can have one."""

FOLDS = 5
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the ridge penalty, on features of unit variance."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate, and how it did in cross-validation: mean log loss in nats, accuracy (0 to 1)."""

    name: str
    questions: tuple[int, ...]
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The classifier taken (None: the decision list as it stands), and all that was tried.

    `reason` says why nothing was fitted, where nothing was; `way` is how to fit the same anew.
    """

    classifier: Classifier | None = None
    how: str = "as it stands"
    tried: tuple[Tried, ...] = ()
    items: int = 0
    reason: str | None = None
    way: TokenWay | ProbeWay | None = None

    def again(self, train: Sequence[TrainingItem]) -> Classifier | None:
        """What was taken, fitted to other items: None where they have fewer answers or nothing was
        fitted."""
        if self.classifier is None or self.way is None:
            return None
        answers = self.classifier.answers
        if {one.answer for one in train if one.natural} != set(answers):
            return None
        return self.way.fitted(Training([one for one in train if one.answer in answers], answers))


def fit(
    rubric: Rubric, reader: AnswerReader, train: Sequence[TrainingItem], *, seed: int = 0
) -> Fit:
    """The best classifier for these items.

    Without a classifier where there are too few items (`LEAST_ITEMS`), too few of an answer
    (`LEAST_OF_A_CLASS`) or of records, with the reason, and where the decision list, read by
    `reader`, does best.
    """
    counts = Counter(one.answer for one in train if one.natural)
    items, answers = counts.total(), tuple(a for a in rubric.answers if counts[a])
    if items < LEAST_ITEMS:
        return Fit(items=items, reason=f"{items} items to fit to; {LEAST_ITEMS} wanted")
    if len(answers) < 2 or min(counts[a] for a in answers) < LEAST_OF_A_CLASS:
        told = ", ".join(f"{counts[a]} {a}" for a in rubric.answers)
        reason = f"each answer needs {LEAST_OF_A_CLASS} items to fit to; there are {told}"
        return Fit(items=items, reason=reason)
    # An answer that no record has as it is cannot be learnt from swapped ones alone.
    known = Training([one for one in train if one.answer in answers], answers)
    folds = _folds(known, seed)
    if not folds:
        reason = "the answers are not spread over enough records to fit to some and try on others"
        return Fit(items=items, reason=reason)
    found: list[tuple[TokenWay | ProbeWay | None, Tried]] = []
    if all(one.observation.chances for one in known.reads):
        found.append((None, _as_it_stands(rubric, reader, known, folds)))
        found += _of_tokens(known, folds)
    if all(one.observation.state is not None for one in known.reads):
        best = min((tried for _, tried in found), key=lambda one: one.log_loss, default=None)
        for questions in dict.fromkeys(((), best.questions if best else ())):
            found += _of_states(known, folds, questions)
    if not found:
        return Fit(items=items, reason="nothing was read that differs between items")
    way, taken = min(found, key=lambda pair: pair[1].log_loss)
    classifier = None if way is None else way.fitted(known)
    return Fit(classifier, taken.name, tuple(score for _, score in found), items, way=way)


def _folds(train: Training, seed: int) -> list[Fold]:
    """Places to fit to and to try on; the items of a group are on one side, and every answer is
    among those to fit to."""
    y, groups = [one.answer for one in train.reads], [one.group for one in train.reads]
    if len(set(groups)) < FOLDS:
        return []
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(y, y, groups)
    return [
        (inside.tolist(), outside.tolist())
        for inside, outside in folds
        if len(outside) and {y[n] for n in inside if train.reads[n].natural} == set(train.answers)
    ]


Told = tuple[Mapping[str, float], str]
"""The probabilities given to an item's answers, and the answer that is right."""


def _score(name: str, questions: tuple[int, ...], pairs: Sequence[Told]) -> Tried:
    losses = [-math.log(max(found.get(true, 0.0), LEAST_CHANCE)) for found, true in pairs]
    right = [max(found, key=lambda a: found[a]) == true for found, true in pairs]
    return Tried(name, questions, sum(losses) / len(losses), sum(right) / len(right))


def _tried_on(train: Training, places: Sequence[int]) -> list[TrainingItem]:
    return [train.reads[place] for place in places if train.reads[place].natural]


def _as_it_stands(
    rubric: Rubric, reader: AnswerReader, train: Training, folds: Sequence[Fold]
) -> Tried:
    read = [one for _, outside in folds for one in _tried_on(train, outside)]
    pairs = [(reader.decide(rubric, one.observation).probabilities, one.answer) for one in read]
    return _score("as it stands", reader.questions(rubric), pairs)


def _of_states(
    train: Training, folds: Sequence[Fold], questions: tuple[int, ...]
) -> Iterator[tuple[ProbeWay, Tried]]:
    """Every probe, with the features of these questions beside the state."""
    places = [n for _, outside in folds for n in outside if train.reads[n].natural]
    for way, shares in probes.ways(train, folds, questions):
        rows = (dict(zip(train.answers, map(float, shares[n]), strict=True)) for n in places)
        pairs = [(row, train.reads[n].answer) for row, n in zip(rows, places, strict=True)]
        yield way, _score(way.name, questions, pairs)


# ---------------------------------------------------------------- first tokens


@dataclass(frozen=True, slots=True)
class TokenWay:
    """Logistic regression over the features of some questions, with a ridge penalty."""

    questions: tuple[int, ...]
    strength: float

    name = "logistic"

    def fitted(self, train: Training) -> Logistic:
        """The classifier, fitted to the items as they are."""
        natural = Training([one for one in train.reads if one.natural], train.answers)
        x = natural.tokens(self.questions)
        mean, spread = x.mean(axis=0), x.std(axis=0)
        spread[spread == 0] = 1.0
        weights, intercepts = regression((x - mean) / spread, natural.truth, self.strength)
        weights = np.pad(weights / spread, ((1, 0), (0, 0)))
        intercepts = np.pad(intercepts, (1, 0)) - weights @ mean
        return Logistic(
            questions=self.questions,
            answers=train.answers,
            weights=tuple(tuple(row) for row in weights.round(6).tolist()),
            intercepts=tuple(intercepts.round(6).tolist()),
        )

    def tried(self, train: Training, folds: Sequence[Fold]) -> Tried:
        pairs: list[Told] = []
        for inside, outside in folds:
            made = self.fitted(train.part(inside))
            read = _tried_on(train, outside)
            pairs += [(made.probabilities(one.observation), one.answer) for one in read]
        return _score(self.name, self.questions, pairs)


def _of_tokens(train: Training, folds: Sequence[Fold]) -> Iterator[tuple[TokenWay, Tried]]:
    """Each question by itself, then sets that grow by the question that helps most."""
    questions = sorted(train.reads[0].observation.chances)
    single: dict[int, float] = {}
    for question in questions:
        for strength in STRENGTHS:
            way = TokenWay((question,), strength)
            score = way.tried(train, folds)
            single[question] = min(score.log_loss, single.get(question, math.inf))
            yield way, score
    chosen: tuple[int, ...] = (min(single, key=lambda question: single[question]),)
    while len(chosen) < len(questions):
        grown = [TokenWay((*chosen, q), 0.1) for q in questions if q not in chosen]
        chosen = min(grown, key=lambda way: way.tried(train, folds).log_loss).questions
        for strength in STRENGTHS:
            way = TokenWay(tuple(sorted(chosen)), strength)
            yield way, way.tried(train, folds)

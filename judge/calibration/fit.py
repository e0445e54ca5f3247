"""Classifiers of what a judge reads that predict the labels: fitted, and chosen.

Candidates are the rubric's own decision list, regularised multinomial logistic models of one or
several first-token questions (of one with two words: Platt scaling), and, where hidden states were
read, probes of these, alone and with the questions that did best beside them. The one with the
least log loss in cross-validation over the training part is taken.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from judge.calibration import probe
from judge.calibration.probe import Fold, ProbeWay, Training, TrainingItem, regression
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import MIN_CHANCE, Classifier, Logistic
from judge.questions.rubric import Rubric

MIN_ITEMS = 30
"""Fewest training items that anything is fitted to."""

MIN_OF_AN_ANSWER = 5
"""Fewest training items of each answer, so that every fold can have one."""

FOLDS = 5

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the ridge penalty, on features of unit variance."""


@dataclass(frozen=True, slots=True)
class Candidate:
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
    tried: tuple[Candidate, ...] = ()
    items: int = 0
    reason: str | None = None
    way: TokenWay | ProbeWay | None = None

    def again(self, train: Sequence[TrainingItem]) -> Classifier | None:
        """What was taken, fitted to other items: None where they have fewer answers or nothing was
        fitted."""
        if self.classifier is None or self.way is None:
            return None
        answers = self.classifier.answers
        if {item.answer for item in train if item.natural} != set(answers):
            return None
        return self.way.fitted(
            Training([item for item in train if item.answer in answers], answers)
        )


def fit(
    rubric: Rubric, reader: AnswerReader, train: Sequence[TrainingItem], *, seed: int = 0
) -> Fit:
    """The best classifier for these items.

    Without a classifier where there are too few items (`MIN_ITEMS`), too few of an answer
    (`MIN_OF_AN_ANSWER`) or of records, with the reason, and where the decision list, read by
    `reader`, does best.
    """
    counts = Counter(item.answer for item in train if item.natural)
    items, answers = counts.total(), tuple(a for a in rubric.answers if counts[a])
    if items < MIN_ITEMS:
        return Fit(items=items, reason=f"{items} items to fit to, fewer than {MIN_ITEMS}")
    if len(answers) < 2 or min(counts[a] for a in answers) < MIN_OF_AN_ANSWER:
        numbers = ", ".join(f"{counts[a]} {a}" for a in rubric.answers)
        reason = f"each answer needs {MIN_OF_AN_ANSWER} items to fit to; there are {numbers}"
        return Fit(items=items, reason=reason)
    # An answer that no record has as it is cannot be learnt from swapped ones alone.
    training = Training([item for item in train if item.answer in answers], answers)
    folds = _folds(training, seed)
    if not folds:
        reason = "too few records have each answer for cross-validation"
        return Fit(items=items, reason=reason)
    candidates: list[tuple[TokenWay | ProbeWay | None, Candidate]] = []
    if all(item.observation.chances for item in training.reads):
        candidates.append((None, _as_it_stands(rubric, reader, training, folds)))
        candidates += _of_tokens(training, folds)
    if all(item.observation.state is not None for item in training.reads):
        best = min(
            (candidate for _, candidate in candidates),
            key=lambda candidate: candidate.log_loss,
            default=None,
        )
        for questions in dict.fromkeys(((), best.questions if best else ())):
            candidates += _of_states(training, folds, questions)
    if not candidates:
        return Fit(items=items, reason="the model answers every item alike")
    way, best_candidate = min(candidates, key=lambda pair: pair[1].log_loss)
    classifier = None if way is None else way.fitted(training)
    return Fit(
        classifier, best_candidate.name, tuple(score for _, score in candidates), items, way=way
    )


def _folds(train: Training, seed: int) -> list[Fold]:
    """Places to fit to and to try on; the items of a group are on one side, and every answer is
    among those to fit to."""
    y, groups = [item.answer for item in train.reads], [item.group for item in train.reads]
    if len(set(groups)) < FOLDS:
        return []
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(y, y, groups)
    return [
        (inside.tolist(), outside.tolist())
        for inside, outside in folds
        if len(outside) and {y[n] for n in inside if train.reads[n].natural} == set(train.answers)
    ]


ScoredAnswer = tuple[Mapping[str, float], str]
"""The probabilities given to an item's answers, and the answer that is right."""


def _score(name: str, questions: tuple[int, ...], pairs: Sequence[ScoredAnswer]) -> Candidate:
    losses = [
        -math.log(max(probabilities.get(true, 0.0), MIN_CHANCE)) for probabilities, true in pairs
    ]
    right = [
        max(probabilities, key=lambda a: probabilities[a]) == true for probabilities, true in pairs
    ]
    return Candidate(name, questions, sum(losses) / len(losses), sum(right) / len(right))


def _tried_on(train: Training, places: Sequence[int]) -> list[TrainingItem]:
    return [train.reads[place] for place in places if train.reads[place].natural]


def _as_it_stands(
    rubric: Rubric, reader: AnswerReader, train: Training, folds: Sequence[Fold]
) -> Candidate:
    items = [item for _, outside in folds for item in _tried_on(train, outside)]
    pairs = [(reader.decide(rubric, item.observation).probabilities, item.answer) for item in items]
    return _score("as it stands", reader.questions(rubric), pairs)


def _of_states(
    train: Training, folds: Sequence[Fold], questions: tuple[int, ...]
) -> Iterator[tuple[ProbeWay, Candidate]]:
    """Every probe, with the features of these questions beside the state."""
    places = [n for _, outside in folds for n in outside if train.reads[n].natural]
    for way, shares in probe.ways(train, folds, questions):
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
        natural = Training([item for item in train.reads if item.natural], train.answers)
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

    def tried(self, train: Training, folds: Sequence[Fold]) -> Candidate:
        pairs: list[ScoredAnswer] = []
        for inside, outside in folds:
            classifier = self.fitted(train.part(inside))
            items = _tried_on(train, outside)
            pairs += [(classifier.probabilities(item.observation), item.answer) for item in items]
        return _score(self.name, self.questions, pairs)


def _of_tokens(train: Training, folds: Sequence[Fold]) -> Iterator[tuple[TokenWay, Candidate]]:
    """Each question by itself, then sets that grow by the question that helps most."""
    questions = sorted(train.reads[0].observation.chances)
    single: dict[int, float] = {}
    for question in questions:
        for strength in STRENGTHS:
            way = TokenWay((question,), strength)
            score = way.tried(train, folds)
            single[question] = min(score.log_loss, single.get(question, math.inf))
            yield way, score
    best: tuple[int, ...] = (min(single, key=lambda question: single[question]),)
    while len(best) < len(questions):
        grown = [TokenWay((*best, q), 0.1) for q in questions if q not in best]
        best = min(grown, key=lambda way: way.tried(train, folds).log_loss).questions
        for strength in STRENGTHS:
            way = TokenWay(tuple(sorted(best)), strength)
            yield way, way.tried(train, folds)


# ---------------------------------------------------------------- with fewer labels


_DRAWS = 5
"""Draws of each size; the curve has their mean."""


_MIN_POINTS = 3
"""Fewest sizes from which more labels are guessed at."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Kappa with so many labels to fit to: the mean over so many draws of them."""

    labels: int
    kappa: float
    draws: int


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Kappa by number of labels, rising; `next` is what twice as many would bring: a guess, of half
    of what the last doubling brought."""

    points: tuple[CurvePoint, ...]
    next: CurvePoint | None = None

    def summary(self) -> str:
        """The curve in one line."""
        kappas = ", ".join(f"{point.kappa:.2f} with {point.labels}" for point in self.points)
        if self.next is None:
            return f"kappa by labels fitted to: {kappas}"
        labels = self.next.labels - self.points[-1].labels
        guess = f"with {labels} more labels to fit to about {self.next.kappa:.2f}"
        return f"kappa by labels fitted to: {kappas}; {guess}"


def curve(
    fit: Fit,
    train: Sequence[TrainingItem],
    kappa: Callable[[Classifier], float | None],
    *,
    seed: int = 0,
) -> LearningCurve | None:
    """The curve of what was fitted; None where nothing was, or there are too few labels for it.

    Args:
        train: what was fitted to; a smaller size takes whole groups of it.
        kappa: a classifier's agreement on items that nothing was fitted to.
    """
    if fit.classifier is None:
        return None
    whole, size = sum(item.natural for item in train), MIN_ITEMS
    points: list[CurvePoint] = []
    while size < whole / 1.2:
        classifiers = [
            fit.again(_drawn(train, size, f"{seed}\n{size}\n{n}")) for n in range(_DRAWS)
        ]
        values = [
            agreed
            for classifier in classifiers
            if classifier and (agreed := kappa(classifier)) is not None
        ]
        if values:
            points.append(CurvePoint(size, sum(values) / len(values), len(values)))
        size *= 2
    if size == MIN_ITEMS:
        return None
    if (best := kappa(fit.classifier)) is not None:
        points.append(CurvePoint(whole, best, 1))
    if not points:
        return None
    return LearningCurve(tuple(points), _next(points) if len(points) >= _MIN_POINTS else None)


def _drawn(train: Sequence[TrainingItem], size: int, seed: str) -> list[TrainingItem]:
    """Whole groups drawn at random, until they hold so many labels."""
    groups: dict[str, list[TrainingItem]] = {}
    for item in train:
        groups.setdefault(item.group, []).append(item)
    names = sorted(groups)
    random.Random(seed).shuffle(names)
    part: list[TrainingItem] = []
    for name in names:
        if sum(item.natural for item in part) < size:
            part += groups[name]
    return part


def _next(points: Sequence[CurvePoint]) -> CurvePoint:
    before, last = points[-2:]
    doublings = math.log2(last.labels / before.labels)
    gain = max(0.0, last.kappa - before.kappa) / doublings
    return CurvePoint(2 * last.labels, min(1.0, last.kappa + gain / 2), 0)

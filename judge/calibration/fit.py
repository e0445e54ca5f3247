"""Fits and selects the classifier that predicts the labels from a judge's readings.

Candidates are the rubric's own decision list, regularised multinomial logistic models of one or
several first-token questions (for one with two words: Platt scaling), and, if hidden states were
read, probes of these, alone and with the best questions beside them. The candidate with the least
log loss in cross-validation over the training part is selected.
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
"""Fewest training items for a fit."""

MIN_OF_AN_ANSWER = 5
"""Fewest training items of each answer, so that every fold can have one."""

FOLDS = 5

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the ridge penalty, on features of unit variance."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate and its cross-validation: mean log loss in nats, accuracy (0 to 1)."""

    name: str
    questions: tuple[int, ...]
    log_loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The selected classifier (None: the decision list, unfitted), and every candidate.

    `reason` says why nothing was fitted, if so; `way` can fit the same classifier to other items.
    """

    classifier: Classifier | None = None
    how: str = "as it stands"
    tried: tuple[Candidate, ...] = ()
    items: int = 0
    reason: str | None = None
    way: TokenWay | ProbeWay | None = None


def fit(
    rubric: Rubric, reader: AnswerReader, train: Sequence[TrainingItem], *, seed: int = 0
) -> Fit:
    """The best classifier for these items.

    There is none, with the reason, if there are too few items (`MIN_ITEMS`), items of an answer
    (`MIN_OF_AN_ANSWER`) or records; and none if the decision list, read by `reader`, is best.
    """
    counts = Counter(item.answer for item in train if item.natural)
    items, answers = counts.total(), tuple(a for a in rubric.answers if counts[a])
    if items < MIN_ITEMS:
        return Fit(items=items, reason=f"{items} items to fit to, fewer than {MIN_ITEMS}")
    if len(answers) < 2 or min(counts[a] for a in answers) < MIN_OF_AN_ANSWER:
        numbers = ", ".join(f"{counts[a]} {a}" for a in rubric.answers)
        reason = f"each answer needs {MIN_OF_AN_ANSWER} items to fit to; there are {numbers}"
        return Fit(items=items, reason=reason)
    # An answer that no natural record has cannot be learnt from swapped records alone.
    training = Training([item for item in train if item.answer in answers], answers)
    folds = _folds(training, seed)
    if not folds:
        reason = "too few records have each answer for cross-validation"
        return Fit(items=items, reason=reason)
    candidates: list[tuple[TokenWay | ProbeWay | None, Candidate]] = []
    if all(item.observation.chances for item in training.reads):
        if all(reader.complete(rubric, item.observation) for item in training.reads):
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
    """Indices to fit to and to test on.

    The items of a group are on one side, and the items to fit to have every answer.
    """
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
"""The predicted probabilities of an item's answers, and the right answer."""


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
    """Every probe of the state and the features of these questions."""
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
        """The classifier, fitted to the natural items."""
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
    """Each question alone, then sets that grow by the question that helps most."""
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
"""Draws of each size. The curve shows their mean."""


_MIN_POINTS = 3
"""Fewest sizes from which the curve is extrapolated."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Kappa (of scores weighted) when fitted to `labels` labels: the mean over `draws` draws."""

    labels: int
    kappa: float
    draws: int


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Kappa by number of labels, rising.

    `next` extrapolates to twice as many labels, by half of the gain of the last doubling.
    """

    points: tuple[CurvePoint, ...]
    next: CurvePoint | None = None

    def summary(self, measure: str = "kappa") -> str:
        """The curve in one line; `measure` names what its points are."""
        kappas = ", ".join(f"{point.kappa:.2f} with {point.labels}" for point in self.points)
        if self.next is None:
            return f"{measure} by labels fitted to: {kappas}"
        labels = self.next.labels - self.points[-1].labels
        guess = f"with {labels} more labels to fit to about {self.next.kappa:.2f}"
        return f"{measure} by labels fitted to: {kappas}; {guess}"


def curve(
    fit: Fit,
    train: Sequence[TrainingItem],
    kappa: Callable[[Classifier], float | None],
    *,
    seed: int = 0,
) -> LearningCurve | None:
    """The learning curve of a fit; None if nothing was fitted, or there are too few labels.

    Args:
        train: the items of the fit; a smaller size takes whole groups of them.
        kappa: gives a classifier's agreement on held-out items.
    """
    if fit.classifier is None or fit.way is None:
        return None
    answers = fit.classifier.answers
    whole, size = sum(item.natural for item in train), MIN_ITEMS
    points: list[CurvePoint] = []
    while size < whole / 1.2:
        values = []
        for n in range(_DRAWS):
            items = _drawn(train, size, f"{seed}\n{size}\n{n}")
            if {item.answer for item in items if item.natural} == {*answers}:
                part = Training([item for item in items if item.answer in answers], answers)
                if (agreed := kappa(fit.way.fitted(part))) is not None:
                    values.append(agreed)
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
    """Whole groups, drawn at random until they have at least `size` labels."""
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

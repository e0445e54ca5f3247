"""Combinations are fitted only if the data allow it, and the right kind is chosen."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from judge.calibration.fit import MIN_ITEMS, CurvePoint, Fit, LearningCurve, TokenWay, fit
from judge.calibration.probe import Training, TrainingItem
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Chances, Logistic, Observation, features
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric

from .asking import MANY, PLAIN


def sigmoid(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def two(chance: float) -> Chances:
    return (chance, 1 - chance)


def reads(
    seed: int, items: int, make: Callable[[random.Random, str], dict[int, Chances]]
) -> list[TrainingItem]:
    """The same number of items for each answer, with the judge's readings."""
    rng = random.Random(seed)
    answers = ["yes", "no"] * (items // 2)
    return [
        TrainingItem(Observation(make(rng, answer)), answer, f"r{n}")
        for n, answer in enumerate(answers)
    ]


def fitted(train: Sequence[TrainingItem], rubric: Rubric = PLAIN) -> Fit:
    return fit(rubric, AnswerReader(), train)


def truth(seed: int, items: int, chance: Callable[[float], float]) -> list[TrainingItem]:
    """One question whose P(yes) x is drawn evenly; the answer is yes with `chance(x)`."""
    rng = random.Random(seed)
    found = []
    for number in range(items):
        x = rng.uniform(0.02, 0.98)
        answer = "yes" if rng.random() < chance(x) else "no"
        found.append(TrainingItem(Observation({0: two(x)}), answer, f"r{number}"))
    return found


# ---------------------------------------------------------------- the right kind


def test_a_calibrated_judge_is_left_as_it_stands() -> None:
    found = fitted(truth(1, 400, lambda x: x))
    assert (found.classifier, found.how, found.reason) == (None, "as it stands", None)
    assert found.items == 400


def test_platt_scaling_where_the_log_odds_are_shifted_and_stretched() -> None:
    """A known line in the log-odds: the fit finds its slope and intercept again."""
    found = fitted(truth(2, 1500, lambda x: sigmoid(2.0 * features(two(x))[0] - 3.0)))
    assert isinstance(found.classifier, Logistic)
    (yes, no), intercepts = found.classifier.weights, found.classifier.intercepts
    assert no[0] - yes[0] == pytest.approx(-2.0, rel=0.2)
    assert intercepts[0] - intercepts[1] == pytest.approx(-3.0, rel=0.2)


@pytest.mark.slow
def test_several_questions_where_each_tells_half() -> None:
    """Yes only where questions 2 and 3 both say so; 0 and 4 are noise, 1 has three words."""

    def make(rng: random.Random, answer: str) -> dict[int, Chances]:
        says = {"yes": [True, True], "no": rng.choice([[True, False], [False, True]])}[answer]
        noisy = [rng.uniform(0.8, 0.95) if one else rng.uniform(0.05, 0.2) for one in says]
        noise = [rng.uniform(0.1, 0.9) for _ in range(2)]
        return {
            0: two(noise[0]),
            1: (0.3, 0.3, 0.4),
            2: two(noisy[0]),
            3: two(noisy[1]),
            4: two(noise[1]),
        }

    train = reads(4, 80, make)
    found = fitted(train, MANY)
    assert found.how == "logistic"
    assert isinstance(found.classifier, Logistic)
    assert {2, 3} <= set(found.classifier.questions)
    for one in reads(5, 60, make):
        assert found.classifier.probabilities(one.observation)[one.answer] > 0.6


BOTH = truth(7, 300, lambda x: sigmoid(2.0 * features(two(x))[0] - 3.0))


# ---------------------------------------------------------------- how it is chosen


def test_a_question_that_no_reply_answers_leaves_the_fit_to_the_others() -> None:
    """As it stands, the judge then answers no item."""

    def second(rng: random.Random, answer: str) -> dict[int, Chances]:
        return {1: two(rng.uniform(0.5, 0.9) if answer == "yes" else rng.uniform(0.1, 0.5))}

    found = fitted(reads(6, 200, second), MANY)
    assert isinstance(found.classifier, Logistic)
    assert found.classifier.questions == (1,)
    assert "as it stands" not in [one.name for one in found.tried]


def test_folds_keep_the_items_of_a_record_together() -> None:
    """Noise, four times over: a fold that splits a record knows its answers."""
    rng = random.Random(9)
    once = [
        TrainingItem(
            answer=rng.choice(["yes", "no"]),
            group=f"r{n}",
            observation=Observation(state=tuple(rng.gauss(0, 1) for _ in range(60))),
        )
        for n in range(40)
    ]
    copies = [replace(one, group=f"{one.group}.{n}") for n in range(4) for one in once]
    apart, split = (
        max(one.accuracy for one in fitted(train).tried) for train in (once * 4, copies)
    )
    assert apart < 0.75 and split > 0.85


# ---------------------------------------------------------------- too little


def test_too_few_items() -> None:
    found = fitted(BOTH[: MIN_ITEMS - 1])
    assert (found.classifier, found.tried) == (None, ())
    assert found.reason == f"{MIN_ITEMS - 1} items to fit to, fewer than {MIN_ITEMS}"
    assert fitted([]).reason == f"0 items to fit to, fewer than {MIN_ITEMS}"


@pytest.mark.parametrize("records", [1, 2, 4])
def test_records_that_cannot_be_told_apart(records: int) -> None:
    """A handful of long stories: fewer than there are folds."""
    train = [
        replace(one, answer="yes" if n < 150 else "no", group=f"r{n * records // 300}")
        for n, one in enumerate(BOTH)
    ]
    found = fitted(train)
    assert found.classifier is None
    assert found.reason is not None
    assert "records" in found.reason


# ---------------------------------------------------------------- against scikit-learn


def test_weights_give_scikit_learns_probabilities_of_three_answers() -> None:
    rng = np.random.default_rng(1)
    rubric = builtin()["label_correctness"]
    spread = rng.dirichlet([1, 1, 1], size=120)
    answers = [rubric.answers[int(place)] for place in spread.argmax(axis=1)]
    train = [
        TrainingItem(Observation({0: tuple(map(float, row)), 1: two(0.3)}), answer, f"r{n}")
        for n, (row, answer) in enumerate(zip(spread, answers, strict=True))
    ]
    way = TokenWay((0, 1), 0.3)
    made = way.fitted(Training(train, rubric.answers))
    x = np.array(
        [
            [*features(one.observation.chances[0]), *features(one.observation.chances[1])]
            for one in train
        ]
    )
    spread_x = x.std(axis=0)
    spread_x[spread_x == 0] = 1
    model = LogisticRegression(C=0.3, max_iter=5000).fit((x - x.mean(axis=0)) / spread_x, answers)
    theirs = model.predict_proba((x - x.mean(axis=0)) / spread_x)
    for one, row in zip(train, theirs, strict=True):
        mine = made.probabilities(one.observation)
        for name, chance in zip(model.classes_, row, strict=True):
            assert mine[name] == pytest.approx(chance, abs=1e-4)


def test_a_learning_curve_in_words() -> None:
    points = (CurvePoint(15, 0.4, 20), CurvePoint(30, 0.5, 10))
    told = "kappa by labels fitted to: 0.40 with 15, 0.50 with 30"
    assert LearningCurve(points).summary() == told
    more = LearningCurve(points, CurvePoint(60, 0.55, 0)).summary()
    assert more == f"{told}; with 30 more labels to fit to about 0.55"

"""Classifiers: worked by hand, compared with scikit-learn, and at their limits."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from judge.judging.classifiers import Classifier, Logistic, Observation


def two(p: float) -> tuple[float, float]:
    return (p, 1 - p)


# ---------------------------------------------------------------- logistic


def test_two_questions_and_three_answers_worked_by_hand() -> None:
    # Question 1 weighs on yes alone, question 4 (three words) on no by its second word alone.
    made = Logistic(
        questions=(1, 4),
        answers=("yes", "no", "neutral"),
        weights=((1, 0, 0, 0), (0, 0, 3, 0), (0, 0, 0, 0)),
        intercepts=(0, 0, math.log(2)),
    )
    # logit(0.75) = log 3; the centred logarithms of (1, 8, 1) / 10 have 2/3 of log 8 in the middle
    read = {1: two(0.75), 4: (0.1, 0.8, 0.1)}
    parts = {"yes": 3.0, "no": math.exp(3 * 2 / 3 * math.log(8)), "neutral": 2.0}
    assert parts["no"] == pytest.approx(64)
    expected = {answer: part / 69 for answer, part in parts.items()}
    assert made.probabilities(Observation(read)) == pytest.approx(expected)


# ---------------------------------------------------------------- as JSON


PLATT: dict[str, Any] = {
    "kind": "logistic",
    "questions": [0],
    "answers": ["yes", "no"],
    "weights": [[0.5], [-0.5]],
    "intercepts": [0, 0],
}


@pytest.mark.parametrize(
    ("base", "change", "message"),
    [
        (PLATT, {"weights": [[0.5]]}, "one row for each answer"),
        (PLATT, {"weights": [[0.5], [0.5, 1]]}, "one row for each answer"),
        (PLATT, {"intercepts": [0]}, "give one for each answer"),
        (PLATT, {"weights": [[math.inf], [0]]}, "should be a finite number"),
    ],
)
def test_what_is_no_classifier(base: dict[str, Any], change: dict[str, Any], message: str) -> None:
    kept = TypeAdapter[Any](Classifier)
    kept.validate_json(json.dumps(base))
    with pytest.raises(ValidationError, match=message):
        kept.validate_json(json.dumps({**base, **change}))

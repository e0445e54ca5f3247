"""Combinations: worked by hand, held against scikit-learn, and at their limits."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from judge.judging.reading import Combination, Isotonic, Logistic, features

chance = st.floats(0, 1)
weight = st.floats(-20, 20)


def two(p: float) -> tuple[float, float]:
    return (p, 1 - p)


# ---------------------------------------------------------------- features


@pytest.mark.parametrize(
    ("chances", "expected"),
    [
        ((0.5, 0.5), [0.0]),
        ((0.8, 0.2), [math.log(4)]),
        ((0.2, 0.8), [-math.log(4)]),
        # a third each: nothing to tell
        ((1 / 3, 1 / 3, 1 / 3), [0.0, 0.0, 0.0]),
        # logarithms of 4, 1 and 1 parts in six; their mean is log(4) / 3 above log(1/6)
        ((4 / 6, 1 / 6, 1 / 6), [math.log(4) * 2 / 3, -math.log(4) / 3, -math.log(4) / 3]),
    ],
)
def test_features_worked_by_hand(chances: Sequence[float], expected: list[float]) -> None:
    assert features(chances) == pytest.approx(expected)


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
    assert made.probabilities(read) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_scikit_learns_predict_proba(classes: int) -> None:
    np = pytest.importorskip("numpy")
    linear = pytest.importorskip("sklearn.linear_model")
    drawn = np.random.default_rng(5)
    first = drawn.uniform(0.01, 0.99, 120)
    second = drawn.dirichlet((1, 1, 1), 120)
    reads = [
        {0: two(p), 3: tuple(map(float, q))} for p, q in zip(first.tolist(), second, strict=True)
    ]
    x = np.array([[*features(read[0]), *features(read[3])] for read in reads])
    noise = drawn.normal(size=(120, classes))
    names = np.array(["entailment", "neutral", "contradiction"][:classes])
    y = names[np.argmax(x[:, :classes] + noise, axis=1)]
    model = linear.LogisticRegression(max_iter=5000).fit(x, y)
    weights, intercepts = model.coef_, model.intercept_
    if classes == 2:  # one row, for the second class; the first scores 0
        weights, intercepts = np.vstack([0 * weights, weights]), np.array([0, intercepts[0]])
    ours = Logistic(
        questions=(0, 3),
        answers=tuple(model.classes_),
        weights=tuple(map(tuple, weights.tolist())),
        intercepts=tuple(intercepts.tolist()),
    )
    for read, theirs in zip(reads, model.predict_proba(x), strict=True):
        found = ours.probabilities(read)
        assert [found[name] for name in model.classes_] == pytest.approx(list(theirs))


# ---------------------------------------------------------------- isotonic


STEPS = Isotonic(
    questions=(1,), answers=("yes", "no"), xs=(0.2, 0.4, 0.4, 0.8), ys=(0.1, 0.3, 0.5, 0.9)
)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (0.0, 0.1),  # level below the first corner
        (0.2, 0.1),
        (0.3, 0.2),  # half way along 0.1 to 0.3
        (0.39999999999999997, 0.3),
        (0.4, 0.5),  # a jump counts from where it stands
        (0.5, 0.6),  # a quarter of the way along 0.5 to 0.9
        (0.8, 0.9),
        (1.0, 0.9),  # level above the last
    ],
)
def test_isotonic_corners_worked_by_hand(x: float, expected: float) -> None:
    found = STEPS.probabilities({1: two(x), 0: two(0.99)})
    assert found == pytest.approx({"yes": expected, "no": 1 - expected})


def test_it_is_scikit_learns_isotonic_regression() -> None:
    np = pytest.importorskip("numpy")
    isotonic = pytest.importorskip("sklearn.isotonic")
    drawn = np.random.default_rng(3)
    x = drawn.uniform(0, 1, 200)
    model = isotonic.IsotonicRegression(out_of_bounds="clip").fit(x, drawn.uniform(0, 1, 200) < x)
    ours = Isotonic(
        questions=(0,),
        answers=("yes", "no"),
        xs=tuple(model.X_thresholds_.tolist()),
        ys=tuple(model.y_thresholds_.tolist()),
    )
    points = np.linspace(0, 1, 301)
    found = [ours.probabilities({0: two(float(point))})["yes"] for point in points]
    assert found == pytest.approx(model.predict(points).tolist())


corners = st.lists(st.tuples(chance, chance), min_size=1, max_size=8)


# ---------------------------------------------------------------- as JSON


PLATT: dict[str, Any] = {
    "kind": "logistic",
    "questions": [0],
    "answers": ["yes", "no"],
    "weights": [[0.5], [-0.5]],
    "intercepts": [0, 0],
}
CORNERS: dict[str, Any] = {
    "kind": "isotonic",
    "questions": [0],
    "answers": ["yes", "no"],
    "xs": [0.2, 0.8],
    "ys": [0.1, 0.9],
}


@pytest.mark.parametrize(
    ("base", "change", "message"),
    [
        (PLATT, {"kind": "forest"}, "does not match any of the expected tags"),
        (PLATT, {"questions": []}, "at least 1 item"),
        (PLATT, {"answers": ["yes"]}, "at least 2 items"),
        (PLATT, {"weights": [[0.5]]}, "one row of equal length for each answer"),
        (PLATT, {"weights": [[0.5], [0.5, 1]]}, "one row of equal length for each answer"),
        (PLATT, {"intercepts": [0]}, "one for each answer is wanted"),
        (PLATT, {"intercepts": [0, math.nan]}, "should be a finite number"),
        (PLATT, {"weights": [[math.inf], [0]]}, "should be a finite number"),
        (PLATT, {"xs": [0.1]}, "Extra inputs are not permitted"),
        (CORNERS, {"xs": [0.2]}, "as many as xs are wanted"),
        (CORNERS, {"xs": [0.8, 0.2]}, "must not fall"),
        (CORNERS, {"ys": [0.9, 0.1]}, "must not fall"),
        (CORNERS, {"ys": [0.1, 1.5]}, "less than or equal to 1"),
        (CORNERS, {"xs": [-0.1, 0.5]}, "greater than or equal to 0"),
        (CORNERS, {"xs": [0.1, math.nan]}, "finite number|less than or equal"),
        (CORNERS, {"xs": [], "ys": []}, "at least 1 item"),
        (CORNERS, {"answers": ["yes", "no", "neutral"]}, "at most 2 items"),
        (CORNERS, {"questions": [0, 1]}, "at most 1 item"),
    ],
)
def test_what_is_no_combination(base: dict[str, Any], change: dict[str, Any], message: str) -> None:
    kept = TypeAdapter[Any](Combination)
    kept.validate_json(json.dumps(base))
    with pytest.raises(ValidationError, match=message):
        kept.validate_json(json.dumps({**base, **change}))


@pytest.mark.parametrize(
    ("made", "words", "message"),
    [
        (PLATT, [2, 2], None),
        (PLATT, [3], "1 weights for questions that give 3 features"),
        (PLATT, [], "question 0 of 0"),
        ({**PLATT, "questions": [2]}, [2, 2], "question 2 of 2"),
        ({**PLATT, "questions": [-1]}, [2, 2], "question -1 of 2"),
        ({**PLATT, "questions": [0, 1]}, [2, 2], "1 weights for questions that give 2"),
        (CORNERS, [6], None),
        ({**CORNERS, "questions": [1]}, [2], "question 1 of 1"),
    ],
)
def test_what_does_not_fit_the_questions(
    made: dict[str, Any], words: list[int], message: str | None
) -> None:
    found = TypeAdapter[Logistic | Isotonic](Combination).validate_python(made).misfit(words)
    assert (found is None) == (message is None)
    assert message is None or (found is not None and message in found)

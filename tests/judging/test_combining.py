"""Combinations: worked by hand, held against scikit-learn, and at their limits."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from judge.judging.combining import LEAST_CHANCE, Combination, Isotonic, Logistic, features

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


def test_certainty_is_held_off_infinity() -> None:
    bound = math.log((1 - LEAST_CHANCE) / LEAST_CHANCE)
    assert features((1.0, 0.0)) == pytest.approx([bound])
    assert features((0.0, 1.0)) == pytest.approx([-bound])


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=3, max_size=6))
def test_centred_logarithms_add_up_to_nothing(parts: list[float]) -> None:
    shares = [part / sum(parts) for part in parts]
    assert sum(features(shares)) == pytest.approx(0, abs=1e-9)
    assert features(shares)[::-1] == pytest.approx(features(shares[::-1]))


# ---------------------------------------------------------------- logistic


def test_platt_scaling_worked_by_hand() -> None:
    # score of yes 0.5 * logit - 1, of no the same with the other sign: P = 1 / (1 + exp(2 - logit))
    platt = Logistic(
        questions=(0,), answers=("yes", "no"), weights=((0.5,), (-0.5,)), intercepts=(-1.0, 1.0)
    )
    for p, expected in [
        (0.5, 1 / (1 + math.exp(2))),
        (0.8, 1 / (1 + math.exp(2) / 4)),
        (math.exp(2) / (1 + math.exp(2)), 0.5),
    ]:
        found = platt.probabilities({0: two(p), 7: two(0.1)})
        assert found == pytest.approx({"yes": expected, "no": 1 - expected})


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


@settings(deadline=None)
@given(
    p=chance,
    q=st.lists(st.floats(0.001, 1), min_size=3, max_size=3),
    rows=st.lists(st.lists(weight, min_size=4, max_size=4), min_size=2, max_size=4),
    data=st.data(),
)
def test_probabilities_add_up_to_one(
    p: float, q: list[float], rows: list[list[float]], data: st.DataObject
) -> None:
    intercepts = data.draw(st.lists(weight, min_size=len(rows), max_size=len(rows)))
    made = Logistic(
        questions=(0, 2),
        answers=tuple("abcd"[: len(rows)]),
        weights=tuple(map(tuple, rows)),
        intercepts=tuple(intercepts),
    )
    found = made.probabilities({0: two(p), 2: tuple(one / sum(q) for one in q)})
    assert list(found) == list(made.answers)
    assert all(0 <= one <= 1 for one in found.values())
    assert sum(found.values()) == pytest.approx(1)


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


def test_one_corner_is_level_everywhere() -> None:
    level = Isotonic(questions=(0,), answers=("yes", "no"), xs=(0.5,), ys=(0.7,))
    assert [level.probabilities({0: two(x)})["yes"] for x in (0, 0.5, 1)] == [0.7] * 3


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


@settings(deadline=None)
@given(corners, chance, chance)
def test_isotonic_never_falls_and_stays_a_probability(
    drawn: list[tuple[float, float]], a: float, b: float
) -> None:
    made = Isotonic(
        questions=(0,),
        answers=("yes", "no"),
        xs=tuple(sorted(x for x, _ in drawn)),
        ys=tuple(sorted(y for _, y in drawn)),
    )
    low, high = (made.probabilities({0: two(x)}) for x in sorted((a, b)))
    assert low["yes"] <= high["yes"] + 1e-12
    assert sum(low.values()) == pytest.approx(1)
    assert made.ys[0] - 1e-12 <= low["yes"] and high["yes"] <= made.ys[-1] + 1e-12


# ---------------------------------------------------------------- as JSON


@st.composite
def combinations(draw: st.DrawFn) -> Logistic | Isotonic:
    if draw(st.booleans()):
        points = draw(corners)
        return Isotonic(
            questions=(draw(st.integers(0, 9)),),
            answers=("yes", "no"),
            xs=tuple(sorted(x for x, _ in points)),
            ys=tuple(sorted(y for _, y in points)),
        )
    wide = draw(st.integers(1, 4))
    row = st.lists(weight, min_size=wide, max_size=wide).map(tuple)
    return Logistic(
        questions=tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))),
        answers=("yes", "no", "neutral"),
        weights=tuple(draw(st.lists(row, min_size=3, max_size=3))),
        intercepts=tuple(draw(st.lists(weight, min_size=3, max_size=3))),
    )


@settings(deadline=None)
@given(combinations())
def test_json_brings_the_very_same_back(made: Logistic | Isotonic) -> None:
    read = TypeAdapter[Logistic | Isotonic](Combination).validate_json(made.model_dump_json())
    assert read == made and type(read) is type(made)


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

"""Measures of confusion matrices, by hand and against scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from judge.stats.agreement import cohen_kappa
from judge.stats.classification import (
    ClassScores,
    class_scores,
    confusion_matrix,
    counted,
    defined,
    f1s,
    kappas,
    macro_f1s,
    macro_precisions,
    macro_recalls,
    macro_scores,
    matthews,
    precisions,
    recalls,
)

CLASSES = ["yes", "no", "neutral"]
# yes: 3 right, 1 taken for no; no: 2 right, 2 taken for yes; neutral: 1 right, 1 taken for no.
REFERENCE = ["yes"] * 4 + ["no"] * 4 + ["neutral"] * 2
ANSWERS = ["yes"] * 3 + ["no"] + ["no"] * 2 + ["yes"] * 2 + ["neutral", "no"]

answers = st.lists(
    st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=1, max_size=40
)


def test_matrix() -> None:
    assert confusion_matrix(REFERENCE, ANSWERS, CLASSES) == [[3, 1, 0], [2, 2, 0], [0, 1, 1]]
    wide = confusion_matrix(["yes", "no"], ["lost", "no"], ["yes", "no"], ["no", "yes", "lost"])
    assert wide == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("reference", "given_answers", "classes", "message"),
    [
        (["yes"], [], ["yes", "no"], "1 references and 0 answers"),
        (["maybe"], ["yes"], ["yes", "no"], "reference 'maybe' is none of yes, no"),
        (["yes"], ["maybe"], ["yes", "no"], "answer 'maybe' is none of yes, no"),
        (["yes"], ["yes"], ["yes", "yes"], "named twice"),
    ],
)
def test_errors(
    reference: list[str], given_answers: list[str], classes: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        confusion_matrix(reference, given_answers, classes)


def test_by_hand() -> None:
    assert class_scores(REFERENCE, ANSWERS, CLASSES) == {
        "yes": ClassScores(3 / 5, 3 / 4, 6 / 9),
        "no": ClassScores(2 / 4, 2 / 4, 4 / 8),
        "neutral": ClassScores(1 / 1, 1 / 2, 2 / 3),
    }
    macro = macro_scores(REFERENCE, ANSWERS, CLASSES)
    assert macro.precision == pytest.approx((0.6 + 0.5 + 1) / 3)
    assert macro.recall == pytest.approx((0.75 + 0.5 + 0.5) / 3)
    assert macro.f1 == pytest.approx((6 / 9 + 0.5 + 2 / 3) / 3)
    # s 10, h 6, true (4, 4, 2), given (5, 4, 1): (60 - 38) / sqrt((100 - 42)(100 - 36)).
    assert matthews(REFERENCE, ANSWERS, CLASSES) == pytest.approx(22 / (58 * 64) ** 0.5)
    # Observed 0.6, by chance 0.38.
    assert defined(kappas(counted(REFERENCE, ANSWERS, CLASSES))) == pytest.approx(0.22 / 0.62)


def test_undefined() -> None:
    assert macro_scores([], [], CLASSES) == ClassScores(None, None, None)
    assert matthews([], [], CLASSES) is None
    one_answer = class_scores(["yes", "no"], ["yes", "yes"], CLASSES)
    assert one_answer["no"] == ClassScores(None, 0.0, 0.0)
    assert one_answer["neutral"] == ClassScores(None, None, None)
    assert matthews(["yes", "no"], ["yes", "yes"], CLASSES) is None
    assert defined(kappas(counted(["yes"], ["yes"], CLASSES))) is None
    macro = macro_scores(["yes", "no"], ["yes", "yes"], CLASSES)
    assert macro == ClassScores(None, 0.5, pytest.approx((2 / 3 + 0) / 2))


@pytest.mark.filterwarnings("ignore:A single label:UserWarning")
@settings(deadline=None)
@given(answers)
def test_against_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    true, said = [a for a, _ in pairs], [b for _, b in pairs]
    assert (
        confusion_matrix(true, said, CLASSES)
        == metrics.confusion_matrix(true, said, labels=CLASSES).tolist()
    )
    theirs = metrics.precision_recall_fscore_support(
        true, said, labels=CLASSES, zero_division=np.nan
    )
    for place, scores in enumerate(class_scores(true, said, CLASSES).values()):
        for ours, columns in zip(
            (scores.precision, scores.recall, scores.f1), theirs[:3], strict=True
        ):
            assert ours == (
                None if np.isnan(columns[place]) else pytest.approx(float(columns[place]))
            )
    macro = macro_scores(true, said, CLASSES)
    assert macro.recall == pytest.approx(float(np.nanmean(theirs[1])))
    assert macro.f1 == pytest.approx(metrics.f1_score(true, said, average="macro"))
    assert macro.precision is None or macro.precision == pytest.approx(
        metrics.precision_score(true, said, average="macro")
    )
    correlation = matthews(true, said, CLASSES)
    # scikit-learn gives 0 where a side is constant.
    assert (0.0 if correlation is None else correlation) == pytest.approx(
        metrics.matthews_corrcoef(true, said)
    )


@settings(deadline=None)
@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
@given(pairs=answers)
def test_kappa_of_counts(weights: str, pairs: list[tuple[str, str]]) -> None:
    true, said = [a for a, _ in pairs], [b for _, b in pairs]
    kappa = defined(kappas(counted(true, said, CLASSES), weights))  # type: ignore[arg-type]
    plain = cohen_kappa(true, said, weights=weights, order=CLASSES)  # type: ignore[arg-type]
    assert kappa == (None if plain is None else pytest.approx(plain))
    if kappa is not None:
        theirs = metrics.cohen_kappa_score(
            true, said, labels=CLASSES, weights=None if weights == "none" else weights
        )
        assert kappa == pytest.approx(theirs)


@given(answers, st.permutations(CLASSES))
def test_order_of_classes_plays_no_part(pairs: list[tuple[str, str]], order: list[str]) -> None:
    true, said = [a for a, _ in pairs], [b for _, b in pairs]
    assert class_scores(true, said, order) == class_scores(true, said, CLASSES)
    correlation = matthews(true, said, CLASSES)
    assert matthews(true, said, order) == (
        None if correlation is None else pytest.approx(correlation)
    )
    if correlation is not None:
        assert -1 - 1e-9 <= correlation <= 1 + 1e-9


@pytest.mark.parametrize(
    "measure",
    [precisions, recalls, f1s, macro_precisions, macro_recalls, macro_f1s, kappas],
)
def test_stack_is_one_by_one(measure: Callable[..., np.ndarray]) -> None:
    stack = np.random.default_rng(0).integers(0, 4, size=(50, 3, 3)).astype(float)
    stack[0] = 0
    one_by_one = np.array([measure(matrix) for matrix in stack])
    assert np.array_equal(measure(stack), one_by_one, equal_nan=True)
    assert np.isnan(one_by_one[0]).all()

"""Measures of confusion matrices and areas under the curve: by hand and against scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from judge.stats.classification import (
    aucs,
    confusion_matrix,
    counted,
    defined,
    f1s,
    kappas,
    macro_aucs,
    macro_f1s,
    precisions,
    recalls,
)

CLASSES = ["yes", "no", "neutral"]
# yes: 3 right, 1 taken for no; no: 2 right, 2 taken for yes; neutral: 1 right, 1 taken for no.
REFERENCE = ["yes"] * 4 + ["no"] * 4 + ["neutral"] * 2
ANSWERS = ["yes"] * 3 + ["no"] + ["no"] * 2 + ["yes"] * 2 + ["neutral", "no"]


def test_matrix() -> None:
    assert confusion_matrix(REFERENCE, ANSWERS, CLASSES) == [[3, 1, 0], [2, 2, 0], [0, 1, 1]]
    wide = confusion_matrix(["yes", "no"], ["lost", "no"], ["yes", "no"], ["no", "yes", "lost"])
    assert wide == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("reference", "answers", "classes", "message"),
    [
        (["yes"], [], ["yes", "no"], "1 references and 0 answers"),
        (["maybe"], ["yes"], ["yes", "no"], "reference 'maybe' is none of yes, no"),
        (["yes"], ["maybe"], ["yes", "no"], "answer 'maybe' is none of yes, no"),
        (["yes"], ["yes"], ["yes", "yes"], "named twice"),
    ],
)
def test_errors(reference: list[str], answers: list[str], classes: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        confusion_matrix(reference, answers, classes)


def test_by_hand() -> None:
    counts = counted(REFERENCE, ANSWERS, CLASSES)
    assert precisions(counts).tolist() == pytest.approx([3 / 5, 2 / 4, 1])
    assert recalls(counts).tolist() == pytest.approx([3 / 4, 2 / 4, 1 / 2])
    assert f1s(counts).tolist() == pytest.approx([6 / 9, 4 / 8, 2 / 3])
    # Observed 0.6, by chance 0.38.
    assert defined(kappas(counts)) == pytest.approx(0.22 / 0.62)


def test_a_class_that_never_comes_has_no_part_in_the_mean() -> None:
    counts = counted(["yes", "no"], ["yes", "yes"], CLASSES)
    assert defined(macro_f1s(counts)) == pytest.approx((2 / 3 + 0) / 2)
    assert defined(kappas(counted(["yes"], ["yes"], CLASSES))) is None


@pytest.mark.filterwarnings("ignore:A single label:UserWarning")
@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=1, max_size=40)
)
def test_against_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    true, said = [a for a, _ in pairs], [b for _, b in pairs]
    counts = counted(true, said, CLASSES)
    theirs = metrics.precision_recall_fscore_support(
        true, said, labels=CLASSES, zero_division=np.nan
    )
    for ours, column in zip((precisions, recalls, f1s), theirs, strict=False):
        assert ours(counts) == pytest.approx(column, nan_ok=True)
    assert defined(macro_f1s(counts)) == pytest.approx(
        metrics.f1_score(true, said, average="macro")
    )


@pytest.mark.parametrize("measure", [precisions, recalls, f1s, macro_f1s, kappas])
def test_stack_is_one_by_one(measure: Callable[..., np.ndarray]) -> None:
    stack = np.random.default_rng(0).integers(0, 4, size=(50, 3, 3)).astype(float)
    stack[0] = 0
    one_by_one = np.array([measure(matrix) for matrix in stack])
    assert np.array_equal(measure(stack), one_by_one, equal_nan=True)
    assert np.isnan(one_by_one[0]).all()


# ---------------------------------------------------------------- areas under the curve


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_aucs_against_every_pair_with_weights_as_repeats(
    items: list[tuple[bool, int, int]],
) -> None:
    found = aucs(
        np.array([p for p, _, _ in items]),
        np.array([float(s) for _, s, _ in items]),
        np.array([[float(w) for _, _, w in items]]),
    )[0]
    repeated = [(p, s) for p, s, w in items for _ in range(w)]
    won = [(a > b) + (a == b) / 2 for p, a in repeated for q, b in repeated if p and not q]
    if won:
        assert found == pytest.approx(sum(won) / len(won))
    else:
        assert np.isnan(found)


def test_macro_auc_against_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    probabilities = rng.dirichlet(np.ones(3), size=80).round(1) + 0.01
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    reference = rng.choice(list("abc"), size=80).tolist()
    mappings = [dict(zip("abc", row.tolist(), strict=True)) for row in probabilities]
    theirs = metrics.roc_auc_score(reference, probabilities, multi_class="ovr", labels=list("abc"))
    for classes in ("abc", "abcd"):
        found = macro_aucs(reference, mappings, list(classes), np.ones((1, 80)))
        assert found[0] == pytest.approx(theirs)
    assert np.isnan(macro_aucs(["a"], [{"a": 1.0}], ["a", "b"], np.ones((1, 1)))[0])

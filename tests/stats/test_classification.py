"""Measures of confusion matrices and areas under the curve: by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn import metrics

from judge.stats.classification import (
    aucs,
    f1s,
    kappas,
    macro_f1s,
    numbers_of,
    spearmans,
    weighted_kappas,
)

CLASSES = ["yes", "no", "neutral"]
# yes: 3 right, 1 taken for no; no: 2 right, 2 taken for yes; neutral: 1 right, 1 taken for no.


def counted(true: list[str], said: list[str]) -> NDArray[np.float64]:
    return metrics.confusion_matrix(true, said, labels=CLASSES).astype(np.float64)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A single label:UserWarning")
@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=1, max_size=40)
)
def test_against_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    true, said = [a for a, _ in pairs], [b for _, b in pairs]
    counts = counted(true, said)
    theirs = metrics.f1_score(true, said, labels=CLASSES, average=None, zero_division=np.nan)
    assert f1s(counts) == pytest.approx(theirs, nan_ok=True)
    assert float(macro_f1s(counts)) == pytest.approx(metrics.f1_score(true, said, average="macro"))
    kappa, one_class = float(kappas(counts)), len({*true, *said}) == 1
    assert (
        np.isnan(kappa)
        if one_class
        else kappa == pytest.approx(metrics.cohen_kappa_score(true, said))
    )


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


# ---------------------------------------------------------------- points of a scale


def points(true: list[int], said: list[int]) -> NDArray[np.float64]:
    return metrics.confusion_matrix(true, said, labels=[1, 2, 3, 4, 5]).astype(np.float64)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=40))
def test_points_against_scikit_learn_and_scipy(pairs: list[tuple[int, int]]) -> None:
    true, said = [a for a, _ in pairs], [b for _, b in pairs]
    counts = points(true, said)
    kappa, rho = weighted_kappas(counts, range(1, 6)), spearmans(counts, range(1, 6))
    if len({*true, *said}) > 1:
        labels = [1, 2, 3, 4, 5]
        theirs = metrics.cohen_kappa_score(true, said, labels=labels, weights="quadratic")
        assert float(kappa) == pytest.approx(theirs)
    else:
        assert np.isnan(kappa)
    if len(set(true)) > 1 and len(set(said)) > 1:
        assert float(rho) == pytest.approx(spearmanr(true, said).statistic)
    else:
        assert np.isnan(rho)


@pytest.mark.parametrize(
    ("classes", "numbers"),
    [
        (("1", "2", "3"), [1, 2, 3]),
        (("-0.5", "0", "10"), [-0.5, 0, 10]),
        (("1", "2"), None),
        (("yes", "no", "neutral"), None),
        (("1", "1.0", "2"), None),
        (("1", "2", "nan"), None),
    ],
)
def test_which_classes_are_the_points_of_a_scale(classes: tuple[str, ...], numbers: object) -> None:
    assert numbers_of(classes) == numbers

"""AUC by hand, by counting pairs, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from judge.stats.classification import auc, aucs, macro_auc

scored = st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=40)


def test_by_hand() -> None:
    # Positives 0.9 and 0.4 against negatives 0.4 and 0.1: 1 + 1 + half + 1 of 4 pairs.
    assert auc([True, True, False, False], [0.9, 0.4, 0.4, 0.1]) == 3.5 / 4


def test_undefined() -> None:
    assert auc([], []) is None
    assert auc([True, True], [0.1, 0.2]) is None
    assert macro_auc(["a", "a"], [{"a": 1.0}, {"a": 0.5}], ["a", "b"]) is None
    with pytest.raises(ValueError, match="1 labels and 0 scores"):
        auc([True], [])


@settings(deadline=None)
@given(scored)
def test_against_scikit_learn_and_pairs(items: list[tuple[bool, int]]) -> None:
    positive, scores = [p for p, _ in items], [s / 8 for _, s in items]
    ours = auc(positive, scores)
    won = [
        (a > b) + (a == b) / 2
        for a, is_positive in zip(scores, positive, strict=True)
        for b, other_is in zip(scores, positive, strict=True)
        if is_positive and not other_is
    ]
    if not won:
        assert ours is None
        return
    assert ours == pytest.approx(sum(won) / len(won))
    assert ours == pytest.approx(roc_auc_score(positive, scores))
    assert auc(positive, [-score for score in scores]) == pytest.approx(1 - ours)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_weights_are_repeats(items: list[tuple[bool, int, int]]) -> None:
    weighted = aucs(
        np.array([p for p, _, _ in items]),
        np.array([float(s) for _, s, _ in items]),
        np.array([[float(w) for _, _, w in items]]),
    )[0]
    repeated = auc(
        [p for p, _, w in items for _ in range(w)],
        [float(s) for _, s, w in items for _ in range(w)],
    )
    assert np.isnan(weighted) if repeated is None else weighted == pytest.approx(repeated)


def test_macro_against_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    probabilities = rng.dirichlet(np.ones(3), size=80).round(1) + 0.01
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    reference = rng.choice(list("abc"), size=80).tolist()
    mappings = [dict(zip("abc", row.tolist(), strict=True)) for row in probabilities]
    theirs = roc_auc_score(reference, probabilities, multi_class="ovr", labels=list("abc"))
    assert macro_auc(reference, mappings, list("abc")) == pytest.approx(theirs)
    assert macro_auc(reference, mappings, list("abcd")) == pytest.approx(theirs)

"""Measures of texts: by hand, from the papers, and against second implementations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.text import (
    lexical_variance,
    symmetric_bleu,
    top_words,
    word_edit_distances,
)

# ---------------------------------------------------------------- top_words


DOCUMENTS = {
    "Indian": ["raj", "and", "rani", "saw", "raj", "at", "the", "temple"],
    "British": ["oliver", "and", "lily", "saw", "the", "temple"],
    "German": ["hans", "and", "lily", "and", "the", "the"],
}


def test_top_words_by_hand() -> None:
    found = top_words(DOCUMENTS)
    assert found["Indian"] == [
        ("raj", 2 * math.log(3)),
        ("at", math.log(3)),
        ("rani", math.log(3)),
        ("saw", math.log(3 / 2)),
        ("temple", math.log(3 / 2)),
    ]
    assert found["German"] == [("hans", math.log(3)), ("lily", math.log(3 / 2))]


# ---------------------------------------------------------------- word_edit_distance


def test_two_texts_without_words_have_no_distance() -> None:
    found = word_edit_distances([[], [], ["a"]])
    assert np.isnan(found[:2, :2]).all() and found[0, 2] == 1 and found[2, 2] == 0


def test_distances_are_of_words_over_the_longer_text() -> None:
    found = word_edit_distances(
        [["raj", "saw", "rani"], ["raj", "saw"], ["the", "rani", "saw", "raj"]]
    )
    assert found[0] == pytest.approx([0, 1 / 3, 3 / 4])


# ---------------------------------------------------------------- lexical_variance


THREE = np.array([[0.0, 0.2, 0.4], [0.2, 0.0, 0.6], [0.4, 0.6, 0.0]])


def test_lexical_variance_by_hand() -> None:
    # 2 (0.04 + 0.16 + 0.36) = 1.12 over all pairs.
    assert lexical_variance(THREE) == pytest.approx(1.12 / 2 / 9)


def test_undefined_below_two_texts() -> None:
    assert lexical_variance(np.zeros((1, 1))) is None
    assert lexical_variance(np.zeros((0, 0))) is None


# ---------------------------------------------------------------- BLEU

Text = Sequence[str]


def grams(text: Text, order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(text[at : at + order]) for at in range(len(text) - order + 1))


def one_way(candidate: Text, reference: Text) -> float:
    logs = 0.0
    for order in range(1, 5):
        ours = grams(candidate, order)
        shared = (ours & grams(reference, order)).total()
        if not shared:
            return 0.0
        logs += math.log(shared / ours.total())
    return min(1.0, math.exp(1 - len(reference) / len(candidate))) * math.exp(logs / 4)


def plain(first: Text, second: Text) -> float:
    return (one_way(first, second) + one_way(second, first)) / 2


def test_texts_without_words_have_no_score() -> None:
    found = symmetric_bleu([[], ["a", "b", "c", "d"]])
    assert np.isnan(found[0]).all() and np.isnan(found[:, 0]).all() and found[1, 1] == 1
    assert symmetric_bleu([]).shape == (0, 0)


words = st.lists(st.sampled_from("abc"), min_size=1, max_size=15)


@settings(deadline=None, max_examples=50)
@given(st.lists(words, min_size=1, max_size=6))
def test_agrees_with_counters(texts: list[list[str]]) -> None:
    found = symmetric_bleu(texts)
    for a, first in enumerate(texts):
        for b, second in enumerate(texts):
            assert found[a, b] == pytest.approx(plain(first, second), abs=1e-9)

"""Measures of texts: by hand, from the papers, and against second implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judge.stats.text import (
    distinct_share,
    lexical_variance,
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


def test_distinct_runs_by_the_words() -> None:
    # a b c, b c a, c a b, a b c: three different runs of six words.
    assert distinct_share("abcabc", 3) == 3 / 6
    assert distinct_share("ab", 3) == 0.0
    assert distinct_share("", 3) is None
    # 18 runs of 20 different words: below 0.9 whatever is said, as in CQ-Bench's table 3.
    assert distinct_share(range(20), 3) == 0.9

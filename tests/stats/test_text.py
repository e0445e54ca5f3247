"""Measures of texts: by hand, from the papers, and against second implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.bootstrap import bootstrap
from judge.stats.text import (
    distinct_n,
    lexical_variance,
    lexical_variance_estimate,
    top_words,
    word_count,
    word_edit_distances,
    words,
)

# ---------------------------------------------------------------- distinct


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ... — !", []),
        ("I don't know.", ["i", "don't", "know"]),
        ("Yes—no – well-known, “quoted”", ["yes", "no", "well-known", "quoted"]),
        ("नमस्ते, दुनिया।", ["नमस्ते", "दुनिया"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert word_count(text) == len(expected)


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("a b a b", 1, 2 / 4),
        ("a b a b", 3, 2 / 4),
        ("a b a b", 4, 1 / 4),
        ("a b a b", 5, None),
        ("", 1, None),
        ("A, a!", 2, 1 / 2),
    ],
)
def test_distinct(text: str, n: int, expected: float | None) -> None:
    assert distinct_n(text, n) == expected


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


def plain(first: list[str], second: list[str]) -> int:
    row = list(range(len(second) + 1))
    for place, word in enumerate(first, start=1):
        before, row = row, [place]
        for column, other in enumerate(second, start=1):
            changed = before[column - 1] + (word != other)
            row.append(min(changed, before[column] + 1, row[-1] + 1))
    return row[-1]


texts = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), min_size=2, max_size=5)


@settings(deadline=None, max_examples=50)
@given(texts)
def test_agrees_with_the_textbooks_program(found: list[list[str]]) -> None:
    distances = word_edit_distances(found)
    for a, first in enumerate(found):
        for b, second in enumerate(found):
            expected = plain(first, second) / max(len(first), len(second))
            assert distances[a, b] == pytest.approx(expected, abs=1e-12)


# ---------------------------------------------------------------- lexical_variance


THREE = np.array([[0.0, 0.2, 0.4], [0.2, 0.0, 0.6], [0.4, 0.6, 0.0]])


def test_lexical_variance_by_hand() -> None:
    # 2 (0.04 + 0.16 + 0.36) = 1.12 over all pairs.
    assert lexical_variance(THREE) == pytest.approx(1.12 / 2 / 9)
    assert lexical_variance(THREE, rule="distinct") == pytest.approx(1.12 / 2 / 6)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8))
def test_of_numbers_it_is_their_variance(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.float64)
    distances = np.abs(values[:, None] - values)
    assert lexical_variance(distances) == pytest.approx(values.var(), abs=1e-9)
    assert lexical_variance(distances, rule="distinct") == pytest.approx(values.var(ddof=1))


def test_undefined_below_two_texts() -> None:
    assert lexical_variance(np.zeros((1, 1))) is None
    assert lexical_variance(np.zeros((0, 0))) is None
    assert lexical_variance_estimate(np.zeros((0, 0)), of=3).as_json() == {
        "value": None,
        "low": None,
        "high": None,
        "n": 0,
        "of": 3,
    }


def test_interval_is_that_of_the_variance_of_numbers() -> None:
    values = np.random.default_rng(0).normal(size=30)
    found = lexical_variance_estimate(np.abs(values[:, None] - values), of=35)
    expected = bootstrap(lambda drawn: float(np.var(drawn)), values.tolist(), range(30))
    assert found.value == pytest.approx(expected.value)
    assert found.low == pytest.approx(expected.low)
    assert found.high == pytest.approx(expected.high)
    assert (found.n, found.of) == (30, 35)

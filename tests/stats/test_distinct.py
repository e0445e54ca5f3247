"""Distinct-n and words, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.text import distinct_n, word_count, words


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
    ("text", "n", "over_words", "over_ngrams"),
    [
        ("a b a b", 1, 2 / 4, 2 / 4),
        ("a b a b", 2, 2 / 4, 2 / 3),
        ("a b a b", 3, 2 / 4, 2 / 2),
        ("a b a b", 4, 1 / 4, 1 / 1),
        ("a b a b", 5, None, None),
        ("", 1, None, None),
        ("A, a!", 2, 1 / 2, 1 / 1),
    ],
)
def test_distinct(text: str, n: int, over_words: float | None, over_ngrams: float | None) -> None:
    assert distinct_n(text, n) == over_words
    assert distinct_n(text, n, over="ngrams") == over_ngrams


def test_twenty_words_without_repeats_fall_as_the_papers_table_does() -> None:
    text = " ".join(f"word{number}" for number in range(20))
    assert [distinct_n(text, n) for n in (3, 4, 5)] == [0.90, 0.85, 0.80]


def test_n_below_one() -> None:
    with pytest.raises(ValueError, match="n is 0"):
        distinct_n("a b", 0)


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=30), st.integers(1, 28))
def test_share_of_ngrams_never_falls(letters: list[str], n: int) -> None:
    text = " ".join(letters)
    here, longer = (distinct_n(text, k, over="ngrams") for k in (n, n + 1))
    over_words = distinct_n(text, n)
    if here is not None and longer is not None:
        assert longer >= here > 0
    if over_words is not None:
        assert 0 < over_words <= 1 - (n - 1) / len(letters) + 1e-9

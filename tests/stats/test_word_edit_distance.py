"""Word edit distance, by hand and against a second implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.text import word_edit_distances


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a b c", "a b c", 0.0),
        ("a b c", "a x c", 1 / 3),
        ("a b c", "a b c d", 1 / 4),
        ("a b", "c d e f", 1.0),
        ("soccer is a game", "football is the game", 2 / 4),
        ("a", "", 1.0),
    ],
)
def test_by_hand(first: str, second: str, expected: float) -> None:
    found = word_edit_distances([first.split(), second.split()])
    assert found[0, 1] == found[1, 0] == expected


def test_words_are_compared_not_letters() -> None:
    assert word_edit_distances([["kind", "girl"], ["king", "girl"]])[0, 1] == 1 / 2


def test_two_texts_without_words_have_no_distance() -> None:
    found = word_edit_distances([[], [], ["a"]])
    assert np.isnan(found[:2, :2]).all() and found[0, 2] == 1 and found[2, 2] == 0


def test_no_texts() -> None:
    assert word_edit_distances([]).shape == (0, 0)


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

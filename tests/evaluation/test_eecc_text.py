"""Texts as words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.evaluation.eecc_text import telling, words_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("The END.", "the end ."),
        ("I don't know; we’ll see.", "i do n't know ; we 'll see ."),
        ("Raj's self-governing friend, João", "raj 's self-governing friend , joão"),
        ('"Hi!" he said...', '" hi ! " he said ...'),
        ("3.5 of 1,000 at 7:30 o'clock", "3.5 of 1,000 at 7:30 o'clock"),
        ("one--two\nthree", "one -- two three"),
        ("can't 'no' n't", "ca n't ' no ' n't"),
    ],
)
def test_by_hand(text: str, expected: str) -> None:
    assert words_of(text) == expected.split()


@settings(deadline=None)
@given(st.text(alphabet="nt's.-, a:7\n“é", max_size=30))
def test_nothing_but_white_space_is_lost(text: str) -> None:
    assert "".join(words_of(text)) == re.sub(r"\s", "", text)


def test_words_that_tell() -> None:
    assert telling(["raj", "a", "1990", "--", "b2", "n't", "é"]) == ["raj", "b2", "n't"]

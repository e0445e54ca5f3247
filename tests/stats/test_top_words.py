"""TF-IDF, by hand."""

from __future__ import annotations

import math

import pytest

from judge.stats.text import top_words

DOCUMENTS = {
    "Indian": ["raj", "and", "rani", "saw", "raj", "at", "the", "temple"],
    "British": ["oliver", "and", "lily", "saw", "the", "temple"],
    "German": ["hans", "and", "lily", "and", "the", "the"],
}


def test_by_hand() -> None:
    found = top_words(DOCUMENTS)
    assert found["Indian"] == [
        ("raj", 2 * math.log(3)),
        ("at", math.log(3)),
        ("rani", math.log(3)),
        ("saw", math.log(3 / 2)),
        ("temple", math.log(3 / 2)),
    ]
    assert found["German"] == [("hans", math.log(3)), ("lily", math.log(3 / 2))]


def test_only_the_best() -> None:
    assert [word for word, _ in top_words(DOCUMENTS, 2)["Indian"]] == ["raj", "at"]


def test_counts_do_for_words() -> None:
    counted = {"a": {"x": 3, "y": 1}, "b": {"y": 9}}
    assert top_words(counted) == {"a": [("x", 3 * math.log(2))], "b": []}


def test_one_document_has_nothing_to_be_told_from() -> None:
    assert top_words({"a": ["x"]}) == {"a": []}
    assert top_words({}) == {}


def test_count_below_one() -> None:
    with pytest.raises(ValueError, match="count is 0"):
        top_words(DOCUMENTS, 0)

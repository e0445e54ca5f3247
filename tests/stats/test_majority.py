"""Majorities with a threshold, several of them, none; and ties broken at random."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.stats.votes import (
    MORE_THAN_HALF,
    Threshold,
    majorities,
    majority,
    plurality_credit,
)

FOUR_OF_FIVE = Threshold.parse("4/5")


@pytest.mark.parametrize(
    ("text", "share", "least"),
    [
        ("0.75", Fraction(3, 4), 1),
        ("75%", Fraction(3, 4), 1),
        ("4/5", Fraction(4, 5), 4),
        (" 1 ", Fraction(1), 1),
    ],
)
def test_parsed(text: str, share: Fraction, least: int) -> None:
    assert Threshold.parse(text) == Threshold(share, least)


def test_half_is_more_than_half() -> None:
    assert Threshold.parse("Half") == MORE_THAN_HALF


@pytest.mark.parametrize(
    "text", ["", "most", "0", "1.2", "-0.5", "5/4", "4/0", "a/b", "1/2/3", "-4/-5"]
)
def test_what_is_no_threshold(text: str) -> None:
    with pytest.raises(UsageError, match="majority"):
        Threshold.parse(text)


@pytest.mark.parametrize(
    ("answers", "threshold", "expected"),
    [
        ("yyn", "half", "y"),
        ("yn", "half", None),
        ("yynm", "half", None),
        ("y", "half", "y"),
        ("", "half", None),
        ("yyyn", "0.75", "y"),
        ("yyn", "0.75", None),
        ("yyyyn", "4/5", "y"),
        ("yyynn", "4/5", None),
        ("yyyy", "4/5", "y"),
        ("yyy", "4/5", None),
        ("yyyynn", "4/5", None),
        ("yynn", "0.5", None),
        ("yyn", "2/3", "y"),
    ],
)
def test_majority(answers: str, threshold: str, expected: str | None) -> None:
    assert majority(answers, Threshold.parse(threshold)) == expected


def test_seven_tenths_of_ten_are_seven() -> None:
    assert majority("y" * 7 + "n" * 3, Threshold.parse("0.7")) == "y"


def test_an_answer_of_its_own_can_win() -> None:
    assert majority(["unanswerable", "unanswerable", "yes"]) == "unanswerable"


def test_culturalbench_modes() -> None:
    single = ["a", "a", "a", "ab", "b"]
    several = ["ab", "ab", "ab", "abc", "c"]
    none = ["a", "a", "a", "b", "b"]
    found = [majorities(votes, FOUR_OF_FIVE) for votes in (single, several, none)]
    assert found == [["a"], ["a", "b"], []]


def test_a_rater_counts_once() -> None:
    assert majorities([["a", "a", "a", "a"], ["b"], ["b"], ["b"], ["b"]], FOUR_OF_FIVE) == ["b"]


@given(st.lists(st.sampled_from("abc"), max_size=9), st.randoms(use_true_random=False))
def test_more_than_half_against_counting(answers: list[str], chance: random.Random) -> None:
    expected = [a for a, n in Counter(answers).items() if n > len(answers) / 2]
    found = majority(answers)
    assert found == (expected[0] if expected else None)
    assert majority(chance.sample(answers, len(answers))) == found


@pytest.mark.parametrize(
    ("answers", "gold", "expected"),
    [("yyn", "y", 1), ("yyn", "n", 0), ("yn", "y", 1 / 2), ("ynm", "m", 1 / 3), ("", "y", None)],
)
def test_ties_at_random(answers: str, gold: str, expected: float | None) -> None:
    assert plurality_credit(answers, gold) == expected


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9))
def test_credits_of_all_answers_add_up_to_one(answers: list[str]) -> None:
    assert sum(plurality_credit(answers, gold) or 0 for gold in "abc") == pytest.approx(1)

"""Votes: majorities, effective votes of a panel, flips between seeds, position effect."""

from __future__ import annotations

import pytest

from judge.errors import UsageError
from judge.stats.intervals import Estimate
from judge.stats.votes import (
    Threshold,
    majorities,
    majority,
    position_effect,
)

# ---------------------------------------------------------------- majority


FOUR_OF_FIVE = Threshold.parse("4/5")


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


def test_culturalbench_modes() -> None:
    single = ["a", "a", "a", "ab", "b"]
    several = ["ab", "ab", "ab", "abc", "c"]
    none = ["a", "a", "a", "b", "b"]
    found = [majorities(votes, FOUR_OF_FIVE) for votes in (single, several, none)]
    assert found == [["a"], ["a", "b"], []]


# ---------------------------------------------------------------- effective_votes


# ---------------------------------------------------------------- flips


# ---------------------------------------------------------------- position


def test_position_by_hand() -> None:
    # Named a, b, c and then c, b, a.
    answers = [("a", "c"), ("a", "a"), ("c", "a"), ("b", "b"), ("a", "b"), (None, "a"), ("a", None)]
    effect = position_effect(answers, ["a", "b", "c"], range(7))
    assert effect.changed.value == 3 / 5
    assert effect.first.value == effect.last.value == 1 / 5
    assert (effect.changed.n, effect.changed.of) == (5, 7)
    turned = position_effect(answers, ["c", "b", "a"], range(7))
    assert (turned.first, turned.last) == (effect.last, effect.first)


def test_position_limits_and_errors() -> None:
    nothing = position_effect([(None, "a")], ["a", "b"], ["r"])
    assert nothing.changed == nothing.first == nothing.last == Estimate(None, n=0, of=1)
    with pytest.raises(ValueError, match="no order"):
        position_effect([], ["a"], [])
    with pytest.raises(ValueError, match="'c' is none of a, b"):
        position_effect([("a", "c")], ["a", "b"], ["r"])

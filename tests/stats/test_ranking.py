"""Strengths by Bradley and Terry, against hand-worked figures and the bootstrap."""

from __future__ import annotations

from collections import Counter
from math import exp, sqrt
from random import Random

import pytest

from judge.stats.ranking import PairOutcome, ranking

WIN, TIE, LOSS = 1.0, 0.5, 0.0
PAIRS = ((0, 1), (0, 2), (1, 2))


def test_two_fields_have_the_odds_of_their_wins() -> None:
    """30 to 10: the odds are 3, each is sqrt(3) from average; t has the error of log(3) / 2."""
    first, second = ranking(["b", "a"], {((0, 1, LOSS),): 30, ((0, 1, WIN),): 10}).fields
    assert (first.field, first.wins, first.losses, second.wins) == ("a", 30, 10, 10)
    chance = sqrt(3) / (1 + sqrt(3))
    assert first.strength.value == pytest.approx(chance)
    error = sqrt(1 / 30 + 1 / 10) / 2 * sqrt(40 / 39)
    low = 1 / (1 + exp(1.959964 * error) / sqrt(3))
    assert first.strength.low == pytest.approx(low, abs=1e-6)
    assert second.strength.high == pytest.approx(1 - low, abs=1e-6)


def test_a_tie_is_half_a_win_for_each() -> None:
    won = ranking("ab", {((0, 1, WIN),): 15, ((0, 1, LOSS),): 5}).fields
    tied = ranking("ab", {((0, 1, WIN),): 10, ((0, 1, TIE),): 10}).fields
    assert tied[0].strength.value == pytest.approx(won[0].strength.value)
    assert (tied[0].wins, tied[0].losses, tied[0].ties) == (10, 0, 10)


@pytest.mark.parametrize(
    ("compared", "why"),
    [
        (((0, 1, WIN), (0, 2, WIN), (1, 2, TIE)), "b, c never win against a"),
        (((0, 1, LOSS), (0, 2, WIN), (1, 2, WIN)), "c never wins against a, b"),
        (((0, 1, WIN), (0, 1, LOSS)), "c is never compared with a, b"),
        ((), "there is no decided comparison"),
    ],
)
def test_strengths_are_undefined_where_fields_never_win(
    compared: tuple[PairOutcome, ...], why: str
) -> None:
    made = ranking("abc", {compared: 3}, undecided=2, disagreed=1)
    assert made.undefined == why and why in str(made)
    assert {row.strength.value for row in made.fields} == {None}
    assert "the orders disagreed in 1 of" in str(made)


def test_intervals_agree_with_the_bootstrap_over_records() -> None:
    """Where what makes a record easy for one field does so in both of its comparisons."""
    import numpy as np

    chance, records = Random(1), Counter[tuple[PairOutcome, ...]]()
    for _ in range(300):
        taste = chance.gauss(0, 1.5)
        odds = [exp(0.8 + taste), exp(1.6 + taste), exp(0.8)]
        shares = (WIN if chance.random() < o / (1 + o) else LOSS for o in odds)
        records[tuple((i, j, s) for (i, j), s in zip(PAIRS, shares, strict=True))] += 1
    keys, counts = list(records), np.array([*records.values()])
    draws = np.random.default_rng(0).multinomial(300, counts / 300, size=300)
    drawn: dict[str, list[float]] = {name: [] for name in "abc"}
    for draw in draws:
        for row in ranking("abc", dict(zip(keys, map(int, draw), strict=True))).fields:
            assert row.strength.value is not None
            drawn[row.field].append(row.strength.value)
    for row in ranking("abc", records).fields:
        ends = row.strength.low, row.strength.high
        assert ends == pytest.approx(tuple(np.quantile(drawn[row.field], [0.025, 0.975])), abs=0.01)

"""Kappa of two raters, summed as their answers come."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from judge.stats.classification import weighted_kappas
from judge.stats.pairs import PARTS, RaterPair, effective_votes

# Cohen's kappa by hand: 35 of 50 agree, 25 by chance, (0.7 - 0.5) / (1 - 0.5) = 0.4.
TABLE = {("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}


def pair(table: dict[tuple[str, str], int], copies: int = 1, *, apart: bool = False) -> RaterPair:
    """The table as a pair, each item so many times: as one cluster, or as items of their own."""
    made, items = RaterPair(), [cell for cell, count in table.items() for _ in range(count)]
    Random(0).shuffle(items)
    for number, (one, two) in enumerate(items):
        for copy in range(copies):
            made.add(number * copies + copy if apart else number, {one: 1.0}, {two: 1.0})
    return made


def test_kappa_by_hand_and_copies_that_tell_nothing_new() -> None:
    once = pair(TABLE).kappa()
    assert once.value == pytest.approx(0.4) and once.n == 50
    # By Fleiss, Cohen and Everitt (1969), equation 13, the standard error is 0.127.
    assert once.low == pytest.approx(0.4 - 1.96 * 0.127, abs=0.02)
    assert once.high == pytest.approx(0.4 + 1.96 * 0.127, abs=0.02)
    copied, fresh = pair(TABLE, 4).kappa(), pair(TABLE, 4, apart=True).kappa()
    assert (copied.low, copied.high) == pytest.approx((once.low, once.high))
    assert fresh.high - fresh.low < 0.6 * (once.high - once.low)  # type: ignore[operator]


def test_scores_weigh_by_their_squared_distance() -> None:
    made, counts = RaterPair(), np.zeros((5, 5))
    for number in range(60):
        one, two = number % 5, (number * number) % 5
        counts[one, two] += 1
        made.add(number, {"": float(one)}, {"": float(two)})
    assert made.kappa().value == pytest.approx(float(weighted_kappas(counts, [0, 1, 2, 3, 4])))


def test_what_is_undefined_is_none() -> None:
    assert pair({("yes", "yes"): 9}).kappa().value is None
    assert RaterPair().kappa().value is None
    agreed = pair({("yes", "yes"): 5, ("no", "no"): 5}).kappa()
    assert (agreed.value, agreed.low) == (1.0, None)


def test_sums_of_many_clusters_stay_few() -> None:
    made = pair({cell: count * 100 for cell, count in TABLE.items()})
    assert len(made.parts) == PARTS
    few = pair(TABLE).kappa()
    many = made.kappa()
    width = (few.high - few.low) / (many.high - many.low)  # type: ignore[operator]
    assert width == pytest.approx(10, rel=0.2), "a hundred times as many items"


def test_alike_raters_count_for_one() -> None:
    assert effective_votes(3, [1.0, 1.0, 1.0]) == pytest.approx(1)
    assert effective_votes(3, [0.5, 0.5, 0.5]) == pytest.approx(1.5)
    assert effective_votes(3, [-0.2, 0.1, 0.0]) == pytest.approx(3)
    assert effective_votes(3, []) is None

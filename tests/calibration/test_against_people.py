"""A judge compared with people: by hand, with libraries, and with too few people."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from judge.calibration.measures import against_people
from judge.calibration.observe import LabelledAnswer
from judge.stats.intervals import Estimate, plain

from .judgements import judged


def crowd(
    seed: int, judge_right: float, people_right: float, items: int = 80
) -> list[LabelledAnswer]:
    """Four people and a judge, each right so often, else at random among three answers."""
    rng = random.Random(seed)

    def said(true: str, right: float) -> str:
        return true if rng.random() < right else rng.choice(["yes", "no", "neutral"])

    found = []
    for number in range(items):
        true = rng.choice(["yes", "no", "neutral"])
        people = [(f"p{who}", said(true, people_right)) for who in range(4)]
        found.append(judged(f"r{number}", said(true, judge_right), people=people))
    return found


def test_by_hand() -> None:
    items = [
        judged("a", "yes", people=[("p", "yes"), ("q", "yes"), ("r", "no")]),
        judged("b", "no", people=[("p", "unsure"), ("q", "no")]),
        judged("c", "no", people=[("p", "no")]),
        judged("d", None, people=[("p", "no"), ("q", "no")]),
    ]
    found = against_people(items)
    assert found.annotators == 3
    # Pairs: 1 of 3 agree on a, 0 of 1 on b; with the judge 2 of 3 and 1 of 2.
    assert found.human_human.value == pytest.approx((1 / 3 + 0) / 2)
    assert found.human_judge.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert {(one.n, one.of) for one in (found.human_human, found.human_kappa)} == {(2, 4)}
    # An item that stands for three counts three times.
    items[0] = replace(items[0], item=replace(items[0].item, weight=3.0))
    found = against_people(items)
    assert found.human_human.value == pytest.approx((3 * 1 / 3 + 0) / 4)
    assert found.human_judge.value == pytest.approx((3 * 2 / 3 + 1 / 2) / 4)


def test_kappas_against_libraries() -> None:
    items = crowd(0, 0.7, 0.8)
    found = against_people(items)
    ratings = [[vote.answer for vote in one.item.annotations] for one in items]
    counts, _ = aggregate_raters(
        [[["yes", "no", "neutral"].index(answer) for answer in row] for row in ratings]
    )
    # Pooled over pairs with common frequencies, every item with four raters: Fleiss's kappa.
    assert found.human_kappa.value == pytest.approx(fleiss_kappa(counts))
    pairs = [
        (answer, one.answer) for one, row in zip(items, ratings, strict=True) for answer in row
    ]
    assert found.judge_kappa.value == pytest.approx(
        cohen_kappa_score([a for a, _ in pairs], [b for _, b in pairs])
    )


def test_the_test_tells_a_good_judge_from_a_bad_one() -> None:
    good, bad = against_people(crowd(1, 0.95, 0.7)), against_people(crowd(1, 0.0, 0.7))
    assert good.test is not None and bad.test is not None
    assert (good.test.passes, bad.test.passes) == (True, False)
    json.dumps(plain(good), allow_nan=False)


def test_too_little() -> None:
    nothing = against_people([judged("a", "yes", "yes")])
    assert nothing.human_human == nothing.human_kappa == Estimate(None, n=0, of=1)
    assert nothing.test is None
    assert against_people([]).judge_kappa.value is None
    two = [judged("a", "yes", people=[("p", "yes"), ("q", "no")])]
    assert against_people(two).test is None

"""Do the intervals cover? A judge with known error rates, many simulated data sets."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from judge.calibration.judged import Judged
from judge.calibration.measures import measure
from judge.stats.intervals import Estimate

from .judgements import judged

DATA_SETS = 200


def simulated(
    rng: random.Random, records: int, items: int, *, positive: float, recall: float, no: float
) -> list[Judged]:
    """Items of one record share half of their luck, so they are right or wrong together."""
    found = []
    for record in range(records):
        shared = rng.random()
        for number in range(items):
            gold = "yes" if rng.random() < positive else "no"
            luck = shared if rng.random() < 0.5 else rng.random()
            right = luck < (recall if gold == "yes" else no)
            answer = gold if right else {"yes": "no", "no": "yes"}[gold]
            found.append(judged(f"r{record}", answer, gold, number=number))
    return found


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low is not None and estimate.low <= truth <= (estimate.high or 0)


@pytest.mark.parametrize(
    ("records", "items", "positive", "recall", "no"),
    [(60, 3, 0.5, 0.85, 0.8), (75, 2, 0.3, 0.9, 0.9)],
)
def test_coverage_of_nominal_95(
    records: int, items: int, positive: float, recall: float, no: float
) -> None:
    accuracy = positive * recall + (1 - positive) * no
    said_yes = positive * recall + (1 - positive) * (1 - no)
    chance = positive * said_yes + (1 - positive) * (1 - said_yes)
    rng = random.Random(11)
    covered: Counter[str] = Counter()
    for _ in range(DATA_SETS):
        data = simulated(rng, records, items, positive=positive, recall=recall, no=no)
        found = measure(data, ["yes", "no"], draws=500)
        covered["accuracy"] += covers(found.accuracy, accuracy)
        covered["recall"] += covers(found.classes["yes"].recall, recall)
        covered["kappa"] += covers(found.kappa, (accuracy - chance) / (1 - chance))
    shares = {name: count / DATA_SETS for name, count in covered.items()}
    assert min(shares.values()) >= 0.92, shares

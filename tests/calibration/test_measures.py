"""Measures of one judge: by hand, against scikit-learn, by slice, and whether intervals cover."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from sklearn import metrics

from judge.calibration.measures import ABSENT, ANNOTATOR_GROUP, measure, slices
from judge.calibration.observations import Judged
from judge.calibration.plain import plain
from judge.errors import UsageError
from judge.stats.calibration_error import error_if_calibrated
from judge.stats.intervals import Estimate

from .judgements import judged

YES_NO = ["yes", "no"]


def scripted(seed: int, classes: list[str], items: int = 150) -> list[Judged]:
    """Two items a record; right 7 times in 10, unanswered 1 in 10, probabilities throughout."""
    rng = random.Random(seed)
    found = []
    for number in range(items):
        gold = rng.choice(classes)
        weights = [rng.random() + 0.4 * (name == gold) for name in classes]
        probabilities = {
            name: weight / sum(weights) for name, weight in zip(classes, weights, strict=True)
        }
        answer = None if rng.random() < 0.1 else max(classes, key=probabilities.__getitem__)
        found.append(judged(f"r{number // 2}", answer, gold, probabilities=probabilities))
    return found


BY_HAND = [
    judged("a", "yes", "yes"),
    judged("b", "yes", "yes"),
    judged("c", "no", "yes"),
    judged("d", "yes", "no"),
    judged("e", "no", "no"),
    judged("f", None, "yes"),
    judged("g", None, "no", outcome="unreadable"),
    judged("h", None, "no", outcome="skipped"),
    judged("i", "yes", None),
    judged("j", "no", "unsure"),
    judged("k", "yes", None, people=[("p", "yes"), ("q", "no")]),
]


def test_by_hand() -> None:
    found = measure(BY_HAND, YES_NO)
    assert (found.items, found.without_reference) == (8, 3)
    assert found.outcomes == {
        "answered": 5,
        "abstained": 1,
        "unreadable": 1,
        "error": 0,
        "skipped": 1,
    }
    assert found.confusion.rows == ("yes", "no")
    assert found.confusion.columns == ("yes", "no", "abstained", "unreadable", "error", "skipped")
    assert found.confusion.counts == ((2, 1, 1, 0, 0, 0), (1, 1, 0, 1, 0, 1))
    values = {
        name: (estimate.value, estimate.n, estimate.of)
        for name, estimate in {
            "coverage": found.coverage,
            "accuracy": found.accuracy,
            "precision": found.classes["yes"].precision,
            "recall": found.classes["yes"].recall,
            "f1": found.classes["no"].f1,
            "kappa": found.kappa,
        }.items()
    }
    assert values == {
        "coverage": (5 / 8, 8, 8),
        "accuracy": (3 / 5, 5, 8),
        "precision": (pytest.approx(2 / 3), 3, 8),
        "recall": (pytest.approx(2 / 3), 3, 8),
        "f1": (1 / 2, 3, 8),
        # Observed 0.6; by chance 0.6² + 0.4² = 0.52.
        "kappa": (pytest.approx(0.08 / 0.48), 5, 8),
    }
    assert found.weighted_kappa is None
    assert found.auc == found.calibration_error == Estimate(None, of=8)
    assert (found.error_if_calibrated, found.bins, found.risk_coverage) == (None, (), ())


@pytest.mark.parametrize("classes", [YES_NO, ["1", "0.5", "0"]])
def test_against_scikit_learn(classes: list[str]) -> None:
    items = scripted(1, classes)
    found = measure(items, classes, ordinal=True)
    answered = [one for one in items if one.answer is not None]
    true = [str(one.item.gold) for one in answered]
    said = [str(one.answer) for one in answered]
    assert found.accuracy.value == pytest.approx(metrics.accuracy_score(true, said))
    assert found.kappa.value == pytest.approx(metrics.cohen_kappa_score(true, said))
    assert found.weighted_kappa is not None
    assert found.weighted_kappa.value == pytest.approx(
        metrics.cohen_kappa_score(true, said, labels=classes, weights="quadratic")
    )
    by_class = metrics.precision_recall_fscore_support(true, said, labels=classes)
    for place, name in enumerate(classes):
        mine = found.classes[name]
        theirs = [column[place] for column in by_class[:3]]
        assert [mine.precision.value, mine.recall.value, mine.f1.value] == pytest.approx(theirs)
    expected = metrics.f1_score(true, said, average="macro")
    assert found.macro_f1.value == pytest.approx(expected)


def test_probabilities_of_two_classes() -> None:
    """Read off every item with probabilities, also where the judge abstained."""
    items = scripted(2, YES_NO)
    found = measure(items, YES_NO)
    p_yes = [one.probabilities["yes"] for one in items]
    is_yes = [one.item.gold == "yes" for one in items]
    assert found.auc.value == pytest.approx(metrics.roc_auc_score(is_yes, p_yes))
    assert (found.auc.n, found.auc.of, found.accuracy.n) == (
        150,
        150,
        150 - found.outcomes["abstained"],
    )
    assert len(found.bins) == 10
    gap = sum(one.n * abs(one.mean_probability - one.observed) for one in found.bins) / 150
    assert found.calibration_error.value == pytest.approx(gap)
    assert found.error_if_calibrated == error_if_calibrated(p_yes)
    assert found.risk_coverage[-1].coverage == 1
    assert found.risk_coverage[-1].threshold == min(max(p, 1 - p) for p in p_yes)
    wrong = sum((p > 0.5) != yes for p, yes in zip(p_yes, is_yes, strict=True))
    assert found.risk_coverage[-1].risk == pytest.approx(wrong / 150)


@pytest.mark.parametrize(
    "items",
    [
        [],
        [judged("a", "yes", None)],
        [judged("a", None, "yes"), judged("b", None, "no", outcome="error")],
    ],
)
def test_nothing_to_measure(items: list[Judged]) -> None:
    found = measure(items, YES_NO)
    assert found.accuracy.value is found.kappa.value is found.macro_f1.value is None
    assert found.items + found.without_reference == len(items)
    json.dumps(plain(found), allow_nan=False)


@pytest.mark.parametrize(
    ("items", "classes", "message"),
    [
        ([], ["yes"], "1 classes"),
        ([judged("a", "maybe", "yes")], YES_NO, "'maybe' is none of"),
        ([judged("a", None, "yes", outcome="answered")], YES_NO, "record a: answered with None"),
        ([judged("a", "no", "yes", outcome="error")], YES_NO, "record a: error with 'no'"),
        ([], ["yes", "error"], "named twice"),
    ],
)
def test_errors(items: list[Judged], classes: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure(items, classes)


# ---------------------------------------------------------------- slices

ITEMS = [
    judged("a", "yes", "yes", slices={"country": "egypt"}, fields={"axis": 1}, source="x.csv"),
    judged("b", "no", "yes", slices={"country": "egypt"}, fields={"axis": 2}, source="x.csv"),
    judged("c", "no", "no", slices={"country": "japan"}, fields={"axis": 2, "tags": ["t"]}),
    judged("d", "no", "no", fields={"axis": 2}),
]


def names(name: str) -> dict[str, list[str]]:
    return {value: [one.item.record for one in part] for value, part in slices(ITEMS, name).items()}


def test_by_slice_field_and_source() -> None:
    assert names("country") == {ABSENT: ["d"], "egypt": ["a", "b"], "japan": ["c"]}
    assert names("axis") == {"1": ["a"], "2": ["b", "c", "d"]}
    assert list(names("tags")) == [ABSENT, '["t"]']
    assert list(names("source")) == [ABSENT, "x.csv"]
    with pytest.raises(UsageError, match=r"no item has 'region'.*axis, country, tags"):
        slices(ITEMS, "region")
    with pytest.raises(UsageError, match=ANNOTATOR_GROUP):
        slices(ITEMS, ANNOTATOR_GROUP)


def test_groups_are_held_against_their_own_majority() -> None:
    people = [("p", "yes", "us"), ("q", "yes", "us"), ("r", "no", "in"), ("s", "no"), ("t", "no")]
    items = [
        judged("a", "yes", "no", people=people),
        judged("b", "no", people=[("p", "yes", "us"), ("q", "no", "us"), ("r", "no", "in")]),
    ]
    parts = slices(items, ANNOTATOR_GROUP)
    found = {group: measure(part, YES_NO) for group, part in parts.items()}
    assert list(found) == ["in", "us"]
    assert (found["us"].accuracy.value, found["us"].items) == (1.0, 1)
    # The two of the group are divided on b: it has no reference there.
    assert found["us"].without_reference == 1
    assert (found["in"].accuracy.value, found["in"].items) == (0.5, 2)


# ---------------------------------------------------------------- coverage

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

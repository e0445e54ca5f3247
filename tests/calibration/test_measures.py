"""Measures of one judge: by hand, against scikit-learn, by slice, and whether intervals cover."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from sklearn import metrics

from judge.calibration.measures import measure, slices
from judge.calibration.observe import LabelledAnswer
from judge.errors import UsageError
from judge.records import Record
from judge.records.base import NO_CONTENT
from judge.stats.intervals import Estimate

from .judgements import judged

YES_NO = ["yes", "no"]


def scripted(seed: int, classes: list[str], items: int = 150) -> list[LabelledAnswer]:
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
    columns = ("yes", "no", "abstained", "unreadable", "error", "skipped")
    assert found.confusion == {
        "yes": dict(zip(columns, (2, 1, 1, 0, 0, 0), strict=True)),
        "no": dict(zip(columns, (1, 1, 0, 1, 0, 1), strict=True)),
    }
    values = {
        name: (estimate.value, estimate.n, estimate.of)
        for name, estimate in {
            "accuracy": found.accuracy,
            "f1": found.f1["no"],
            "kappa": found.kappa,
        }.items()
    }
    assert values == {
        "accuracy": (3 / 5, 5, 8),
        "f1": (1 / 2, 3, 8),
        # Observed 0.6; by chance 0.6² + 0.4² = 0.52.
        "kappa": (pytest.approx(0.08 / 0.48), 5, 8),
    }
    assert found.auc == found.calibration_error == Estimate(None, of=8)


def test_an_error_is_no_answer_of_that_name() -> None:
    lost = [judged(f"r{n}", None, "error", outcome="error") for n in range(3)]
    found = measure(
        [*lost, judged("a", "error", "error"), judged("b", "ok", "ok")], ["error", "ok"]
    )
    columns = ("error", "ok", "abstained", "unreadable", "no answer: error", "skipped")
    assert found.confusion == {
        "error": dict(zip(columns, (1, 0, 0, 0, 3, 0), strict=True)),
        "ok": dict(zip(columns, (0, 1, 0, 0, 0, 0), strict=True)),
    }
    assert found.bins == ()


@pytest.mark.parametrize("classes", [YES_NO, ["1", "0.5", "0"]])
def test_against_scikit_learn(classes: list[str]) -> None:
    items = scripted(1, classes)
    found = measure(items, classes)
    answered = [one for one in items if one.answer is not None]
    true = [str(one.item.gold) for one in answered]
    said = [str(one.answer) for one in answered]
    assert found.accuracy.value == pytest.approx(metrics.accuracy_score(true, said))
    assert found.kappa.value == pytest.approx(metrics.cohen_kappa_score(true, said))
    theirs = metrics.f1_score(true, said, labels=classes, average=None)
    assert [one.value for one in found.f1.values()] == pytest.approx(list(theirs))
    expected = metrics.f1_score(true, said, average="macro")
    assert found.macro_f1.value == pytest.approx(expected)
    areas = [
        metrics.roc_auc_score(
            [one.item.gold == name for one in items], [one.probabilities[name] for one in items]
        )
        for name in classes
    ]
    assert found.auc.value == pytest.approx(sum(areas) / len(areas))


def test_probabilities_of_two_classes() -> None:
    """Over every item with probabilities, also if the judge abstained."""
    items = scripted(2, YES_NO)
    found = measure(items, YES_NO)
    p_yes = [one.probabilities["yes"] for one in items]
    is_yes = [one.item.gold == "yes" for one in items]
    assert found.auc.value == pytest.approx(metrics.roc_auc_score(is_yes, p_yes))
    abstained = sum(row["abstained"] for row in found.confusion.values())
    assert (found.auc.n, found.auc.of, found.accuracy.n) == (150, 150, 150 - abstained)
    assert len(found.bins) == 10
    gap = sum(one.n * abs(one.mean_probability - one.observed) for one in found.bins) / 150
    assert found.calibration_error.value == pytest.approx(gap)


@pytest.mark.parametrize("classes", [YES_NO, ["a", "b", "c"]])
def test_the_calibration_error_is_the_gap_to_what_was_right(classes: list[str]) -> None:
    """Eight of ten are right, and the judge gives the answer 0.9 each time."""
    sure = dict.fromkeys(classes, 0.1 / (len(classes) - 1)) | {classes[0]: 0.9}
    items = [judged(f"r{n}", classes[0], classes[n >= 8], probabilities=sure) for n in range(10)]
    assert measure(items, classes).calibration_error.value == pytest.approx(0.1)


def test_items_of_a_group_are_drawn_together_as_those_of_a_record_are() -> None:
    records = scripted(4, YES_NO)
    groups = [
        replace(one, item=replace(one.item, record=Record("", n, {}), group=one.item.record.id))
        for n, one in enumerate(records)
    ]
    assert measure(groups, YES_NO) == measure(records, YES_NO)


# ---------------------------------------------------------------- slices

ITEMS = [
    judged("a", "yes", "yes", slices={"country": "egypt"}, fields={"axis": 1}),
    judged("b", "no", "yes", slices={"country": "egypt"}, fields={"axis": 2}),
    judged("c", "no", "no", slices={"country": "japan"}, fields={"axis": 2}),
    judged("d", "no", "no", fields={"axis": 2}),
]


def names(name: str) -> dict[str, list[str]]:
    return {
        value: [one.item.record.id for one in part] for value, part in slices(ITEMS, name).items()
    }


def test_by_slice_and_field() -> None:
    assert names("country") == {NO_CONTENT: ["d"], "egypt": ["a", "b"], "japan": ["c"]}
    assert names("axis") == {"1": ["a"], "2": ["b", "c", "d"]}
    item = judged("e", "no", "no", fields={"re\u0301f": "x"})
    assert slices([item], "r\u00e9f") == {"x": [item]}
    item = judged("e", "no", "no", fields={"meta": {"place": "Oslo"}})
    assert slices([item], "meta.place") == {"Oslo": [item]}
    with pytest.raises(UsageError, match=r"--by region: no record has this field; .*axis"):
        slices(ITEMS, "region")


# ---------------------------------------------------------------- coverage

DATA_SETS = 200


def simulated(
    rng: random.Random, records: int, items: int, *, positive: float, recall: float, no: float
) -> list[LabelledAnswer]:
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


@pytest.mark.slow
def test_coverage_of_nominal_95() -> None:
    positive, recall, no = 0.5, 0.85, 0.8
    accuracy = positive * recall + (1 - positive) * no
    said_yes = positive * recall + (1 - positive) * (1 - no)
    chance = positive * said_yes + (1 - positive) * (1 - said_yes)
    rng = random.Random(11)
    covered: Counter[str] = Counter()
    for _ in range(DATA_SETS):
        data = simulated(rng, 60, 3, positive=positive, recall=recall, no=no)
        found = measure(data, ["yes", "no"], draws=500)
        covered["accuracy"] += covers(found.accuracy, accuracy)
        covered["kappa"] += covers(found.kappa, (accuracy - chance) / (1 - chance))
    shares = {name: count / DATA_SETS for name, count in covered.items()}
    assert min(shares.values()) >= 0.92, shares

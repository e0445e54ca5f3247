"""All measures of one judge: by hand, against scikit-learn, and where nothing can be said."""

from __future__ import annotations

import json
import random
import time

import pytest
from sklearn import metrics

from judge.calibration.judged import Judged
from judge.calibration.measures import measure
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
            "macro recall": found.macro.recall,
            "kappa": found.kappa,
            "matthews": found.matthews,
        }.items()
    }
    assert values == {
        "coverage": (5 / 8, 8, 8),
        "accuracy": (3 / 5, 5, 8),
        "precision": (pytest.approx(2 / 3), 3, 8),
        "recall": (pytest.approx(2 / 3), 3, 8),
        "f1": (1 / 2, 3, 8),
        "macro recall": (pytest.approx((2 / 3 + 1 / 2) / 2), 5, 8),
        # Observed 0.6; by chance 0.6² + 0.4² = 0.52.
        "kappa": (pytest.approx(0.08 / 0.48), 5, 8),
        "matthews": (pytest.approx((2 * 1 - 1 * 1) / 36**0.5), 5, 8),
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
    assert found.matthews.value == pytest.approx(metrics.matthews_corrcoef(true, said))
    by_class = metrics.precision_recall_fscore_support(true, said, labels=classes)
    for place, name in enumerate(classes):
        mine = found.classes[name]
        theirs = [column[place] for column in by_class[:3]]
        assert [mine.precision.value, mine.recall.value, mine.f1.value] == pytest.approx(theirs)
    macro = metrics.precision_recall_fscore_support(true, said, average="macro")
    assert [
        found.macro.precision.value,
        found.macro.recall.value,
        found.macro.f1.value,
    ] == pytest.approx(macro[:3])


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


def test_probabilities_of_three_classes() -> None:
    classes = ["yes", "no", "neutral"]
    items = scripted(3, classes)
    found = measure(items, classes)
    theirs = metrics.roc_auc_score(
        [one.item.gold for one in items],
        [[one.probabilities[name] for name in sorted(classes)] for one in items],
        multi_class="ovr",
    )
    assert found.auc.value == pytest.approx(theirs)
    # Of the most probable answer: nothing below a third.
    assert found.bins[0].low > 1 / 3


def test_every_value_lies_in_its_interval_and_clusters_widen_it() -> None:
    items = scripted(4, YES_NO)
    found = measure(items, YES_NO)
    estimates = [found.accuracy, found.kappa, found.matthews, found.auc, found.coverage]
    estimates += [found.macro.f1, found.classes["no"].precision, found.classes["yes"].f1]
    for one in estimates:
        assert one.value is not None and one.low is not None and one.high is not None
        assert one.low <= one.value <= one.high
    fourfold = measure(items * 4, YES_NO).accuracy
    assert (fourfold.low, fourfold.high) == (
        pytest.approx(found.accuracy.low),
        pytest.approx(found.accuracy.high),
    )


def test_all_right_is_not_certain() -> None:
    found = measure(
        [judged(f"r{n}", answer, answer) for n, answer in enumerate(YES_NO * 10)], YES_NO
    )
    assert found.accuracy == Estimate(1.0, pytest.approx(0.025 ** (1 / 20)), 1.0, n=20, of=20)
    assert found.classes["yes"].recall.low == pytest.approx(0.025 ** (1 / 10))
    assert found.kappa == Estimate(1.0, n=20, of=20)


def test_a_class_that_nobody_gave() -> None:
    found = measure([judged(f"r{n}", "yes", "yes") for n in range(5)], YES_NO)
    assert found.classes["no"].recall == Estimate(None, n=0, of=5)
    assert found.classes["no"].f1.value is None
    assert found.kappa.value is found.matthews.value is None


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
    assert found.accuracy.value is found.kappa.value is found.macro.f1.value is None
    assert found.items + found.without_reference == len(items)
    json.dumps(found.as_json(), allow_nan=False)


def test_seed() -> None:
    items = scripted(5, YES_NO)
    first, again, other = (measure(items, YES_NO, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first.kappa.low != other.kappa.low


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


def test_json() -> None:
    found = measure(scripted(6, YES_NO), YES_NO).as_json()
    json.dumps(found, allow_nan=False)
    assert found["kappa"].keys() == {"value", "low", "high", "n", "of"}
    assert found["classes"]["yes"]["recall"]["value"] == round(
        found["classes"]["yes"]["recall"]["value"], 6
    )
    assert found["bins"][0].keys() == {"low", "high", "mean_probability", "observed", "n"}


def test_four_hundred_items_take_little_time() -> None:
    items = scripted(7, ["yes", "no", "neutral"], items=400)
    started = time.process_time()
    measure(items, ["yes", "no", "neutral"], ordinal=True)
    assert time.process_time() - started < 1.5

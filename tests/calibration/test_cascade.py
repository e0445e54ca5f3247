"""Policies from judged items: what counts, what is refused, and what a cascade makes of an item."""

from __future__ import annotations

import random

import pytest

from judge.calibration.cascade import decided, policy_of, refusal
from judge.calibration.observations import Judged
from judge.stats.guarantee import least_items

from .judgements import judged


def said(record: str, sure: float, right: bool, **more: object) -> Judged:
    probabilities = {"yes": sure, "no": 1 - sure}
    gold = "yes" if right else "no"
    return judged(record, "yes", gold, probabilities=probabilities, **more)  # type: ignore[arg-type]


def part(name: str, *blocks: tuple[float, int, int]) -> list[Judged]:
    """Blocks of (sureness, right, of)."""
    return [
        said(f"{name}{number}.{one}", sure, one < right)
        for number, (sure, right, of) in enumerate(blocks)
        for one in range(of)
    ]


# ---------------------------------------------------------------- how sure


# ---------------------------------------------------------------- policies


def test_one_judge_is_tested_on_its_own_part_at_the_full_level() -> None:
    fitted = part("f", (0.95, 0, 50), (0.7, 0, 50))
    own = part("s", (0.95, 60, 60), (0.7, 30, 60))
    found = policy_of([fitted], [[own]], 0.9, 0.95)
    (stage,) = found.stages
    assert stage.threshold == 0.95
    assert (stage.coverage.value, stage.coverage.of) == (0.5, 120)
    assert (stage.agreement.value, stage.agreement.n) == (1.0, 60)
    assert stage.agreement.low == pytest.approx(0.05 ** (1 / 60))
    assert found.decided == (0.5,)
    assert found.passed_on == 0.5


def test_two_judges_share_the_level_and_the_second_sees_what_the_first_leaves() -> None:
    cheap_part = part("c", (0.95, 80, 80), (0.6, 20, 40))
    strong_part = part("d", (0.9, 100, 100))
    cheap_on_strong = part("d", (0.95, 100, 100))[:40] + part("d", (0.6, 100, 100))[40:]
    found = policy_of(
        [part("f", (0.95, 80, 80), (0.6, 20, 20)), part("f", (0.9, 100, 100))],
        [[cheap_part], [cheap_on_strong, strong_part]],
        0.9,
        0.95,
    )
    cheap, strong = found.stages
    assert (cheap.threshold, strong.threshold) == (0.95, 0.9)
    assert cheap.agreement.low == pytest.approx(0.025 ** (1 / 80))
    # 40 of the 100 are decided by the cheap judge; 60 reach the strong one.
    assert (strong.agreement.n, strong.coverage.of) == (60, 60)
    assert strong.agreement.low == pytest.approx(0.025 ** (1 / 60))
    assert found.decided == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert found.passed_on == pytest.approx(0)


def test_a_judge_without_probabilities_decides_all_or_nothing() -> None:
    fitted = [judged(f"f{n}", "yes", "yes") for n in range(50)]
    good = [judged(f"s{n}", "yes", "yes" if n else "no") for n in range(100)]
    (stage,) = policy_of([fitted], [[good]], 0.9, 0.95).stages
    assert (stage.threshold, stage.coverage.value) == (1.0, 1.0)
    poor = [judged(f"s{n}", "yes", "yes" if n % 4 else "no") for n in range(100)]
    (stage,) = policy_of([fitted], [[poor]], 0.9, 0.95).stages
    assert (stage.threshold, stage.missing) == (None, None)
    assert stage.reason is not None
    assert "cannot be shown by more labels" in stage.reason
    assert "75.0%" in stage.reason


def test_the_grid_of_a_cascade_takes_the_level_of_its_stages() -> None:
    """A stage tested at 97.5 % wants 36 items, all agreeing, where 95 % wants 29: with the grid of
    a single judge its first threshold would keep too few of them."""
    fitted = [said(f"f{n}", 0.5 + n / 1000, True) for n in range(400)]
    own = [said(f"s{n}", 0.5 + n / 1000, True) for n in range(400)]
    first = []
    for level, stages in ((0.95, [[own]]), (0.975, [[own]]), (0.95, [[own], [own, own]])):
        policy = policy_of([fitted] * len(stages), stages, 0.9, level)
        first.append(policy.stages[0].tested[0].kept)
    alone, stricter, of_two = first
    assert alone < stricter == of_two


def test_one_item_of_each_record_counts_drawn_at_random() -> None:
    """The first value of every record is easy and the second hard: 95 % and 70 % agree.

    The true agreement of an item is 82.5 %. Going by the first ones, 90 % would be guaranteed."""
    rng = random.Random(2)
    own = [
        said(f"s{n}", 0.9, rng.random() < right, number=number)
        for n in range(300)
        for number, right in ((1, 0.95), (2, 0.7))
    ]
    fitted = [said(f"f{n}", 0.9, True) for n in range(50)]
    firsts = policy_of([fitted], [[[one for one in own if one.item.number == 1]]], 0.9, 0.95)
    assert firsts.stages[0].threshold == 0.9
    shares = []
    for seed in range(10):
        (stage,) = policy_of([fitted], [[own]], 0.9, 0.95, seed=seed).stages
        assert stage.threshold is None
        shares.append(stage.tested[0].agreed / stage.tested[0].kept)
        assert stage.tested[0].kept == 300
    assert sum(shares) / 10 == pytest.approx(0.825, abs=0.02)
    assert len(set(shares)) > 1
    again = policy_of([fitted], [[own]], 0.9, 0.95, seed=3)
    assert again == policy_of([fitted], [[own]], 0.9, 0.95, seed=3)


def test_every_judge_is_asked_about_the_item_that_was_drawn() -> None:
    """The cheap judge knows the first values only, the strong one the second ones only: which of
    the strong one's items reach it goes by the cheap one's answers to the very same items."""

    def answers(known: int) -> list[Judged]:
        return [
            said(f"s{n}", 0.9 if number == known else 0.5, True, number=number)
            for n in range(200)
            for number in (1, 2)
        ]

    fitted = [said(f"f{n}", 0.9, True) for n in range(50)]
    cheap, strong = answers(1), answers(2)
    found = policy_of([fitted, fitted], [[cheap], [cheap, strong]], 0.9, 0.95)
    assert found.stages[1].threshold == 0.9
    assert found.stages[1].coverage.value == 1.0, "what the cheap one leaves the strong one knows"


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("labels", [0, 1, 20, 28])
def test_a_refusal_says_how_many_labels_are_missing(labels: int) -> None:
    own = part("s", (0.9, labels, labels))
    (stage,) = policy_of([part("f", (0.9, 50, 50))], [[own]], 0.9, 0.95).stages
    missing = least_items(agreement=0.9, level=0.95) - labels
    assert (stage.threshold, stage.missing) == (None, missing)
    assert stage.reason is not None
    assert str(missing) in stage.reason
    enough = part("s", (0.9, labels + missing, labels + missing))
    assert policy_of([part("f", (0.9, 50, 50))], [[enough]], 0.9, 0.95).stages[0].threshold == 0.9


def test_what_is_missing_from_a_test_is_told_of_all_labels() -> None:
    """15 of 60 records went into the test and 14 are missing from it: 56 of all."""
    found = policy_of([part("f", (0.9, 30, 30))], [[part("s", (0.9, 15, 15))]], 0.9, 0.95)
    assert found.stages[0].missing == 14
    told = refusal(found, 60)
    assert told is not None
    assert told.startswith(str(found.stages[0].reason))
    assert told.endswith(
        "Of 60 labelled records 15 went into this test, so about 56 more records are to be labelled"
    )
    nothing = policy_of([[]], [[[]]], 0.9, 0.95)
    assert refusal(nothing, 0) == nothing.stages[0].reason
    kept = policy_of([part("f", (0.9, 30, 30))], [[part("s", (0.9, 40, 40))]], 0.9, 0.95)
    assert refusal(kept, 160) is None


def test_a_second_judge_that_nothing_reaches_is_one_too_many() -> None:
    fitted, own = part("f", (0.9, 50, 50)), part("c", (0.9, 80, 80))
    found = policy_of([fitted, fitted], [[own], [own, own]], 0.9, 0.95)
    assert [stage.threshold for stage in found.stages] == [0.9, None]
    told = "the first judge alone can be guaranteed on all: leave out the one behind it"
    assert refusal(found, 400) == told


# ---------------------------------------------------------------- what a cascade decides


def test_the_first_judge_that_is_sure_enough_answers() -> None:
    cheap, strong = said("a", 0.8, True), judged("a", "no", "yes")
    assert decided([cheap, strong], [0.8, 1.0]) is cheap
    assert decided([cheap, strong], [0.81, 1.0]) is strong
    assert decided([cheap, strong], [None, 1.0]) is strong
    left = decided([cheap, strong], [0.81, None])
    assert (left.outcome, left.answer, left.item) == ("abstained", None, strong.item)
    silent = judged("a", None, "yes", outcome="unreadable")
    assert decided([silent, strong], [0.0, 1.0]) is strong
    assert decided([cheap, silent], [0.9, 0.0]).outcome == "abstained"

"""Policies from judged items: which items count, which are refused, and how a cascade decides."""

from __future__ import annotations

import random

import pytest

from judge.calibration.guarantee import decided, policy_of, refusal
from judge.calibration.observe import LabelledAnswer
from judge.verdict import Verdict

from .judgements import judged


def said(record: str, sure: float, right: bool, **more: object) -> LabelledAnswer:
    probabilities = {"yes": sure, "no": 1 - sure}
    gold = "yes" if right else "no"
    return judged(record, "yes", gold, probabilities=probabilities, **more)  # type: ignore[arg-type]


def part(name: str, *blocks: tuple[float, int, int]) -> list[LabelledAnswer]:
    """Blocks of (sureness, right, of)."""
    return [
        said(f"{name}{number}.{one}", sure, one < right)
        for number, (sure, right, of) in enumerate(blocks)
        for one in range(of)
    ]


# ---------------------------------------------------------------- policies


def test_one_judge_is_tested_on_its_own_part_at_the_full_level() -> None:
    fitted = part("f", (0.95, 0, 50), (0.7, 0, 50))
    own = part("s", (0.95, 60, 60), (0.7, 30, 60))
    found = policy_of([fitted], [[own]], 0.9)
    (stage,) = found.stages
    assert stage.threshold == 0.95
    assert (stage.coverage.value, stage.coverage.of) == (0.5, 120)
    assert (stage.agreement.value, stage.agreement.n) == (1.0, 60)
    assert stage.agreement.low == pytest.approx(0.05 ** (1 / 60))
    assert found.decided == (0.5,)
    assert found.passed_on == 0.5


def test_two_judges_share_the_level_and_the_second_sees_what_the_first_leaves() -> None:
    """The strong judge is surer of what the cheap one decides: 0.99 is no threshold for the rest.
    Nor is 0.97, because twice the 36 items that can pass are more than the 60 that reach it."""
    cheap_part = part("c", (0.95, 80, 80), (0.6, 20, 40))
    strong_part = part("d", (0.9, 100, 100))
    cheap_on_strong = part("d", (0.95, 100, 100))[:40] + part("d", (0.6, 100, 100))[40:]
    found = policy_of(
        [
            part("f", (0.95, 80, 80), (0.6, 15, 15), (0.6, 5, 5)),
            part("f", (0.99, 80, 80), (0.97, 15, 15), (0.9, 5, 5)),
        ],
        [[cheap_part], [cheap_on_strong, strong_part]],
        0.9,
    )
    cheap, strong = found.stages
    assert (cheap.threshold, strong.threshold) == (0.95, 0.9)
    assert cheap.agreement.low == pytest.approx(0.025 ** (1 / 80))
    # 40 of the 100 are decided by the cheap judge; 60 reach the strong one.
    assert (strong.agreement.n, strong.coverage.of) == (60, 60)
    assert strong.agreement.low == pytest.approx(0.025 ** (1 / 60))
    assert found.decided == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert found.passed_on == pytest.approx(0)


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
    firsts = policy_of([fitted], [[[one for one in own if one.item.number == 1]]], 0.9)
    assert firsts.stages[0].threshold == 0.9
    shares = []
    for seed in range(10):
        assert policy_of([fitted], [[own]], 0.9, seed=seed).stages[0].threshold is None
        (stage,) = policy_of([fitted], [[own]], 0.6, seed=seed).stages
        assert stage.agreement.n == 300
        shares.append(stage.agreement.value or 0.0)
    assert sum(shares) / 10 == pytest.approx(0.825, abs=0.02)
    assert len(set(shares)) > 1
    again = policy_of([fitted], [[own]], 0.9, seed=3)
    assert again == policy_of([fitted], [[own]], 0.9, seed=3)


def test_every_judge_is_asked_about_the_item_that_was_drawn() -> None:
    """The cheap judge knows the first values only, the strong one the second ones only: which of
    the strong one's items reach it goes by the cheap one's answers to the very same items."""

    def answers(known: int) -> list[LabelledAnswer]:
        return [
            said(f"s{n}", 0.9 if number == known else 0.5, True, number=number)
            for n in range(200)
            for number in (1, 2)
        ]

    sure = [said(f"f{n}", 0.9, True) for n in range(50)]
    silent = [judged(one.item.record.id, None, "yes") for one in sure[:20]]
    cheap, strong = answers(1), answers(2)
    found = policy_of([silent + sure[20:], sure], [[cheap], [cheap, strong]], 0.9)
    assert found.stages[1].threshold == 0.9
    assert found.stages[1].coverage.value == 1.0, "what the cheap one leaves the strong one knows"


# ---------------------------------------------------------------- refusals


def test_a_second_judge_that_nothing_reaches_is_one_too_many() -> None:
    fitted, own = part("f", (0.9, 50, 50)), part("c", (0.9, 80, 80))
    found = policy_of([fitted, fitted], [[own], [own, own]], 0.9)
    assert [stage.threshold for stage in found.stages] == [0.9, None]
    told = "the first judge decides every item: leave out the second"
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
    # An error is none of the records that the judge leaves undecided.
    failed = judged("a", None, "yes", outcome="error")
    assert decided([cheap, failed], [0.9, 0.0]).outcome == "error"
    assert decided([failed, cheap], [0.0, 0.9]).outcome == "abstained"
    assert decided([failed, strong], [0.0, 1.0]) is strong
    # Votes for several answers that all fail decide, as in a run.
    split = judged("a", None, "yes", verdict=Verdict.FAIL)
    assert decided([silent, split], [0.0, 1.0]) is split

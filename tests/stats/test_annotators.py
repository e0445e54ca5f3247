"""The alternative annotator test: by hand, and against the procedure written out with libraries."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from judge.stats.agreement import alternative_annotator

Answers = dict[int, str]


def simulated(
    seed: int, judge_right: float, people_right: float, *, items: int = 60, people: int = 4
) -> tuple[Answers, dict[str, Answers]]:
    """A judge and people who each name one of four classes, right so often, else at random."""
    rng = random.Random(seed)
    truth = [rng.choice("abcd") for _ in range(items)]

    def answers(right: float) -> Answers:
        return {
            number: true if rng.random() < right else rng.choice("abcd")
            for number, true in enumerate(truth)
        }

    return answers(judge_right), {f"p{n}": answers(people_right) for n in range(people)}


def written_out(
    judge: Answers, people: dict[str, Answers], epsilon: float
) -> tuple[list[float], list[bool], float]:
    p_values, advantages = [], []
    for name, own in people.items():
        d, judge_wins = [], []
        for item, answer in own.items():
            others = [theirs[item] for other, theirs in people.items() if other != name]
            mine, its = (
                np.mean([o == judge[item] for o in others]),
                np.mean([o == answer for o in others]),
            )
            d.append(int(its >= mine) - int(mine >= its))
            judge_wins.append(mine >= its)
        p_values.append(float(ttest_1samp(d, epsilon, alternative="less").pvalue))
        advantages.append(float(np.mean(judge_wins)))
    rejected = multipletests(p_values, alpha=0.05, method="fdr_by")[0]
    return p_values, rejected.tolist(), float(np.mean(advantages))


def test_an_item_that_the_judge_left_open_does_not_count() -> None:
    judge, people = simulated(3, 0.7, 0.8)
    del judge[0], judge[7]
    fewer = {name: {n: own[n] for n in own if n in judge} for name, own in people.items()}
    assert alternative_annotator(judge, people) == alternative_annotator(judge, fewer) is not None


def test_by_hand() -> None:
    """Three items: p1 and p2 say a, a, b; p3 says b throughout; the judge a throughout."""
    people = {"p1": "aab", "p2": "aab", "p3": "bbb"}
    outcome = alternative_annotator(
        dict(enumerate("aaa")), {name: dict(enumerate(said)) for name, said in people.items()}
    )
    assert outcome is not None
    # Against p2 and p3: items 1 and 2 tie at one half; item 3 goes to p1, 1 against 0.
    # d - 0.1 is -0.1, -0.1, 0.9, ranks 1.5, 1.5, 3: the positive one has rank sum 3, and of the
    # eight sign patterns {}, {1.5}, {1.5}, {1.5, 1.5} and {3} come to 3 or less.
    assert outcome.p_values["p1"] == 5 / 8
    # Against p1 and p2: the judge is right twice, p3 once.
    assert outcome.advantage == pytest.approx(2 / 3)
    assert (outcome.winning_rate, outcome.passes) == (0.0, False)


@pytest.mark.parametrize(("seed", "epsilon"), [(0, 0.0), (1, 0.1), (2, 0.2)])
def test_against_the_procedure_written_out(seed: int, epsilon: float) -> None:
    judge, people = simulated(seed, judge_right=0.75, people_right=0.7)
    outcome = alternative_annotator(judge, people, epsilon=epsilon)
    assert outcome is not None
    p_values, rejected, advantage = written_out(judge, people, epsilon)
    assert list(outcome.p_values.values()) == pytest.approx(p_values)
    assert outcome.winning_rate == sum(rejected) / 4
    assert outcome.advantage == pytest.approx(advantage)


def test_half_of_the_annotators_are_enough() -> None:
    """Two people agree on all items, two on none; the judge agrees with no one."""
    items = range(40)
    people = {name: dict.fromkeys(items, said) for name, said in zip("wxyz", "aabc", strict=True)}
    found = alternative_annotator(dict.fromkeys(items, "d"), people)
    assert found is not None
    assert (found.winning_rate, found.passes) == (0.5, True)


def test_answers_without_a_spread_have_the_limit_of_the_test() -> None:
    people = {name: dict(enumerate("ab" * 15)) for name in ("p1", "p2", "p3")}
    for epsilon, p in ((0.1, 0.0), (0.0, 1.0)):
        alike = alternative_annotator(people["p1"], people, epsilon=epsilon)
        assert alike is not None and set(alike.p_values.values()) == {p}


def test_undefined() -> None:
    judge, people = simulated(0, judge_right=0.8, people_right=0.7, people=2)
    assert alternative_annotator(judge, people) is None
    assert alternative_annotator({}, {}) is None

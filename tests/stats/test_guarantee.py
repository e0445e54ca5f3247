"""The guarantee: by hand, against a brute-force search, and kept over simulated data sets."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from judge.stats.guarantee import (
    StageData,
    cascade_policy,
    grid_from,
    threshold_with_guarantee,
)


def block(confidence: float, agreed: int, n: int) -> tuple[list[float], list[bool]]:
    return [confidence] * n, [True] * agreed + [False] * (n - agreed)


def blocks(*parts: tuple[float, int, int]) -> tuple[list[float], list[bool]]:
    made = [block(*part) for part in parts]
    return [c for one, _ in made for c in one], [a for _, one in made for a in one]


def test_by_hand() -> None:
    # 29 of 29: the bound 0.05^(1/29) = 0.9018 holds. 57 of 60: 0.876 does not.
    confidences, agrees = blocks((0.9, 29, 29), (0.8, 28, 31), (0.7, 40, 40))
    found = threshold_with_guarantee(confidences, agrees, [0.7, 0.9, 0.8])
    assert found.threshold == 0.9
    assert found.coverage.value == pytest.approx(0.29)
    assert (found.coverage.n, found.coverage.of) == (100, 100)
    assert (found.agreement.value, found.agreement.n, found.agreement.of) == (1.0, 29, 100)
    assert found.agreement.low == pytest.approx(0.05 ** (1 / 29))
    assert found.agreement.high is None
    # 0.7 is never looked at, though the 97 of 100 at it would hold.
    assert [(one.threshold, one.kept, one.agreed, one.holds) for one in found.tested] == [
        (0.9, 29, 29, True),
        (0.8, 60, 57, False),
    ]
    assert (found.missing, found.reason) == (None, None)
    assert threshold_with_guarantee(confidences, agrees, [0.7]).threshold == 0.7


def test_missing_labels_would_do() -> None:
    """Given so many more, agreeing as before, the bound holds; with fewer it does not."""
    found = threshold_with_guarantee(*block(0.9, 38, 40), [0.9])
    assert found.missing is not None
    n = 40 + found.missing
    # 95 % agree, so a whole number of disagreements comes at every 20th item.
    for size in range(20, 1000, 20):
        holds = binomtest(size * 19 // 20, size, alternative="greater").proportion_ci(0.95).low
        assert (holds >= 0.9) == (size >= n), size


@pytest.mark.parametrize(
    ("data", "missing", "why"),
    [
        (([], []), 29, "no labels: agreement of 90% with 95% confidence takes at least 29"),
        (block(0.9, 90, 100), None, "the best that any threshold reaches on these 100 items"),
        (block(0.1, 90, 90), None, "none of the 90 items reaches a threshold"),
    ],
)
def test_refused(data: tuple[list[float], list[bool]], missing: int | None, why: str) -> None:
    found = threshold_with_guarantee(*data, [0.9, 0.8])
    assert found.threshold is None
    assert found.missing == missing
    assert why in str(found.reason)
    assert len(found.tested) == 1


Items = st.lists(st.tuples(st.sampled_from([0.2, 0.4, 0.6, 0.8]), st.integers(0, 20)), max_size=150)


@given(Items, st.sampled_from([0.6, 0.8, 0.9]), st.sampled_from([0.8, 0.95]))
def test_against_brute_force(
    items: list[tuple[float, int]], agreement: float, level: float
) -> None:
    confidences = [confidence for confidence, _ in items]
    agrees = [luck > 1 for _, luck in items]
    grid = [0.1, 0.4, 0.6, 0.8]
    expected = None
    for threshold in sorted(grid, reverse=True):
        kept = [a for c, a in zip(confidences, agrees, strict=True) if c >= threshold]
        # The bound holds where so many agreements are unlikely at the wanted rate.
        if not kept:
            break
        if binomtest(sum(kept), len(kept), agreement, alternative="greater").pvalue > 1 - level:
            break
        expected = threshold
    found = threshold_with_guarantee(confidences, agrees, grid, agreement=agreement, level=level)
    assert found.threshold == expected
    assert (found.reason is None) == (expected is not None)
    assert all(one.holds for one in found.tested[:-1])


def test_grid() -> None:
    elsewhere = [place / 1000 for place in range(1000)]
    grid = grid_from(elsewhere, 200, steps=10)
    assert len(grid) == 10
    assert grid == sorted(grid, reverse=True)
    assert grid[-1] == 0.0
    # Twice 29 of 200 items.
    assert grid[0] == pytest.approx(1 - 58 / 200, abs=0.002)
    steps = [higher - lower for higher, lower in pairwise(grid)]
    assert max(steps) - min(steps) < 0.003
    # A large part starts at a tenth, one too small at everything.
    assert grid_from(elsewhere, 10_000)[0] == pytest.approx(0.9, abs=0.002)
    assert grid_from(elsewhere, 20) == [0.0]
    assert grid_from([0.5, 1.0, 1.0], 1000) == [1.0, 0.5]
    assert grid_from([0.3, 0.6], 1000, steps=1) == [0.3]


def simulated_stage(
    chance: random.Random, items: int, slope: float
) -> tuple[list[float], list[bool]]:
    confidences = [chance.random() for _ in range(items)]
    return confidences, [chance.random() < 1 - slope + slope * c for c in confidences]


def true_agreement(threshold: float, slope: float) -> float:
    return 1 - slope + slope * (1 + threshold) / 2


def test_it_is_kept_over_simulated_data_sets() -> None:
    chance = random.Random(20)
    wrong = given_out = 0
    for _ in range(200):
        elsewhere = [chance.random() for _ in range(300)]
        data = simulated_stage(chance, 300, 0.3)
        found = threshold_with_guarantee(*data, grid_from(elsewhere, 300))
        if found.threshold is not None:
            given_out += 1
            wrong += true_agreement(found.threshold, 0.3) < 0.9
    # Over 200 data sets 5 % is 10; 18 or more would come once in 100 at a true 5 %.
    assert wrong < 18
    assert given_out > 100


def test_cascade_by_hand() -> None:
    cheap = StageData(*blocks((0.9, 60, 60), (0.3, 20, 40)), grid=[0.9])
    # Of the second part, 50 items would have been decided by the first stage: all of them wrong
    # here, so that counting them would break the second test.
    confidences, agrees = blocks((0.8, 0, 50), (0.8, 45, 45), (0.1, 0, 5))
    strong = StageData(confidences, agrees, [0.8], earlier=([0.95] * 50 + [0.2] * 50,))
    found = cascade_policy([cheap, strong])
    assert [one.threshold for one in found.stages] == [0.9, 0.8]
    assert found.stages[1].agreement.n == 45 and found.stages[1].agreement.of == 50
    # Each stage is tested at 97.5 %.
    assert found.stages[0].agreement.low == pytest.approx(0.025 ** (1 / 60))
    assert found.decided == pytest.approx((0.6, 0.4 * 0.9))
    assert found.passed_on == pytest.approx(0.04)


def test_the_cascade_keeps_it_over_simulated_data_sets() -> None:
    """Two stages whose confidences go together; the whole's true agreement is computed exactly."""
    chance = random.Random(11)
    wrong = given_out = 0
    for _ in range(200):
        parts = []
        for _ in range(2):
            cheap, cheap_agrees = simulated_stage(chance, 250, 0.3)
            # The stronger judge is the surer the cheap one is, and agrees by its own confidence.
            sure = [(c + chance.random()) / 2 for c in cheap]
            parts.append(
                (cheap, cheap_agrees, sure, [chance.random() < 0.8 + 0.3 * s for s in sure])
            )
        elsewhere = [chance.random() for _ in range(500)]
        grid_one = grid_from(elsewhere, 250)
        grid_two = grid_from([(c + chance.random()) / 2 for c in elsewhere], 250)
        policy = cascade_policy(
            [
                StageData(parts[0][0], parts[0][1], grid_one),
                StageData(parts[1][2], parts[1][3], grid_two, earlier=(parts[1][0],)),
            ]
        )
        first, second = (one.threshold for one in policy.stages)
        if first is None and second is None:
            continue
        given_out += 1
        wrong += cascade_agreement(first, second) < 0.9
    assert wrong < 18
    assert given_out > 100


def cascade_agreement(first: float | None, second: float | None, steps: int = 200) -> float:
    """The true agreement on what either stage decides, by summing over a lattice."""
    mass = right = 0.0
    for i in range(steps):
        c = (i + 0.5) / steps
        if first is not None and c >= first:
            mass, right = mass + steps, right + steps * (0.7 + 0.3 * c)
            continue
        for j in range(steps):
            s = (c + (j + 0.5) / steps) / 2
            if second is not None and s >= second:
                mass, right = mass + 1, right + min(1.0, 0.8 + 0.3 * s)
    return right / mass


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: threshold_with_guarantee([0.5], [], [0.5]), "1 confidences, 0 agreements"),
        (lambda: threshold_with_guarantee([], [], []), "no threshold"),
        (lambda: threshold_with_guarantee([], [], [0.5], agreement=1.0), "strictly between"),
        (lambda: threshold_with_guarantee([], [], [0.5], level=0.0), "strictly between"),
        (lambda: grid_from([], 10), "needs confidences"),
        (lambda: grid_from([0.5], 10, steps=0), "at least one step"),
        (lambda: cascade_policy([]), "at least one stage"),
        (
            lambda: cascade_policy([StageData([0.5], [True], [0.5])] * 2),
            "stage 2 has the confidences of 0 earlier stages, not of 1",
        ),
        (
            lambda: cascade_policy(
                [
                    StageData([0.5], [True], [0.5]),
                    StageData([0.5], [True], [0.5], earlier=([0.1, 0.2],)),
                ]
            ),
            "differ in length",
        ),
    ],
)
def test_impossible(call: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call()  # type: ignore[operator]

"""Position effect, by hand and at its limits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats.intervals import Estimate
from judge.stats.votes import position_effect

answer = st.sampled_from(["a", "b", "c", None])


def test_by_hand() -> None:
    # Named a, b, c and then c, b, a.
    answers = [("a", "c"), ("a", "a"), ("c", "a"), ("b", "b"), ("a", "b"), (None, "a"), ("a", None)]
    effect = position_effect(answers, ["a", "b", "c"], range(7))
    assert effect.changed.value == 3 / 5
    assert effect.first.value == effect.last.value == 1 / 5
    assert (effect.changed.n, effect.changed.of) == (5, 7)
    turned = position_effect(answers, ["c", "b", "a"], range(7))
    assert (turned.first, turned.last) == (effect.last, effect.first)


def test_always_the_first() -> None:
    effect = position_effect([("a", "b")] * 20, ["a", "b"], range(20))
    assert effect.changed.value == effect.first.value == 1
    assert effect.first.low == pytest.approx(0.025 ** (1 / 20))
    assert effect.last.value == 0


def test_limits_and_errors() -> None:
    nothing = position_effect([(None, "a")], ["a", "b"], ["r"])
    assert nothing.changed == nothing.first == nothing.last == Estimate(None, n=0, of=1)
    with pytest.raises(ValueError, match="no order"):
        position_effect([], ["a"], [])
    with pytest.raises(ValueError, match="'c' is none of a, b"):
        position_effect([("a", "c")], ["a", "b"], ["r"])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(answer, answer), min_size=1, max_size=20))
def test_two_places_are_part_of_the_changes(answers: list[tuple[str | None, str | None]]) -> None:
    effect = position_effect(answers, ["a", "b", "c"], range(len(answers)), draws=10)
    if effect.changed.value is not None:
        assert effect.first.value is not None and effect.last.value is not None
        assert effect.first.value + effect.last.value <= effect.changed.value + 1e-9
        mirrored = [(turned, straight) for straight, turned in answers]
        swapped = position_effect(mirrored, ["c", "b", "a"], range(len(answers)), draws=10)
        assert swapped.first.value == effect.first.value

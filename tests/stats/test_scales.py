"""1-5 ratings as each annotator means them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.annotators import ScaleMap, fit_scales

LABELS = st.sampled_from(["entailment", "neutral", "contradiction"])


def test_without_calibration_two_and_four_are_neutral() -> None:
    labels = [ScaleMap().label(rating) for rating in range(1, 6)]
    assert labels == ["contradiction", "neutral", "neutral", "neutral", "entailment"]
    assert fit_scales([]) == {}


def test_two_annotators_mean_different_things() -> None:
    found = fit_scales(
        [
            ("bold", 2, "neutral"),
            ("bold", 4, "neutral"),
            ("bold", 4, "entailment"),
            ("shy", 2, "contradiction"),
            ("shy", 2, "contradiction"),
            ("shy", 2, "neutral"),
            ("shy", 4, "entailment"),
            ("shy", 1, "contradiction"),
        ]
    )
    assert found["bold"] == ScaleMap("neutral", "neutral", {2: 1, 4: 2})
    assert found["shy"] == ScaleMap("contradiction", "entailment", {2: 3, 4: 1})


def test_the_far_end_says_nothing_about_the_border() -> None:
    found = fit_scales([("a", 2, "entailment"), ("a", 2, "entailment"), ("a", 2, "contradiction")])
    assert found["a"] == ScaleMap("contradiction", "neutral", {2: 1, 4: 0})


@pytest.mark.parametrize("rating", [0, 6, -1])
def test_what_is_no_rating(rating: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 5"):
        ScaleMap().label(rating)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 5), LABELS)), st.data())
def test_labels_never_fall_as_ratings_rise(
    calibration: list[tuple[str, int, str]], data: st.DataObject
) -> None:
    rank = {"contradiction": 0, "neutral": 1, "entailment": 2}
    found = fit_scales(calibration)
    assert set(found) == {annotator for annotator, _, _ in calibration}
    for scale in found.values():
        ranks = [rank[scale.label(rating)] for rating in range(1, 6)]
        assert ranks == sorted(ranks) and ranks[2] == 1
    assert fit_scales(data.draw(st.permutations(calibration))) == found

"""Cohen's kappa: by hand, against scikit-learn, and its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge.stats.agreement import Weights, cohen_kappa

PAIRS = st.lists(st.tuples(*[st.sampled_from("abcd")] * 2), min_size=1, max_size=30)


def test_plain_by_hand() -> None:
    # Agreement 35 of 50; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    first, second = zip(*pairs, strict=True)
    assert cohen_kappa(first, second) == pytest.approx((0.7 - 0.5) / 0.5)


@pytest.mark.parametrize(("weights", "expected"), [("linear", 1 / 4), ("quadratic", 1 / 2)])
def test_weighted_by_hand(weights: Weights, expected: float) -> None:
    # 1-1, 2-3, 3-2: observed 2/3 by either weight; all nine crossings: linear 8/9, squared 12/9.
    found = cohen_kappa([1, 2, 3], [1, 3, 2], weights=weights, order=[1, 2, 3])
    assert found == pytest.approx(expected)


@given(PAIRS, st.sampled_from(["none", "linear", "quadratic"]))
def test_against_scikit_learn(pairs: list[tuple[str, str]], weights: Weights) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = cohen_kappa(first, second, weights=weights, order="abcd")
    if len({*first, *second}) == 1:
        assert found is None
        return
    named = None if weights == "none" else weights
    expected = cohen_kappa_score(first, second, labels=list("abcd"), weights=named)
    assert found == pytest.approx(expected, abs=1e-9)
    assert found is not None and -1 - 1e-9 <= found <= 1
    assert cohen_kappa(second, first, weights=weights, order="abcd") == pytest.approx(found)
    assert cohen_kappa(first[::-1], second[::-1], weights=weights, order="dcba") == pytest.approx(
        found
    )


def test_the_order_decides_how_far_apart() -> None:
    first, second = ["low", "mid", "high"], ["low", "mid", "mid"]
    near = cohen_kappa(first, second, weights="linear", order=["low", "mid", "high"])
    far = cohen_kappa(first, second, weights="linear", order=["mid", "low", "high"])
    assert near is not None and far is not None and near > far


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("abab", "abab", 1.0), ("ab", "ba", -1.0), ("aa", "aa", None), ("", "", None)],
)
def test_limits(first: str, second: str, expected: float | None) -> None:
    assert cohen_kappa(first, second) == expected


def test_one_rater_who_always_says_the_same_is_at_chance() -> None:
    assert cohen_kappa("aaaa", "aabb") == 0.0


def test_what_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="2 answers and 1"):
        cohen_kappa("ab", "a")
    with pytest.raises(ValueError, match="need the order"):
        cohen_kappa("ab", "ab", weights="linear")
    with pytest.raises(ValueError, match="twice"):
        cohen_kappa("ab", "ab", order="aab")
    with pytest.raises(ValueError, match="lacks c"):
        cohen_kappa("ab", "ac", order="ab")

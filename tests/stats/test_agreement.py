"""Agreement of raters: published examples, other libraries, brute force over pairs, the limits."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import combinations, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from judge.stats.agreement import (
    Level,
    agreement_across,
    class_kappa,
    cohen_kappa,
    count_table,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from judge.stats.classification import Weights

RATINGS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=12)


def test_counts() -> None:
    table = count_table([["b", "a", "b"], [], ["c", "?"]], ["a", "b", "c"])
    assert table.tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="once each"):
        count_table([], ["a", "a"])


# ---------------------------------------------------------------- percent agreement


@given(RATINGS)
def test_percent_agreement_against_every_pair(ratings: list[list[str]]) -> None:
    """Every item weighs the same, however many raters it has."""
    shares = [
        sum(a == b for a, b in combinations(answers, 2)) / (len(answers) * (len(answers) - 1) / 2)
        for answers in ratings
        if len(answers) >= 2
    ]
    found = percent_agreement(count_table(ratings, "abc"))
    assert found == (pytest.approx(sum(shares) / len(shares)) if shares else None)


@given(st.lists(st.tuples(*[st.lists(st.sampled_from("abc"), max_size=4)] * 2), max_size=8))
def test_across_against_every_pair(both: list[tuple[list[str], list[str]]]) -> None:
    shares = [
        sum(a == b for a, b in product(one, other)) / (len(one) * len(other))
        for one, other in both
        if one and other
    ]
    first = count_table([one for one, _ in both], "abc")
    second = count_table([other for _, other in both], "abc")
    found = agreement_across(first, second)
    assert found == (pytest.approx(sum(shares) / len(shares)) if shares else None)
    with pytest.raises(ValueError, match="same items"):
        agreement_across([[1, 0]], [[1, 0], [0, 1]])


# ---------------------------------------------------------------- Cohen


@pytest.mark.parametrize(("weights", "expected"), [("linear", 1 / 4), ("quadratic", 1 / 2)])
def test_weighted_kappa_by_hand(weights: Weights, expected: float) -> None:
    # 1-1, 2-3, 3-2: observed 2/3 by either weight; all nine crossings: linear 8/9, squared 12/9.
    found = cohen_kappa([1, 2, 3], [1, 3, 2], weights=weights, order=[1, 2, 3])
    assert found == pytest.approx(expected)


@given(
    st.lists(st.tuples(*[st.sampled_from("abcd")] * 2), min_size=1, max_size=30),
    st.sampled_from(["none", "linear", "quadratic"]),
)
def test_cohen_against_scikit_learn(pairs: list[tuple[str, str]], weights: Weights) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = cohen_kappa(first, second, weights=weights, order="abcd")
    if len({*first, *second}) == 1:
        assert found is None
        return
    named = None if weights == "none" else weights
    expected = cohen_kappa_score(first, second, labels=list("abcd"), weights=named)
    assert found == pytest.approx(expected, abs=1e-9)


def test_what_two_raters_cannot_be_compared_on() -> None:
    assert cohen_kappa("", "") is None
    with pytest.raises(ValueError, match="2 references and 1"):
        cohen_kappa("ab", "a")
    with pytest.raises(ValueError, match="need the order"):
        cohen_kappa("ab", "ab", weights="linear")
    with pytest.raises(ValueError, match="twice"):
        cohen_kappa("ab", "ab", order="aab")
    with pytest.raises(ValueError, match="'c' is none of a, b"):
        cohen_kappa("ab", "ac", order="ab")


# ---------------------------------------------------------------- Fleiss

WORKED = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""Ten items, fourteen raters, five classes: P is 0.378, E is 0.213."""


def test_fleiss_by_hand() -> None:
    assert fleiss_kappa(WORKED) == pytest.approx(0.210, abs=5e-4)
    # P = (1 + 0) / 2; shares (3/3 + 1/2) / 2 = 3/4 and 1/4, E = 5/8. The single rating is left out.
    assert fleiss_kappa([[3, 0], [1, 1], [0, 1]]) == pytest.approx((1 / 2 - 5 / 8) / (3 / 8))


@pytest.mark.parametrize("raters", [2, 3, 9])
def test_fleiss_against_statsmodels(raters: int) -> None:
    chance = random.Random(raters)
    ratings = [[chance.choice("aaab") for _ in range(raters)] for _ in range(30)]
    table = count_table(ratings, "abc")
    assert fleiss_kappa(table) == pytest.approx(statsmodels_kappa(table, method="fleiss"))
    for column in (0, 1):
        binary = [[row[column], raters - row[column]] for row in table.tolist()]
        assert class_kappa(table, column) == pytest.approx(statsmodels_kappa(binary))


@given(RATINGS)
def test_fleiss_of_unequal_raters_against_the_definition(ratings: list[list[str]]) -> None:
    paired = [answers for answers in ratings if len(answers) >= 2]
    observed = [
        sum(a == b for a, b in pairs) / len(pairs)
        for pairs in (list(combinations(answers, 2)) for answers in paired)
    ]
    shares: dict[str, float] = defaultdict(float)
    for answers in paired:
        for answer in answers:
            shares[answer] += 1 / (len(answers) * len(paired))
    expected = sum(share**2 for share in shares.values())
    found = fleiss_kappa(count_table(ratings, "abc"))
    if len(shares) < 2:
        assert found is None
    else:
        kappa = (sum(observed) / len(observed) - expected) / (1 - expected)
        assert found == pytest.approx(kappa, abs=1e-9)


# ---------------------------------------------------------------- Krippendorff

UNITS = [
    [1, 1, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [5, 5, 5],
    [1, 1],
    [3],
]
"""Four observers, twelve units, some missing: Krippendorff (2011), section C to E."""
SCALE = [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("level", "expected"),
    [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)],
)
def test_krippendorffs_published_examples(level: Level, expected: float) -> None:
    found = krippendorff_alpha(count_table(UNITS, SCALE), level=level, values=SCALE)
    assert found == pytest.approx(expected, abs=5e-4)
    # Section A of the same: two observers, ten units of 0 and 1, alpha 0.095; of five nominal
    # classes (section B), 0.692.
    meg, owen = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    binary = count_table(list(zip(meg, owen, strict=True)), [0, 1])
    assert krippendorff_alpha(binary) == pytest.approx(0.095, abs=5e-4)
    ben, gerry = "aabbdcccedda", "babbbccceddd"
    five = count_table(list(zip(ben, gerry, strict=True)), "abcde")
    assert krippendorff_alpha(five) == pytest.approx(0.692, abs=5e-4)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(SCALE), max_size=5), max_size=10),
    st.sampled_from(["nominal", "ordinal", "interval", "ratio"]),
)
def test_alpha_against_coincidences_counted_one_by_one(
    units: list[list[int]], level: Level
) -> None:
    pairs: dict[tuple[int, int], float] = defaultdict(float)
    for answers in units:
        for one, other in permutations(range(len(answers)), 2):
            pairs[answers[one], answers[other]] += 1 / (len(answers) - 1)
    totals: dict[int, float] = defaultdict(float)
    for (one, _), count in pairs.items():
        totals[one] += count

    def distance(one: int, other: int) -> float:
        if level == "nominal":
            return float(one != other)
        if level == "interval":
            return float((one - other) ** 2)
        if level == "ratio":
            return ((one - other) / (one + other)) ** 2
        low, high = sorted((one, other))
        between = sum(totals.get(value, 0) for value in range(low, high + 1))
        return (between - (totals[low] + totals[high]) / 2) ** 2

    found = krippendorff_alpha(count_table(units, SCALE), level=level, values=SCALE)
    if len(totals) < 2:
        assert found is None
        return
    observed = sum(count * distance(*pair) for pair, count in pairs.items())
    expected = sum(totals[a] * totals[b] * distance(a, b) for a in totals for b in totals)
    alpha = 1 - (sum(totals.values()) - 1) * observed / expected
    assert found == pytest.approx(alpha, abs=1e-9)


def test_values_that_are_no_scale() -> None:
    for values in (None, [2, 1], [1, 1]):
        with pytest.raises(ValueError, match="rise"):
            krippendorff_alpha([[1, 1]], level="interval", values=values)
    with pytest.raises(ValueError, match="3 values for 2 classes"):
        krippendorff_alpha([[1, 1]], level="interval", values=[1, 2, 3])
    with pytest.raises(ValueError, match="start at 0"):
        krippendorff_alpha([[1, 1]], level="ratio", values=[-1, 2])

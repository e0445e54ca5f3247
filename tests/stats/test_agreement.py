"""Agreement of raters: published examples, statsmodels, by hand, and undefined cases."""

from __future__ import annotations

import random

import pytest
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_kappa

from judge.errors import UsageError
from judge.stats.agreement import (
    ALL_CLASSES,
    class_kappas,
    count_table,
    rater_agreement,
    scale_alphas,
)
from judge.stats.bootstrap import Resamples
from judge.stats.majority import MajorityRule, majority


def found(ratings: list[str], classes: str) -> dict[str, float | None]:
    paired = [one for one in ratings if len(one) > 1]
    resamples = Resamples(range(len(paired)), draws=2)
    estimates = rater_agreement(count_table(paired, classes), resamples, of=len(ratings))
    return {name: one.value for name, one in estimates.items()}


def test_by_hand() -> None:
    # P = (1 + 0) / 2; shares (3/3 + 1/2) / 2 = 3/4 and 1/4, E = 5/8. The single rating is left out.
    three = found(["aaa", "ab", "b"], "ab")
    assert three["pairwise"] == 0.5
    assert three["fleiss"] == pytest.approx((1 / 2 - 5 / 8) / (3 / 8))
    assert found(["aa", "aaa"], "ab") == {"pairwise": 1.0, "fleiss": None, "alpha_nominal": None}
    assert found(["a"], "ab") == {"pairwise": None, "fleiss": None, "alpha_nominal": None}


@pytest.mark.parametrize("raters", [2, 9])
def test_fleiss_against_statsmodels(raters: int) -> None:
    chance = random.Random(raters)
    ratings = ["".join(chance.choice("aaab") for _ in range(raters)) for _ in range(30)]
    expected = statsmodels_kappa(count_table(ratings, "abc"), method="fleiss")
    assert found(ratings, "abc")["fleiss"] == pytest.approx(expected)


@pytest.mark.slow
def test_kappas_of_classes_against_statsmodels() -> None:
    """Each class beside all others; of five ratings drawn out of more, the mean over draws."""
    chance = random.Random(1)
    ratings = [[chance.choice("aabc") for _ in range(5)] for _ in range(40)]
    everything = count_table(ratings, "abc")

    def kappas(raters: int | None, rows: list[list[str]]) -> dict[str, float | None]:
        resamples = Resamples(range(len(rows)), draws=2)
        estimates = class_kappas(rows, "abc", resamples, of=len(rows), raters=raters, draws=200)
        return {name: one.value for name, one in estimates.items()}

    found = kappas(5, ratings)
    assert found == pytest.approx(kappas(None, ratings))
    for place, name in enumerate("abc"):
        column = everything[:, place : place + 1]
        binary = [[int(n), 5 - int(n)] for (n,) in column]
        assert found[name] == pytest.approx(statsmodels_kappa(binary, method="fleiss"))
    expected = statsmodels_kappa(everything, method="fleiss")
    assert found[ALL_CLASSES] == pytest.approx(expected)
    # Each rating twice: drawn without replacement, five of the ten are like the five, on average.
    twice = kappas(5, [[*answers, *answers] for answers in ratings])
    assert twice[ALL_CLASSES] == pytest.approx(
        statsmodels_kappa(2 * everything, method="fleiss"), abs=0.01
    )


def test_krippendorffs_published_examples() -> None:
    """Krippendorff (2011), sections A to C: two observers and two classes, two and five, four
    observers with ratings missing."""
    units = ["111", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", "555", "11"]
    assert found([*units, "3"], "12345")["alpha_nominal"] == pytest.approx(0.743, abs=5e-4)
    binary = map("".join, zip("0100000010", "1110010000", strict=True))
    assert found(list(binary), "01")["alpha_nominal"] == pytest.approx(0.095, abs=5e-4)
    five = map("".join, zip("aabbdcccedda", "babbbccceddd", strict=True))
    assert found(list(five), "abcde")["alpha_nominal"] == pytest.approx(0.692, abs=5e-4)


def test_alphas_of_a_scale_by_hand() -> None:
    # Ratings 1 1, 1 2, 2 4: of six, 1 three times, 2 twice, 4 once.
    # Interval: observed 2 (1 + 4) / 6; expected of 30 ordered pairs 2 (6 * 1 + 3 * 9 + 2 * 4) / 30.
    # Ordinal: mean places 1.5, 4, 5.5; observed 2 (2.5^2 + 1.5^2) / 6, expected
    # 2 (6 * 2.5^2 + 3 * 4^2 + 2 * 1.5^2) / 30.
    table = count_table(["11", "12", "24", "4"], "124")
    alphas = scale_alphas(table, [1, 2, 4], Resamples(range(4), draws=2), of=4)
    interval = 1 - (10 / 6) / (2 * 41 / 30)
    ordinal = 1 - (17 / 6) / (2 * 90 / 30)
    assert alphas["alpha_interval"].value == pytest.approx(interval)
    assert alphas["alpha_ordinal"].value == pytest.approx(ordinal)
    alike = scale_alphas(count_table(["22", "22"], "124"), [1, 2, 4], Resamples("ab"), of=2)
    assert [one.value for one in alike.values()] == [None, None]


@pytest.mark.parametrize("raters", [2, 5])
def test_two_points_have_one_alpha_whatever_the_metric(raters: int) -> None:
    chance = random.Random(raters)
    ratings = ["".join(chance.choice("aab") for _ in range(raters)) for _ in range(1_500)]
    table, resamples = count_table(ratings, "ab"), Resamples(range(1_500), draws=2)
    nominal = rater_agreement(table, resamples, of=1_500)["alpha_nominal"].value
    scale = scale_alphas(table, [0.2, 0.7], resamples, of=1_500)
    assert [one.value for one in scale.values()] == pytest.approx([nominal, nominal])


@pytest.mark.parametrize("text", ["most", "0", "1.2", "5/4", "4/0", "3/4%"])
def test_what_is_no_threshold(text: str) -> None:
    with pytest.raises(UsageError, match="majority"):
        MajorityRule.parse(text)


@pytest.mark.parametrize(
    ("answers", "threshold", "expected"),
    [
        ("yyn", "half", "y"),
        ("yn", "half", None),
        ("yynm", "half", None),
        ("", "half", None),
        ("yyyn", "0.75", "y"),
        ("yyn", "0.75", None),
        ("yyynn", "4/5", None),
        ("yyyy", "4/5", "y"),
        ("yyy", "4/5", None),
        ("yyyynn", "4/5", None),
    ],
)
def test_majority(answers: str, threshold: str, expected: str | None) -> None:
    assert majority(answers, MajorityRule.parse(threshold)) == expected

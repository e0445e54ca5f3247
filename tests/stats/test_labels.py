"""What labels are worth: design effects and budgets, by other libraries and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import f_oneway
from statsmodels.stats.inter_rater import cohens_kappa

from judge.stats.corrected_rate import rogan_gladen
from judge.stats.intervals import wilson
from judge.stats.labels import Budget, design_effect, kappa_variance


@given(st.floats(0, 0.95), st.floats(0.05, 0.95))
def test_kappa_variance_against_statsmodels(kappa: float, prevalence: float) -> None:
    apart = prevalence * (1 - prevalence) * (1 - kappa)
    table = np.array([[prevalence - apart, apart], [apart, 1 - prevalence - apart]])
    by_library = cohens_kappa(table * 1000)
    assert by_library.kappa == pytest.approx(kappa, abs=1e-9)
    assert kappa_variance(kappa, prevalence) == pytest.approx(by_library.var_kappa * 1000)


def test_widths_are_those_of_the_intervals_themselves() -> None:
    def width(estimate: object) -> float:
        return estimate.high - estimate.low  # type: ignore[attr-defined, no-any-return]

    assert Budget("accuracy", 0.8).width(100) == pytest.approx(width(wilson(80, 100)))
    # 30 % of 200 are positive.
    rate = Budget("true-positive-rate", 0.9, prevalence=0.3)
    assert rate.width(200) == pytest.approx(width(wilson(54, 60)))
    # 200 labels at 0.6: 120 and 80; the judge passes 0.6 x 0.9 + 0.4 x 0.2 = 0.62.
    passes = Budget("pass-rate", 0.6, true_positive_rate=0.9, true_negative_rate=0.8, judged=500)
    corrected = rogan_gladen(310, 500, 108, 120, 64, 80)
    assert passes.width(200) == pytest.approx(width(corrected.estimate))


def test_a_pass_rate_is_bounded_by_what_is_judged() -> None:
    few, many = (Budget("pass-rate", 0.8, judged=n).width(10**7) for n in (100, 100_000))
    assert few is not None and many is not None and many < 0.05 < few
    # Three labels cannot tell the judge from a coin.
    assert Budget("pass-rate", 0.8).width(3) is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"measure": "alpha"}, "measure is alpha"),
        ({"expect": 1.2}, "outside 0 to 1"),
        ({"expect": -0.2}, "below 0"),
        ({"expect": float("nan")}, "outside 0 to 1"),
        ({"prevalence": 0.0}, "prevalence is 0.0"),
        ({"level": 1.0}, "level is 1.0"),
        ({"judged": 0}, "at least 1"),
        ({"true_positive_rate": 1.5}, "outside 0 to 1"),
        ({"measure": "kappa", "expect": 1.0}, "kappa of 1"),
        ({"measure": "kappa", "expect": -0.9, "prevalence": 0.2}, "prevalence 0.2"),
        ({"measure": "pass-rate", "expect": 1.0}, "prevalence is needed"),
        ({"measure": "pass-rate", "true_negative_rate": 0.1}, "better than chance"),
    ],
)
def test_impossible(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Budget(**{"measure": "accuracy", "expect": 0.8, **wrong})  # type: ignore[arg-type]


# ---------------------------------------------------------------- design effect

Clusters = st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=2, max_size=8)


def flat(clusters: list[list[bool]]) -> list[tuple[int, bool]]:
    return [(name, outcome) for name, members in enumerate(clusters) for outcome in members]


def test_design_effect_by_hand() -> None:
    # Clusters go together wholly: three of four tell nothing new.
    assert design_effect(flat([[True] * 4, [False] * 4])) == 4
    # One cluster, or all alike: the data cannot tell, and three of a kind may be worth one.
    assert design_effect([("a", True), ("a", False)]) == 2
    assert design_effect(flat([[True, True], [True]])) == pytest.approx(5 / 3)
    assert design_effect(flat([[True], [False], [True]])) == design_effect([]) == 1
    # Halves in each: MSB 0, so r is negative and counts as 0.
    assert design_effect(flat([[True, False], [True, False]])) == 1
    # One whole, one mixed: mean 3/4, MSB = 2 (1/16 + 1/16) = 1/4, MSW = (1/2) / 2 = 1/4, r 0.
    assert design_effect(flat([[True, True], [True, False]])) == 1
    # Sizes 2, 2, 2 with 2, 1, 0 passed: MSB = 2 (1/4 + 1/4) / 2 = 1/2, MSW = (1/2) / 3 = 1/6,
    # r = (1/2 - 1/6) / (1/2 + 1/6) = 1/2.
    assert design_effect(flat([[True] * 2, [True, False], [False] * 2])) == pytest.approx(1.5)


@given(Clusters)
def test_against_an_analysis_of_variance(clusters: list[list[bool]]) -> None:
    sizes = np.array([len(one) for one in clusters])
    n = int(sizes.sum())
    outcomes = {outcome for one in clusters for outcome in one}
    assume(len(outcomes) == 2 and n > len(clusters))
    assume(any(len(set(one)) == 2 for one in clusters))
    ratio = f_oneway(*[np.array(one, dtype=float) for one in clusters]).statistic
    usual = (n - (sizes**2).sum() / n) / (len(clusters) - 1)
    correlation = max(0.0, (ratio - 1) / (ratio + usual - 1))
    expected = 1 + ((sizes**2).sum() / n - 1) * correlation
    assert design_effect(flat(clusters)) == pytest.approx(expected, abs=1e-9)

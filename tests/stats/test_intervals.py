"""Intervals of a share: by hand, against scipy and statsmodels, by their definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, multinomial
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from judge.stats.intervals import (
    Z_95,
    Estimate,
    lower_bound,
    mean_of_sums,
    paired_shares,
    percent,
    plain,
    wilson,
)

Counted = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_of_nothing() -> None:
    assert (wilson(0, 0), lower_bound(0, 0)) == (Estimate(None), 0.0)


@given(Counted, st.sampled_from([0.8, 0.95, 0.99]))
def test_against_other_libraries(counted: tuple[int, int], level: float) -> None:
    successes, n = counted
    found = wilson(successes, n)
    assert (found.value, found.n, found.of) == (successes / n, n, n)
    wanted = proportion_confint(successes, n, method="wilson")
    assert (found.low, found.high) == pytest.approx(wanted, abs=1e-9)
    one_sided = binomtest(successes, n, alternative="greater").proportion_ci(level)
    assert lower_bound(successes, n, level=level) == pytest.approx(one_sided.low, abs=1e-9)


@pytest.mark.parametrize(
    ("estimate", "told"),
    [
        (Estimate(0.7123, 0.654, 0.766), "0.71 (0.65 to 0.77)"),
        (Estimate(0.7123, low=0.654), "0.71"),
        (Estimate(None, n=0, of=4), "–"),
    ],
)
def test_an_estimate_as_it_is_printed(estimate: Estimate, told: str) -> None:
    assert str(estimate) == told


@pytest.mark.parametrize("n", [2, 3, 6, 7, 8, 20, 1000])
def test_the_interval_of_a_mean_against_scipy(n: int) -> None:
    numbers = [float(k * k % 7) for k in range(n)]
    found = mean_of_sums(n, sum(numbers), sum(one * one for one in numbers), of=n + 1)
    mean = sum(numbers) / n
    deviation = (sum((one - mean) ** 2 for one in numbers) / (n - 1)) ** 0.5
    low, high = student.interval(0.95, n - 1, loc=mean, scale=deviation / n**0.5)
    assert found.value == pytest.approx(mean) and (found.n, found.of) == (n, n + 1)
    assert (mean - low) * 0.9993 < mean - (found.low or 0.0) < (mean - low) * 1.0007
    assert (found.high or 0.0) - mean == pytest.approx(high - mean, rel=7e-4)


def test_the_interval_of_a_mean_stays_on_its_scale() -> None:
    # 4 and 5, 4 and 5, on 1 to 5: by Student's distribution 3.58 to 5.42.
    found = mean_of_sums(4, 18.0, 82.0, of=4, scale=(1.0, 5.0))
    assert found == Estimate(4.5, pytest.approx(3.58, abs=0.01), 5.0, n=4, of=4)
    assert mean_of_sums(4, 6.0, 10.0, of=4, scale=(1.0, 5.0)).low == 1.0


def test_a_mean_of_too_few_numbers() -> None:
    assert mean_of_sums(0, 0.0, 0.0, of=3) == Estimate(None, of=3)
    assert mean_of_sums(1, 2.0, 4.0, of=3) == Estimate(2.0, n=1, of=3)


@pytest.mark.parametrize("score", [4.0, 3.666667, 0.1, 99.3])
@pytest.mark.parametrize("n", [2, 7, 10_000])
def test_equal_numbers_have_a_mean_without_an_interval(score: float, n: int) -> None:
    found = mean_of_sums(n, sum([score] * n), sum([score * score] * n), of=n)
    assert found == Estimate(pytest.approx(score), n=n, of=n)


def test_two_estimates_of_one_number_span_both_intervals() -> None:
    low, high = Estimate(0.2, 0.1, 0.3, 5, 6), Estimate(0.4, 0.25, 0.7)
    assert low.spanning(high) == Estimate(pytest.approx(0.3), 0.1, 0.7, 5, 6)
    assert low.spanning(Estimate(0.4)) == Estimate(None, n=5, of=6)


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_share_reads_as_all_or_none_only_if_it_is(of: int, count: int) -> None:
    share = min(count, of) / of
    text = percent(share)
    assert (float(text[:-1]) == 0, float(text[:-1]) == 100) == (share == 0, share == 1)
    assert float(text[:-1]) / 100 == pytest.approx(share, abs=5.01e-4)


def test_a_share_has_one_decimal_where_that_is_true() -> None:
    told = [percent(share) for share in (0, 1, 0.5, 2999 / 3000, 0.0004, 0.9994)]
    assert told == ["0.0%", "100.0%", "50.0%", "99.97%", "0.04%", "99.9%"]


@pytest.mark.parametrize(("second", "first"), [(0.1, 0.1), (0.2, 0.2), (0.3, 0.05), (0.1, 0.0)])
def test_the_interval_of_a_difference_of_pairs_covers_it(second: float, first: float) -> None:
    """Of 20 pairs, by the exact probability of each count of pairs that differ."""
    n, covered = 20, 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            found = paired_shares(c, b, n)
            assert found.low is not None and found.high is not None
            if found.low <= second - first <= found.high:
                covered += multinomial.pmf(
                    [b, c, n - b - c], n, [second, first, 1 - second - first]
                )
    assert covered > 0.945


def test_the_interval_of_pairs_that_never_differ_or_always() -> None:
    assert paired_shares(0, 0, 0) == Estimate(None)
    never = paired_shares(0, 0, 100)
    assert never.high == pytest.approx(Z_95**2 / (100 + Z_95**2)) == -(never.low or 0)
    always, turned = paired_shares(0, 10, 10), paired_shares(10, 0, 10)
    assert (always.value, always.high, turned.low) == (1.0, 1.0, -1.0)
    assert turned.high == pytest.approx(-(always.low or 0))


def test_as_json_no_small_number_reads_as_0_but_the_rounding_of_an_estimate() -> None:
    assert plain({"p": [2e-30, 1 / 3, 0.0]}) == {"p": [2e-30, 0.333333, 0.0]}
    found = plain(Estimate(-1e-17, None, 0.5, n=3, of=4))
    assert str(found) == "{'value': 0.0, 'low': None, 'high': 0.5, 'n': 3, 'of': 4}"

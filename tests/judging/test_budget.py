"""The budget: what is counted, and when it stops calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import BackendError
from judge.judging.budget import Budget, BudgetReached, Price
from judge.verdict import Usage


@given(most=st.integers(0, 20), wanted=st.integers(0, 40))
def test_takes_exactly_as_many_calls_as_there_are(most: int, wanted: int) -> None:
    budget = Budget(max_calls=most)
    refused = 0
    for _ in range(wanted):
        try:
            budget.take()
        except BudgetReached:
            refused += 1
    assert budget.calls == min(most, wanted)
    assert refused == max(0, wanted - most)


def test_stops_once_the_cost_is_reached() -> None:
    budget = Budget(max_cost=0.01)
    budget.take()
    budget.spent(Usage(1, 10, 10, 0.004))
    budget.take()
    budget.spent(Usage(1, 10, 10, 0.007))
    with pytest.raises(BudgetReached, match=r"--max-cost 0\.01"):
        budget.take()
    assert budget.calls == 2 and budget.cost == pytest.approx(0.011)


def test_without_limits_it_only_counts() -> None:
    budget = Budget()
    for _ in range(100):
        budget.take()
        budget.spent(Usage(1, 1, 1, None))
    assert (budget.calls, budget.cost) == (100, 0.0)


def test_the_message_names_the_flag_and_it_is_no_reason_to_retry() -> None:
    with pytest.raises(BudgetReached, match="--max-calls 0") as caught:
        Budget(max_calls=0).take()
    assert isinstance(caught.value, BackendError)
    assert caught.value.kind == "budget" and not caught.value.retryable


@given(
    tokens=st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)),
    dollars=st.tuples(st.floats(0, 100), st.floats(0, 100)),
)
def test_a_price_is_for_a_million_tokens(
    tokens: tuple[int, int], dollars: tuple[float, float]
) -> None:
    cost = Price(*dollars).of(*tokens)
    assert cost == pytest.approx(sum(n * d for n, d in zip(tokens, dollars, strict=True)) / 1e6)


def test_a_price_by_hand() -> None:
    assert Price(input=2.5, output=10.0).of(1_000, 200) == pytest.approx(0.0045)

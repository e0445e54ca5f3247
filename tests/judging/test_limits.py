"""The budget, the adaptive limit and outages: their bounds, their order, and that all calls end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge import errors
from judge.judging import limits
from judge.judging.limits import (
    AdaptiveLimit,
    Budget,
    BudgetReached,
    Interrupted,
    Outages,
    Pauses,
    record_turn,
)

# ---------------------------------------------------------------- budget


def test_a_budget_is_reached_by_a_sum_of_calls_whatever_its_rounding() -> None:
    budget = Budget(max_cost=2.0)
    for _ in range(10):
        budget.take()
        budget.cost += 0.2
    with pytest.raises(BudgetReached):
        budget.take()


def test_a_budget_of_nothing_pays_nothing_and_free_calls_go_on() -> None:
    budget = Budget(max_cost=0)
    with pytest.raises(BudgetReached, match="--max-cost 0 USD"):
        budget.take()
    budget.take(free=True)
    assert budget.calls == 1


# ---------------------------------------------------------------- pace


async def turns(times: int = 10) -> None:
    """Let everything that can run, run."""
    for _ in range(times):
        await asyncio.sleep(0)


async def test_a_burst_of_refusals_halves_once() -> None:
    limit = AdaptiveLimit(16)

    async def refused_after(seconds: float) -> None:
        async with limit.slot() as era:
            await asyncio.sleep(seconds)
        limit.refused(None, era)

    await asyncio.gather(*(refused_after(0.02 * number) for number in range(16)))
    assert limit.limit == 8
    await asyncio.gather(*(refused_after(0) for _ in range(8)))
    assert limit.limit == 4
    limit.succeeded()
    assert limit.limit == 4 + 1 / 4, "one more for as many successes as there are places"


@settings(deadline=None, max_examples=60)
@given(
    most=st.integers(1, 6),
    calls=st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from(["good", "refused", "cancelled"]), st.booleans()
        ),
        min_size=1,
        max_size=40,
    ),
)
def test_never_more_run_than_the_limit_and_all_come_to_an_end(
    most: int, calls: list[tuple[int, str, bool]]
) -> None:
    async def run() -> None:
        limit = AdaptiveLimit(most)
        running = peak = 0

        async def call(length: int, end: str, held: bool) -> None:
            nonlocal running, peak
            async with limit.slot() as era:
                running += 1
                peak = max(peak, running)
                try:
                    assert running <= limit.running <= most
                    await turns(length)
                finally:
                    running -= 1
            if end == "refused":
                limit.refused(0.001 if held else None, era)
            else:
                limit.succeeded()

        tasks = [asyncio.create_task(call(*what)) for what in calls]
        for task, (length, end, _) in zip(tasks, calls, strict=True):
            if end == "cancelled":
                await turns(length)
                task.cancel()
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert peak <= most
        assert limit.running == running == 0
        assert all(task.cancelled() or task.exception() is None for task in tasks)

    asyncio.run(run())


async def test_retry_after_holds_all_calls_back() -> None:
    limit = AdaptiveLimit(8)
    began = time.monotonic()
    limit.refused(0.15, 0)
    limit.refused(0.05, 0)

    async def call() -> float:
        async with limit.slot():
            return time.monotonic() - began

    async with asyncio.timeout(60):
        assert min(await asyncio.gather(*(call() for _ in range(4)))) >= 0.15


async def test_among_waiting_calls_the_earliest_record_goes_first() -> None:
    limit = AdaptiveLimit(1)
    order: list[str] = []

    async def call(turn: int, name: str) -> None:
        record_turn.set(turn)
        async with limit.slot():
            order.append(name)

    async with limit.slot():
        waiting = [(2, "c1"), (1, "b1"), (2, "c2"), (1, "b2"), (0, "a")]
        tasks = [asyncio.create_task(call(*one)) for one in waiting]
        await turns()
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks)
    assert order == ["a", "b1", "b2", "c1", "c2"]


# ---------------------------------------------------------------- outages

ERROR = errors.ServerFault("down")
Canary = Callable[[], Awaitable[object]]


def sings_after(failures: int, error: errors.BackendError = ERROR) -> tuple[Canary, list[float]]:
    """A canary that fails so often, and when it was asked."""
    asked: list[float] = []

    async def canary() -> None:
        asked.append(time.monotonic())
        if len(asked) <= failures:
            raise error

    return canary, asked


async def test_a_call_that_fails_alone_is_not_tried_again() -> None:
    canary, asked = sings_after(0)
    outages = Outages(canary, 0.001)
    outages.answered()
    assert not await outages.passed(time.monotonic()) and len(asked) == 1


async def test_all_that_failed_wait_for_one_canary() -> None:
    canary, asked = sings_after(3)
    outages = Outages(canary, 0.001)
    outages.answered()
    since = time.monotonic()
    passed = await asyncio.gather(*(outages.passed(since) for _ in range(20)))
    assert passed == [True] * 20 and len(asked) == 4


async def test_a_server_that_stays_away_is_given_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_OUTAGE", 0.05)
    canary, asked = sings_after(10**6)
    outages = Outages(canary, 0.001)
    outages.answered()
    since = time.monotonic()
    calls = (outages.passed(since) for _ in range(20))
    given_up = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(error) for error in given_up} == {errors.GivenUp}
    assert "0.05 s" in str(given_up[0]) and "down" in str(given_up[0]) and len(asked) < 60


async def test_answers_to_calls_under_way_are_no_sign_of_a_server_that_takes_calls() -> None:
    canary, asked = sings_after(2, errors.Unreachable("refused"))
    outages, since = Outages(canary, 0.001), time.monotonic()
    outages.answered()
    assert await outages.passed(since, unreachable=True) and len(asked) == 3
    assert not await outages.passed(since), "a server that answers: this call alone fails"
    # Back again before the first canary.
    assert await outages.passed(since, unreachable=True) and len(asked) == 4


async def test_an_interrupt_ends_every_pause() -> None:
    """Of calls that wait for an outage to end, and of those to which the server said when."""
    pauses = Pauses()
    outages, limit = Outages(sings_after(10**6)[0], 60, pauses), AdaptiveLimit(4, pauses)
    outages.answered()
    limit.refused(60, 0)

    async def place() -> None:
        async with limit.slot():
            raise AssertionError("no place before the server's time")

    since = time.monotonic()
    calls = [*(outages.passed(since) for _ in range(4)), *(place() for _ in range(4))]
    waiting = asyncio.gather(*calls, return_exceptions=True)
    await asyncio.sleep(0.05)
    pauses.end()
    assert {*map(type, await asyncio.wait_for(waiting, 1))} == {Interrupted}
    assert limit.running == 0


async def test_a_refused_key_ends_the_waiting() -> None:
    canary, asked = sings_after(1, errors.Denied("no"))
    outages = Outages(canary, 0.001)
    outages.answered()
    with pytest.raises(errors.Denied):
        await outages.passed(time.monotonic())
    assert len(asked) == 1


async def test_a_server_that_never_answered_is_not_waited_for() -> None:
    canary, asked = sings_after(0)
    assert not await Outages(canary, 0.001).passed(time.monotonic()) and not asked

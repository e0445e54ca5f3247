"""The adaptive limit: its bounds, its fairness, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.judging import limiter
from judge.judging.limiter import AdaptiveLimit


async def turns(times: int = 10) -> None:
    """Let everything that can run, run."""
    for _ in range(times):
        await asyncio.sleep(0)


@given(
    most=st.integers(1, 40),
    events=st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=200),
)
def test_the_limit_stays_within_its_bounds(most: int, events: list[int | None]) -> None:
    limit = AdaptiveLimit(most)
    era = 0
    for event in events:
        if event is None:
            limit.succeeded()
        else:
            limit.refused(None, era)
            era += event % 2
        assert 1 <= limit.limit <= most


def test_one_round_of_successes_adds_about_one() -> None:
    limit = AdaptiveLimit(100)
    limit.refused(None, 0)
    assert limit.limit == 50
    for _ in range(50):
        limit.succeeded()
    assert 50.9 < limit.limit <= 51


def test_after_cuts_without_a_success_the_limit_doubles_up_to_what_was_borne() -> None:
    limit = AdaptiveLimit(64)
    for era in range(8):
        limit.refused(None, era)
    assert limit.limit == 1
    for _ in range(31):
        limit.succeeded()
    assert limit.limit == 32
    limit.succeeded()
    assert limit.limit == 32 + 1 / 32
    limit.refused(None, 8)
    limit.succeeded()
    assert limit.limit < 17


async def test_a_burst_of_refusals_halves_once() -> None:
    limit = AdaptiveLimit(16)

    async def refused_after(seconds: float) -> None:
        async with limit.slot() as era:
            await asyncio.sleep(seconds)
        limit.refused(None, era)

    await asyncio.gather(*(refused_after(0.02 * number) for number in range(16)))
    assert (limit.limit, limit.refusals) == (8, 16)
    await asyncio.gather(*(refused_after(0) for _ in range(8)))
    assert limit.limit == 4


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


async def test_a_lowered_limit_lets_fewer_in() -> None:
    limit = AdaptiveLimit(4)
    limit.refused(None, 0)
    release = asyncio.Event()
    inside = 0

    async def call() -> None:
        nonlocal inside
        async with limit.slot():
            inside += 1
            await release.wait()

    tasks = [asyncio.create_task(call()) for _ in range(4)]
    await turns()
    assert inside == 2
    release.set()
    await asyncio.gather(*tasks)
    assert inside == 4


async def test_a_raised_limit_lets_one_that_waits_in_at_once() -> None:
    limit = AdaptiveLimit(2)
    limit.refused(None, 0)
    inside = asyncio.Event()

    async def second() -> None:
        async with limit.slot():
            inside.set()

    async with limit.slot():
        task = asyncio.create_task(second())
        await turns()
        assert not inside.is_set()
        limit.succeeded()
        await turns()
        assert inside.is_set()
    await task


async def test_first_come_first_served() -> None:
    limit = AdaptiveLimit(1)
    order: list[str] = []

    async def twice(name: str) -> None:
        for _ in range(2):
            async with limit.slot():
                order.append(name)
                await asyncio.sleep(0)

    await asyncio.gather(twice("a"), twice("b"))
    assert order == ["a", "b", "a", "b"]


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


async def test_a_pause_asked_for_while_calls_wait_holds_them_too() -> None:
    limit = AdaptiveLimit(1)
    began = time.monotonic()

    async def call() -> float:
        async with limit.slot():
            return time.monotonic() - began

    async with limit.slot() as era:
        waiting = asyncio.create_task(call())
        await turns()
        limit.refused(0.1, era)
    assert await waiting >= 0.09


async def test_cancelled_in_the_pause_the_next_one_still_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: now[0]))
    limit = AdaptiveLimit(1)
    done: list[str] = []

    async def call(name: str) -> None:
        async with limit.slot():
            done.append(name)

    async with limit.slot() as era:
        tasks = [asyncio.create_task(call(name)) for name in "abc"]
        await turns()
        limit.refused(0.05, era)
    await turns()
    tasks[0].cancel()
    now[0] = 1.0
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert done == ["b", "c"]


async def test_cancelled_with_the_place_just_given_it_goes_to_the_next() -> None:
    limit = AdaptiveLimit(1)
    done: list[str] = []

    async def call(name: str) -> None:
        async with limit.slot():
            done.append(name)

    async with limit.slot():
        tasks = [asyncio.create_task(call(name)) for name in "ab"]
        await turns()
    tasks[0].cancel()
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert done == ["b"] and limit.running == 0


async def test_an_error_inside_gives_the_place_back() -> None:
    limit = AdaptiveLimit(1)
    for _ in range(3):
        try:
            async with limit.slot():
                raise RuntimeError
        except RuntimeError:
            pass
    assert limit.running == 0

"""A server that fails everybody is waited for; one that fails one call is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from judge import errors
from judge.judging import outage
from judge.judging.outage import LONGEST_PAUSE, Outages, pause

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


async def test_a_server_that_serves_others_is_not_waited_for() -> None:
    canary, asked = sings_after(9)
    outages = Outages(canary, 0.001)
    since = time.monotonic()
    await asyncio.sleep(0.001)
    outages.answered()
    assert not await outages.passed(since, ERROR) and not asked


async def test_a_server_that_was_never_reached_is_not_waited_for() -> None:
    canary, asked = sings_after(9)
    assert not await Outages(canary, 0.001).passed(time.monotonic(), ERROR) and not asked
    assert not await Outages(None, 0.001).passed(time.monotonic(), ERROR)


async def test_a_call_that_fails_alone_is_not_tried_again() -> None:
    canary, asked = sings_after(0)
    outages = Outages(canary, 0.001)
    outages.answered()
    assert not await outages.passed(time.monotonic(), ERROR) and len(asked) == 1


async def test_all_that_failed_wait_for_one_canary() -> None:
    canary, asked = sings_after(3)
    outages = Outages(canary, 0.001)
    outages.answered()
    since = time.monotonic()
    passed = await asyncio.gather(*(outages.passed(since, ERROR) for _ in range(20)))
    assert passed == [True] * 20 and len(asked) == 4


async def test_a_server_that_stays_away_is_given_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "LONGEST_OUTAGE", 0.05)
    canary, asked = sings_after(10**6)
    outages = Outages(canary, 0.001)
    outages.answered()
    since = time.monotonic()
    calls = (outages.passed(since, ERROR) for _ in range(20))
    given_up = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(error) for error in given_up} == {errors.GivenUp}
    assert "0.05 s" in str(given_up[0]) and "down" in str(given_up[0]) and len(asked) < 60


async def test_a_refused_key_ends_the_waiting() -> None:
    canary, asked = sings_after(1, errors.Denied("no"))
    outages = Outages(canary, 0.001)
    outages.answered()
    with pytest.raises(errors.Denied):
        await outages.passed(time.monotonic(), ERROR)
    assert len(asked) == 1


async def test_a_canary_that_is_refused_as_such_was_answered() -> None:
    canary, asked = sings_after(1, errors.BadRequest("no such mode"))
    outages = Outages(canary, 0.001)
    outages.answered()
    assert not await outages.passed(time.monotonic(), ERROR) and len(asked) == 1


def test_pauses_grow_up_to_a_bound() -> None:
    assert [pause(0.5, before) for before in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert pause(0.5, 4) == pause(0.5, 10**6) == LONGEST_PAUSE

"""The bounded stream: its bounds, its order, and that it always ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.judging.limits import Budget, room_within
from judge.run.stream import Stop, run
from judge.verdict import Usage


class Watch:
    """Steps of given lengths (in turns of the loop), and what was seen while they ran."""

    def __init__(self, lengths: list[int], slots: int, waiting: int) -> None:
        self.lengths, self.slots, self.waiting = lengths, slots, waiting
        self.running = self.most_running = self.begun = self.most_ahead = 0
        self.out: list[int] = []
        self.stop = Stop()
        self.fails: set[int] = set()
        self.sink_fails: set[int] = set()

    async def step(self, number: int) -> int:
        self.running += 1
        self.begun += 1
        self.most_running = max(self.most_running, self.running)
        self.most_ahead = max(self.most_ahead, number - len(self.out))
        try:
            for _ in range(self.lengths[number]):
                await asyncio.sleep(0)
        finally:
            self.running -= 1
        if number in self.fails:
            raise ValueError(number)
        return number

    async def sink(self, number: int) -> None:
        if number in self.sink_fails:
            raise BrokenPipeError(number)
        self.out.append(number)

    async def run(self) -> None:
        async with asyncio.timeout(60):
            await run(
                range(len(self.lengths)),
                self.step,
                self.sink,
                room=lambda: self.slots,
                stop=self.stop,
                max_buffered=self.waiting,
            )


LENGTHS = st.lists(st.integers(0, 12), max_size=40)


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 5), st.integers(0, 6))
def test_bounds_and_order(lengths: list[int], slots: int, waiting: int) -> None:
    watch = Watch(lengths, slots, waiting)
    asyncio.run(watch.run())
    assert watch.most_running <= slots
    assert watch.most_ahead < slots + waiting
    assert watch.out == list(range(len(lengths)))


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.data())
def test_a_failure_is_raised_after_what_was_under_way(
    lengths: list[int], slots: int, data: st.DataObject
) -> None:
    watch = Watch([*lengths, 1], slots, 2)
    at = data.draw(st.integers(0, len(lengths)))
    watch.fails = {at}
    with pytest.raises(ValueError, match=str(at)):
        asyncio.run(watch.run())
    assert watch.out[:at] == list(range(at))
    assert len(watch.out) + 1 == watch.begun, "what was under way is given out"


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.data())
def test_a_sink_that_fails_ends_everything(
    lengths: list[int], slots: int, data: st.DataObject
) -> None:
    watch = Watch([*lengths, 1], slots, 2)
    at = data.draw(st.integers(0, len(lengths)))
    watch.sink_fails = {at}
    with pytest.raises(BrokenPipeError):
        asyncio.run(watch.run())
    assert watch.running == 0
    assert watch.out == list(range(at))


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.integers(0, 30), st.booleans())
def test_stopping(lengths: list[int], slots: int, turns: int, now: bool) -> None:
    watch = Watch(lengths, slots, 2)
    most = 0

    async def stop() -> None:
        nonlocal most
        for _ in range(turns):
            await asyncio.sleep(0)
        most = watch.begun + slots
        (watch.stop.now if now else watch.stop.gently)()

    async def both() -> None:
        await asyncio.gather(watch.run(), stop())

    asyncio.run(both())
    assert watch.running == 0
    assert watch.begun <= most, "no item is begun after the stop"
    if not now:
        assert len(watch.out) == watch.begun


async def test_the_errors_of_reading_come_last() -> None:
    all_read, freed = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield from range(50)
        all_read.set()
        raise OSError("the disk is gone")

    out = list[int]()

    async def step(number: int) -> int:
        if number == 0:
            await asyncio.to_thread(all_read.wait, 60)
            await asyncio.to_thread(freed.wait, 0.05)
        return number

    async def sink(number: int) -> None:
        out.append(number)

    with pytest.raises(OSError, match="the disk is gone"):
        await run(items(), step, sink, room=lambda: 2, max_buffered=100)
    assert out == list(range(50))


@pytest.mark.parametrize(
    ("budget", "dearest", "room"),
    [
        (Budget(), Usage(), 16),
        (Budget(max_calls=24), Usage(), 1),
        (Budget(max_calls=24, calls=6), Usage(replies=6), 3),
        (Budget(max_calls=24, calls=23), Usage(replies=6), 1),
        (Budget(max_calls=1000, calls=6), Usage(replies=6), 16),
        (Budget(max_cost=1.0), Usage(), 1),
        (Budget(max_cost=1.0, cost=0.25), Usage(replies=3, cost_usd=0.25), 3),
        (Budget(max_cost=1.0), Usage(replies=3, cost_usd=0.0), 16),
    ],
)
def test_no_more_records_are_begun_than_the_budget_finishes(
    budget: Budget, dearest: Usage, room: int
) -> None:
    assert room_within(budget, dearest, 16) == room

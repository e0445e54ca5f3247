"""The bounded stream: its bounds, its order, and that it always ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge.run.pipeline import Brake, Pipeline, feed


class Shelf:
    """Holds in memory what the real one holds on disk, and tells how much that was."""

    def __init__(self) -> None:
        self.lying: dict[int, int] = {}
        self.ever = 0

    def put(self, place: int, result: int) -> None:
        assert place not in self.lying
        self.lying[place] = result
        self.ever += 1

    def take(self, place: int) -> int | None:
        return self.lying.pop(place, None)


class Watch:
    """Work of given lengths (in turns of the loop), and what was seen while it was done."""

    def __init__(self, lengths: list[int], slots: int, held: int, ordered: bool = True) -> None:
        self.lengths = lengths
        self.running = self.most_running = self.begun = 0
        self.out: list[int] = []
        self.brake = Brake()
        self.shelf = Shelf()
        self.fails: set[int] = set()
        self.emit_fails: set[int] = set()
        self.pipeline: Pipeline[int, int] = Pipeline(
            self.work,
            slots=slots,
            brake=self.brake,
            shelf=self.shelf if ordered else None,
            held=held,
        )

    async def work(self, number: int) -> int:
        self.running += 1
        self.begun += 1
        self.most_running = max(self.most_running, self.running)
        try:
            for _ in range(self.lengths[number]):
                await asyncio.sleep(0)
        finally:
            self.running -= 1
        if number in self.fails:
            raise ValueError(number)
        return number

    def emit(self, number: int) -> None:
        if number in self.emit_fails:
            raise BrokenPipeError(number)
        self.out.append(number)

    async def run(self) -> None:
        async with asyncio.timeout(60):
            await self.pipeline.run(feed(iter(range(len(self.lengths))), self.brake), self.emit)


LENGTHS = st.lists(st.integers(0, 12), max_size=40)


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 5), st.integers(0, 6), st.booleans())
def test_bounds_and_order(lengths: list[int], slots: int, extra: int, ordered: bool) -> None:
    watch = Watch(lengths, slots, extra, ordered)
    asyncio.run(watch.run())
    assert watch.most_running <= slots
    assert not watch.shelf.lying and (ordered or not watch.shelf.ever)
    everything = list(range(len(lengths)))
    assert (watch.out if ordered else sorted(watch.out)) == everything


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.booleans(), st.data())
def test_a_failure_is_raised_after_what_came_before(
    lengths: list[int], slots: int, ordered: bool, data: st.DataObject
) -> None:
    watch = Watch([*lengths, 1], slots, slots + 2, ordered)
    at = data.draw(st.integers(0, len(lengths)))
    watch.fails = {at}
    with pytest.raises(ValueError, match=str(at)):
        asyncio.run(watch.run())
    if ordered:
        assert watch.out[:at] == list(range(at))
        assert watch.out == sorted(watch.out) and at not in watch.out
    assert len(watch.out) + 1 == watch.begun, "what was under way is given out"


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.booleans(), st.data())
def test_an_output_that_fails_ends_everything(
    lengths: list[int], slots: int, ordered: bool, data: st.DataObject
) -> None:
    watch = Watch([*lengths, 1], slots, slots + 2, ordered)
    at = data.draw(st.integers(0, len(lengths)))
    watch.emit_fails = {at}
    with pytest.raises(BrokenPipeError):
        asyncio.run(watch.run())
    assert watch.running == 0
    if ordered:
        assert watch.out == list(range(at))


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 4), st.booleans(), st.integers(0, 30), st.booleans())
def test_the_brake(lengths: list[int], slots: int, ordered: bool, turns: int, now: bool) -> None:
    watch = Watch(lengths, slots, slots + 2, ordered)
    at_pull = [0]

    async def pull() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        at_pull[0] = watch.begun + slots
        (watch.brake.stop_now if now else watch.brake.stop_reading)()

    async def both() -> None:
        await asyncio.gather(watch.run(), pull())

    asyncio.run(both())
    assert watch.running == 0
    assert watch.begun <= at_pull[0], "no item is begun after the brake was pulled"
    if not now:
        assert len(watch.out) == watch.begun


async def test_one_slow_item_holds_up_neither_work_nor_memory() -> None:
    shelf, brake, out = Shelf(), Brake(), list[int]()
    others_are_done = asyncio.Event()
    done = 0

    async def work(number: int) -> int:
        nonlocal done
        if number == 0:
            await others_are_done.wait()
            assert out == [] and shelf.ever >= 500 - 10 - 4
        done += 1
        if done == 500:
            others_are_done.set()
        return number

    pipeline = Pipeline(work, slots=4, brake=brake, shelf=shelf, held=10)
    async with asyncio.timeout(60):
        await pipeline.run(feed(iter(range(501)), brake), out.append)
    assert out == list(range(501)) and not shelf.lying


async def test_a_brake_pulled_before_the_start() -> None:
    watch = Watch([1] * 5, 1, 2)
    watch.brake.stop_reading()
    await watch.run()
    assert watch.out == []


async def test_a_task_cancelled_before_its_first_step_frees_its_place() -> None:
    watch = Watch([1] * 5, 1, 2)

    async def items() -> AsyncIterator[int]:
        yield 0
        # The task for 0 exists and has not run yet.
        watch.brake.stop_now()
        yield 1

    async with asyncio.timeout(60):
        await watch.pipeline.run(items(), watch.emit)
    assert watch.out == [] and watch.begun == 0


async def test_the_errors_of_reading_come_last() -> None:
    all_read, freed = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield from range(500)
        all_read.set()
        raise OSError("the disk is gone")

    brake, out = Brake(), list[int]()

    async def work(number: int) -> int:
        if number == 0:
            await asyncio.to_thread(freed.wait, 60)
        return number

    pipeline: Pipeline[int, int] = Pipeline(work, slots=2, brake=brake, shelf=Shelf(), held=4)

    async def look() -> None:
        assert await asyncio.to_thread(all_read.wait, 60)
        assert not out, "what waits for the first item holds up nothing"
        freed.set()

    run = pipeline.run(feed(items(), brake), out.append)
    with pytest.raises(OSError, match="the disk is gone"):
        await asyncio.gather(run, look())
    assert out == list(range(500))


async def test_a_shelf_that_takes_nothing_loses_nothing_that_was_begun() -> None:
    class Full(Shelf):
        def put(self, place: int, result: int) -> None:
            raise OSError("full")

    brake, out, begun = Brake(), list[int](), list[int]()
    others_are_done = asyncio.Event()

    async def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            await others_are_done.wait()
        elif number == 3:
            others_are_done.set()
        return number

    pipeline = Pipeline(work, slots=4, brake=brake, shelf=Full(), held=2)
    with pytest.raises(OSError, match="full"):
        async with asyncio.timeout(60):
            await pipeline.run(feed(iter(range(500)), brake), out.append)
    assert out == sorted(begun) and 3 < len(out) < 500

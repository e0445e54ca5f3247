"""A bounded stream: read, work on several at once, give out in order (or as they finish).

Items come from a thread of their own, because reading a pipe blocks. At most `slots` items are
worked on; of the finished ones that wait for an earlier one, most lie on a shelf outside memory.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Source = TypeVar("Source")
Result = TypeVar("Result")


@dataclass(slots=True)
class Brake:
    """How a run is asked to stop: to read no further, or at once, dropping what is under way."""

    pulled: bool = False
    tasks: set[asyncio.Future[Any]] = field(default_factory=set)
    _calls: list[Callable[[], None]] = field(default_factory=list)

    def on_pull(self, call: Callable[[], None]) -> None:
        """Have `call` made when the brake is pulled; at once if it is already."""
        self._calls.append(call)
        if self.pulled:
            call()

    def stop_reading(self) -> None:
        self.pulled = True
        for call in self._calls:
            call()

    def stop_now(self) -> None:
        self.stop_reading()
        for task in list(self.tasks):
            task.cancel()


class _End:
    """Marks the end of the items."""


_END = _End()


async def feed(items: Iterator[Source], brake: Brake, ahead: int = 64) -> AsyncIterator[Source]:
    """The items, read by a thread at most `ahead` items early.

    Raises:
        Exception: whatever reading raises.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Source | BaseException | _End] = asyncio.Queue()
    room = threading.Semaphore(ahead)

    def deliver(thing: Source | BaseException | _End) -> None:
        # A run that was stopped while this thread waited for input has closed its loop by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(queue.put_nowait, thing)

    def read() -> None:
        try:
            for item in items:
                room.acquire()
                if brake.pulled:
                    return
                deliver(item)
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be handled
            deliver(error)
        else:
            deliver(_END)

    brake.on_pull(lambda: queue.put_nowait(_END))
    threading.Thread(target=read, name="judge-reader", daemon=True).start()
    while True:
        thing = await queue.get()
        room.release()
        if isinstance(thing, _End) or brake.pulled:
            return
        if isinstance(thing, BaseException):
            raise thing
        yield thing


class Shelf(Protocol[Result]):
    """Holds finished results outside this process's memory."""

    def put(self, place: int, result: Result) -> None:
        """Keep a result under its place; each place once."""

    def take(self, place: int) -> Result | None:
        """Give a result back, once; None where the place has none."""


class InOrder(Generic[Result]):
    """Puts results into the order of their places (0, 1, 2, ...), as they come.

    At most `held` of those that wait for an earlier one are kept in memory, further ones on the
    shelf: one record that takes a thousand times as long as the others holds up the output, and
    neither the work nor the memory. What a shelf does not take (`fault`: what it raised first)
    stays in memory, too, so that nothing is lost while a run comes to its end.
    """

    def __init__(self, shelf: Shelf[Result], held: int) -> None:
        self._shelf = shelf
        self._most = held
        self._held: dict[int, Result] = {}
        self._gaps: set[int] = set()
        self._next = 0
        self.fault: Exception | None = None

    def due(self, place: int, result: Result | None) -> Iterator[Result]:
        """What can be given out now that `place` is done; None: it brought nothing."""
        if result is None:
            self._gaps.add(place)
        elif place == self._next or len(self._held) < self._most:
            self._held[place] = result
        else:
            self._put_away(place, result)
        while True:
            here = self._next
            if here in self._held:
                yield self._held.pop(here)
            elif here in self._gaps:
                self._gaps.discard(here)
            elif (ready := self._shelf.take(here)) is not None:
                yield ready
            else:
                return
            self._next += 1

    def _put_away(self, place: int, result: Result) -> None:
        try:
            self._shelf.put(place, result)
        except Exception as error:  # noqa: BLE001 - the run raises it, when all is given out
            self.fault = self.fault or error
            self._held[place] = result


class Pipeline(Generic[Source, Result]):
    """Takes items through `work`; keeps their order if there is a shelf for what must wait."""

    def __init__(
        self,
        work: Callable[[Source], Awaitable[Result]],
        *,
        slots: int,
        brake: Brake,
        shelf: Shelf[Result] | None,
        held: int = 128,
    ) -> None:
        self._work = work
        self._slots = asyncio.Semaphore(slots)
        self._brake = brake
        self._order = InOrder(shelf, held) if shelf is not None else None
        self._done: asyncio.Queue[tuple[int, asyncio.Future[Result]] | _End] = asyncio.Queue()

    async def run(self, items: AsyncIterator[Source], emit: Callable[[Result], None]) -> None:
        """Until the items end or the brake is pulled; `emit` gets each result.

        Raises:
            Exception: the first that `work`, `emit`, the shelf or reading raised; no further items
                are begun. Those under way are finished and given out first, unless it was `emit`
                that failed: what cannot be given out is dropped.
        """
        producing = asyncio.create_task(self._produce(items))
        failure: BaseException | None = None
        deaf = False
        while not isinstance(done := await self._done.get(), _End):
            place, task = done
            raised = None if task.cancelled() else task.exception()
            if raised is not None:
                failure = failure or raised
                self._brake.stop_reading()
            if deaf:
                continue
            try:
                await self._give_out(place, task, emit)
            except Exception as error:  # noqa: BLE001 - raised below, when all have stopped
                failure, deaf = failure or error, True
                self._brake.stop_now()
            if failure is None and self._order is not None and self._order.fault is not None:
                failure = self._order.fault
                self._brake.stop_reading()
        try:
            await producing
        except Exception as error:  # noqa: BLE001 - as above
            failure = failure or error
        if failure is not None:
            raise failure

    async def _give_out(
        self, place: int, task: asyncio.Future[Result], emit: Callable[[Result], None]
    ) -> None:
        lost = task.cancelled() or task.exception() is not None
        result = None if lost else task.result()
        if self._order is None:
            if result is not None:
                emit(result)
            return
        for number, ready in enumerate(self._order.due(place, result), 1):
            emit(ready)
            if number % 64 == 0:
                # Thousands may have waited for one; the work goes on beside their output.
                await asyncio.sleep(0)

    async def _produce(self, items: AsyncIterator[Source]) -> None:
        place = 0
        try:
            async for item in items:
                await self._slots.acquire()
                if self._brake.pulled:
                    break
                self._begin(place, item)
                place += 1
        finally:
            while tasks := self._brake.tasks:
                await asyncio.wait(tasks)
            self._done.put_nowait(_END)

    def _begin(self, place: int, item: Source) -> None:
        async def work() -> Result:
            return await self._work(item)

        def done(task: asyncio.Future[Result]) -> None:
            self._slots.release()
            self._done.put_nowait((place, task))
            # Last, because what is in the set has still to be given out.
            self._brake.tasks.discard(task)

        task: asyncio.Future[Result] = asyncio.ensure_future(work())
        self._brake.tasks.add(task)
        # A callback is made also for a task that is cancelled before its first step.
        task.add_done_callback(done)

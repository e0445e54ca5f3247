"""A bounded stream: read, work on several at once, give out in order (or as they finish).

Items come from a thread of their own, because reading a pipe blocks. At most `slots` items are
worked on and at most `window` are held, finished ones that wait for an earlier one included.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

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


class Pipeline(Generic[Source, Result]):
    """Takes items through `work`, keeps the order unless told otherwise."""

    def __init__(
        self,
        work: Callable[[Source], Awaitable[Result]],
        *,
        slots: int,
        window: int,
        ordered: bool,
        brake: Brake,
    ) -> None:
        self._work = work
        self._slots = asyncio.Semaphore(slots)
        self._room = asyncio.Semaphore(window)
        self._ordered = ordered
        self._brake = brake
        self._out: asyncio.Queue[asyncio.Future[Result] | _End] = asyncio.Queue()

    async def run(self, items: AsyncIterator[Source], emit: Callable[[Result], None]) -> None:
        """Until the items end or the brake is pulled; `emit` gets each result.

        Raises:
            Exception: the first that `work`, `emit` or reading raised; no further items are begun.
                Those under way are finished and given out first, unless it was `emit` that failed:
                what cannot be given out is dropped.
        """
        producing = asyncio.create_task(self._produce(items))
        failure: BaseException | None = None
        deaf = False
        while not isinstance(task := await self._out.get(), _End):
            if not task.done():
                await asyncio.wait({task})
            if task.cancelled():
                pass
            elif (raised := task.exception()) is not None:
                failure = failure or raised
                self._brake.stop_reading()
            elif not deaf:
                try:
                    emit(task.result())
                except Exception as error:  # noqa: BLE001 - raised below, when all have stopped
                    failure, deaf = failure or error, True
                    self._brake.stop_now()
            self._room.release()
        try:
            await producing
        except Exception as error:  # noqa: BLE001 - as above
            failure = failure or error
        if failure is not None:
            raise failure

    async def _produce(self, items: AsyncIterator[Source]) -> None:
        try:
            async for item in items:
                await self._room.acquire()
                await self._slots.acquire()
                if self._brake.pulled:
                    break
                self._begin(item)
        finally:
            while tasks := self._brake.tasks:
                await asyncio.wait(tasks)
            self._out.put_nowait(_END)

    def _begin(self, item: Source) -> None:
        async def work() -> Result:
            return await self._work(item)

        task: asyncio.Future[Result] = asyncio.ensure_future(work())
        # By callbacks, because they are made also for a task that is cancelled before its first
        # step. `discard` comes last: a task that is in the set has still to be put out.
        task.add_done_callback(lambda _: self._slots.release())
        if self._ordered:
            self._out.put_nowait(task)
        else:
            task.add_done_callback(self._out.put_nowait)
        self._brake.tasks.add(task)
        task.add_done_callback(self._brake.tasks.discard)

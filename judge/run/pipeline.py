"""A bounded stream: read, work on several at once, give out in order (or as they finish).

Items come from a thread of their own, because reading a pipe blocks. At most `slots` items are
worked on and at most `window` are held, finished ones that wait for an earlier one included.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Source = TypeVar("Source")
Result = TypeVar("Result")


@dataclass(slots=True)
class Brake:
    """How a run is asked to stop: reading no further items, or at once, dropping those under way."""

    pulled: bool = False
    tasks: set[asyncio.Future[Any]] = field(default_factory=set)
    wake: list[Callable[[], None]] = field(default_factory=list)

    def stop_reading(self) -> None:
        self.pulled = True
        for call in self.wake:
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
        if not loop.is_closed():
            loop.call_soon_threadsafe(queue.put_nowait, thing)

    def read() -> None:
        try:
            for item in items:
                room.acquire()
                if brake.pulled:
                    break
                deliver(item)
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be handled
            deliver(error)
        else:
            deliver(_END)

    brake.wake.append(lambda: queue.put_nowait(_END))
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
            Exception: the first that `work`, `emit` or reading raised; no further items are begun,
                those under way are finished and given out first.
        """
        producing = asyncio.create_task(self._produce(items))
        error: BaseException | None = None
        while not isinstance(future := await self._out.get(), _End):
            try:
                if not future.done():
                    await asyncio.wait({future})
                if not future.cancelled():
                    emit(future.result())
            except Exception as caught:  # noqa: BLE001 - kept, and raised when all is given out
                error = error or caught
                self._brake.stop_reading()
            finally:
                self._room.release()
        await producing
        if error is not None:
            raise error

    async def _produce(self, items: AsyncIterator[Source]) -> None:
        try:
            async for item in items:
                await self._room.acquire()
                await self._slots.acquire()
                task: asyncio.Future[Result] = asyncio.ensure_future(self._one(item))
                self._track(task)
                if self._ordered:
                    self._out.put_nowait(task)
                if self._brake.pulled:
                    break
        finally:
            running = {task for task in self._brake.tasks if not task.done()}
            if running:
                await asyncio.wait(running)
            self._out.put_nowait(_END)

    async def _one(self, item: Source) -> Result:
        try:
            return await self._work(item)
        finally:
            self._slots.release()

    def _track(self, task: asyncio.Future[Result]) -> None:
        tasks = self._brake.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if not self._ordered:
            task.add_done_callback(self._out.put_nowait)

"""The one runner: a bounded stream of items through an asynchronous step, in their order.

Items are read by a thread of their own, because reading a pipe blocks. How a run is stopped is
decided here, too: once lets what is under way finish, twice drops it, and a third signal, or five
seconds, end the process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

from judge.errors import Exit
from judge.judging.limits import record_turn

Source = TypeVar("Source")
Result = TypeVar("Result")

WAITING = 1_000
"""Finished results that wait in memory for an earlier one, before no new item is begun."""

READ_AHEAD = 64
"""Items read before they are begun."""

LAST_SECONDS = 5.0
"""From the second signal until the process is gone, whatever hangs."""

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Stop:
    """Asks a run to begin no further item (`gently`), or to drop what is under way (`now`)."""

    def __init__(self) -> None:
        self.asked = False
        self.tasks: set[asyncio.Future[Any]] = set()
        self._calls: list[Callable[[], None]] = []

    def on_asked(self, call: Callable[[], None]) -> None:
        """Make `call` when the run is asked to stop; at once if it has been."""
        self._calls.append(call)
        if self.asked:
            call()

    def gently(self) -> None:
        self.asked = True
        for call in self._calls:
            call()

    def now(self) -> None:
        self.gently()
        for task in list(self.tasks):
            task.cancel()


async def run(
    items: Iterable[Source],
    step: Callable[[Source], Awaitable[Result]],
    sink: Callable[[Result], None],
    *,
    room: Callable[[], int],
    stop: Stop | None = None,
    ordered: bool = True,
    waiting: int = WAITING,
) -> None:
    """Take each item through `step` and give the results to `sink`, until the items end.

    Args:
        room: how many items may be under way now, at least 1; asked before each is begun.
        stop: ends the run early.
        ordered: give results out in the order of the items, else as they finish.
        waiting: most finished results that wait for an earlier one.

    Raises:
        Exception: the first that `step`, `sink` or reading raised; no further item is begun. Those
            under way are finished and given out first, unless it was `sink` that failed.
    """
    await _Stream(step, sink, room, stop or Stop(), ordered, waiting).run(items)


class _Stream(Generic[Source, Result]):
    def __init__(
        self,
        step: Callable[[Source], Awaitable[Result]],
        sink: Callable[[Result], None],
        room: Callable[[], int],
        stop: Stop,
        ordered: bool,
        waiting: int,
    ) -> None:
        self._step, self._sink, self._room, self._stop = step, sink, room, stop
        self._ordered, self._waiting = ordered, waiting
        self._done: asyncio.Queue[tuple[int, asyncio.Future[Result]] | None] = asyncio.Queue()
        self._held: dict[int, asyncio.Future[Result]] = {}
        self._next = 0
        self._freed = asyncio.Event()
        self._failure: BaseException | None = None
        self._broken = False

    async def run(self, items: Iterable[Source]) -> None:
        self._stop.on_asked(self._freed.set)
        beginning = asyncio.create_task(self._begin_all(items))
        while (done := await self._done.get()) is not None:
            for given, task in enumerate(self._due(*done), 1):
                self._give_out(task)
                if given % 64 == 0:
                    # Many may have waited for one; the work goes on beside their output.
                    await asyncio.sleep(0)
            self._freed.set()
        try:
            await beginning
        except Exception as error:  # noqa: BLE001 - raised below, when all has been given out
            self._failure = self._failure or error
        if self._failure is not None:
            raise self._failure

    def _due(self, place: int, task: asyncio.Future[Result]) -> Iterable[asyncio.Future[Result]]:
        """The finished tasks that can be given out now that the one at `place` is."""
        if not self._ordered:
            self._next += 1
            yield task
            return
        self._held[place] = task
        while self._next in self._held:
            self._next += 1
            yield self._held.pop(self._next - 1)

    def _give_out(self, task: asyncio.Future[Result]) -> None:
        if self._broken or task.cancelled() or task.exception() is not None:
            return
        try:
            self._sink(task.result())
        except Exception as error:  # noqa: BLE001 - raised when all have stopped
            self._failure, self._broken = self._failure or error, True
            self._stop.now()

    async def _begin_all(self, items: Iterable[Source]) -> None:
        place = 0
        try:
            async for item in _read(items, self._stop):
                while self._full(place) and not self._stop.asked:
                    self._freed.clear()
                    await self._freed.wait()
                if self._stop.asked:
                    break
                self._begin(place, item)
                place += 1
        finally:
            while tasks := self._stop.tasks:
                await asyncio.wait(tasks)
            self._done.put_nowait(None)

    def _full(self, place: int) -> bool:
        room = self._room()
        return len(self._stop.tasks) >= room or place - self._next >= room + self._waiting

    def _begin(self, place: int, item: Source) -> None:
        async def work() -> Result:
            # Calls of an earlier item come first where a model takes no more at once.
            record_turn.set(place)
            return await self._step(item)

        def done(task: asyncio.Future[Result]) -> None:
            self._done.put_nowait((place, task))
            if not task.cancelled() and (error := task.exception()) is not None:
                self._failure = self._failure or error
                self._stop.gently()
            # Last, because what is in the set has still to be given out.
            self._stop.tasks.discard(task)
            self._freed.set()

        task: asyncio.Future[Result] = asyncio.ensure_future(work())
        self._stop.tasks.add(task)
        # A callback is made also for a task that is cancelled before its first step.
        task.add_done_callback(done)


class _End:
    """Marks the end of the items."""


async def _read(items: Iterable[Source], stop: Stop) -> AsyncIterator[Source]:
    """The items, read by a thread at most `READ_AHEAD` items early; raises what reading raises."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Source | BaseException | _End] = asyncio.Queue()
    room = threading.Semaphore(READ_AHEAD)

    def deliver(thing: Source | BaseException | _End) -> None:
        # A run that was stopped while this thread waited for input has closed its loop by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(queue.put_nowait, thing)

    def read() -> None:
        try:
            for item in items:
                room.acquire()
                if stop.asked:
                    return
                deliver(item)
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be handled
            deliver(error)
        else:
            deliver(_End())

    stop.on_asked(lambda: queue.put_nowait(_End()))
    threading.Thread(target=read, name="judge-reader", daemon=True).start()
    while True:
        thing = await queue.get()
        room.release()
        if isinstance(thing, _End) or stop.asked:
            return
        if isinstance(thing, BaseException):
            raise thing
        yield thing


class Interrupts:
    """While in use, calls `interrupt(again)` for the first (False) and the second signal (True).

    The process ends on the spot at the third signal, and `LAST_SECONDS` after the second, should
    the run hang. Off the main thread, where Python allows no signal handlers, signals are left
    alone.
    """

    def __init__(self, interrupt: Callable[[bool], None]) -> None:
        self._interrupt = interrupt
        self._count = 0
        self._before: dict[int, Any] = {}
        self._end: threading.Timer | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # `nohup` ignores SIGHUP for us. A script's `&` ignores SIGINT, and so a SIGINT
                # that is sent by hand to end the run in good order must be handled all the same.
                if number != getattr(signal, "SIGHUP", None) or (
                    signal.getsignal(number) != signal.SIG_IGN
                ):
                    self._before[number] = signal.signal(number, self._came)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._end is not None:
            self._end.cancel()

    def _came(self, *_: object) -> None:
        self._count += 1
        if self._count > 2:
            os._exit(int(Exit.INTERRUPTED))
        if self._count == 2:
            self._end = threading.Timer(LAST_SECONDS, os._exit, (int(Exit.INTERRUPTED),))
            self._end.daemon = True
            self._end.start()
        self._interrupt(self._count > 1)

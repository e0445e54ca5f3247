"""Runs a bounded stream of items through an asynchronous step, and emits results in input order.

A separate thread reads the items, because reading a pipe blocks. Signals are handled here, too: the
first lets what is under way finish, the second drops it, and a third, or five seconds, ends the
process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, TypeVar

from judge.errors import Exit
from judge.judging.limits import record_turn

Source = TypeVar("Source")
Result = TypeVar("Result")

MAX_BUFFERED = 1_000
"""How many finished results wait in memory for an earlier one, beyond the items under way."""

READ_AHEAD = 64
"""How many items are read before they are begun."""

LAST_SECONDS = 5.0
"""Seconds from the second signal until the process ends."""

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Stop:
    """Stops a run: `gently` begins no further item, `now` also drops what is under way."""

    def __init__(self) -> None:
        self.asked = False
        self.tasks: set[asyncio.Future[Any]] = set()
        self._calls: list[Callable[[], None]] = []

    def on_asked(self, call: Callable[[], None]) -> None:
        """Call `call` when the run is asked to stop; at once if it has been already."""
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
    sink: Callable[[Result], Awaitable[None]],
    *,
    room: Callable[[], int],
    stop: Stop | None = None,
    max_buffered: int = MAX_BUFFERED,
) -> None:
    """Take each item through `step`, and pass the results to `sink` in input order.

    Args:
        room: how many items may be under way now, at least 1; called before each is begun.
        stop: ends the run early.
        max_buffered: how many finished results may wait for an earlier one.

    Raises:
        Exception: the first that `step`, `sink` or reading raised. No further item is begun; those
            under way are finished and passed to `sink` first, unless `sink` itself failed.
    """
    stop, freed = stop or Stop(), asyncio.Event()
    stop.on_asked(freed.set)
    begun: asyncio.Queue[asyncio.Future[Result] | None] = asyncio.Queue()
    failures: list[BaseException] = []
    emitted = 0

    def done(task: asyncio.Future[Result]) -> None:
        stop.tasks.discard(task)
        freed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            failures.append(error)
            stop.gently()

    def full(place: int) -> bool:
        slots = room()
        return len(stop.tasks) >= slots or place - emitted >= slots + max_buffered

    async def begin_all() -> None:
        place = 0
        try:
            async for item in _read(items, stop):
                while full(place) and not stop.asked:
                    freed.clear()
                    await freed.wait()
                if stop.asked:
                    break
                # In the task's context: if a model takes no more calls, earlier items come first.
                record_turn.set(place)
                task = asyncio.ensure_future(step(item))
                stop.tasks.add(task)
                # A callback is made also for a task that is cancelled before its first step.
                task.add_done_callback(done)
                begun.put_nowait(task)
                place += 1
        except Exception as error:  # noqa: BLE001 - raised below, after the last result
            failures.append(error)
        finally:
            begun.put_nowait(None)

    beginning = asyncio.create_task(begin_all())
    broken = False
    while (task := await begun.get()) is not None:
        await asyncio.wait((task,))
        if not (broken or task.cancelled() or task.exception()):
            try:
                await sink(task.result())
            except Exception as error:  # noqa: BLE001 - raised when all have stopped
                failures.append(error)
                broken = True
                stop.now()
        emitted += 1
        freed.set()
    await beginning
    if failures:
        raise failures[0]


_END = object()


async def _read(items: Iterable[Source], stop: Stop) -> AsyncIterator[Source]:
    """Read items on a thread, at most `READ_AHEAD` in advance; raises what reading raises."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue()
    room = threading.Semaphore(READ_AHEAD)

    def deliver(thing: object) -> None:
        # If the run was stopped while this thread waited for input, its loop is closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(queue.put_nowait, thing)

    def read() -> None:
        try:
            for item in items:
                room.acquire()
                if stop.asked:
                    return
                deliver(item)
            deliver(_END)
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be handled
            deliver(error)

    stop.on_asked(lambda: queue.put_nowait(_END))
    threading.Thread(target=read, name="judge-reader", daemon=True).start()
    while (thing := await queue.get()) is not _END and not stop.asked:
        room.release()
        if isinstance(thing, BaseException):
            raise thing
        yield thing
    room.release()


async def aside(work: Callable[[], None]) -> None:
    """Do work that may wait for input, on a thread that a stopped run does not wait for. Raises
    what `work` raises."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[BaseException | None] = loop.create_future()

    def end(error: BaseException | None) -> None:
        if not result.done():
            result.set_result(error)

    def go() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - it is raised again where it can be handled
            error = raised
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(end, error)

    threading.Thread(target=go, name="judge-look", daemon=True).start()
    if (error := await result) is not None:
        raise error


@contextmanager
def interrupts(interrupt: Callable[[bool], None]) -> Iterator[None]:
    """Inside the context, call `interrupt(again)` for the first (False) and second signal (True).

    The process ends at once at the third signal, and `LAST_SECONDS` after the second if the run
    hangs. Off the main thread, where Python allows no signal handlers, nothing is handled.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    count = 0
    end = threading.Timer(LAST_SECONDS, os._exit, (int(Exit.INTERRUPTED),))
    end.daemon = True

    def came(*_: object) -> None:
        nonlocal count
        count += 1
        if count > 2:
            os._exit(int(Exit.INTERRUPTED))
        if count == 2:
            end.start()
        interrupt(count > 1)

    # `nohup` sets SIGHUP to be ignored, which stays so. A script's `&` does so with SIGINT, which
    # is handled all the same, so that a SIGINT sent by hand ends the run in good order.
    before = {
        number: signal.signal(number, came)
        for number in SIGNALS
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        end.cancel()


def beside_any_loop(step: Callable[[], Result]) -> Result:
    """The result of `step`, which starts an event loop: in another thread if one runs in this."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return step()
    return ThreadPoolExecutor(1).submit(copy_context().run, step).result()

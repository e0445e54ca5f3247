"""A run in a thread and an event loop of its own, whose lines are taken in memory.

So any code can read it, also inside a running loop. It is the run of `judge validate`; only the
destination of its lines differs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from judge.records import Record
from judge.records.lines import Line
from judge.run.job import Job
from judge.run.panels import Resources
from judge.run.profiles import Questions
from judge.run.report import Report
from judge.run.run import TaskRun
from judge.run.task import Watcher
from judge.run.validate import Validation

_Delivery: TypeAlias = Line | BaseException | None
"""A line of a run, or its end: what ended it early, else None."""


def lines(job: Job, questions: Questions, watcher: Watcher) -> Generator[Line, None, None]:
    """Yield each line once it and all before it are done; closing the generator ends the run. A
    line's `number` is its record's in the input.

    Raises:
        UsageError: before the first line: a model cannot be used.
        JudgeError: after the last line: what ended the run early.
    """
    queue: SimpleQueue[_Delivery] = SimpleQueue()
    memory_run = _MemoryRun(job, questions, watcher, queue.put)
    try:
        while (line := memory_run.taken(queue.get())) is not None:
            yield line
    finally:
        memory_run.close()


async def async_lines(
    job: Job, questions: Questions, watcher: Watcher
) -> AsyncGenerator[Line, None]:
    """`lines` as an asynchronous iterator."""
    # No thread of the caller's loop waits: many runs would hold all that the caller's code has.
    loop, queue, end = asyncio.get_running_loop(), asyncio.Queue[_Delivery](), asyncio.Event()

    def receive(delivery: _Delivery) -> None:
        queue.put_nowait(delivery)
        if not isinstance(delivery, Line):
            end.set()

    def deliver(delivery: _Delivery) -> None:
        with suppress(RuntimeError):  # The caller's loop may have ended meanwhile.
            loop.call_soon_threadsafe(receive, delivery)

    memory_run = _MemoryRun(job, questions, watcher, deliver)
    try:
        while (line := memory_run.taken(await queue.get())) is not None:
            yield line
    finally:
        memory_run.stop()
        await end.wait()
        memory_run.close()


class _InMemory(Validation):
    """Validation that hands out its lines, and reads records only as lines are taken."""

    def __init__(self, resources: Resources, job: Job, hand_out: Callable[[Line], None]) -> None:
        super().__init__(resources, job)
        self._hand_out = hand_out
        self.room = threading.Semaphore(2 * resources.models.slots)
        self.closed = False
        self._numbers: deque[int] = deque()

    def items(self) -> Iterator[Record]:
        for item in super().items():
            self.room.acquire()
            if self.closed:
                return
            self._numbers.append(item.line)
            yield item

    def count(self, line: Line, report: Report) -> None:
        # Lines come in the order of their records.
        self._hand_out(replace(line, number=self._numbers.popleft(), runs=report.runs))


class _MemoryRun:
    """A run in a thread of its own, which delivers its lines in input order, then its end."""

    def __init__(
        self, job: Job, questions: Questions, watcher: Watcher, deliver: Callable[[_Delivery], None]
    ) -> None:
        self._job, self._questions, self._watcher = job, questions, watcher
        self._deliver = deliver
        self._task: _InMemory | None = None
        self._run: TaskRun | None = None
        self._closed = False
        # In the caller's context, so that its tracing spans are the parents of the run's.
        go = partial(copy_context().run, self._go)
        self._thread = threading.Thread(target=go, name="judge-run", daemon=True)
        self._thread.start()

    def taken(self, delivery: _Delivery) -> Line | None:
        """The line delivered, or None at the end; raises what ended the run early."""
        if isinstance(delivery, BaseException):
            raise delivery
        if delivery is not None and self._task is not None:
            self._task.room.release()
        return delivery

    def stop(self) -> None:
        """End the run and drop what is under way."""
        self._closed = True
        if self._run is not None:
            # The run's loop may have ended meanwhile.
            with suppress(RuntimeError):
                self._run.interrupt(True)
        self._end_reading()

    def close(self) -> None:
        """Stop, and wait until the run has freed everything."""
        self.stop()
        self._thread.join()
        self._end_reading()

    def _end_reading(self) -> None:
        """Let the reading thread end, which may be waiting for room."""
        if self._task is not None:
            self._task.closed = True
            self._task.room.release()

    def _go(self) -> None:
        end: BaseException | None = None
        try:
            resources = Resources.answering(self._questions)
            self._task = _InMemory(resources, self._job, self._deliver)
            self._run = TaskRun(self._job, self._task, self._watcher)
            if self._closed:
                self._run.interrupt(True)
            end = self._run.run().fatal
        except BaseException as error:  # noqa: BLE001 - raised where the lines are taken
            end = error
        self._deliver(end)

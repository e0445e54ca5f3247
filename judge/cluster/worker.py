"""The Ray worker, which judges chunks of records as a local run would, and its `Feed`.

`Feed` is the actor between the run and its workers (judge/cluster/driver.py).
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import JudgeError
from judge.judging.limits import Budget
from judge.judging.transport import Counters
from judge.records import Record
from judge.redact import guard_process
from judge.run.task import OfWorker, Task, line_of
from judge.settings import Settings

ATTEMPTS = 3
"""A record is given up after this many workers died judging it."""

Chunk = int | tuple[int, int]
"""A chunk's number, or a record's chunk and place in it."""

Traffic = tuple[Counters, Mapping[str, str | int]]
"""Counts of a worker's client, and the adaptations to its server."""

Done = bytes | JudgeError | None
"""A record's output line, the error that ends the run, or None if its workers died."""


class Feed:
    """The actor between a run and its workers: chunks by number, and how often each was tried.

    A chunk is kept until its lines are here, because Ray may read it again after a worker died.
    """

    def __init__(self) -> None:
        self._chunks: dict[int, bytes] = {}
        self._put = 0
        self._lines: dict[int, asyncio.Future[bytes]] = {}
        self._tries: Counter[Chunk] = Counter()
        self._changed = asyncio.Condition()

    async def judged(self, chunk: bytes) -> bytes:
        """Hand over a chunk, and wait for its outcomes."""
        async with self._changed:
            number, self._put = self._put, self._put + 1
            self._chunks[number] = chunk
            self._lines[number] = asyncio.get_running_loop().create_future()
            self._changed.notify_all()
        outcomes = await self._lines[number]
        del self._lines[number], self._chunks[number], self._tries[number]
        return outcomes

    async def get(self, number: int) -> bytes:
        """Wait for a chunk and return it; empty if it has been judged already."""
        async with self._changed:
            await self._changed.wait_for(lambda: number < self._put)
            return self._chunks.get(number, b"")

    async def done(self, number: int, outcomes: bytes) -> None:
        """Store the outcomes of a chunk, which a worker has judged."""
        if (future := self._lines.get(number)) is not None and not future.done():
            future.set_result(outcomes)

    async def begin(self, work: Chunk) -> int:
        """Count a try of a chunk, or of a single record; returns how many there were."""
        self._tries[work] += 1
        return self._tries[work]

    async def survived(self, work: Chunk) -> None:
        """Reset the tries of a chunk or record that was judged."""
        del self._tries[work]


class Worker:
    """Judges chunks as a local run would, by the task that `of_worker` makes from the run's
    settings. Ray makes actors of this class.

    Files that the user named are relative to `folder`, the run's working directory.
    """

    def __init__(self, settings: Settings, folder: str, feed: Any, of_worker: OfWorker) -> None:
        guard_process()
        if Path(folder).is_dir():
            os.chdir(folder)
        self._settings, self._feed, self._of_worker = settings, feed, of_worker
        self._task: Task | None = None
        self._starting, self._turn = asyncio.Lock(), asyncio.Lock()
        self._slots = asyncio.Semaphore(1)

    async def __call__(self, batch: dict[str, Any]) -> Any:
        """Judge one chunk and give the feed its lines, with the traffic since the last chunk."""
        number, chunk = int(batch["number"][0]), batch["chunk"][0]
        if chunk:
            outcomes = await self._done(number, pickle.loads(chunk))
            await self._feed.done.remote(number, pickle.dumps((outcomes, *self._traffic())))
        yield {"number": batch["number"]}

    async def _done(self, number: int, items: Sequence[Record]) -> list[Done]:
        tries = await self._feed.begin.remote(number)
        if tries > ATTEMPTS + len(items):
            return [None for _ in items]
        try:
            task = await self._begun()
        except JudgeError as error:
            return [error for _ in items]
        if tries < ATTEMPTS:
            return await asyncio.gather(*(self._judged(task, item) for item in items))
        # One record at a time and nothing else, so that a death is blamed on the right record.
        async with self._turn:
            for _ in range(task.resources.models.slots):
                await self._slots.acquire()
            try:
                return [await self._alone(task, (number, n), item) for n, item in enumerate(items)]
            finally:
                for _ in range(task.resources.models.slots):
                    self._slots.release()

    async def _begun(self) -> Task:
        async with self._starting:
            if self._task is None:
                task = self._of_worker(self._settings, Budget())
                await task.resources.prepare()
                self._slots = asyncio.Semaphore(task.resources.models.slots)
                self._task = task
        return self._task

    async def _judged(self, task: Task, item: Record) -> Done:
        async with self._slots:
            return await self._line(task, item)

    async def _alone(self, task: Task, record: tuple[int, int], item: Record) -> Done:
        if await self._feed.begin.remote(record) > 1:
            return None
        line = await self._line(task, item)
        await self._feed.survived.remote(record)
        return line

    async def _line(self, task: Task, item: Record) -> Done:
        try:
            line = await line_of(task, item, task)
            # Nothing runs at a worker's end.
            for client in task.resources.models.clients.values():
                await client.drop_unusable()
            return line.text
        except JudgeError as error:
            return error

    def _traffic(self) -> tuple[dict[str, Traffic], float]:
        """The traffic by model and its cost (USD) since the last call."""
        if self._task is None:
            return {}, 0.0
        models = self._task.resources.models
        traffic = {
            spec: (client.counters.take(), client.negotiation.adaptations)
            for spec, client in models.clients.items()
        }
        cost, models.budget.cost = models.budget.cost, 0.0
        return traffic, cost

"""What a Ray worker does: it judges records as a local run would.

`Feed` is the actor between the run and its workers (judge/run/ray.py).
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from judge.errors import JudgeError
from judge.judging.calls import Counters
from judge.judging.limits import Budget
from judge.records import Item, Problem, build
from judge.redact import guard_process
from judge.run import lines
from judge.run.setup import Setup
from judge.run.task import line_of
from judge.run.validate import Validation
from judge.settings import Settings

ATTEMPTS = 3
"""Workers that may die of one record before it is given up."""

MOST_TRIES = 20
"""Workers that may die, for any reason, while they have a record."""

Done = bytes | JudgeError | None
"""A record's output line, what ends the run, or None where the record killed its workers."""


class Feed:
    """The actor between a run and its workers: records by number, and how often each was tried.

    A record is kept until its line is here, because Ray may read it again after a death.
    """

    def __init__(self) -> None:
        self._records: dict[int, bytes] = {}
        self._put = 0
        self._lines: dict[int, asyncio.Future[bytes]] = {}
        self._tries: Counter[tuple[int, bool]] = Counter()
        self._changed = asyncio.Condition()

    async def judged(self, record: bytes) -> bytes:
        """What a worker made of a record; waits for it."""
        async with self._changed:
            number, self._put = self._put, self._put + 1
            self._records[number] = record
            self._lines[number] = asyncio.get_running_loop().create_future()
            self._changed.notify_all()
        told = await self._lines[number]
        del self._lines[number], self._records[number]
        del self._tries[number, True], self._tries[number, False]
        return told

    async def get(self, number: int) -> bytes:
        """A record; empty if it has been judged meanwhile."""
        async with self._changed:
            await self._changed.wait_for(lambda: number < self._put)
            return self._records.get(number, b"")

    async def begin(self, number: int, alone: bool) -> int:
        """Count a try of this record, beside others or `alone`; returns how many there were."""
        self._tries[number, alone] += 1
        return self._tries[number, alone]

    async def done(self, number: int, told: bytes) -> None:
        """A worker has judged this record."""
        if (waiting := self._lines.get(number)) is not None and not waiting.done():
            waiting.set_result(told)


class Worker:
    """Judges records as a local run would, from the run's settings alone. Ray makes actors of it.

    Files that the user named are relative to `folder`, the run's.
    """

    def __init__(self, settings: Settings, folder: str, feed: Any) -> None:
        guard_process()
        if Path(folder).is_dir():
            os.chdir(folder)
        self._settings, self._feed = settings, feed
        self._task: Validation | None = None
        self._starting, self._turn = asyncio.Lock(), asyncio.Lock()
        self._slots = asyncio.Semaphore(1)

    async def __call__(self, batch: dict[str, Any]) -> Any:
        """Judge one record and give the feed its line, with the counts since the last."""
        number, record = int(batch["number"][0]), batch["record"][0]
        if record:
            done = await self._done(number, pickle.loads(record))
            await self._feed.done.remote(number, pickle.dumps((done, *self._counted())))
        yield {"number": batch["number"]}

    async def _done(self, number: int, item: Item) -> Done:
        tries = await self._feed.begin.remote(number, False)
        if tries > MOST_TRIES:
            return None
        try:
            task = await self._begun()
        except JudgeError as error:
            return error
        if tries < ATTEMPTS:
            async with self._slots:
                return await _line(task, item)
        # Beside nothing else, so that no record is blamed for another's death.
        async with self._all_slots(task.setup.slots):
            if await self._feed.begin.remote(number, True) > 1:
                return None
            return await _line(task, item)

    @asynccontextmanager
    async def _all_slots(self, count: int) -> AsyncIterator[None]:
        async with self._turn:
            for _ in range(count):
                await self._slots.acquire()
            try:
                yield
            finally:
                for _ in range(count):
                    self._slots.release()

    async def _begun(self) -> Validation:
        async with self._starting:
            if self._task is None:
                setup = Setup.of(self._settings, budget=Budget())
                await setup.prepare()
                self._slots = asyncio.Semaphore(setup.slots)
                self._task = Validation(setup, iter(()))
        return self._task

    def _counted(self) -> tuple[dict[str, Counters], float]:
        """Counters by model and cost (USD), since they were last told."""
        if self._task is None:
            return {}, 0.0
        setup, counted = self._task.setup, {}
        for spec, client in setup.clients.items():
            counted[spec], client.counters = client.counters, Counters()
        cost, setup.budget.cost = setup.budget.cost, 0.0
        return counted, cost


async def _line(task: Validation, item: Item) -> Done:
    record = build(item, task.kind_of(item))
    if isinstance(record, Problem):
        return lines.bad_input(item, record).text
    try:
        return (await line_of(task, record)).text
    except JudgeError as error:
        return error

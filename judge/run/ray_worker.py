"""What a Ray worker does: it judges chunks of records as a local run would.

`Feed` is the actor between the run and its workers (judge/run/ray.py).
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.errors import JudgeError
from judge.judging.calls import Counters
from judge.judging.limits import Budget
from judge.records import Item, Problem, SeenIds, build
from judge.redact import guard_process
from judge.run import lines
from judge.run.setup import Setup
from judge.run.task import line_of
from judge.run.validate import Validation
from judge.settings import Settings

Chunk = Sequence[tuple[int, Item]]
"""Records, each with its number in the run."""


class Feed:
    """The actor between a run and its workers: chunks by number, and the run's budget.

    A chunk is kept until the run has its lines, because Ray may read it again after a death.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._chunks: dict[int, bytes] = {}
        self._begun: set[int] = set()
        self._end: int | None = None
        self._changed = asyncio.Condition()

    async def put(self, number: int, chunk: bytes, done: int) -> None:
        """Add a chunk; those before `done` are needed no more."""
        async with self._changed:
            self._chunks[number] = chunk
            for old in [old for old in self._chunks if old < done]:
                del self._chunks[old]
            self._changed.notify_all()

    async def begin(self, number: int) -> None:
        """A worker has a chunk in hand."""
        self._begun.add(number)

    async def begun(self, number: int) -> bool:
        """Whether a worker had a chunk in hand; asked once."""
        begun = number in self._begun
        self._begun.discard(number)
        return begun

    async def close(self, end: int) -> None:
        """There are so many chunks in all."""
        async with self._changed:
            self._end = end
            self._changed.notify_all()

    async def get(self, number: int) -> bytes | None:
        """A chunk, empty where it is needed no more; None behind the last."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._end is not None or number <= max(self._chunks, default=-1)
            )
            if self._end is not None and number >= self._end:
                return None
            return self._chunks.get(number, b"")

    def take(self, cost: float, free: bool) -> JudgeError | None:
        """Count one call; `cost` (USD) was spent since a worker asked last."""
        self._budget.cost += cost
        try:
            self._budget.take(free=free)
        except JudgeError as reached:
            return reached
        return None


class SharedBudget(Budget):
    """A worker's view of the run's budget: each call is asked for."""

    def __init__(self, feed: Any) -> None:
        super().__init__()
        self._feed, self._told = feed, 0.0

    def take(self, *, free: bool = False) -> None:
        import ray

        new, self._told = self.cost - self._told, self.cost
        refused: JudgeError | None = ray.get(self._feed.take.remote(new, free))
        if refused is not None:
            raise refused
        self.calls += 1


class Worker:
    """Judges chunks as a local run would, from the run's settings alone. Ray makes actors of it.

    Args:
        folder: the run's working folder, which files that the user named are relative to.
        feed: where the chunks, and the budget if there is one (`limited`), are.
    """

    def __init__(self, settings: Settings, folder: str, feed: Any, limited: bool) -> None:
        guard_process()
        if Path(folder).is_dir():
            os.chdir(folder)
        self._settings, self._feed, self._limited = settings, feed, limited
        self._task: Validation | None = None
        self._starting = asyncio.Lock()
        self._slots = asyncio.Semaphore(1)
        self._told: dict[str, Counters] = {}
        self._cost = 0.0

    async def __call__(self, batch: dict[str, Any]) -> Any:
        """One chunk's lines, and what was counted since the last: a row of pickled bytes."""
        chunk = batch["chunk"][0]
        await self._feed.begin.remote(int(batch["number"][0]))
        done = await self._done(pickle.loads(chunk) if chunk else ())
        yield {"number": batch["number"], "done": [pickle.dumps((done, *self._new()))]}

    async def _done(self, chunk: Chunk) -> list[tuple[int, bytes | JudgeError]]:
        try:
            task = await self._begun()
        except JudgeError as error:
            return [(number, _sendable(error)) for number, _ in chunk]
        return await asyncio.gather(*(self._judged(task, *pair) for pair in chunk))

    async def _begun(self) -> Validation:
        async with self._starting:
            if self._task is None:
                budget = SharedBudget(self._feed) if self._limited else None
                setup = Setup.of(self._settings, budget=budget)
                await setup.prepare()
                self._slots = asyncio.Semaphore(setup.slots)
                self._task = Validation(setup, SeenIds(), iter(()), lambda line: None)
        return self._task

    async def _judged(
        self, task: Validation, number: int, item: Item
    ) -> tuple[int, bytes | JudgeError]:
        async with self._slots:
            record = build(item, task.kind)
            if isinstance(record, Problem):
                return number, lines.bad_input(item, record).text
            try:
                return number, (await line_of(task, record)).text
            except JudgeError as error:
                return number, _sendable(error)

    def _new(self) -> tuple[dict[str, Counters], float]:
        """Counters by model and cost (USD), since they were last told."""
        if self._task is None:
            return {}, 0.0
        clients = self._task.setup.clients.items()
        now = {spec: Counters(**asdict(client.counters)) for spec, client in clients}
        new = {spec: _less(found, self._told.get(spec)) for spec, found in now.items()}
        cost = self._task.setup.budget.cost
        spent, self._told, self._cost = cost - self._cost, now, cost
        return new, spent


def _less(counters: Counters, before: Counters | None) -> Counters:
    earlier = asdict(before or Counters())
    return Counters(**{name: n - earlier[name] for name, n in asdict(counters).items()})


def _sendable(error: JudgeError) -> JudgeError:
    """The error in a form that another process can read: itself, or its message and exit code."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever an error class of a plug-in raises
        plain = JudgeError(str(error))
        plain.exit_code = error.exit_code
        return plain
    return error

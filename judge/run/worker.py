"""What a Ray worker does: it judges records as a local run would, from the run's settings alone.

Nothing here knows Ray: a worker is a class with coroutines, and Ray makes a process of it
(judge/run/rays.py). Reading, order, output and resume stay with the driver (judge/run/cluster.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from judge.errors import Exit, JudgeError
from judge.judging.calls import Counters
from judge.judging.limits import Budget, BudgetReached
from judge.records import Item, Problem, SeenIds, build
from judge.redact import guard_process
from judge.run import lines
from judge.run.setup import Setup
from judge.run.task import line_of
from judge.run.validate import Validation
from judge.settings import Settings

GATHER_SECONDS = 0.01
"""How long a finished line waits for others, so that several travel in one message."""

ENOUGH = 32
"""Finished lines that wait for no others."""

MOST_LEASED = 16
"""Calls that a worker may take from the run's budget at once."""

_log = logging.getLogger(__name__)

Lease = Callable[[float], "Leased"]
"""Asks for calls, telling the cost (USD) since it last asked."""


class WorkerFault(JudgeError):
    """A worker met an error that is none of the expected ones."""

    exit_code = Exit.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Leased:
    """Calls that a worker may make, or why there are none."""

    calls: int
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker has finished since it was last asked, and what it took.

    `lines` are the output lines by the items' numbers, or the errors that end the run; `counters`
    by model and `cost` in USD are since the last time, too.
    """

    lines: Sequence[tuple[int, bytes | JudgeError]]
    counters: dict[str, Counters]
    cost: float


class Purse:
    """The budget of a run, of which all workers take: one for the whole run.

    Calls are handed out in blocks that become smaller as the budget does, so that never more than
    `max_calls` are made; a block that lies with one worker is not there for another, so that a run
    may stop up to a block for each worker short of it. With `max_cost` each call is asked for.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None, workers: int) -> None:
        self._budget = Budget(max_calls, max_cost)
        self._workers = workers

    def lease(self, cost: float) -> Leased:
        """Some calls; `cost` is what the worker has spent (USD) since it last asked."""
        budget = self._budget
        budget.cost += cost
        wanted = 1
        if budget.max_calls is not None and budget.max_cost is None:
            left = budget.max_calls - budget.calls
            wanted = max(1, min(MOST_LEASED, left // (8 * self._workers)))
        try:
            for _ in range(wanted):
                budget.take()
        except BudgetReached as reached:
            return Leased(0, str(reached))
        return Leased(wanted)


class LeasedBudget(Budget):
    """A worker's share of the run's budget, taken block by block."""

    def __init__(self, lease: Lease) -> None:
        super().__init__()
        self._lease = lease
        self._left = 0
        self._told = 0.0

    def take(self, *, free: bool = False) -> None:
        if not self._left:
            cost = self.cost
            leased = self._lease(cost - self._told)
            self._told = cost
            if not leased.calls:
                raise BudgetReached(leased.refusal)
            self._left = leased.calls
        self._left -= 1
        self.calls += 1


class Worker:
    """Judges the items it is given, several at once, and hands the lines back as they finish.

    Args:
        folder: the driver's working folder, which files that the user named are relative to. Where
            this machine has none such, the worker stays where it is.
        lease: how to get at the run's budget; None for a run without one.
    """

    def __init__(self, settings: Settings, folder: str, lease: Lease | None) -> None:
        self._settings, self._folder, self._lease = settings, folder, lease
        self._work: Validation | None = None
        self._slots = asyncio.Semaphore(1)
        self._under_way: set[asyncio.Task[None]] = set()
        self._lines: list[tuple[int, bytes | JudgeError]] = []
        self._some = asyncio.Event()
        self._told = _Told()

    async def where(self) -> int:
        """The process id: an answer means that the worker has its place."""
        return os.getpid()

    async def begin(self) -> JudgeError | None:
        """Build everything and reach every model; the error that keeps it from that, if any."""
        guard_process()
        _enter(self._folder)
        try:
            budget = LeasedBudget(self._lease) if self._lease is not None else None
            setup = Setup.of(self._settings, budget=budget)
            self._work = Validation(setup, SeenIds(), iter(()), lambda line: None)
            self._slots = asyncio.Semaphore(setup.slots)
            await setup.prepare()
        except JudgeError as error:
            return _sendable(error)
        return None

    async def give(self, items: Iterable[tuple[int, Item]]) -> None:
        """Judge these, each under its number."""
        for number, item in items:
            task = asyncio.create_task(self._judge(number, item))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def take(self) -> Done:
        """What is finished; waits until something is."""
        await self._some.wait()
        if len(self._lines) < ENOUGH and self._under_way:
            await asyncio.sleep(GATHER_SECONDS)
        finished, self._lines = self._lines, []
        self._some.clear()
        return self._told.since(finished, self._begun)

    async def end(self) -> None:
        """Free what the models hold."""
        for task in list(self._under_way):
            task.cancel()
        if self._work is not None:
            await self._work.setup.aclose()

    @property
    def _begun(self) -> Validation:
        if self._work is None:
            raise RuntimeError("the worker was given records before it had begun")
        return self._work

    async def _judge(self, number: int, item: Item) -> None:
        async with self._slots:
            outcome = await self._outcome(item)
        self._lines.append((number, outcome))
        self._some.set()

    async def _outcome(self, item: Item) -> bytes | JudgeError:
        try:
            record = build(item, self._begun.kind)
            if isinstance(record, Problem):
                return lines.bad_input(item, record).text
            return (await line_of(self._begun, record)).text
        except JudgeError as error:
            return _sendable(error)
        except Exception as error:  # noqa: BLE001 - it ends the run, which the driver does
            _log.exception("line %d was not judged", item.line)
            return WorkerFault(f"a worker failed on line {item.line}: {_named(error)}")


class _Told:
    """What the driver knows of a worker's calls already."""

    def __init__(self) -> None:
        self._counters: dict[str, Counters] = {}
        self._cost = 0.0

    def since(self, finished: list[tuple[int, bytes | JudgeError]], work: Validation) -> Done:
        now = {spec: Counters(**asdict(c.counters)) for spec, c in work.setup.clients.items()}
        new = {spec: less(found, self._counters.get(spec)) for spec, found in now.items()}
        cost = work.setup.budget.cost
        done = Done(finished, new, cost - self._cost)
        self._counters, self._cost = now, cost
        return done


def less(counters: Counters, before: Counters | None) -> Counters:
    """What has been counted since `before`; None: since the beginning."""
    earlier = asdict(before or Counters())
    return Counters(**{name: n - earlier[name] for name, n in asdict(counters).items()})


def _enter(folder: str) -> None:
    if Path(folder).is_dir():
        os.chdir(folder)


def _sendable(error: JudgeError) -> JudgeError:
    """The error in a form that another process can read: itself, or its message and exit code."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever somebody else's error class does
        plain = JudgeError(str(error))
        plain.exit_code = error.exit_code
        return plain
    return error


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

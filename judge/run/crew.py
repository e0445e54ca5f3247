"""The workers of a run: each is handed records as it has room, and replaced when it dies.

Nothing here knows Ray, which says where a worker runs and tells when it died (judge/run/rays.py).
What a worker had when it died goes to others. A record on which workers die again and again is
judged alone at its last attempt, so that its neighbours are not blamed, and given up after that.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from judge.errors import Exit, JudgeError
from judge.records import Item
from judge.run.worker import Done

ATTEMPTS = 3
"""Deaths of workers that one record may be party to."""

LOST_IN_A_ROW = 100
"""Records given up with nothing judged between, after which it is the workers that are at fault."""

CHUNK = 64
"""Most records in one message: a message has its price, and so has waiting for one to fill."""

PLACEMENT_SECONDS = 120.0
"""How long a run goes on without any worker that has a place to run."""

END_SECONDS = 20.0
"""How long workers have to free what their models hold."""

_log = logging.getLogger(__name__)


class WorkerDied(Exception):
    """A worker's process or machine is gone; the message says what is known of it."""


class RecordLost(Exception):
    """A record that no worker survived; the message is the same in every run."""


class CrewError(JudgeError):
    """There is nobody left to do the work."""

    exit_code = Exit.UNAVAILABLE


class Hired(Protocol):
    """A worker (judge/run/worker.py) in another process. All but `kill` raise WorkerDied."""

    async def where(self) -> int: ...

    async def begin(self) -> JudgeError | None: ...

    async def give(self, items: Sequence[tuple[int, Item]]) -> None: ...

    async def take(self) -> Done: ...

    async def end(self) -> None: ...

    def kill(self) -> None:
        """End its process, whether it still lives or not."""


@dataclass(slots=True)
class _Parcel:
    """One item under way. `given`: it has reached a worker, and may be what the worker died of."""

    number: int
    item: Item
    line: asyncio.Future[bytes]
    deaths: int = 0
    given: bool = False

    @property
    def alone(self) -> bool:
        return self.deaths == ATTEMPTS - 1


@dataclass(slots=True)
class _Hand:
    """One worker, and what lies with it."""

    worker: Hired
    mine: dict[int, _Parcel] = field(default_factory=dict)
    placed: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def fewer_than(self, count: int) -> None:
        """Wait until fewer items than that lie here."""
        while len(self.mine) >= count:
            self.changed.clear()
            await self.changed.wait()


class Crew:
    """So many workers, of which each holds at most `window` items.

    Args:
        hire: makes a worker; it need not have found its place yet.
        took: is told what each message of a worker brings.
        room: says what the cluster has, for the error that there is no place for any worker.
    """

    def __init__(
        self,
        hire: Callable[[], Hired],
        count: int,
        window: int,
        took: Callable[[Done], None],
        room: Callable[[], str],
    ) -> None:
        self._hire, self._took, self._room = hire, took, room
        self._count, self._window = count, window
        self._waiting: list[tuple[int, _Parcel]] = []
        self._arrived = asyncio.Semaphore(0)
        self._open: dict[int, _Parcel] = {}
        self._hands: list[_Hand] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = asyncio.Event()
        self._failure: Exception | None = None
        self._numbers = 0
        self._deaths = 0
        self._lost = 0

    async def start(self) -> None:
        """Hire everybody; returns when the first is ready.

        Raises:
            JudgeError: a worker cannot do this run's work, or none finds a place.
        """
        for coroutine in (*(self._serve() for _ in range(self._count)), self._watch()):
            task = asyncio.create_task(coroutine)
            task.add_done_callback(self._ended)
            self._tasks.append(task)
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    async def judged(self, item: Item) -> bytes:
        """The output line of an item.

        Raises:
            RecordLost: no worker survived it.
            JudgeError: what ends the run.
        """
        if self._failure is not None:
            raise self._failure
        line: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        parcel = _Parcel(self._numbers, item, line)
        self._numbers += 1
        self._open[parcel.number] = parcel
        self._put(parcel)
        try:
            return await line
        finally:
            self._open.pop(parcel.number, None)

    async def close(self) -> None:
        """Send everybody home; what is not finished is dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        ending = [asyncio.create_task(_sent_home(hand)) for hand in self._hands if hand.placed]
        if ending:
            await asyncio.wait(ending, timeout=END_SECONDS)
        for hand in self._hands:
            hand.worker.kill()

    # ------------------------------------------------------------ what waits

    def _put(self, parcel: _Parcel) -> None:
        heapq.heappush(self._waiting, (parcel.number, parcel))
        self._arrived.release()

    async def _next(self, hand: _Hand) -> _Parcel:
        """The oldest parcel that waits, now with this hand."""
        while True:
            await self._arrived.acquire()
            _, parcel = heapq.heappop(self._waiting)
            if not parcel.line.done():
                hand.mine[parcel.number] = parcel
                return parcel

    def _company(self) -> bool:
        """Whether another parcel waits, for nobody else, that may travel with others."""
        return not self._arrived.locked() and not self._waiting[0][1].alone

    # ------------------------------------------------------------ one worker after another

    async def _serve(self) -> None:
        while self._failure is None:
            hand = _Hand(self._hire())
            self._hands.append(hand)
            death: WorkerDied | None = None
            try:
                await self._employ(hand)
            except* WorkerDied as deaths:
                death = _first(deaths)
            # After a cancellation `close` still speaks with the worker, and kills it.
            hand.worker.kill()
            self._hands.remove(hand)
            if death is None:
                return
            self._bury(hand, death)

    async def _employ(self, hand: _Hand) -> None:
        """Have a worker work until it dies; returns only if it cannot begin."""
        await hand.worker.where()
        hand.placed = True
        trouble = await hand.worker.begin()
        if trouble is not None:
            self._fail(trouble)
            return
        self._ready.set()
        async with asyncio.TaskGroup() as both:
            both.create_task(self._give(hand))
            both.create_task(self._take(hand))

    async def _give(self, hand: _Hand) -> None:
        while True:
            await hand.fewer_than(self._window)
            batch = [await self._next(hand)]
            if batch[0].alone:
                await hand.fewer_than(2)
            else:
                most = min(CHUNK, self._window - len(hand.mine) + 1)
                while len(batch) < most and self._company():
                    batch.append(await self._next(hand))
            for parcel in batch:
                parcel.given = True
            await hand.worker.give([(parcel.number, parcel.item) for parcel in batch])
            if batch[0].alone:
                await hand.fewer_than(1)

    async def _take(self, hand: _Hand) -> None:
        while True:
            done = await hand.worker.take()
            self._deaths = self._lost = 0
            self._took(done)
            for number, outcome in done.lines:
                line = hand.mine.pop(number).line
                if line.done():
                    continue
                if isinstance(outcome, bytes):
                    line.set_result(outcome)
                else:
                    line.set_exception(outcome)
            hand.changed.set()

    def _bury(self, hand: _Hand, death: WorkerDied) -> None:
        self._deaths += 1
        _log.warning(
            "judge: a worker died (%s); others take over its %d records", death, len(hand.mine)
        )
        for parcel in hand.mine.values():
            parcel.deaths += parcel.given
            parcel.given = False
            if parcel.line.done():
                continue
            if parcel.deaths < ATTEMPTS:
                self._put(parcel)
                continue
            self._deaths = 0
            self._lost += 1
            parcel.line.set_exception(
                RecordLost(f"the worker died each of the {ATTEMPTS} times it judged this record")
            )
        if self._lost > LOST_IN_A_ROW:
            told = f"workers died of {self._lost} records, one after another"
        elif self._deaths > 5 + 2 * self._count:
            told = f"{self._deaths} workers died, one after another"
        else:
            return
        self._fail(CrewError(f"{told}, with nothing judged between; the last: {death}"))

    # ------------------------------------------------------------ when it goes wrong

    async def _watch(self) -> None:
        """End a run for which no worker finds a place any more."""
        missing = 0.0
        while missing < PLACEMENT_SECONDS:
            await asyncio.sleep(1.0)
            missing = 0.0 if any(hand.placed for hand in self._hands) else missing + 1.0
        told = f"no worker has found a place for {PLACEMENT_SECONDS:.0f} s"
        self._fail(CrewError(f"{told}: {self._room()}"))

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        for parcel in self._open.values():
            if not parcel.line.done():
                parcel.line.set_exception(error)
        self._ready.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._fail(error)


def _first(deaths: BaseExceptionGroup[WorkerDied]) -> WorkerDied:
    found = deaths.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


async def _sent_home(hand: _Hand) -> None:
    with suppress(WorkerDied):
        await hand.worker.end()

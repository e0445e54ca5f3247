"""Limits on calls: the run's budget, the server's concurrency limit, and its outages."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count

from judge.errors import BackendError, BadRequest, Exit, GivenUp
from judge.verdict import Usage

MAX_OUTAGE = 120.0
"""Seconds without any answer, from the first canary, before a server is given up."""

MAX_PAUSE = 4.0
"""Most seconds between two tries."""

record_turn: ContextVar[int] = ContextVar("judge_record_turn", default=0)
"""Number of the record that the current calls belong to. The runner sets it, so that a record under
way gets its next call before a later record gets its first."""


# ------------------------------------------------------------ pauses


class Interrupted(BackendError):
    """The user stopped the run while a call waited for another try. It ends the run."""

    kind = "interrupted"
    exit_code = Exit.INTERRUPTED


class Pauses:
    """The pauses of a run's calls between tries, which an interrupt ends: calls under way finish,
    and none is tried again."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()

    def end(self) -> None:
        """End all pauses, also later ones."""
        self._ended.set()

    def refuse(self) -> None:
        """Raises Interrupted if the pauses were ended."""
        if self._ended.is_set():
            raise Interrupted("interrupted between two tries of a call")

    async def take(self, seconds: float) -> None:
        """Wait; raises Interrupted if the pauses are ended meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)
        self.refuse()


# ------------------------------------------------------------ budget


class BudgetReached(BackendError):
    """The run's `--max-calls` or `--max-cost` is used up. It ends the run."""

    kind = "budget"
    exit_code = Exit.UNAVAILABLE


@dataclass(slots=True)
class Budget:
    """Counts the calls made in this run and stops them at a limit.

    A call is counted when it starts, so `max_calls` is never exceeded; its cost is known when it
    ends, so the calls then under way can exceed `max_cost` (USD). `pauses` are those of its calls.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    calls: int = 0
    cost: float = 0.0
    pauses: Pauses = field(default_factory=Pauses)

    def take(self, *, free: bool = False) -> None:
        """Count one call, or raise BudgetReached. `max_cost` does not stop a `free` one."""
        self.refuse(free=free)
        self.calls += 1

    def refuse(self, *, free: bool = False) -> None:
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetReached(f"--max-calls {self.max_calls} is reached")
        # Ten times 0.2 is less than 2 by a rounding error.
        if self.max_cost is not None and round(self.cost, 9) >= self.max_cost and not free:
            raise BudgetReached(f"--max-cost {self.max_cost} USD is reached")


def room_within(budget: Budget, dearest: Usage, slots: int) -> int:
    """How many records may be under way, so that a small budget finishes some of them.

    Without a limit: `slots`. Otherwise one until a record is finished; then as many as the rest of
    the budget pays for, if each takes as much as the `dearest` record so far.
    """
    room = slots
    if budget.max_calls is not None:
        remaining = budget.max_calls - budget.calls
        room = min(room, remaining // dearest.replies if dearest.replies else 1)
    if budget.max_cost is not None:
        money, cost = budget.max_cost - budget.cost, dearest.cost_usd
        room = min(room, int(money / cost) if cost else slots if dearest.replies else 1)
    return max(1, room)


# ------------------------------------------------------------ concurrent calls


class AdaptiveLimit:
    """How many calls to one model may run concurrently, adapted to what its server can take.

    Additive increase, multiplicative decrease (Chiu & Jain 1989), between 1 and `most`: each
    success adds 1/limit; a refusal halves the limit, if the refused call began after the last cut.
    The server's `retry_after` delays all calls. Places go to the earliest record first
    (`record_turn`), then to the call that has waited longest.
    """

    def __init__(self, most: int, pauses: Pauses | None = None) -> None:
        self.most = most
        self._pauses = pauses or Pauses()
        self.limit = float(most)
        self.running = 0
        self._cuts = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()
        self._resume_at = 0.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Wait for a free place and hold it inside the block; yields the era for `refused`."""
        place: asyncio.Future[None] | None = None
        if not self._waiting and self.running < int(self.limit):
            self.running += 1
        else:
            place = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (record_turn.get(), next(self._arrivals), place))
            self._admit()
        try:
            if place is not None:
                await place
            while (wait := self._resume_at - time.monotonic()) > 0:
                await self._pauses.take(wait)
            yield self._cuts
        finally:
            if place is None or not place.cancelled():
                self.running -= 1
                if self._waiting:
                    self._admit()

    def succeeded(self) -> None:
        self.limit = min(float(self.most), self.limit + 1 / self.limit)
        if self._waiting:
            self._admit()

    def refused(self, retry_after: float | None, era: int) -> None:
        """The server asked for fewer calls; `retry_after` in seconds, `era` from `slot`."""
        if era == self._cuts:
            self.limit = max(1.0, self.limit / 2)
            self._cuts += 1
        if retry_after is not None:
            self._resume_at = max(self._resume_at, time.monotonic() + retry_after)

    def _admit(self) -> None:
        """Give free places to waiting calls."""
        while self._waiting and self.running < int(self.limit):
            *_, place = heapq.heappop(self._waiting)
            if not place.done():
                self.running += 1
                place.set_result(None)


# ------------------------------------------------------------ outages


class Outages:
    """Tells a server that fails every call from one that fails a single call, and waits for it.

    Args:
        canary: makes one small call (None: no server, and no waiting).
        backoff: seconds between the first two canaries; doubles up to `MAX_PAUSE`.
    """

    def __init__(
        self,
        canary: Callable[[], Awaitable[object]] | None,
        backoff: float,
        pauses: Pauses | None = None,
    ) -> None:
        self._canary = canary
        self._backoff = backoff
        self._pauses = pauses or Pauses()
        self._last_answer: float | None = None
        self._given_up: GivenUp | None = None
        self._refusing = False
        self._waiting = asyncio.Lock()

    def answered(self) -> None:
        """Note that a call was answered: by a reply, or by an error of a working server."""
        self._last_answer = time.monotonic()

    async def works(self) -> bool:
        """Whether a server that refused a call answers a canary; after one failure it is not asked.

        Raises:
            BudgetReached: no call is left for the canary.
        """
        async with self._waiting:
            if self._canary is None or self._refusing:
                return False
            try:
                with suppress(BadRequest):
                    await self._canary()
            except BudgetReached:
                raise
            except BackendError:
                self._refusing = True
            return not self._refusing

    async def passed(self, since: float, *, unreachable: bool = False) -> bool:
        """Whether a call that failed on every try should be tried again after an outage.

        There was an outage if no call was answered after `since` (`time.monotonic`), the time of
        this call's last failure but one; or if the server was `unreachable`, because one that shuts
        down takes no new calls and still answers those under way. Then a canary is repeated until
        it is answered; other calls wait for the same canary. A server that never answered in this
        run is not waited for.

        Raises:
            GivenUp: nothing was answered for `MAX_OUTAGE`; it ends the run.
            Interrupted: the user stopped the run.
            BackendError: the canary failed for good: key denied, or budget used up.
        """
        if self._canary is None or self._last_answer is None:
            return False
        if unreachable:
            since = time.monotonic()
        elif self._last_answer > since:
            return False
        async with self._waiting:
            if self._given_up is not None:
                raise self._given_up
            if self._last_answer > since:
                return True
            until = time.monotonic() + MAX_OUTAGE
            for pauses in count():
                try:
                    with suppress(BadRequest):
                        await self._canary()
                    self.answered()
                    return unreachable or pauses > 0
                except BackendError as error:
                    if not error.retryable:
                        raise
                    if time.monotonic() >= until:
                        text = f"no call was answered for {MAX_OUTAGE:g} s and longer"
                        self._given_up = GivenUp(f"{text}; the last error: {error}")
                        raise self._given_up from error
                await self._pauses.take(pause(self._backoff, pauses))
        raise AssertionError("unreachable")


def pause(backoff: float, before: int) -> float:
    """Seconds until the next try, after `before` pauses; doubles up to `MAX_PAUSE`."""
    return float(min(backoff * 2 ** min(before, 30), MAX_PAUSE))

"""What holds a call back: the run's budget, the pace that a server bears, and its outages."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count

from judge.errors import BackendError, Exit, GivenUp
from judge.verdict import Usage

LONGEST_OUTAGE = 120.0
"""Seconds without any answer, from the first canary on, until a server is given up."""

LONGEST_PAUSE = 4.0
"""Most seconds between two tries."""

record_turn: ContextVar[int] = ContextVar("judge_record_turn", default=0)
"""The place in the run (0 and up) of the record whose calls are made here. A runner sets it, so
that a record under way gets its next call before a later record gets its first."""


# ------------------------------------------------------------ budget


class BudgetReached(BackendError):
    """The run's `--max-calls` or `--max-cost` is used up. It ends the run."""

    kind = "budget"
    exit_code = Exit.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million input and output tokens."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


@dataclass(slots=True)
class Budget:
    """Counts the calls made in this run and stops them at a limit.

    A call is counted when it starts, so `max_calls` is never exceeded; its cost is known when it
    ends, so the calls then under way can exceed `max_cost` (USD).
    """

    max_calls: int | None = None
    max_cost: float | None = None
    calls: int = 0
    cost: float = 0.0

    def take(self, *, free: bool = False) -> None:
        """Count one call.

        Args:
            free: the call costs nothing, so `max_cost` does not stop it.

        Raises:
            BudgetReached: the limit leaves no room for it.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetReached(f"--max-calls {self.max_calls} is reached")
        if self.max_cost is not None and self.cost >= self.max_cost and not free:
            raise BudgetReached(f"--max-cost {self.max_cost} USD is reached")
        self.calls += 1

    def spent(self, usage: Usage) -> None:
        self.cost += usage.cost_usd or 0.0


# ------------------------------------------------------------ pace


class AdaptiveLimit:
    """How many calls may be under way at one model, adapted to what its server bears.

    Additive increase, multiplicative decrease (Chiu & Jain 1989). Starts at `most`; each success
    adds 1/limit, so a full round of successes adds one. A refusal halves the limit, but only if the
    refused call began after the last cut: those that began before say nothing about the new limit.
    The server's `retry_after` holds all calls back until it has passed. The limit stays within 1
    and `most`. Places go to the earliest record first (`record_turn`), then to the call that has
    waited longest.

    Cuts that follow one another without a success between them tell how long the server was busy,
    not what it bears: after them each success adds 1, up to what the first of them left (slow
    start, Jacobson 1988).
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self.refusals = 0
        self.running = 0
        self._cuts = 0
        self._borne = 1.0
        self._served = True
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()
        self._resume_at = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Wait for a free place and hold it inside the block; gives the call's era (`refused`)."""
        await self._enter()
        try:
            yield self._cuts
        finally:
            self._leave()

    def succeeded(self) -> None:
        more = 1.0 if self.limit < self._borne else 1 / self.limit
        self.limit = min(float(self.most), self.limit + more)
        self._served = True
        self._admit()

    def refused(self, retry_after: float | None, era: int) -> None:
        """The server asked for fewer calls; `retry_after` in seconds, `era` as `slot` gave it."""
        self.refusals += 1
        if era == self._cuts:
            self.limit = max(1.0, self.limit / 2)
            self._cuts += 1
            if self._served:
                self._borne, self._served = self.limit, False
        if retry_after is not None:
            self._resume_at = max(self._resume_at, time.monotonic() + retry_after)

    async def _enter(self) -> None:
        if self.running < int(self.limit) and not self._waiting and not self._resume_at:
            self.running += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (record_turn.get(), next(self._arrivals), place))
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        self.running -= 1
        self._admit()

    def _admit(self) -> None:
        """Give free places to waiting calls; while calls are held back, come again later."""
        wait = self._resume_at - time.monotonic() if self._resume_at else 0.0
        if wait > 0:
            if self._waiting and self._alarm is None:
                self._alarm = asyncio.get_running_loop().call_later(wait, self._rung)
            return
        self._resume_at = 0.0
        while self._waiting and self.running < int(self.limit):
            *_, place = heapq.heappop(self._waiting)
            if not place.done():
                self.running += 1
                place.set_result(None)

    def _rung(self) -> None:
        self._alarm = None
        self._admit()


# ------------------------------------------------------------ outages

_SERVING = ("bad-request", "context-exceeded")
"""Refusals that are an answer: the server reads what it is sent."""


class Outages:
    """Tells a server that fails every call from one that fails this call only, and waits for it.

    Tries that a call has used up say nothing of its record while no other call is answered either.
    Then one small call, the canary, is repeated until it is answered. Only when that takes too long
    is the server given up, and with it the run, which can be resumed.

    Args:
        canary: makes one small call (None: the model is no server, and is not waited for).
        backoff: seconds to the second canary; doubled from one to the next.
    """

    def __init__(self, canary: Callable[[], Awaitable[object]] | None, backoff: float) -> None:
        self._canary = canary
        self._backoff = backoff
        self._answered: float | None = None
        self._back = 0.0
        self._given_up: GivenUp | None = None
        self._asking = asyncio.Lock()

    def answered(self, error: BackendError | None = None) -> None:
        """A call was answered: with a reply, or with an error that only a working server gives."""
        if error is None or error.kind in _SERVING:
            self._answered = time.monotonic()

    async def passed(self, since: float, error: BackendError) -> bool:
        """Whether a call that has failed again and again deserves as many tries once more.

        It does if the server answered no call between the last two tries (`since`, by
        `time.monotonic`, is when the first of them failed) and does so now, after a pause. A server
        that never answered in this run is not waited for.

        Raises:
            GivenUp: nothing was answered for `LONGEST_OUTAGE`.
            BackendError: the canary was refused for good: the key, or the budget.
        """
        if self._canary is None or self._answered is None or self._answered > since:
            return False
        async with self._asking:
            if self._given_up is not None:
                raise self._given_up
            if self._answered <= since:
                await self._wait(self._canary, error)
            return self._back > since

    async def _wait(self, canary: Callable[[], Awaitable[object]], error: BackendError) -> None:
        """Until the server answers."""
        until, pauses = time.monotonic() + LONGEST_OUTAGE, 0
        while True:
            try:
                await canary()
                break
            except BackendError as refused:
                if refused.kind in _SERVING:
                    break
                if not refused.retryable:
                    raise
                error = refused
            if time.monotonic() >= until:
                self._given_up = GivenUp(
                    f"no call was answered for {LONGEST_OUTAGE:g} s and longer; the last error: "
                    f"{error}"
                )
                raise self._given_up from error
            await asyncio.sleep(pause(self._backoff, pauses))
            pauses += 1
        self.answered()
        if pauses:
            self._back = time.monotonic()


def pause(backoff: float, before: int) -> float:
    """Seconds until the next try, after so many pauses; doubled up to `LONGEST_PAUSE`."""
    return float(min(backoff * 2 ** min(before, 30), LONGEST_PAUSE))

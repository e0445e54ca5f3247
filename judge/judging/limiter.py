"""How many calls may be under way at one model, adapted to what its server bears."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AdaptiveLimit:
    """Additive increase, multiplicative decrease (Chiu & Jain 1989) on the number of calls.

    Starts at `most`; each success adds 1/limit, so a full round of successes adds one. A refusal
    halves the limit, but only if the refused call began after the last cut: those that began before
    say nothing about the new limit. The server's `retry_after` holds all calls back until it has
    passed. The limit stays within 1 and `most`; places are given first come, first served.

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
        self._waiting: deque[asyncio.Future[None]] = deque()
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
        self._waiting.append(place)
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
        """Give free places to those who wait; while calls are held back, come again later."""
        wait = self._resume_at - time.monotonic() if self._resume_at else 0.0
        if wait > 0:
            if self._waiting and self._alarm is None:
                self._alarm = asyncio.get_running_loop().call_later(wait, self._rung)
            return
        self._resume_at = 0.0
        while self._waiting and self.running < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.running += 1
                place.set_result(None)

    def _rung(self) -> None:
        self._alarm = None
        self._admit()

"""How many calls may be under way at one model, adapted to what its server bears."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AdaptiveLimit:
    """Additive increase, multiplicative decrease (Chiu & Jain 1989) on the number of calls.

    Starts at `most`; each success adds 1/limit, so a full round of successes adds one; each
    refusal halves the limit, at most once per round trip, and holds all calls back until the
    server's own `retry_after` has passed. The limit stays within 1 and `most`.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self.refusals = 0
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._resume_at = 0.0
        self._last_cut = 0.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free place and hold it inside the block."""
        await self._enter()
        try:
            yield
        finally:
            self._running -= 1
            self._wake()

    def succeeded(self) -> None:
        self.limit = min(float(self.most), self.limit + 1 / self.limit)

    def refused(self, retry_after: float | None) -> None:
        """The server asked for fewer calls; `retry_after` in seconds."""
        now = time.monotonic()
        self.refusals += 1
        if now - self._last_cut > 0.1:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = now
        if retry_after is not None:
            self._resume_at = max(self._resume_at, now + retry_after)

    async def _enter(self) -> None:
        while True:
            wait = self._resume_at - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            elif self._running < int(self.limit):
                self._running += 1
                return
            else:
                place = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                try:
                    await place
                except asyncio.CancelledError:
                    self._wake()
                    raise

    def _wake(self) -> None:
        free = int(self.limit) - self._running
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

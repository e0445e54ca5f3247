"""A server that fails every call: told from one that fails this call only, and waited for.

Tries that a call has used up say nothing of its record while no other call is answered either. Then
a small call of our own, the canary, is made until it is answered; only when that takes too long is
the server given up, and with it the run, which can be gone on with.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from judge.errors import BackendError, GivenUp

LONGEST_OUTAGE = 120.0
"""Seconds without any answer, from the first canary on, until a server is given up."""

LONGEST_PAUSE = 4.0
"""Seconds between two tries; so soon after its end an outage is left."""

_SERVING = ("bad-request", "context-exceeded")
"""Refusals that are an answer: the server reads what it is sent."""


class Outages:
    """When a server last answered, and whether it answers again.

    Args:
        canary: makes one small call (None: the model is no server; nothing is waited for).
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
        """A call was answered: with a reply, or with an error that only a server at work gives."""
        if error is None or error.kind in _SERVING:
            self._answered = time.monotonic()

    async def passed(self, since: float, error: BackendError) -> bool:
        """Whether a call that has failed again and again is worth as many tries once more.

        It is if the server answered nobody between the call's last two tries (`since`, by
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
    """Seconds until the next try, after so many pauses before; doubled up to `LONGEST_PAUSE`."""
    return float(min(backoff * 2 ** min(before, 30), LONGEST_PAUSE))

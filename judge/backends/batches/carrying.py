"""One wave's way: its file up, a batch made of it, watched to its end, and the results down.

Every step is noted in the wave's state before the next is begun, so whoever reads the state can go
on from there. The one step that cannot be noted in time is the creation of a batch, whose answer
may be lost: a creation that was begun is looked for at the provider before it is begun again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from judge import errors
from judge.backends.batches.api import ENDED, Batch, BatchAPI, Gone
from judge.backends.batches.journal import State, WaveFiles, opened

LONGEST_PAUSE = 600.0
"""Seconds between two tries of something that keeps failing."""

_DAY = 24 * 3600.0

Got = TypeVar("Got")


@dataclass(frozen=True, slots=True)
class Pace:
    """When things are done: seconds of `quiet` before a wave is sent, between two looks at a batch
    (`poll`), and of failures in a row until a server is given up (`patience`); and the most
    requests and bytes that a batch may hold.
    """

    quiet: float
    poll: float
    patience: float
    requests: int
    size: int

    @classmethod
    def of_environment(cls) -> Pace:
        """By $JUDGE_BATCH_QUIET (5), _POLL (30), _PATIENCE (3600), _REQUESTS (50000) and
        _MEGABYTES (200).

        Raises:
            UsageError: one of them is no positive number.
        """
        return cls(
            quiet=_positive("QUIET", 5.0),
            poll=_positive("POLL", 30.0),
            patience=_positive("PATIENCE", 3600.0),
            requests=max(1, int(_positive("REQUESTS", 50_000))),
            size=int(_positive("MEGABYTES", 200) * 1_000_000),
        )


def _positive(name: str, default: float) -> float:
    variable = f"JUDGE_BATCH_{name}"
    told = os.environ.get(variable, "").strip()
    try:
        value = float(told) if told else default
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise errors.UsageError(f"{variable} is {told!r}, which is no positive number")
    return value


class GivenUp(errors.Unreachable):
    """The server has failed for too long; what it has under way goes on there."""

    retryable = False


class Invalid(errors.Denied):
    """The provider refuses a batch as a whole; none of its requests was answered."""


class QueueFull(errors.BackendError):
    """The provider holds as much for this account as it will; it takes no further batch now."""

    kind = "queue-full"


class Carrier:
    """Carries waves to a provider and their results back.

    `trouble` says what keeps failing just now (None: nothing does).
    """

    def __init__(self, api: BatchAPI, pace: Pace) -> None:
        self._api, self._pace = api, pace
        self.trouble: str | None = None

    async def carry(self, files: WaveFiles, state: State, seen: Callable[[Batch], None]) -> None:
        """From wherever a wave is to its results on disk; `seen` is told how its batch stands.

        Raises:
            QueueFull: later, or with fewer requests, it may be taken.
            Invalid: it never will be; the message is the provider's.
            Denied: the key is refused, or the batch was cancelled (its results are on disk).
            GivenUp: the server has failed for too long.
            OSError: the files cannot be written.
        """
        if state.file is None:
            state.file = await self.borne(lambda: self._api.upload(files.requests))
            files.save(state)
        if state.batch is None:
            state.batch = (await self.borne(lambda: self._created(files, state))).id
            files.save(state)
        batch = await self._ended(files, state, seen)
        if batch.status == "failed":
            self._refuse(files, state, batch)
        await self.borne(lambda: self._download(files, batch))
        state.fetched = True
        files.save(state)
        if batch.status == "cancelled":
            raise errors.Denied(
                f"batch {batch.id} was cancelled at the provider; what it had answered by then is "
                "kept, and the same command with --resume asks the rest"
            )

    async def borne(self, attempt: Callable[[], Awaitable[Got]]) -> Got:
        """What `attempt` brings, however often the server fails within the time it is given.

        Raises:
            GivenUp: it failed for longer than that.
            BackendError: it failed in a way that asking again does not mend.
        """
        since, pause = time.monotonic(), self._pace.poll
        while True:
            try:
                got = await attempt()
            except errors.BackendError as error:
                failing = time.monotonic() - since
                if not error.retryable:
                    raise
                if failing >= self._pace.patience:
                    raise GivenUp(
                        f"the batch API has failed for {failing / 60:.0f} minutes: {error}"
                    ) from error
                self.trouble = str(error)
                await asyncio.sleep(min(max(pause, error.retry_after or 0.0), LONGEST_PAUSE))
                pause *= 2
            else:
                self.trouble = None
                return got

    async def _created(self, files: WaveFiles, state: State) -> Batch:
        assert state.file is not None
        if state.creating is not None:
            # A batch is not always listed in the moment in which it is made.
            longest = 2 * self._pace.poll
            await asyncio.sleep(min(max(0.0, state.creating + longest - time.time()), longest))
            found = await self._api.find(state.file, files.token, state.creating - _DAY)
            if found is not None:
                return found
        state.creating = time.time()
        files.save(state)
        try:
            return await self._api.create(state.file, files.token)
        except (errors.RateLimited, errors.BadRequest) as error:
            if not _about_queue(str(error)):
                raise
            state.creating = None
            files.save(state)
            raise QueueFull(str(error)) from error

    async def _ended(self, files: WaveFiles, state: State, seen: Callable[[Batch], None]) -> Batch:
        made = state.batch
        assert made is not None
        while True:
            try:
                batch = await self.borne(lambda: self._api.get(made))
            except Gone as error:
                raise errors.Denied(
                    f"{error}. If it was made with the key of another project, set that key; if it "
                    f"was deleted, remove {files.requests.parent}/{files.token}.*; the same "
                    "command with --resume then goes on"
                ) from error
            seen(batch)
            if batch.status not in ("validating", "failed"):
                files.requests.unlink(missing_ok=True)
            if batch.status in ENDED:
                return batch
            await asyncio.sleep(self._pace.poll)

    def _refuse(self, files: WaveFiles, state: State, batch: Batch) -> None:
        said = "; ".join(message or code for code, message in batch.troubles[:3])
        about_queue = any(_about_queue(f"{code} {message}") for code, message in batch.troubles)
        if about_queue and files.requests.exists():
            state.batch = state.creating = None
            files.save(state)
            raise QueueFull(said)
        raise Invalid(f"the provider refuses batch {batch.id}: {said or 'it says no more'}")

    async def _download(self, files: WaveFiles, batch: Batch) -> None:
        beside = files.results.with_name(f"{files.results.name}.part")
        with opened(beside) as file:
            for one in filter(None, (batch.output_file, batch.error_file)):
                await self._api.download(one, file.write)
                file.write(b"\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(files.results)


def _about_queue(said: str) -> bool:
    told = said.lower()
    return "token_limit_exceeded" in told or "enqueued token" in told

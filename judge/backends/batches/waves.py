"""Calls collected into waves: what is asked while nothing else can go on is sent as one batch.

A wave is sent when it holds as much as a batch may, or when nothing new has been asked for a while:
then every record under way waits for an answer. What earlier processes sent is given to whoever
asks the same again (docs/decisions/0021-batch-waves.md).
"""

from __future__ import annotations

import asyncio
import copy
import time
from pathlib import Path

from judge.backends.batches import journal
from judge.backends.batches.api import Batch, BatchAPI
from judge.backends.batches.carrying import (
    LONGEST_PAUSE,
    Carrier,
    GivenUp,
    Invalid,
    Pace,
    QueueFull,
)
from judge.backends.batches.journal import Journal, Result, State, WaveFiles
from judge.backends.wire import Answered
from judge.errors import BadRequest, Denied, JudgeError, UsageError

LEAST_REQUESTS = 8
"""A wave that the provider's queue does not take is halved, but not further than this."""

_KEY_LENGTH = 40
_REPEATED = frozenset((400, 413, 422))
"""Statuses that the same request would get again."""
_NO_RESULT = b'{"error": {"message": "the batch brought no result for this request"}}'


class Wave:
    """Requests that go to the provider together.

    Attributes:
        ours: whether this process wrote it.
        ended: set when there are results, a failure, or other waves that it was cut into.
        answered, unsettled: how many of its requests were told their results by this process, and
            of how many the results are not yet known to be kept elsewhere.
    """

    def __init__(self, files: WaveFiles, state: State | None = None) -> None:
        self.files = files
        self.ours = state is None
        self.state = state or State(0, time.time())
        self.requests: dict[str, bytes] = {}
        self.size = 0
        self.ended = asyncio.Event()
        self.failure: JudgeError | None = None
        self.moved: dict[str, Wave] = {}
        self.batch: Batch | None = None
        self.task: asyncio.Task[None] | None = None
        self.answered = 0
        self.unsettled = self.state.requests
        self._index: dict[str, Result] | None = None

    @property
    def there(self) -> bool:
        """Whether the provider has it, or may have it, and its results are yet to be had."""
        return self.state.creating is not None and not self.state.fetched

    @property
    def accepted(self) -> bool:
        """Whether the provider works on it."""
        if self.ended.is_set() or self.batch is None:
            # An earlier process sent it, and this one has not looked yet.
            return not (self.ended.is_set() or self.ours or self.state.batch is None)
        return self.batch.status not in ("validating", "failed")

    def see(self, batch: Batch) -> None:
        self.batch = batch

    def load(self) -> None:
        """Find out where each result lies."""
        if self._index is None:
            self._index = journal.index(self.files.results)

    def answer(self, id: str) -> Answered:
        """What the provider says to one request."""
        self.answered += 1
        assert self._index is not None
        found = self._index.get(id)
        if self.answered == self.state.requests:
            self._index = {}
        if found is None:
            return Answered(500, {}, _NO_RESULT)
        return Answered(found.status, {}, journal.body(self.files.results, found))


class Waves:
    """The waves of one server and model.

    Args:
        folder: where their journal lies; made when first needed.
    """

    def __init__(self, api: BatchAPI, folder: Path, pace: Pace) -> None:
        self._api, self._pace = api, pace
        self._journal = Journal(folder)
        self._carrier = Carrier(api, pace)
        self._most = pace.requests
        self._waves: dict[str, Wave] = {}
        self._left: dict[str, list[tuple[Wave, str]]] = {}
        self._forming: Wave | None = None
        self._asked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._broken: JudgeError | None = None
        self._opened = False
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """See that the batch API can be used, and what earlier processes have left to go on with.

        Raises:
            UsageError: another process works with the same journal, or it cannot be written.
            BackendError: no server, no batch API, or the key is refused.
        """
        async with self._opening:
            if self._opened:
                return
            await self._api.check()
            try:
                self._journal.open()
                for files, state in self._journal.waves():
                    wave = self._waves[files.token] = Wave(files, state)
                    for id in files.ids():
                        self._left.setdefault(id[:_KEY_LENGTH], []).append((wave, id))
            except OSError as error:
                raise self._unusable(error) from error
            self._opened = True

    async def ask(self, key: str, body: bytes) -> tuple[Answered, Wave]:
        """The answer to one request, and the wave that it came with, for `settled`.

        Args:
            key: 40 hex digits that say what is asked and by whose vote.

        Raises:
            JudgeError: the wave, and with it the run, cannot go on.
        """
        await self.open()
        while left := self._left.get(key):
            wave, id = left.pop(0)
            if not left:
                del self._left[key]
            if wave.task is None:
                self._begin(wave)
            answered, wave = await self._answer(wave, id)
            # What failed in a way that may pass is asked anew.
            if answered.status < 300 or answered.status in _REPEATED:
                return answered, wave
        return await self._answer(*self._enqueued(key, body))

    def settled(self, wave: Wave) -> None:
        """One more of a wave's results is kept elsewhere, or worth nothing; the last frees it."""
        wave.unsettled -= 1
        if wave.unsettled <= 0 and wave.state.fetched:
            self._forget(wave)

    def finish(self) -> None:
        """The run is at its end, and what it was told is in its output: forget the waves it used.

        Waves stay in which requests of another, interrupted run are.
        """
        for wave in list(self._waves.values()):
            used = wave.ours or wave.answered
            if used and wave.state.fetched and wave.state.delivered:
                self._forget(wave)

    @property
    def there(self) -> int:
        """How many batches the provider has under way."""
        return sum(wave.there for wave in self._waves.values())

    def told(self) -> str:
        """What is being waited for, for people; empty if it is nothing."""
        waiting = [wave for wave in self._waves.values() if wave.task and wave.there]
        done = sum(wave.batch.done or 0 for wave in waiting if wave.batch)
        total = sum(wave.state.requests for wave in waiting)
        if not waiting:
            told = f"{len(self._forming.requests)} requests collected" if self._forming else ""
        elif len(waiting) == 1 and (name := waiting[0].state.batch):
            told = f"batch {name}: {done:,} of {total:,} done"
        else:
            told = f"{len(waiting)} batch(es): {done:,} of {total:,} done"
        trouble = self._carrier.trouble
        return f"{told} (trying again: {trouble})" if trouble else told

    async def aclose(self) -> None:
        """Leave the waves where they are; what the provider has under way goes on there."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [wave.task for wave in self._waves.values() if wave.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._journal.close()

    # ------------------------------------------------------------ collecting

    def _enqueued(self, key: str, body: bytes) -> tuple[Wave, str]:
        if self._broken is not None:
            raise copy.copy(self._broken)
        wave = self._forming
        if wave is not None and self._full(wave, body):
            self._seal()
            wave = None
        if wave is None:
            wave = self._forming = Wave(self._journal.new())
            self._timer = asyncio.get_running_loop().call_later(self._pace.quiet, self._look)
        id = f"{key}-{wave.files.token}"
        if id in wave.requests:
            id = f"{id}-{len(wave.requests)}"
        wave.requests[id] = body
        wave.size += len(body) + journal.LINE_BYTES
        self._asked_at = asyncio.get_running_loop().time()
        return wave, id

    def _full(self, wave: Wave, body: bytes) -> bool:
        size = wave.size + len(body) + journal.LINE_BYTES
        return len(wave.requests) >= self._most or size > self._pace.size

    def _look(self) -> None:
        """Send what has come together, if nothing new has been asked for long enough."""
        loop = asyncio.get_running_loop()
        left = self._asked_at + self._pace.quiet - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look)
        else:
            self._seal()

    def _seal(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wave, self._forming = self._forming, None
        if wave is not None:
            self._begin(wave)

    # ------------------------------------------------------------ one wave

    def _begin(self, wave: Wave) -> None:
        self._waves[wave.files.token] = wave
        wave.task = asyncio.create_task(self._carried(wave))

    async def _carried(self, wave: Wave) -> None:
        """Carry a wave to its end; whoever waits for it learns of it, however it ends."""
        try:
            await self._carry(wave)
        except (Invalid, BadRequest) as error:
            self._break(Denied(str(error)))
            if isinstance(error, Invalid) or wave.state.batch is None:
                self._forget(wave)
        except JudgeError as error:
            self._break(error)
        except OSError as error:
            self._break(self._unusable(error))
        except Exception as error:  # noqa: BLE001 - thousands wait for this task
            self._break(JudgeError(f"a batch was lost track of: {type(error).__name__}: {error}"))

    async def _carry(self, wave: Wave) -> None:
        if wave.requests:
            wave.state = await asyncio.to_thread(wave.files.write, wave.requests.items())
            wave.unsettled = wave.state.requests
            wave.requests = {}
        since, pause = time.monotonic(), self._pace.poll
        while not wave.state.fetched:
            try:
                await self._carrier.carry(wave.files, wave.state, wave.see)
            except QueueFull as error:
                if others := self._others_under_way():
                    await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
                    since, pause = time.monotonic(), self._pace.poll
                elif wave.state.requests > LEAST_REQUESTS:
                    await self._cut(wave)
                    return
                else:
                    await self._wait_for_room(error, since, pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
        await asyncio.to_thread(wave.load)
        wave.ended.set()
        if wave.ours and wave.failure is None:
            wave.state.delivered = True
            wave.files.save(wave.state)

    def _others_under_way(self) -> list[asyncio.Task[None]]:
        """Those that fill the provider's queue, with those of earlier processes."""
        accepted = [wave for wave in self._waves.values() if wave.accepted]
        for wave in accepted:
            if wave.task is None:
                self._begin(wave)
        return [wave.task for wave in accepted if wave.task is not None]

    async def _wait_for_room(self, full: QueueFull, since: float, pause: float) -> None:
        """Others may fill the queue for a day; `patience` is meant for servers that fail."""
        waited = time.monotonic() - since
        if waited > 24 * self._pace.patience:
            raise GivenUp(f"no batch was taken for {waited / 3600:.0f} hours: {full}")
        await asyncio.sleep(pause)

    async def _cut(self, wave: Wave) -> None:
        """Make two waves of one, and none that is larger from now on."""
        requests = await asyncio.to_thread(lambda: list(wave.files.read_requests()))
        middle = (len(requests) + 1) // 2
        self._most = min(self._most, middle)
        self._forget(wave)
        for part in (requests[:middle], requests[middle:]):
            half = Wave(self._journal.new())
            half.requests = dict(part)
            wave.moved |= dict.fromkeys(half.requests, half)
            self._begin(half)
        wave.ended.set()

    async def _answer(self, wave: Wave, id: str) -> tuple[Answered, Wave]:
        await wave.ended.wait()
        if wave.failure is not None:
            raise copy.copy(wave.failure)
        if id in wave.moved:
            return await self._answer(wave.moved[id], id)
        try:
            answered = wave.answer(id)
            if not wave.ours and wave.answered == wave.state.requests:
                wave.state.delivered = True
                wave.files.save(wave.state)
            if answered.status >= 300:
                self.settled(wave)
        except OSError as error:
            raise self._unusable(error) from error
        return answered, wave

    def _forget(self, wave: Wave) -> None:
        self._waves.pop(wave.files.token, None)
        wave.files.remove()

    def _break(self, error: JudgeError) -> None:
        """No wave goes on: the run ends, and need not wait a day for the others to tell it so."""
        self._broken = self._broken or error
        # Nobody would be there for the answers of what is not sent yet.
        if self._timer is not None:
            self._timer.cancel()
        forming, self._forming = [self._forming] if self._forming else [], None
        for wave in [*self._waves.values(), *forming]:
            if not wave.ended.is_set():
                wave.failure = error
                wave.ended.set()

    def _unusable(self, error: OSError) -> UsageError:
        return UsageError(
            f"{self._journal.folder}: the batches' journal cannot be used: {error}; "
            "name another folder with --cache-dir"
        )

"""`openai:MODEL` under `--engine batch`: the same requests, answered by the server's batch API.

Calls are collected. When no new call has come for a while, or a batch is full, they are sent as one
file; the batch is polled, and its results are given to the waiting calls. A rewriting loop asks one
question after another, so a run takes as many batches as its slowest record asks questions.

Before a batch is created, the reply cache stores for each request the id of its file at the
provider. After a kill, a run that makes the same request waits for that file's batch instead of
paying again. When a run ends without a kill these entries are cleared: a request made again later,
such as one with an invalid reply, is sent anew.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from judge import errors
from judge.backends.adaptations import known
from judge.backends.base import Call, Completion, Mode
from judge.backends.batch_api import BatchAPI, BatchResults, request_line
from judge.backends.faults import scrubbed
from judge.backends.http import HttpResponse
from judge.backends.openai import DEFAULT_URL, OpenAIBackend, Request
from judge.cache import ReplyCache
from judge.digest import digest

PATIENCE_SECONDS = 3600.0
"""The server is given up after failing for so long."""

MAX_BYTES = 200_000_000
"""Most bytes in a file of requests; OpenAI's limit."""

_MAX_PAUSE = 600.0
_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))

_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(eq=False)
class _Batch:
    """Requests that are sent together; `results` has the answers for the waiting calls."""

    results: asyncio.Future[BatchResults]
    requests: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    changed_at: float = 0.0
    calls: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)
    state: Mapping[str, Any] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        """Whether the provider is working on it."""
        return bool(self.state) and self.state.get("status") not in _ENDED

    def close(self) -> None:
        """Remove the results, if there are any."""
        if self.results.done() and not self.results.cancelled() and not self.results.exception():
            self.results.result().close()


class BatchBackend(OpenAIBackend):
    """One model behind a batch API, with the requests and identity of `OpenAIBackend`.

    $JUDGE_BATCH_QUIET: seconds without a new call until a batch is sent (5); $JUDGE_BATCH_POLL:
    seconds between two polls (30); $JUDGE_BATCH_REQUESTS: most requests in a batch (50000).

    Args:
        cache: stores the requests under way; without it a killed run pays for them again.

    Raises:
        UsageError: as `OpenAIBackend`, or one of the variables is not a positive number.
    """

    # Trying out another mode could take a day.
    modes = (Mode.JSON_SCHEMA,)

    def __init__(
        self, name: str, *, cache: ReplyCache | None, request: Request | None = None
    ) -> None:
        super().__init__(name, request=request)
        # What OpenAI's models refuse is known; finding out by trial could take a day.
        if self._http.server == DEFAULT_URL:
            self.adaptations = {**self.adaptations, **known(name)}
        self._api = BatchAPI(self._http, name)
        self._cache = cache
        self._quiet, self._poll = _positive("QUIET", 5.0), _positive("POLL", 30.0)
        self._max_requests = max(1, int(_positive("REQUESTS", 50_000)))
        self._forming: _Batch | None = None
        self._batches: list[_Batch] = []
        self._earlier: dict[str, _Batch] = {}
        self._taken: set[str] = set()
        self._cut_short = self._reached = False

    async def complete(self, call: Call, mode: Mode) -> Completion:
        if call.layer is not None:
            return await super().complete(call, mode)
        request = self._prepared(call, mode)
        body = request.body
        key = digest([body.decode(), call.vote])
        try:
            response = await self._response(key, body)
        except (asyncio.CancelledError, errors.JudgeError):
            self._cut_short = True
            raise
        self._taken.add(key)
        if isinstance(response, HttpResponse):
            return self._read(response, request)
        status, name = response.state.get("status"), response.state.get("id")
        if status == "cancelled":
            raise errors.Denied(
                f"batch {name} was cancelled at the provider; what it had answered by then is "
                "kept, and the same command with --resume asks the rest"
            )
        raise errors.ServerFault(f"batch {name} ({status}) ended without an answer to the request")

    async def _response(self, key: str, body: bytes) -> HttpResponse | _Batch:
        """The answer to a request; its batch if that has none."""
        if (earlier := self._earlier_batch(key)) is not None:
            response = (await asyncio.shield(earlier.results)).pop(key)
            if response is not None and response.status < 300:
                return response
        batch = self._join(key, body)
        batch.calls += 1
        try:
            return (await asyncio.shield(batch.results)).get(key) or batch
        finally:
            batch.calls -= 1
            if not batch.calls:
                batch.close()

    @property
    def batches_under_way(self) -> int:
        return sum(batch.under_way for batch in self._batches)

    async def aclose(self) -> None:
        """Stop waiting; the batches continue at the provider."""
        tasks = [batch.task for batch in self._batches if batch.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for batch in self._earlier.values():
            batch.close()
        # In an interrupted run, replies that were received may not be cached yet.
        if self._cache is not None and self._cache.storing and not self._cut_short:
            await self._cache.store(dict.fromkeys(map(self._entry, self._taken)))
        await super().aclose()

    # ------------------------------------------------------------ batches

    def _join(self, key: str, body: bytes) -> _Batch:
        """The batch that is being collected, with this request added."""
        batch, size = self._forming, len(request_line(key, body))
        if batch and (len(batch.requests) >= self._max_requests or batch.size + size > MAX_BYTES):
            batch.full.set()
            batch = None
        if batch is None:
            batch = self._forming = self._start(self._send)
        batch.requests[key] = body
        batch.size += size
        batch.changed_at = asyncio.get_running_loop().time()
        return batch

    def _earlier_batch(self, key: str) -> _Batch | None:
        """The batch of an earlier process that may hold the request."""
        if self._cache is None or key in self._taken:
            return None
        file = (self._cache.get(self._entry(key)) or {}).get("file")
        if not isinstance(file, str):
            return None
        if file not in self._earlier:
            self._earlier[file] = self._start(lambda batch: self._find(batch, file))
            self._earlier[file].calls = 1  # Until `aclose`: any call may be one of them.
        return self._earlier[file]

    def _start(self, work: Callable[[_Batch], Awaitable[BatchResults]]) -> _Batch:
        batch = _Batch(asyncio.get_running_loop().create_future())
        self._batches.append(batch)
        batch.task = asyncio.create_task(self._run(batch, work(batch)))
        return batch

    async def _run(self, batch: _Batch, work: Awaitable[BatchResults]) -> None:
        """Set a batch's results; if one batch fails all fail, since the others could take a day."""
        try:
            batch.results.set_result(await work)
            self._batches.remove(batch)
            if not batch.calls:
                batch.close()
        except Exception as error:  # noqa: BLE001 - thousands of calls wait for this task
            self._forming = None
            for open_batch in self._batches:
                if not open_batch.results.done():
                    open_batch.results.set_exception(error)
                    open_batch.results.exception()
                if open_batch is not batch and open_batch.task is not None:
                    open_batch.task.cancel()

    async def _send(self, batch: _Batch) -> BatchResults:
        """Wait until no new call comes, send the batch, and return its results."""
        seconds = self._quiet
        while seconds > 0 and not batch.full.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(batch.full.wait(), seconds)
            seconds = batch.changed_at + self._quiet - asyncio.get_running_loop().time()
        if self._forming is batch:
            self._forming = None
        requests, batch.requests = batch.requests, {}
        file = await self._patiently(lambda: self._api.upload(requests))
        # Before the batch is created: a kill must not leave an unknown one.
        await self._note({self._entry(key): {"file": file} for key in requests})
        batch.state = await self._patiently(lambda: self._create(file))
        return await self._follow(batch)

    async def _create(self, file: str) -> Mapping[str, Any]:
        """The batch of a file; an earlier try whose answer was lost may have created it."""
        return await self._api.find(file, pages=1) or await self._api.create(file)

    async def _find(self, batch: _Batch, file: str) -> BatchResults:
        """The results of an earlier process's batch; empty if it was never created, or failed, or
        the provider has removed them."""
        state = await self._patiently(lambda: self._api.find(file))
        if state is None:
            return BatchResults()
        batch.state = state
        return await self._follow(batch, old=True)

    async def _follow(self, batch: _Batch, *, old: bool = False) -> BatchResults:
        """The results of a batch when it has ended."""
        name = batch.state["id"]
        while batch.under_way:
            await asyncio.sleep(self._poll)
            batch.state = await self._patiently(lambda: self._api.get(name))
        if batch.state["status"] == "failed":
            problems = (batch.state.get("errors") or {}).get("data") or ()
            text = "; ".join(
                f"{e.get('code')}: {scrubbed(e.get('message') or '')}" for e in problems
            )
            if any(error.get("code") == "token_limit_exceeded" for error in problems):
                text += "; wait until other batches have ended, or lower JUDGE_BATCH_REQUESTS"
            raise errors.Denied(f"the provider refuses batch {name}: {text or 'no details'}")
        files = [batch.state.get("output_file_id"), batch.state.get("error_file_id")]
        return await self._patiently(lambda: self._api.results(filter(None, files), old=old))

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of `attempt`, repeated while the server fails, for `PATIENCE_SECONDS`.

        Raises:
            GivenUp: it failed for that long, or no server was ever reached: the address is wrong.
        """
        since, pause = time.monotonic(), self._poll
        while True:
            try:
                result = await attempt()
                self._reached = True
                return result
            except errors.BackendError as error:
                if not error.retryable:
                    raise
                if isinstance(error, errors.Unreachable) and not self._reached:
                    raise errors.GivenUp(f"the batch API cannot be reached: {error}") from error
                failing, self._reached = time.monotonic() - since, True
                if failing >= PATIENCE_SECONDS:
                    text = f"the batch API has failed for {failing / 60:.0f} minutes: {error}"
                    raise errors.GivenUp(text) from error
                if pause == self._poll:
                    minutes = PATIENCE_SECONDS / 60
                    _log.warning(
                        "judge: the batch API fails: %s; trying again for %.0f minutes at most",
                        error, minutes,
                    )  # fmt: skip
                await asyncio.sleep(min(max(pause, error.retry_after or 0.0), _MAX_PAUSE))
                pause *= 2

    # ------------------------------------------------------------ what survives a kill

    def _entry(self, key: str) -> str:
        """The cache key of a request."""
        return digest({"kind": "batched", "model": dict(self.identity()), "what": key})

    async def _note(self, entries: Mapping[str, Mapping[str, str]]) -> None:
        """Write entries into the cache at once. Raises Denied if that fails: without them a batch
        could be paid twice."""
        if self._cache is None:
            return
        texts = {key: orjson.dumps(value).decode() for key, value in entries.items()}
        await self._cache.store(texts)
        if not self._cache.storing:
            raise errors.Denied("the cache cannot be written, so no further batch is sent")


def _positive(name: str, default: float) -> float:
    variable = f"JUDGE_BATCH_{name}"
    text = os.environ.get(variable, "").strip()
    with suppress(ValueError):
        if 0 < (value := float(text or default)) < float("inf"):
            return value
    raise errors.UsageError(f"{variable} is {text!r}, not a positive number")

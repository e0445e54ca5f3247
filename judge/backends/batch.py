"""`openai:MODEL` under `--engine batch`: the same requests, answered by the server's batch API.

Calls are collected. When nothing new has come for a while, or a batch is full, they go out as one
file; the batch is polled, and its results are given to the calls that wait. A rewriting loop asks
one question after another, so a run takes as many batches as its slowest record asks questions.

Before a batch is created, the reply cache notes of each request the file at the provider that it is
in. After a kill, a run that asks the same waits for that file's batch instead of paying for
another. When a run ends by itself these entries are cleared: what it asks again later, such as an
invalid reply, is asked anew.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, TypeVar

import orjson

from judge import errors
from judge.backends.adaptations import known
from judge.backends.base import Call, Mode
from judge.backends.faults import scrubbed
from judge.backends.openai import OWN_URL, OpenAIBackend, Request, unsuccessful
from judge.backends.wire import LONGEST_ANSWER, Answered, Wire
from judge.cache import ReplyCache
from judge.digest import digest

PATIENCE_SECONDS = 3600.0
"""Of failures in a row, after which the server is given up."""

MOST_BYTES = 200_000_000
"""In a file of requests; OpenAI's limit."""

_ENDPOINT = "/v1/chat/completions"
_MOST_PAGES = 100
"""Of 100 batches each, that are searched for the batch of a file."""

_MOST_BYTES = 1 << 31
"""In a file of results."""

_LONGEST_PAUSE = 600.0
_SILENCE_SECONDS = 300.0
_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))

T = TypeVar("T")


@dataclass(eq=False)
class _Wave:
    """Requests that go out together; `done` has the answers by key, where there are any."""

    done: asyncio.Future[dict[str, Answered]]
    requests: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    asked: float = 0.0
    full: asyncio.Event = field(default_factory=asyncio.Event)
    batch: Mapping[str, Any] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        """Whether the provider is working on it."""
        return bool(self.batch) and self.batch.get("status") not in _ENDED


class BatchBackend(OpenAIBackend):
    """One model behind a batch API: the requests and the identity of `OpenAIBackend`.

    $JUDGE_BATCH_QUIET: seconds without a new call until a batch is sent (5); $JUDGE_BATCH_POLL:
    seconds between two polls (30); $JUDGE_BATCH_REQUESTS: most requests in a batch (50000).

    Args:
        cache: notes the requests under way; without one a killed run pays for them again.

    Raises:
        UsageError: as `OpenAIBackend`, or one of the variables is not a positive number.
    """

    # Trying out another mode could take a day.
    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA,)

    def __init__(
        self, name: str, *, cache: ReplyCache | None, request: Request | None = None
    ) -> None:
        super().__init__(name, request=request)
        # What OpenAI's models do not take is known; finding out could take a day.
        if self._wire.server == OWN_URL:
            self.adaptations = {**self.adaptations, **known(name)}
        self._api = BatchAPI(self._wire, name)
        self._cache = cache
        self._quiet, self._poll = _positive("QUIET", 5.0), _positive("POLL", 30.0)
        self._most = max(1, int(_positive("REQUESTS", 50_000)))
        self._forming: _Wave | None = None
        self._waves: list[_Wave] = []
        self._earlier: dict[str, _Wave] = {}
        self._taken: set[str] = set()
        self._cut_short = False

    async def _answered(self, body: bytes, call: Call) -> Answered:
        key = digest([body.decode(), call.vote])
        try:
            if (wave := self._earlier_wave(key)) is not None:
                answered = (await asyncio.shield(wave.done)).pop(key, None)
                if answered is not None and answered.status < 300:
                    self._taken.add(key)
                    return answered
            wave = self._joined(key, body)
            answered = (await asyncio.shield(wave.done)).get(key)
        except (asyncio.CancelledError, errors.BackendError):
            self._cut_short = True
            raise
        self._taken.add(key)
        if answered is not None:
            return answered
        how, name = wave.batch.get("status"), wave.batch.get("id")
        if how == "cancelled":
            raise errors.Denied(
                f"batch {name} was cancelled at the provider; what it had answered by then is "
                "kept, and the same command with --resume asks the rest"
            )
        raise errors.ServerFault(f"batch {name} ({how}) ended without an answer to the request")

    @property
    def under_way(self) -> int:
        """How many batches the provider is working on."""
        return sum(wave.under_way for wave in self._waves)

    async def aclose(self) -> None:
        """Stop waiting; the batches go on at the provider."""
        tasks = [wave.task for wave in self._waves if wave.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # In a run that was cut short, replies that were taken may not be cached yet.
        if self._cache is not None and self._cache.storing and not self._cut_short:
            await self._note({self._entry(key): {} for key in self._taken})
        await super().aclose()

    # ------------------------------------------------------------ waves

    def _joined(self, key: str, body: bytes) -> _Wave:
        """The wave that is being collected, with this request added."""
        wave, size = self._forming, len(request_line(key, body))
        if wave and (len(wave.requests) >= self._most or wave.size + size > MOST_BYTES):
            wave.full.set()
            wave = None
        if wave is None:
            wave = self._forming = self._begun(self._sent)
        wave.requests[key] = body
        wave.size += size
        wave.asked = asyncio.get_running_loop().time()
        return wave

    def _earlier_wave(self, key: str) -> _Wave | None:
        """The wave of an earlier process that may hold the request."""
        if self._cache is None or key in self._taken:
            return None
        file = (self._cache.get(self._entry(key)) or {}).get("file")
        if not isinstance(file, str):
            return None
        if file not in self._earlier:
            self._earlier[file] = self._begun(lambda wave: self._found(wave, file))
        return self._earlier[file]

    def _begun(self, work: Callable[[_Wave], Awaitable[dict[str, Answered]]]) -> _Wave:
        wave = _Wave(asyncio.get_running_loop().create_future())
        self._waves.append(wave)
        wave.task = asyncio.create_task(self._carried(wave, work(wave)))
        return wave

    async def _carried(self, wave: _Wave, work: Awaitable[dict[str, Answered]]) -> None:
        """Give a wave its results; if one fails all fail, since the others could take a day."""
        try:
            wave.done.set_result(await work)
            self._waves.remove(wave)
        except Exception as error:  # noqa: BLE001 - thousands of calls wait for this task
            self._forming = None
            for other in self._waves:
                if not other.done.done():
                    other.done.set_exception(error)
                    other.done.exception()
                if other is not wave and other.task is not None:
                    other.task.cancel()

    async def _sent(self, wave: _Wave) -> dict[str, Answered]:
        """Wait until the wave is full or nothing new comes, send it, and bring its results."""
        left = self._quiet
        while left > 0 and not wave.full.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(wave.full.wait(), left)
            left = wave.asked + self._quiet - asyncio.get_running_loop().time()
        if self._forming is wave:
            self._forming = None
        requests, wave.requests = wave.requests, {}
        file = await self._patiently(lambda: self._api.upload(requests))
        # Before the batch is made: a kill must not leave one that is not known of.
        await self._note({self._entry(key): {"file": file} for key in requests})
        wave.batch = await self._patiently(lambda: self._created(file))
        return await self._followed(wave)

    async def _created(self, file: str) -> Mapping[str, Any]:
        """The batch of a file: an earlier try whose answer was lost may have made it."""
        return await self._api.find(file, pages=1) or await self._api.create(file)

    async def _found(self, wave: _Wave, file: str) -> dict[str, Answered]:
        """The results of an earlier process' batch; none where it was never made, or failed."""
        found = await self._patiently(lambda: self._api.find(file))
        if found is None:
            return {}
        wave.batch = found
        return await self._followed(wave)

    async def _followed(self, wave: _Wave) -> dict[str, Answered]:
        """The results of a batch when it has ended."""
        name = wave.batch["id"]
        while wave.under_way:
            await asyncio.sleep(self._poll)
            wave.batch = await self._patiently(lambda: self._api.get(name))
        if wave.batch["status"] == "failed":
            listed = (wave.batch.get("errors") or {}).get("data") or ()
            told = "; ".join(f"{e.get('code')}: {scrubbed(e.get('message') or '')}" for e in listed)
            if any(error.get("code") == "token_limit_exceeded" for error in listed):
                told += "; wait until other batches have ended, or lower JUDGE_BATCH_REQUESTS"
            raise errors.Denied(f"the provider refuses batch {name}: {told or 'it says no more'}")
        files = [wave.batch.get("output_file_id"), wave.batch.get("error_file_id")]
        return await self._patiently(lambda: self._api.results(filter(None, files)))

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of `attempt`, repeated while the server fails, for `PATIENCE_SECONDS`."""
        since, pause = time.monotonic(), self._poll
        while True:
            try:
                return await attempt()
            except errors.BackendError as error:
                failing = time.monotonic() - since
                if not error.retryable:
                    raise
                if failing >= PATIENCE_SECONDS:
                    told = f"the batch API has failed for {failing / 60:.0f} minutes: {error}"
                    raise errors.GivenUp(told) from error
                await asyncio.sleep(min(max(pause, error.retry_after or 0.0), _LONGEST_PAUSE))
                pause *= 2

    # ------------------------------------------------------------ what survives a kill

    def _entry(self, key: str) -> str:
        """The cache's key for a request."""
        return digest({"kind": "batched", "model": dict(self.identity()), "what": key})

    async def _note(self, entries: Mapping[str, Mapping[str, str]]) -> None:
        """Write entries into the cache at once, or raise Denied: a batch could be paid twice."""
        if self._cache is None:
            return
        texts = {key: orjson.dumps(value).decode() for key, value in entries.items()}
        await self._cache.store(texts)
        if not self._cache.storing:
            raise errors.Denied("the cache cannot be written, so no further batch is sent")


def _positive(name: str, default: float) -> float:
    variable = f"JUDGE_BATCH_{name}"
    told = os.environ.get(variable, "").strip()
    with suppress(ValueError):
        if 0 < (value := float(told or default)) < float("inf"):
            return value
    raise errors.UsageError(f"{variable} is {told!r}, not a positive number")


# ---------------------------------------------------------------- the API itself


class BatchAPI:
    """One server's batch API, asked about one model; raises `BackendError`, never retries."""

    def __init__(self, wire: Wire, model: str) -> None:
        self._wire = wire
        self._what = f"batches of {model} at {wire.server}"

    async def upload(self, requests: Mapping[str, bytes]) -> str:
        """Upload requests (bodies by key) as a file of lines; returns its id."""
        from aiohttp import FormData

        form = FormData({"purpose": "batch"})
        lines = b"".join(request_line(key, body) for key, body in requests.items())
        form.add_field("file", lines, filename="judge.jsonl", content_type="application/jsonl")
        # The session's own content type is JSON.
        kind = {"Content-Type": form().content_type}
        answered = await self._request("POST", "/files", data=form, headers=kind)
        if answered.status in (404, 405):
            raise errors.Denied(
                f"{self._wire.server} has no batch API in OpenAI's format (HTTP {answered.status} "
                "for /files); use --engine local, or name a server that has one"
            )
        return str(self._read(answered)["id"])

    async def create(self, file: str) -> Mapping[str, Any]:
        """Have a file's requests answered within 24 hours."""
        asked = {"input_file_id": file, "endpoint": _ENDPOINT, "completion_window": "24h"}
        return self._read(await self._request("POST", "/batches", data=orjson.dumps(asked)))

    async def get(self, batch: str) -> Mapping[str, Any]:
        """How a batch stands."""
        return self._read(await self._request("GET", f"/batches/{batch}"))

    async def find(self, file: str, *, pages: int = _MOST_PAGES) -> Mapping[str, Any] | None:
        """The batch made of a file, newest first, at most so many pages of 100 batches far.

        A batch that failed as a whole is passed over: none of its requests was answered.
        """
        query = {"limit": "100"}
        for _ in range(pages):
            told = self._read(await self._request("GET", "/batches", query=query), of_one=False)
            page = told.get("data") or []
            for batch in page:
                if batch.get("input_file_id") == file and batch.get("status") != "failed":
                    return dict(batch)
            if not told.get("has_more") or not page:
                return None
            query["after"] = page[-1]["id"]
        return None

    async def results(self, files: Iterable[str]) -> dict[str, Answered]:
        """The answers in the result files of a batch, by the requests' keys."""
        found: dict[str, Answered] = {}
        for file in files:
            answered = await self._request("GET", f"/files/{file}/content", longest=_MOST_BYTES)
            if answered.status >= 300:
                raise unsuccessful(answered, self._what)
            for line in BytesIO(answered.body):
                # A line that is none leaves its request without an answer.
                with suppress(ValueError, LookupError, TypeError, RecursionError):
                    told = orjson.loads(line if len(line) <= LONGEST_ANSWER else b"")
                    if response := told["response"]:
                        body = orjson.dumps(response["body"])
                        status = int(response["status_code"])
                        found[str(told["custom_id"])] = Answered(status, {}, body)
        return found

    async def _request(self, method: str, path: str, **more: Any) -> Answered:
        return await self._wire.request(method, path, silence=_SILENCE_SECONDS, **more)

    def _read(self, answered: Answered, *, of_one: bool = True) -> dict[str, Any]:
        if answered.status >= 300:
            raise unsuccessful(answered, self._what)
        try:
            told = orjson.loads(answered.body)
        except ValueError:
            told = None
        if not isinstance(told, dict) or (of_one and not isinstance(told.get("id"), str)):
            raise errors.ServerFault(f"{self._what}: the answer is not a JSON object with an id")
        return told


def request_line(key: str, body: bytes) -> bytes:
    """A line of a file: the request's body under the key that its result will bear."""
    head = b'{"custom_id":"%s","method":"POST","url":"%s","body":'
    return head % (key.encode(), _ENDPOINT.encode()) + body + b"}\n"

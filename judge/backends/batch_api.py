"""A server's batch API in OpenAI's format: files of requests, their batches, and results."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import Any

import orjson

from judge import errors
from judge.backends.http import MAX_ANSWER, HttpResponse, HttpServer
from judge.backends.openai import unsuccessful

_ENDPOINT = "/v1/chat/completions"
_MAX_PAGES = 100
"""Most pages, of 100 batches each, that are searched for the batch of a file."""

_MAX_RESULTS = 1 << 31
"""Most bytes in a file of results."""

_SILENCE_SECONDS = 300.0


class BatchResults:
    """The results of a batch, in a temporary file; only the lines' offsets are in memory."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="judge-batch-")  # noqa: SIM115 - see close
        self._places: dict[str, int] = {}

    def index(self) -> None:
        """Find the lines that hold an answer; a request with any other line stays without one."""
        self.file.seek(0)
        place, whole = 0, True
        while line := self.file.readline(MAX_ANSWER + 1):
            if whole and len(line) <= MAX_ANSWER:
                with suppress(ValueError, LookupError, TypeError, RecursionError):
                    result = orjson.loads(line)
                    if result["response"] and int(result["response"]["status_code"]):
                        self._places[str(result["custom_id"])] = place
            place, whole = place + len(line), line.endswith(b"\n")

    def get(self, key: str) -> HttpResponse | None:
        """The answer to the request with this key."""
        if key not in self._places:
            return None
        self.file.seek(self._places[key])
        response = orjson.loads(self.file.readline())["response"]
        body = orjson.dumps(response.get("body"))
        return HttpResponse(int(response["status_code"]), {}, body)

    def pop(self, key: str) -> HttpResponse | None:
        """As `get`, once."""
        response = self.get(key)
        self._places.pop(key, None)
        return response

    def close(self) -> None:
        self.file.close()


class BatchAPI:
    """One server's batch API for one model; raises `BackendError`, never retries."""

    def __init__(self, server: HttpServer, model: str) -> None:
        self._http = server
        self._what = f"batches of {model} at {server.server}"

    async def upload(self, requests: Mapping[str, bytes]) -> str:
        """Upload requests (bodies by key) as a JSONL file; returns its id."""
        from aiohttp import FormData

        form = FormData({"purpose": "batch"})
        lines = b"".join(request_line(key, body) for key, body in requests.items())
        form.add_field("file", lines, filename="judge.jsonl", content_type="application/jsonl")
        # The session's own content type is JSON.
        kind = {"Content-Type": form().content_type}
        response = await self._request("POST", "/files", data=form, headers=kind)
        if response.status in (404, 405):
            raise errors.Denied(
                f"{self._http.server} has no batch API in OpenAI's format (HTTP {response.status} "
                "for /files); use --engine local, or name a server that has one"
            )
        return str(self._object(response)["id"])

    async def create(self, file: str) -> Mapping[str, Any]:
        """Create the batch of a file, to be answered within 24 hours."""
        request = {"input_file_id": file, "endpoint": _ENDPOINT, "completion_window": "24h"}
        return self._object(await self._request("POST", "/batches", data=orjson.dumps(request)))

    async def get(self, batch: str) -> Mapping[str, Any]:
        """The state of a batch."""
        return self._object(await self._request("GET", f"/batches/{batch}"))

    async def find(self, file: str, *, pages: int = _MAX_PAGES) -> Mapping[str, Any] | None:
        """The newest batch of a file, within the last `pages` of 100 batches.

        A batch that failed as a whole is skipped: none of its requests was answered.
        """
        query = {"limit": "100"}
        for _ in range(pages):
            response = await self._request("GET", "/batches", query=query)
            listing = self._object(response, with_id=False)
            page = listing.get("data") or []
            for batch in page:
                if batch.get("input_file_id") == file and batch.get("status") != "failed":
                    return dict(batch)
            if not listing.get("has_more") or not page:
                return None
            query["after"] = page[-1]["id"]
        return None

    async def results(self, files: Iterable[str], *, old: bool = False) -> BatchResults:
        """The answers in a batch's result files; raises Unavailable if the disk is full.

        Args:
            old: whether the provider may have removed files, which then have no answers.
        """
        try:
            with ExitStack() as unless_whole:
                results = BatchResults()
                unless_whole.callback(results.close)
                for file in files:
                    path, into = f"/files/{file}/content", results.file
                    response = await self._request("GET", path, into=into, longest=_MAX_RESULTS)
                    if response.status == HTTPStatus.NOT_FOUND and old:
                        continue
                    if response.status >= 300:
                        raise unsuccessful(response, self._what)
                    into.write(b"\n")
                await asyncio.to_thread(results.index)
                unless_whole.pop_all()
                return results
        except OSError as error:
            where = f"{tempfile.gettempdir()}: the results of a batch cannot be stored"
            raise errors.unwritable(where, error) from error

    async def _request(self, method: str, path: str, **options: Any) -> HttpResponse:
        return await self._http.request(method, path, silence=_SILENCE_SECONDS, **options)

    def _object(self, response: HttpResponse, *, with_id: bool = True) -> dict[str, Any]:
        if response.status >= 300:
            raise unsuccessful(response, self._what)
        try:
            content = orjson.loads(response.body)
        except ValueError:
            content = None
        if not isinstance(content, dict) or (with_id and not isinstance(content.get("id"), str)):
            raise errors.ServerFault(f"{self._what}: the answer is not a JSON object with an id")
        return content


def request_line(key: str, body: bytes) -> bytes:
    """A line of a file of requests: the body, and the key that its result will have."""
    head = b'{"custom_id":"%s","method":"POST","url":"%s","body":'
    return head % (key.encode(), _ENDPOINT.encode()) + body + b"}\n"

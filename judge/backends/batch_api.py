"""The batch API in OpenAI's format: files up, batches created and watched, results down."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import orjson

from judge import errors
from judge.backends.faults import scrubbed, status_error
from judge.backends.openai import complaint
from judge.backends.wire import Answered, Wire

_ENDPOINT = "/v1/chat/completions"
_PAGE, _MOST_PAGES = 100, 100


class BatchAPI:
    """One server's batch API in OpenAI's format, asked about one model. Nothing is retried here.

    Every method raises the errors of `judge.errors` that derive from `BackendError`.
    """

    def __init__(self, wire: Wire, model: str) -> None:
        self._wire = wire
        self._what = f"batches of {model} at {wire.server}"

    async def check(self) -> None:
        """See that the server is there, takes the key, and has a batch API."""
        answered = await self._wire.fetch("GET", "/batches", query={"limit": "1"})
        if answered.status in (404, 405):
            raise errors.Denied(
                f"{self._wire.server} has no batch API in OpenAI's format (HTTP {answered.status} "
                "for /batches); use --engine local, or name a server that has one"
            )
        self._refuse(answered)

    async def upload(self, requests: Mapping[str, bytes]) -> str:
        """Send requests (bodies by key) as a file of lines; gives its id there."""
        boundary = secrets.token_hex(16)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
            'filename="judge.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
        ).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()
        size = sum(len(request_line(key, body)) for key, body in requests.items())

        async def form() -> AsyncIterator[bytes]:
            yield head
            for key, body in requests.items():
                yield request_line(key, body)
            yield tail

        answered = await self._wire.fetch(
            "POST",
            "/files",
            data=form(),
            headers={
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "Content-Length": str(len(head) + size + len(tail)),
            },
        )
        return str(self._read(answered)["id"])

    async def create(self, file: str) -> Mapping[str, Any]:
        """Have a file's requests answered within 24 hours."""
        asked = {"input_file_id": file, "endpoint": _ENDPOINT, "completion_window": "24h"}
        return self._read(await self._wire.fetch("POST", "/batches", data=orjson.dumps(asked)))

    async def get(self, batch: str) -> Mapping[str, Any] | None:
        """How a batch stands; None if the server does not know it."""
        answered = await self._wire.fetch("GET", f"/batches/{batch}")
        return None if answered.status == 404 else self._read(answered)

    async def find(self, file: str, *, pages: int = _MOST_PAGES) -> Mapping[str, Any] | None:
        """The batch made of a file, newest first, at most so many pages of 100 batches far.

        A batch that failed as a whole is passed over: none of its requests was answered.
        """
        query = {"limit": str(_PAGE)}
        for _ in range(pages):
            told = self._read(await self._wire.fetch("GET", "/batches", query=query), of_one=False)
            page = told.get("data") or []
            for batch in page:
                if batch.get("input_file_id") == file and batch.get("status") != "failed":
                    return dict(batch)
            if not told.get("has_more") or not page:
                return None
            query["after"] = page[-1]["id"]
        return None

    async def results(self, files: Iterable[str]) -> dict[str, Answered]:
        """What the files of an ended batch say, by the requests' keys."""
        found: dict[str, Answered] = {}
        for file in files:
            with tempfile.TemporaryFile() as lines:
                path = f"/files/{file}/content"
                self._refuse(await self._wire.fetch("GET", path, into=lines.write))
                lines.seek(0)
                for line in filter(bytes.strip, lines):
                    told = orjson.loads(line)
                    if response := told.get("response"):
                        body = orjson.dumps(response.get("body"))
                        answered = Answered(int(response["status_code"]), {}, body)
                        found[str(told["custom_id"])] = answered
        return found

    def _refuse(self, answered: Answered) -> None:
        if answered.status >= 300:
            said, code = complaint(answered.body)
            raise status_error(
                answered.status, scrubbed(said), answered.headers, code=code, what=self._what
            )

    def _read(self, answered: Answered, *, of_one: bool = True) -> dict[str, Any]:
        self._refuse(answered)
        try:
            told = orjson.loads(answered.body)
        except ValueError:
            told = None
        if not isinstance(told, dict) or (of_one and not isinstance(told.get("id"), str)):
            raise errors.ServerFault(f"{self._what}: the answer is no JSON object with an id")
        return told


def request_line(key: str, body: bytes) -> bytes:
    """A request of a file: its body under the key that its result is told by."""
    head = b'{"custom_id":"%s","method":"POST","url":"%s","body":'
    return head % (key.encode(), _ENDPOINT.encode()) + body + b"}\n"

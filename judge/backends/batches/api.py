"""The batch API in OpenAI's format: files up, batches created and watched, files down."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from judge import errors
from judge.backends.faults import scrubbed, status_error
from judge.backends.openai import complaint
from judge.backends.wire import Answered, Wire

ENDPOINT = "/v1/chat/completions"
"""What every request of a batch is put to, as OpenAI's format spells it on any server."""

ENDED = frozenset(("completed", "failed", "expired", "cancelled"))
"""The states that a batch does not leave again."""

_MARK = "judge_wave"
_PIECE = 1 << 20
_PAGE = 100
_MOST_PAGES = 100


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the provider describes it.

    `troubles` are (code, message) of a batch that failed as a whole; `done` and `total` count
    requests (None: the provider does not tell).
    """

    id: str
    status: str
    input_file: str | None
    output_file: str | None
    error_file: str | None
    created: float
    done: int | None
    total: int | None
    troubles: tuple[tuple[str, str], ...]
    mark: str | None


class Gone(errors.Denied):
    """The server does not know a batch that was made there, or not for this key."""


class BatchAPI:
    """One server's batch API, asked about one model. Nothing is retried here.

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
        self._read(answered)

    async def upload(self, path: Path) -> str:
        """Send a file of request lines; gives its id there."""
        boundary = secrets.token_hex(16)
        head, tail = _parts(path.name, boundary)
        size = len(head) + await asyncio.to_thread(lambda: path.stat().st_size) + len(tail)
        answered = await self._wire.fetch(
            "POST",
            "/files",
            data=_multipart(path, head, tail),
            headers={
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "Content-Length": str(size),
            },
        )
        return _id(self._read(answered))

    async def create(self, file: str, mark: str) -> Batch:
        """Have a file's requests answered within 24 hours; `mark` is told again by `find`."""
        asked = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {_MARK: mark},
        }
        return _batch(
            self._read(await self._wire.fetch("POST", "/batches", data=orjson.dumps(asked)))
        )

    async def get(self, batch: str) -> Batch:
        """How a batch stands.

        Raises:
            Gone: the server does not know it.
        """
        answered = await self._wire.fetch("GET", f"/batches/{batch}")
        if answered.status == 404:
            raise Gone(f"{self._wire.server} knows no batch {batch}")
        return _batch(self._read(answered))

    async def find(self, file: str, mark: str, since: float) -> Batch | None:
        """The batch made of this file or with this mark, if it was created after `since` (epoch).

        The listing is read newest first, at most 10,000 batches far. A batch that failed as a whole
        is passed over: none of its requests was answered.
        """
        query = {"limit": str(_PAGE)}
        for _ in range(_MOST_PAGES):
            told = self._read(await self._wire.fetch("GET", "/batches", query=query))
            page = [_batch(one) for one in told.get("data") or ()]
            for batch in page:
                ours = batch.mark == mark or batch.input_file == file
                if ours and batch.status != "failed":
                    return batch
            if not told.get("has_more") or not page or page[-1].created < since:
                return None
            query["after"] = page[-1].id
        return None

    async def download(self, file: str, into: Callable[[bytes], object]) -> None:
        """A file's content, piece by piece."""
        self._refuse(await self._wire.fetch("GET", f"/files/{file}/content", into=into))

    def _refuse(self, answered: Answered) -> None:
        if answered.status >= 300:
            said, code = complaint(answered.body)
            raise status_error(
                answered.status, scrubbed(said), answered.headers, code=code, what=self._what
            )

    def _read(self, answered: Answered) -> Mapping[str, Any]:
        self._refuse(answered)
        try:
            told = orjson.loads(answered.body)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise errors.ServerFault(f"{self._what}: the answer is no JSON object")
        return told


def _parts(name: str, boundary: str) -> tuple[bytes, bytes]:
    """What stands before and after the file in a form of purpose and file."""
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return head.encode(), f"\r\n--{boundary}--\r\n".encode()


async def _multipart(path: Path, head: bytes, tail: bytes) -> AsyncIterator[bytes]:
    yield head
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
    yield tail


def _id(told: Mapping[str, Any]) -> str:
    if not isinstance(found := told.get("id"), str) or not found:
        raise errors.ServerFault("the batch API's answer names no id")
    return found


def _batch(told: Mapping[str, Any]) -> Batch:
    listed = (told.get("errors") or {}).get("data") or ()
    counts = told.get("request_counts") or {}
    return Batch(
        id=_id(told),
        status=str(told.get("status")).lower(),
        input_file=told.get("input_file_id"),
        output_file=told.get("output_file_id"),
        error_file=told.get("error_file_id"),
        created=float(told.get("created_at") or 0),
        done=_sum(counts.get("completed"), counts.get("failed")),
        total=counts.get("total"),
        troubles=tuple((str(e.get("code")), scrubbed(e.get("message") or "")) for e in listed),
        mark=(told.get("metadata") or {}).get(_MARK),
    )


def _sum(completed: int | None, failed: int | None) -> int | None:
    return None if completed is None else completed + (failed or 0)

"""What lies on disk of the waves: enough to go on with them in another process, days later.

A folder for each server and model, for its owner alone (0700). For each wave

    TOKEN.json             how far it has come; replaced as a whole, never half written
    TOKEN.ids              the ids of its requests, one a line
    TOKEN.requests.jsonl   what is sent, until the provider has accepted it
    TOKEN.results.jsonl    what came back, output and errors alike

A request's id is 40 hex digits that say what is asked and by whose vote, "-", and something that
makes it unlike the ids of all other waves. Keys of servers are in none of the files.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from judge.backends.batches.api import ENDPOINT
from judge.errors import UsageError
from judge.locking import lock

KEPT_SECONDS = 30 * 24 * 3600.0
"""How long a wave that nobody asks for stays; providers keep its files as long."""

LINE_BYTES = 160
"""What a request's line holds beside its body, at most."""

_VERSION = 1


@dataclass(slots=True)
class State:
    """How far a wave has come.

    `written` and `creating` are seconds since the epoch: when the wave was written, and when the
    provider was first asked to make a batch of it. `delivered`: each result was given to whoever
    asked for it, in one process or another.
    """

    requests: int
    written: float
    file: str | None = None
    creating: float | None = None
    batch: str | None = None
    fetched: bool = False
    delivered: bool = False
    version: int = _VERSION


class WaveFiles:
    """The files of one wave."""

    def __init__(self, folder: Path, token: str) -> None:
        self.token = token
        self._state = folder / f"{token}.json"
        self._ids = folder / f"{token}.ids"
        self.requests = folder / f"{token}.requests.jsonl"
        self.results = folder / f"{token}.results.jsonl"

    def read_state(self) -> State | None:
        """None where there is none that this version can read."""
        try:
            told = json.loads(self._state.read_bytes())
            state = State(**told)
        except (OSError, ValueError, TypeError):
            return None
        return state if state.version == _VERSION else None

    def save(self, state: State) -> None:
        """Replace the state; it is on disk when this returns."""
        _put(self._state, orjson.dumps(asdict(state)))

    def ids(self) -> list[str]:
        """The ids of the wave's requests, in their order."""
        return self._ids.read_text("ascii").split()

    def write(self, requests: Iterable[tuple[str, bytes]]) -> State:
        """A new wave of (id, body); its state is written last."""
        ids = []
        with opened(self.requests) as file:
            for id, body in requests:
                ids.append(id)
                file.write(b'{"custom_id":"%s","method":"POST",' % id.encode())
                file.write(b'"url":"%s","body":%s}\n' % (ENDPOINT.encode(), body))
            file.flush()
            os.fsync(file.fileno())
        _put(self._ids, "".join(f"{id}\n" for id in ids).encode())
        state = State(len(ids), time.time())
        self.save(state)
        return state

    def read_requests(self) -> Iterator[tuple[str, bytes]]:
        """The (id, body) that `write` was given."""
        with self.requests.open("rb") as file:
            for line, id in zip(file, self.ids(), strict=True):
                yield id, line[line.index(b'"body":') + 7 : -2]

    def remove(self) -> None:
        """Forget the wave, its state first: without it the other files count as rubbish."""
        for path in (self._state, self._ids, self.requests, self.results):
            path.unlink(missing_ok=True)


class Journal:
    """The waves of one server and model. One process at a time may have it open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: int | None = None

    def open(self) -> None:
        """Take the folder for this process, and clear away what no wave owns.

        Raises:
            UsageError: another process has it.
            OSError: it cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not lock(descriptor):
            os.close(descriptor)
            raise UsageError(
                f"another run has batches of this model under way ({self.folder}): let it end, "
                "or give this one a cache of its own with --cache-dir"
            )
        self._lock = descriptor
        for files, state in self.waves():
            if time.time() - state.written > KEPT_SECONDS:
                files.remove()
        known = {path.stem for path in self.folder.glob("*.json")}
        for path in self.folder.iterdir():
            if path.name != "lock" and path.name.split(".")[0] not in known:
                path.unlink()

    def waves(self) -> list[tuple[WaveFiles, State]]:
        """The waves on disk, oldest first; not those that another version of judge wrote."""
        found = []
        for path in self.folder.glob("*.json"):
            files = WaveFiles(self.folder, path.stem)
            if (state := files.read_state()) is not None:
                found.append((files, state))
        return sorted(found, key=lambda one: one[1].written)

    def new(self) -> WaveFiles:
        """The files of a wave yet to be written."""
        return WaveFiles(self.folder, secrets.token_hex(8))

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@dataclass(frozen=True, slots=True)
class Result:
    """One request's outcome: an HTTP status, and where its line lies in the results."""

    status: int
    start: int
    length: int


def index(results: Path) -> dict[str, Result]:
    """Where the result of each request lies, by its id; a line that is torn is left out."""
    found = {}
    start = 0
    with results.open("rb") as file:
        for line in file:
            told = _line(line)
            if told is not None:
                found[str(told.get("custom_id"))] = Result(_status(told), start, len(line))
            start += len(line)
    return found


def body(results: Path, result: Result) -> bytes:
    """What the server would have answered one request online."""
    with results.open("rb") as file:
        file.seek(result.start)
        told = _line(file.read(result.length)) or {}
    answer = (told.get("response") or {}).get("body") or {"error": told.get("error")}
    try:
        return orjson.dumps(answer)
    except orjson.JSONEncodeError:
        return json.dumps(answer).encode()


_LAPSED = {"batch_expired": 408, "batch_cancelled": 408}


def _status(told: dict[str, Any]) -> int:
    answer = told.get("response")
    if isinstance(answer, dict) and isinstance(answer.get("status_code"), int):
        return int(answer["status_code"])
    error = told.get("error")
    return _LAPSED.get(str(error.get("code")) if isinstance(error, dict) else "", 500)


def _line(line: bytes) -> dict[str, Any] | None:
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            # orjson refuses half of a surrogate pair, which a reply may hold.
            told = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return told if isinstance(told, dict) else None


def opened(path: Path) -> BinaryIO:
    """The file, empty, for its owner alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _put(path: Path, content: bytes) -> None:
    beside = path.with_name(f"{path.name}.part")
    with opened(beside) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)

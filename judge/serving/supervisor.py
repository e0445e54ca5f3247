"""One model server: started, watched, started again when it dies, stopped.

Its life is a task of the event loop that first asks for it. Whoever wants to call it waits for
`ready`, and says with `doubt` that a call was lost; the server is then looked at before the next
call goes out. `judge/serving/guard.py` stands between the two processes, so that no server outlives
judge, whatever ends judge.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from judge.errors import Denied, UsageError
from judge.serving import guard
from judge.serving.command import KEY_VARIABLE, Served

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_HEALTH_SECONDS = 10.0
_GUARD_SECONDS = 20.0
_TOLD_LINES = 20
_TOLD_BYTES = 16_384
# Below the ports that Linux gives to outgoing connections, which would come and go on ours.
_PORTS = (20_000, 32_000)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long and how often, in seconds and starts.

    `ready`: from a start to the first answer. `restarts`: in a row, each after a pause that begins
    with `pause` and doubles; a server that has answered for `steady` begins at none again.
    `silent`: a server that runs but answers no health check for so long is given up. `grace`:
    between SIGTERM and SIGKILL.
    """

    ready: float = 1800.0
    restarts: int = 3
    pause: float = 1.0
    steady: float = 600.0
    silent: float = 60.0
    grace: float = 10.0

    @classmethod
    def from_environment(cls) -> Bounds:
        """`ready` as $JUDGE_SERVE_TIMEOUT says.

        Raises:
            UsageError: it is not a positive number of seconds.
        """
        text = os.environ.get("JUDGE_SERVE_TIMEOUT", "").strip()
        if not text:
            return cls()
        with suppress(ValueError):
            if 0 < (seconds := float(text)) < float("inf"):
                return cls(ready=seconds)
        raise UsageError(f"JUDGE_SERVE_TIMEOUT is {text!r}, not a positive number of seconds")


class Supervisor:
    """A server of judge's own.

    Args:
        served: what is served and by what.
        key: what the server asks callers for; None lets everyone in who reaches the port.
        host, port: where it listens; port None takes a free one. Stays the same over restarts.
        log: its output goes there, at the end; None takes a new file in the folder for temporary
            files, which is removed unless something went wrong.
        told: gets a line for each thing that happens.
    """

    def __init__(
        self,
        served: Served,
        *,
        key: str | None,
        host: str = "127.0.0.1",
        port: int | None = None,
        log: Path | None = None,
        bounds: Bounds | None = None,
        told: Callable[[str], None] = _log.warning,
    ) -> None:
        self.name = f"the {served.kind} server of {served.model}"
        self._served, self._key, self._told = served, key, told
        self._bounds = bounds or Bounds.from_environment()
        self._host, self._port = host, port or _free_port(host)
        self._given_log, self._log = log, log
        self._guard: subprocess.Popen[bytes] | None = None
        self._life: asyncio.Task[None] | None = None
        self._settled, self._doubted = asyncio.Event(), asyncio.Event()
        self._failure: str | None = None
        self._troubled = False

    @property
    def url(self) -> str:
        """Where OpenAI's protocol is spoken."""
        return f"http://{_bracketed(_reachable(self._host))}:{self._port}/v1"

    async def ready(self) -> None:
        """Come back when the server answers; starts it if need be.

        Raises:
            Denied: it does not come up, or died too often; with the end of its log.
        """
        if self._life is None:
            self._life = asyncio.create_task(self._live())
        await self._settled.wait()
        if self._failure is not None:
            raise Denied(self._failure)

    def doubt(self) -> None:
        """Say that a call was lost: nobody is ready until the server has been looked at."""
        if self._failure is None:
            self._settled.clear()
            self._doubted.set()

    async def ended(self) -> NoReturn:
        """Watch it for as long as it lives.

        Raises:
            Denied: as `ready`.
        """
        await self.ready()
        assert self._life is not None
        await self._life
        raise Denied(self._failure or f"{self.name} was stopped")

    async def aclose(self) -> None:
        """Stop the server, if there is one, and wait for its end."""
        if self._life is not None:
            self._life.cancel()
            with suppress(asyncio.CancelledError):
                await self._life
        await self._stop()
        if self._log is not None and self._given_log is None and not self._troubled:
            self._log.unlink(missing_ok=True)

    # ------------------------------------------------------------ a life

    async def _live(self) -> None:
        restarts, answered = 0, False
        try:
            while True:
                self._start()
                why = await self._coming_up()
                if why is None:
                    began, answered = time.monotonic(), True
                    self._told(f"{self.name} answers")
                    why = await self._lost()
                    if time.monotonic() - began >= self._bounds.steady:
                        restarts = 0
                self._settled.clear()
                self._troubled = True
                await self._stop()
                # What keeps a server from coming up the first time will keep it again.
                if not answered or restarts == self._bounds.restarts:
                    self._failure = self._obituary(why, restarts)
                    return
                pause = self._bounds.pause * 2**restarts
                restarts += 1
                self._told(
                    f"{self.name} {why}; it is started again in {pause:g} s "
                    f"({restarts} of {self._bounds.restarts})"
                )
                await asyncio.sleep(pause)
        except OSError as error:
            self._failure = f"{self.name} cannot be started: {error}"
        except Exception as error:  # noqa: BLE001 - told to all that wait, who would wait for ever
            self._failure = f"{self.name} is watched no more: {type(error).__name__}: {error}"
        finally:
            self._settled.set()

    async def _coming_up(self) -> str | None:
        """None once the server answers, else why it will not."""
        until = time.monotonic() + self._bounds.ready
        while time.monotonic() < until:
            if (why := self._gone()) is not None:
                return why
            if await _healthy(_reachable(self._host), self._port):
                self._settled.set()
                return None
            await asyncio.sleep(_LOOK_SECONDS / 2)
        return (
            f"did not answer within {self._bounds.ready:g} s "
            "(JUDGE_SERVE_TIMEOUT gives it another time)"
        )

    async def _lost(self) -> str:
        """Watch a server that answers, until it does no more; says how that came."""
        answered = time.monotonic()
        while True:
            # `wait_for` of Python 3.11 may lose a cancellation that comes with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._doubted.wait()
            # What is in doubt from here on is not settled by an answer that was asked for before.
            self._doubted.clear()
            if (why := self._gone()) is not None:
                return why
            if await _healthy(_reachable(self._host), self._port):
                answered = time.monotonic()
                if not self._doubted.is_set():
                    self._settled.set()
            elif time.monotonic() - answered >= self._bounds.silent:
                return f"answered no health check for {self._bounds.silent:g} s"

    def _gone(self) -> str | None:
        code = None if self._guard is None else self._guard.poll()
        if code is None:
            return None
        if code > 128:
            with suppress(ValueError):
                return f"was ended by {signal.Signals(code - 128).name}"
        return f"ended with exit code {code}"

    # ------------------------------------------------------------ the process

    def _start(self) -> None:
        if self._log is None:
            handle, name = tempfile.mkstemp(prefix="judge-server-", suffix=".log")
            os.close(handle)
            self._log = Path(name)
        argv = self._served.argv(self._host, self._port)
        environment = {k: v for k, v in os.environ.items() if k != KEY_VARIABLE}
        if self._key is not None:
            environment[KEY_VARIABLE] = self._key
        self._told(f"{self.name} is started; its output is in {self._log}")
        handle = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", str(guard.__file__), f"{self._bounds.grace:g}", *argv],
                stdin=subprocess.PIPE,
                stdout=handle,
                stderr=handle,
                env=environment,
                # Ctrl-C in a terminal goes to judge alone, which still needs the server then.
                start_new_session=True,
            )
        finally:
            os.close(handle)

    async def _stop(self) -> None:
        if self._guard is None:
            return
        guarding, self._guard = self._guard, None
        assert guarding.stdin is not None
        guarding.stdin.close()
        until = time.monotonic() + self._bounds.grace + _GUARD_SECONDS
        while guarding.poll() is None:
            if time.monotonic() > until:
                guarding.kill()
            await asyncio.sleep(0.02)

    def _obituary(self, why: str, restarts: int) -> str:
        told = f"{self.name} {why}"
        if restarts:
            told += f", after {restarts} restarts"
        last = _last_lines(self._log) if self._log else ""
        if self._key:
            last = last.replace(self._key, "[secret]")
        return f"{told}. Its log is {self._log}, which ends:\n{last}"


def _last_lines(log: Path) -> str:
    with suppress(OSError), log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _TOLD_BYTES))
        text = stream.read().decode("utf-8", "replace")
        return "\n".join(f"  {line}" for line in text.splitlines()[-_TOLD_LINES:])
    return "  (it cannot be read)"


async def _healthy(host: str, port: int) -> bool:
    """Whether a server says at /health that it can answer; no server asks for a key there."""
    try:
        async with asyncio.timeout(_HEALTH_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET /health HTTP/1.1\r\nHost: judge\r\nConnection: close\r\n\r\n")
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):
        return False
    return status.split()[1:2] == [b"200"]


def _reachable(host: str) -> str:
    """The address at which this machine reaches a server that listens on all of its addresses."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    refused: OSError | None = None
    for port in random.sample(range(*_PORTS), 50):
        with socket.socket(family) as tried:
            try:
                tried.bind((host, port))
            except OSError as error:
                refused = error
                continue
            return port
    raise UsageError(f"no port of {host} can be listened on: {refused}")

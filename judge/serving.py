"""A vLLM server of judge's own: started when it is needed, restarted once, ended with judge.

It leads a process group of its own, which is ended when judge ends. Where judge is killed, Linux
sends the server SIGTERM (PR_SET_PDEATHSIG); elsewhere it then stays.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from judge.errors import Denied, UsageError

_log = logging.getLogger(__name__)

KEY_VARIABLE = "VLLM_API_KEY"
"""Holds the key that a server asks for. Never on a command line, which every user can read."""

MOST_LOGPROBS = 20
"""Alternatives of the first token that are asked for, and so must be allowed."""

SILENT_SECONDS = 60.0
"""A server that answered before, and answers no health check for so long, is restarted."""

GRACE_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""

_LOOK_SECONDS = 0.25
_HEALTH_SECONDS = 10.0
_READY_SECONDS = 1800.0
_TOLD_LINES, _TOLD_BYTES = 20, 16_384
_SET_PARENT_DEATH_SIGNAL = 1


@dataclass(frozen=True, slots=True)
class Served:
    """A model and how vLLM serves it.

    `model` is a name of the Hugging Face hub or a folder; `options` go to vLLM as they are, last,
    so that they win.

    Raises:
        UsageError: the model's name is an option, or an option holds a key.
    """

    model: str
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.model.startswith("-"):
            raise UsageError(f"{self.model!r} is an option of a command line, not a model's name")
        for option in filter(_gives_key, self.options):
            raise UsageError(
                f"{option.partition('=')[0]} puts a key on a command line, which every user of "
                f"this machine can read, and into the output's settings: set {KEY_VARIABLE} (or "
                "HF_TOKEN) in the environment instead"
            )

    @classmethod
    def from_environment(cls, model: str) -> Served:
        """With the options of $JUDGE_SERVER_OPTIONS (a shell's words).

        Raises:
            UsageError: they cannot be read or used.
        """
        try:
            options = shlex.split(os.environ.get("JUDGE_SERVER_OPTIONS", ""))
        except ValueError as error:
            raise UsageError(f"JUDGE_SERVER_OPTIONS cannot be read: {error}") from None
        return cls(model, tuple(options))

    def identity(self) -> dict[str, str]:
        """What makes two answers comparable: model, engine, options; no address."""
        engine = "vllm"
        # The program may belong to another Python.
        with suppress(PackageNotFoundError):
            engine = f"vllm {version('vllm')}"
        options = {"server options": shlex.join(self.options)} if self.options else {}
        return {"model": self.model, "engine": engine, **options}

    def argv(self, host: str, port: int) -> list[str]:
        """The command line of a server at that address."""
        words = [_vllm() or "vllm", "serve", self.model, "--host", host, "--port", str(port)]
        words += ["--served-model-name", self.model]
        words += ["--enable-prefix-caching", "--max-logprobs", str(MOST_LOGPROBS)]
        # A line for each of millions of calls would fill the disk.
        words += ["--disable-uvicorn-access-log"]
        return [*words, *self.options]


class ModelServer:
    """A server process.

    $JUDGE_SERVE_TIMEOUT is how many seconds a start may take until the server answers (1800).

    Args:
        key: what the server asks callers for; None lets everyone in who reaches the port.
        host, port: where it listens; port None takes a free one. Stays the same after a restart.
        log: its output goes to the end of this file; None takes a new file in the folder for
            temporary files, which is removed unless something went wrong.
        told: gets a line for each thing that happens.

    Raises:
        UsageError: vLLM is not installed, no port is free, or the variable is no positive number.
    """

    def __init__(
        self,
        served: Served,
        *,
        key: str | None,
        host: str = "127.0.0.1",
        port: int | None = None,
        log: Path | None = None,
        told: Callable[[str], None] = _log.warning,
    ) -> None:
        if _vllm() is None:
            raise UsageError(
                "vLLM is not installed here: `pip install vllm` on a machine with a GPU. Or name a "
                "server that runs elsewhere with VLLM_BASE_URL"
            )
        self.name = f"the vllm server of {served.model}"
        self._served, self._key, self._told = served, key, told
        self._ready_seconds = _ready_seconds()
        self._host, self._port = host, port or _free_port(host)
        self._log, self._keep_log = log, log is not None
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = self._restarted = False
        self._failure: str | None = None
        self._looking = asyncio.Lock()

    @property
    def url(self) -> str:
        """Where OpenAI's protocol is spoken, reached from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}/v1"

    async def ready(self) -> None:
        """Come back when the server answers; starts it if need be, and again if it has died.

        Raises:
            Denied: it does not come up, or died twice; with the end of its log.
        """
        async with self._looking:
            while self._failure is None and not (self._answers and self._ended() is None):
                await self._look()
        if self._failure is not None:
            raise Denied(self._failure)

    def doubt(self) -> None:
        """Say that a call was lost: the server is looked at before the next one."""
        self._answers = False

    async def aclose(self) -> None:
        """Stop the server, if there is one, and wait for its end."""
        await self._stop()
        if self._log is not None and not self._keep_log:
            self._log.unlink(missing_ok=True)

    async def _look(self) -> None:
        """Start a server where there is none, and wait until it answers; stop one that died."""
        came_up = self._process is not None
        try:
            if not came_up:
                self._start()
            why = await self._answered(SILENT_SECONDS if came_up else self._ready_seconds)
        except OSError as error:
            self._failure = f"{self.name} cannot be started: {error}"
            return
        if why is None:
            self._answers = True
            if not came_up:
                self._told(f"{self.name} answers")
            return
        await self._stop()
        self._keep_log = True
        # What keeps a server from coming up the first time will keep it again.
        if came_up and not self._restarted:
            self._restarted = True
            self._told(f"{self.name} {why}; it is started again")
            return
        again = ", after a restart" if self._restarted else ""
        told = f"{self.name} {why}{again}. Its log is {self._log}, which ends:"
        self._failure = f"{told}\n{self._last_lines()}"

    async def _answered(self, bound: float) -> str | None:
        """None once the server answers, else why it will not."""
        until = time.monotonic() + bound
        while time.monotonic() < until:
            if (why := self._ended()) is not None:
                return why
            if await asyncio.to_thread(_healthy, self.url.removesuffix("/v1")):
                return None
            await asyncio.sleep(_LOOK_SECONDS)
        limit = " (JUDGE_SERVE_TIMEOUT)" if bound == self._ready_seconds else ""
        return f"did not answer within {bound:g} s{limit}"

    def _ended(self) -> str | None:
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"

    def _start(self) -> None:
        if self._log is None:
            handle, name = tempfile.mkstemp(prefix="judge-server-", suffix=".log")
            os.close(handle)
            self._log = Path(name)
        environment = {k: v for k, v in os.environ.items() if k != KEY_VARIABLE}
        if self._key is not None:
            environment[KEY_VARIABLE] = self._key
        self._told(f"{self.name} is started; its output is in {self._log}")
        handle = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            self._process = subprocess.Popen(
                self._served.argv(self._host, self._port),
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=handle,
                env=environment,
                # Ctrl-C in a terminal goes to judge alone, which still needs the server then.
                start_new_session=True,
                preexec_fn=_dies_with(os.getpid()),
            )
        finally:
            os.close(handle)

    async def _stop(self) -> None:
        """End the process group; a worker that stayed would still hold the GPU's memory."""
        process, self._process, self._answers = self._process, None, False
        if process is None:
            return
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, GRACE_SECONDS)
        _signal_group(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.wait)

    def _last_lines(self) -> str:
        """The end of the log, without the key."""
        assert self._log is not None
        try:
            with self._log.open("rb") as stream:
                stream.seek(max(0, self._log.stat().st_size - _TOLD_BYTES))
                text = stream.read().decode("utf-8", "replace")
        except OSError as error:
            return f"  (it cannot be read: {error})"
        lines = text.replace(self._key or "\0", "[secret]").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_TOLD_LINES:])


def _dies_with(parent: int) -> Callable[[], None] | None:
    """What the new process does first, so that it gets SIGTERM when judge dies."""
    if sys.platform != "linux":
        return None
    # Loaded here: between fork and exec as little as possible may happen.
    control = ctypes.CDLL(None).prctl

    def prepare() -> None:
        control(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _healthy(address: str) -> bool:
    """Whether a server says at /health that it can answer; it asks for no key there."""
    # Never by a proxy: the server runs on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with (
        suppress(OSError, HTTPException),
        opener.open(f"{address}/health", timeout=_HEALTH_SECONDS),
    ):
        return True
    return False


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        try:
            tried.bind((host, 0))
        except OSError as error:
            raise UsageError(f"no port of {host} can be listened on: {error}") from error
        return int(tried.getsockname()[1])


def _gives_key(option: str) -> bool:
    """Whether it is one of vLLM's options for a key, also with _ for - or cut short."""
    name = option.partition("=")[0].replace("_", "-")
    return len(name) > 4 and any(known.startswith(name) for known in ("--api-key", "--hf-token"))


def _vllm() -> str | None:
    """The program `vllm`: on the PATH, or beside the Python that runs, which need not be on it."""
    beside = Path(sys.executable).with_name("vllm")
    return shutil.which("vllm") or (str(beside) if beside.is_file() else None)


def _ready_seconds() -> float:
    text = os.environ.get("JUDGE_SERVE_TIMEOUT", "").strip()
    with suppress(ValueError):
        if 0 < (seconds := float(text or _READY_SECONDS)) < float("inf"):
            return seconds
    raise UsageError(f"JUDGE_SERVE_TIMEOUT is {text!r}, not a positive number of seconds")

"""A vLLM server of judge's own: started when needed, restarted once, ended with judge.

It leads a process group of its own, which is ended when judge ends. Where judge is killed, Linux
sends the server SIGTERM (PR_SET_PDEATHSIG); elsewhere it then stays.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import httpx

from judge.errors import Denied, UsageError

_log = logging.getLogger(__name__)

KEY_VARIABLE = "VLLM_API_KEY"
"""Holds the key that a server asks for. Never on a command line, which every user can read."""

MOST_LOGPROBS = 20
"""Alternatives of the first token that are asked for, and so must be allowed."""

READY_SECONDS = 1800.0
"""From a start to the first answer."""

GRACE_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""

_LOOK_SECONDS = 0.25
_HEALTH_SECONDS = 10.0
_TOLD_LINES, _TOLD_BYTES = 20, 16_384
_SET_PARENT_DEATH_SIGNAL = 1


class ModelServer:
    """A server process on a free port of the loopback, with a key made for it.

    $JUDGE_SERVER_OPTIONS (a shell's words) go to vLLM as they are, last, so that they win. The
    output goes to a temporary file, which is removed unless something went wrong.

    Args:
        model: a name of the Hugging Face hub or a folder.

    Raises:
        UsageError: vLLM is not installed, or the options cannot be used.
    """

    def __init__(self, model: str) -> None:
        self.model, self.options = model, _options()
        if _vllm() is None:
            raise UsageError(
                "vLLM is not installed here: `pip install vllm` on a machine with a GPU. Or name a "
                "server that runs elsewhere with VLLM_BASE_URL"
            )
        self.name = f"the vllm server of {model}"
        self.key = secrets.token_urlsafe(32)
        with socket.create_server(("127.0.0.1", 0)) as tried:
            self.address = f"http://127.0.0.1:{tried.getsockname()[1]}"
        self._log: Path | None = None
        self._keep_log = False
        self._process: subprocess.Popen[bytes] | None = None
        self._restarted = False
        self._failure: str | None = None
        self._looking = asyncio.Lock()

    def identity(self) -> dict[str, str]:
        """What makes two answers comparable: model, engine, options; no address."""
        engine = "vllm"
        # The program may belong to another Python.
        with suppress(PackageNotFoundError):
            engine = f"vllm {version('vllm')}"
        options = {"server options": shlex.join(self.options)} if self.options else {}
        return {"model": self.model, "engine": engine, **options}

    def argv(self) -> list[str]:
        """The command line of the server."""
        port = self.address.rpartition(":")[2]
        words = [_vllm() or "vllm", "serve", self.model, "--host", "127.0.0.1", "--port", port]
        words += ["--served-model-name", self.model]
        words += ["--enable-prefix-caching", "--max-logprobs", str(MOST_LOGPROBS)]
        # A line for each of millions of calls would fill the disk.
        return [*words, "--disable-uvicorn-access-log", *self.options]

    async def ready(self) -> None:
        """Come back when the server answers; started if need be, and again once when it has died.

        Raises:
            Denied: it does not come up, or died twice; with the end of its log.
        """
        async with self._looking:
            why = None if self._failure is not None else await self._trouble()
            if why is not None:
                await self._stop()
                self._keep_log = True
                told = f"{self.name} {why}. Its log is {self._log}, which ends:"
                self._failure = f"{told}\n{self._last_lines()}"
        if self._failure is not None:
            raise Denied(self._failure)

    async def aclose(self) -> None:
        """Stop the server, if there is one, and wait for its end."""
        await self._stop()
        if self._log is not None and not self._keep_log:
            self._log.unlink(missing_ok=True)

    async def _trouble(self) -> str | None:
        """None once the server answers, else why it will not."""
        if self._process is not None:
            why = self._ended()
            if why is None or self._restarted:
                return why
            self._restarted = True
            _log.warning("%s %s; it is started again", self.name, why)
            await self._stop()
        try:
            self._start()
        except OSError as error:
            return f"cannot be started: {error}"
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            if (why := self._ended()) is not None:
                return why
            if await self._healthy():
                return None
            await asyncio.sleep(_LOOK_SECONDS)
        return f"did not answer within {READY_SECONDS:g} s"

    async def _healthy(self) -> bool:
        """Whether it says at /health that it can answer; it asks for no key there."""
        with suppress(httpx.HTTPError):
            # Never by a proxy: the server runs on this machine.
            async with httpx.AsyncClient(trust_env=False, timeout=_HEALTH_SECONDS) as client:
                return (await client.get(f"{self.address}/health")).is_success
        return False

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
        _log.warning("%s is started; its output is in %s", self.name, self._log)
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self.argv(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, KEY_VARIABLE: self.key},
                # Ctrl-C in a terminal goes to judge alone, which still needs the server then.
                start_new_session=True,
                preexec_fn=_dies_with(os.getpid()),
            )

    async def _stop(self) -> None:
        """End the process group; a worker that stayed would still hold the GPU's memory."""
        process, self._process = self._process, None
        if process is None:
            return
        for number, grace in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, None)):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, grace)

    def _last_lines(self) -> str:
        """The end of the log, without the key."""
        assert self._log is not None
        with self._log.open("rb") as stream:
            stream.seek(max(0, self._log.stat().st_size - _TOLD_BYTES))
            text = stream.read().decode("utf-8", "replace")
        lines = text.replace(self.key, "[secret]").splitlines()
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


def _vllm() -> str | None:
    """The program `vllm`: on the PATH, or beside the Python that runs, which need not be on it."""
    beside = Path(sys.executable).with_name("vllm")
    return shutil.which("vllm") or (str(beside) if beside.is_file() else None)


def _options() -> tuple[str, ...]:
    """The words of $JUDGE_SERVER_OPTIONS; raises UsageError where one holds a key."""
    try:
        options = shlex.split(os.environ.get("JUDGE_SERVER_OPTIONS", ""))
    except ValueError as error:
        raise UsageError(f"JUDGE_SERVER_OPTIONS cannot be read: {error}") from None
    for option in options:
        name = option.partition("=")[0].replace("_", "-")
        # vLLM takes a name that is cut short, too.
        if len(name) > 4 and any(known.startswith(name) for known in ("--api-key", "--hf-token")):
            raise UsageError(
                f"{option.partition('=')[0]} puts a key on a command line, which every user of "
                f"this machine can read, and into the output's settings: set {KEY_VARIABLE} (or "
                "HF_TOKEN) in the environment instead"
            )
    return tuple(options)

"""`vllm:MODEL`: a server that already runs (VLLM_BASE_URL, VLLM_API_KEY), or one that judge starts.

Without VLLM_BASE_URL judge starts a server when the first call needs it, and ends its process group
with the run. If judge is killed, Linux sends the server SIGTERM (PR_SET_PDEATHSIG); on other
systems the server stays.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from judge.backends.base import Call, Message, Mode
from judge.backends.chat import openai_arguments
from judge.backends.http import HttpResponse, HttpServer
from judge.backends.openai import OpenAIBackend, Request, named_server
from judge.errors import BackendError, Denied, UsageError

_log = logging.getLogger(__name__)

KEY_VARIABLE = "VLLM_API_KEY"
"""Variable with the server's key, which is never put on a command line: every user can read
that."""

MAX_LOGPROBS = 20
"""Alternatives of the first token that the server must allow: judge asks for this number."""

READY_SECONDS = 1800.0
"""Time limit from a start to the first answer."""

GRACE_SECONDS = 10.0
"""Time between SIGTERM and SIGKILL."""

_OWN_OPTIONS = ("--host", "--port", "--served-model-name", "--uds")
"""Options of `vllm serve` by which judge finds its server."""

_LOOK_SECONDS = 0.25
_LIST_SECONDS = 10.0
_TOLD_LINES, _TOLD_BYTES = 20, 16_384
_SET_PARENT_DEATH_SIGNAL = 1


class VLLMBackend(OpenAIBackend):
    """One model behind vLLM.

    Raises:
        UsageError: VLLM_BASE_URL or VLLM_API_KEY cannot be used; or as `ModelServer`.
    """

    modes = (Mode.JSON_SCHEMA, Mode.JSON)
    method = "logprobs"

    def __init__(self, name: str, *, request: Request | None = None) -> None:
        url = os.environ.get("VLLM_BASE_URL", "").strip()
        self._own = None if url else ModelServer(name)
        key = os.environ.get(KEY_VARIABLE, "").strip()
        http = self._own or named_server(url, key, "VLLM_BASE_URL", KEY_VARIABLE)
        super().__init__(name, server=http, request=request)

    def identity(self) -> Mapping[str, str]:
        """The identity. A server that judge starts has its model's, because its address changes."""
        if self._own is not None:
            return {"provider": "vllm", **self._own.identity(), **self._request.as_identity()}
        return {**super().identity(), "provider": "vllm"}

    def _usual(self) -> dict[str, str | int]:
        return {}  # Thoughts are switched off.

    def arguments(self, call: Call, mode: Mode) -> dict[str, Any]:
        return openai_arguments(call, mode) | {
            # Without one each server draws its own, and no two runs would agree.
            "seed": call.vote if call.seed is None else call.seed,
            # The first token of a thinking model's thoughts says neither yes nor no.
            "chat_template_kwargs": {"enable_thinking": False},
        }

    def embedded(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The chat messages themselves: a pooling runner applies the model's template."""
        return {"messages": list(messages), "add_generation_prompt": True}

    async def ready(self) -> None:
        """Wait until the server answers; starts it if needed. Raises as `ModelServer.ready`."""
        if self._own is not None:
            await self._own.ready()


class ModelServer(HttpServer):
    """A vLLM server that judge starts, on a free port of the loopback.

    $JUDGE_SERVER_OPTIONS (a shell's words) are passed to vLLM unchanged, last, so that they win.
    The output goes to a temporary file, which stays if the server dies or fails (HTTP 5xx).

    Args:
        model: a name on the Hugging Face hub, or a folder.

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
        self.key = secrets.token_urlsafe(32)
        with socket.create_server(("127.0.0.1", 0)) as socket_:
            self.address = f"http://127.0.0.1:{socket_.getsockname()[1]}"
        super().__init__(f"{self.address}/v1", {"Authorization": f"Bearer {self.key}"})
        # Without the address, which differs between runs: the same fault gives the same line.
        self.server = f"the vllm server of {model}"
        self._output: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._restarted = False
        self._failure: str | None = None
        self._answered_5xx = False
        self._looking = asyncio.Lock()

    async def ready(self) -> None:
        """Wait until the server answers; starts it if needed, and once more after it died.

        Raises:
            Denied: it does not come up, or died twice; the message has the end of its log.
        """
        async with self._looking:
            if self._failure is not None:
                raise Denied(self._failure)
            why = self._ended()
            if self._process is not None and why is None:
                return
            if not self._restarted:
                if why is not None:
                    self._restarted = True
                    _log.warning("%s %s; it is started again", self.server, why)
                    await self._stop()
                why = await self._started()
            if why is not None:
                await self._stop()
                message = f"{self.server} {why}. Its log is {self._output}, which ends:"
                self._failure = f"{message}\n{self._last_lines()}"
                raise Denied(self._failure)

    async def aclose(self) -> None:
        """Stop the server, if it runs, and wait for its end."""
        await super().aclose()
        await self._stop()
        if self._output is None or self._failure is not None:
            return
        if self._answered_5xx or self._restarted:
            _log.warning("%s died or failed; its log stays: %s", self.server, self._output)
        else:
            self._output.unlink(missing_ok=True)

    async def request(self, method: str, path: str, **options: Any) -> HttpResponse:
        """As `HttpServer.request`; a failure of the server is noted."""
        response = await super().request(method, path, **options)
        self._answered_5xx |= response.status >= 500 and method == "POST"
        return response

    async def _started(self) -> str | None:
        """Start the server; returns None once it answers, else why it does not."""
        try:
            self._start()
        except OSError as error:
            return f"cannot be started: {error}"
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            if (why := self._ended()) is not None:
                return why
            with suppress(BackendError):
                if (await self.request("GET", "/models", silence=_LIST_SECONDS)).status == 200:
                    return None
            await asyncio.sleep(_LOOK_SECONDS)
        return f"did not answer within {READY_SECONDS:g} s"

    def _start(self) -> None:
        if self._output is None:
            handle, name = tempfile.mkstemp(prefix="judge-server-", suffix=".log")
            os.close(handle)
            self._output = Path(name)
        _log.warning("%s is started; its output is in %s", self.server, self._output)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self.argv(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, KEY_VARIABLE: self.key},
                # Ctrl-C in a terminal must reach only judge, which still needs the server then.
                start_new_session=True,
                preexec_fn=_dies_with(os.getpid()),
            )

    def _ended(self) -> str | None:
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"

    async def _stop(self) -> None:
        """End the process group: a remaining worker would hold the GPU's memory."""
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
        assert self._output is not None
        with self._output.open("rb") as stream:
            stream.seek(max(0, self._output.stat().st_size - _TOLD_BYTES))
            text = stream.read().decode("utf-8", "replace")
        lines = text.replace(self.key, "[secret]").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_TOLD_LINES:])

    def identity(self) -> dict[str, str]:
        """What replies depend on: model, engine, options; not the address."""
        engine = "vllm"
        # vLLM may be installed in another Python.
        with suppress(PackageNotFoundError):
            engine = f"vllm {version('vllm')}"
        options = {"server options": shlex.join(self.options)} if self.options else {}
        return {"model": self.model, "engine": engine, **options}

    def argv(self) -> list[str]:
        """The command line of the server."""
        port = self.address.rpartition(":")[2]
        words = [_vllm() or "vllm", "serve", self.model, "--host", "127.0.0.1", "--port", port]
        words += ["--served-model-name", self.model]
        words += ["--enable-prefix-caching", "--max-logprobs", str(MAX_LOGPROBS)]
        # Otherwise it does not report cached tokens.
        words += ["--enable-prompt-tokens-details"]
        # An access log of millions of calls would fill the disk.
        return [*words, "--disable-uvicorn-access-log", *self.options]


def _dies_with(parent: int) -> Callable[[], None] | None:
    """A function that the new process runs first, so that it gets SIGTERM when judge dies."""
    if sys.platform != "linux":
        return None
    # Loaded here: as little as possible may happen between fork and exec.
    control = ctypes.CDLL(None).prctl

    def prepare() -> None:
        control(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _vllm() -> str | None:
    """The program `vllm`: on the PATH, or beside this Python, which need not be on the PATH."""
    beside = Path(sys.executable).with_name("vllm")
    return shutil.which("vllm") or (str(beside) if beside.is_file() else None)


def _options() -> tuple[str, ...]:
    """The words of $JUDGE_SERVER_OPTIONS; raises UsageError if one holds a key, or moves the server
    to where judge does not look for it."""
    try:
        options = shlex.split(os.environ.get("JUDGE_SERVER_OPTIONS", ""))
    except ValueError as error:
        raise UsageError(f"JUDGE_SERVER_OPTIONS cannot be read: {error}") from None
    for option in options:
        name = option.partition("=")[0].replace("_", "-")
        # vLLM also accepts abbreviated options.
        if len(name) > 4 and any(key.startswith(name) for key in ("--api-key", "--hf-token")):
            raise UsageError(
                f"{option.partition('=')[0]} puts a key on a command line, which every user of "
                f"this machine can read, and into the output's settings: set {KEY_VARIABLE} (or "
                "HF_TOKEN) in the environment instead"
            )
        if len(name) > 4 and any(own.startswith(name) for own in _OWN_OPTIONS):
            raise UsageError(
                f"JUDGE_SERVER_OPTIONS: judge sets {option.partition('=')[0]} itself: leave it "
                "out, or start a server of your own, and name it with VLLM_BASE_URL"
            )
    return tuple(options)

"""`vllm:MODEL`: a server that already runs (VLLM_BASE_URL, VLLM_API_KEY), or one of judge's own.

Without VLLM_BASE_URL judge starts a server for the run when the first call needs it, starts it
again once if it dies, and stops it at the end (`judge/serving.py`).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.backends.base import Call, Mode, Reading
from judge.backends.openai import OpenAIBackend, Way, wire
from judge.backends.shape import openai_arguments
from judge.backends.wire import Answered
from judge.errors import ServerFault, Unreachable
from judge.serving import ModelServer, Served


class VLLMBackend(OpenAIBackend):
    """One model behind vLLM.

    $JUDGE_SERVER_OPTIONS says what else is on the command line of a server that judge starts,
    $JUDGE_SERVE_TIMEOUT how many seconds it may take until it answers (1800), $JUDGE_SERVER_LOG the
    file that its output goes to.

    Raises:
        UsageError: one of these or of VLLM_BASE_URL and VLLM_API_KEY cannot be used, or the server
            is not installed.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA, Mode.JSON)
    reading: Reading = "probability"

    def __init__(self, name: str) -> None:
        url = os.environ.get("VLLM_BASE_URL", "").strip()
        self._own = None if url else _OwnServer(Served.from_environment(name))
        way: Way = self._own or wire(url, os.environ.get("VLLM_API_KEY", "").strip(), "VLLM")
        super().__init__(name, way=way)

    def identity(self) -> Mapping[str, str]:
        """A server of judge's own by what runs on it: its address is another in each run."""
        if self._own is not None:
            return {"provider": "vllm", **self._own.served.identity()}
        return {**super().identity(), "provider": "vllm"}

    def arguments(self, call: Call, mode: Mode) -> dict[str, Any]:
        return openai_arguments(call, mode) | {
            # Without one each server draws its own, and no two runs would agree.
            "seed": call.vote if call.seed is None else call.seed,
            # The first token of a thinking model's thoughts says neither yes nor no.
            "chat_template_kwargs": {"enable_thinking": False},
        }

    async def ready(self) -> None:
        """Come back when the server answers; one of judge's own is started if need be.

        Raises:
            Denied: it does not come up, or died twice.
        """
        if self._own is not None:
            await self._own.process.ready()


class _OwnServer:
    """The way to a server of judge's own, with a key made for it."""

    def __init__(self, served: Served) -> None:
        key = secrets.token_urlsafe(32)
        log = os.environ.get("JUDGE_SERVER_LOG", "").strip()
        self.served = served
        self.process = ModelServer(served, key=key, log=Path(log) if log else None)
        # Without the address, which would differ between two runs' lines about the same fault.
        self.server = self.process.name
        self._wire = wire(self.process.url, key, "VLLM")

    async def post(self, body: bytes) -> Answered:
        """Send one request to a server that answers.

        Raises:
            ServerFault: the call was lost with the server; it can be asked again.
            Denied: there is no server any more.
        """
        await self.process.ready()
        try:
            answered = await self._wire.post(body)
        except (ServerFault, Unreachable) as error:
            self.process.doubt()
            raise ServerFault(f"{self.server}: the call was lost with the connection") from error
        if answered.status >= 500:
            # vLLM answers so for a while after its engine has died.
            self.process.doubt()
        return answered

    async def aclose(self) -> None:
        await self._wire.aclose()
        await self.process.aclose()

"""`vllm:MODEL`: a server that already runs (VLLM_BASE_URL, VLLM_API_KEY), or one of judge's own.

Without VLLM_BASE_URL judge starts a server for the run when the first call needs it, starts it
again once if it dies, and stops it at the end (`judge/serving.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from judge.backends.base import Call, Message, Method, Mode
from judge.backends.openai import OpenAIBackend, named_wire, openai_arguments
from judge.backends.wire import Answered, Wire
from judge.errors import ServerFault, Unreachable
from judge.serving import ModelServer


class VLLMBackend(OpenAIBackend):
    """One model behind vLLM.

    Raises:
        UsageError: VLLM_BASE_URL, VLLM_API_KEY or what `ModelServer` heeds cannot be used.
    """

    modes: tuple[Mode, ...] = (Mode.JSON_SCHEMA, Mode.JSON)
    method: Method = "logprobs"

    def __init__(self, name: str) -> None:
        url = os.environ.get("VLLM_BASE_URL", "").strip()
        self._own = None if url else _OwnServer(ModelServer(name))
        key = os.environ.get("VLLM_API_KEY", "").strip()
        super().__init__(
            name, wire=self._own or named_wire(url, key, "VLLM_BASE_URL", "VLLM_API_KEY")
        )

    def identity(self) -> Mapping[str, str]:
        """A server of judge's own by what runs on it: its address is another in each run."""
        if self._own is not None:
            return {"provider": "vllm", **self._own.process.identity()}
        return {**super().identity(), "provider": "vllm"}

    def arguments(self, call: Call, mode: Mode) -> dict[str, Any]:
        return openai_arguments(call, mode) | {
            # Without one each server draws its own, and no two runs would agree.
            "seed": call.vote if call.seed is None else call.seed,
            # The first token of a thinking model's thoughts says neither yes nor no.
            "chat_template_kwargs": {"enable_thinking": False},
        }

    def embedded(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The chat messages themselves: a pooling runner puts them through the model's template."""
        return {"messages": list(messages), "add_generation_prompt": True}

    async def ready(self) -> None:
        """Come back when the server answers; one of judge's own is started if need be.

        Raises:
            Denied: it does not come up, or died twice.
        """
        if self._own is not None:
            await self._own.process.ready()


class _OwnServer(Wire):
    """The way to a server of judge's own."""

    def __init__(self, process: ModelServer) -> None:
        super().__init__(f"{process.address}/v1", {"Authorization": f"Bearer {process.key}"})
        self.process = process
        # Without the address, which would differ between two runs' lines about the same fault.
        self.server = process.name

    async def post(self, body: bytes) -> Answered:
        """Send one request to a server that answers.

        Raises:
            ServerFault: the connection was lost; the call can be made again.
            Denied: there is no server any more.
        """
        await self.process.ready()
        try:
            return await super().post(body)
        except (ServerFault, Unreachable) as error:
            await self.process.ready()
            raise ServerFault(f"{self.server}: the call was lost with the connection") from error

    async def aclose(self) -> None:
        await super().aclose()
        await self.process.aclose()

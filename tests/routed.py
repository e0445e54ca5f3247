"""The OpenAI backend's way to the server, answered by a respx router instead of a socket."""

from __future__ import annotations

import os

import httpx
import respx

from judge.backends.wire import Answered, Wire


class Routed(Wire):
    """What `OpenAIBackend(wire=...)` takes; requests go to OPENAI_BASE_URL as it is now."""

    def __init__(self, router: respx.Router) -> None:
        super().__init__(os.environ["OPENAI_BASE_URL"], {})
        self._router = router

    async def post(self, body: bytes) -> Answered:
        url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        response = await self._router.async_handler(httpx.Request("POST", url, content=body))
        return Answered(response.status_code, response.headers, response.content)

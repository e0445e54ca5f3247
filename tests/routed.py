"""The OpenAI backend's way to the server, answered by a respx router instead of a socket."""

from __future__ import annotations

import os
from typing import Any

import httpx
import respx

from judge.backends.http import HttpResponse, HttpServer


class Routed(HttpServer):
    """What `OpenAIBackend(server=...)` takes; requests go to OPENAI_BASE_URL as it is now."""

    def __init__(self, router: respx.Router) -> None:
        super().__init__(os.environ["OPENAI_BASE_URL"], {})
        self._router = router

    async def request(self, method: str, path: str, **content: Any) -> HttpResponse:
        url = f"{os.environ['OPENAI_BASE_URL']}{path}"
        sent = httpx.Request(method, url, content=content.get("data"))
        response = await self._router.async_handler(sent)
        return HttpResponse(response.status_code, response.headers, response.content)

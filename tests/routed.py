"""The OpenAI backend's way to the server, answered by a respx router instead of a socket."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import httpx
import respx

from judge.backends.wire import Answered


def routed(router: respx.Router) -> Callable[[bytes], Awaitable[Answered]]:
    """What `OpenAIBackend(post=...)` takes; requests go to OPENAI_BASE_URL as it is now."""
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"

    async def post(body: bytes) -> Answered:
        response = await router.async_handler(httpx.Request("POST", url, content=body))
        return Answered(response.status_code, response.headers, response.content)

    return post

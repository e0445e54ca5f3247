"""A server on 127.0.0.1 that speaks OpenAI's chat protocol and says what a test tells it to say.

    with Loopback(lambda asked: says({"answer": "yes"})) as server:
        ...  # OPENAI_BASE_URL=server.url
        assert server.count == 2

It runs on a thread with a loop of its own, so subprocesses and tests of any kind can call it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from aiohttp import web

PROBE = '{"ready": "yes"}'
MODES = frozenset({"json_schema", "tools", "json"})


@dataclass(frozen=True)
class Asked:
    """One call as the server received it; `number` counts calls from 1, refused ones too."""

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def prompt(self) -> str:
        """The texts of all messages, also of those that come as a list of parts; or what is to be
        embedded."""
        if "input" in self.body:
            return str(self.body["input"])
        contents = (message["content"] or "" for message in self.body["messages"])
        return "\n".join(
            content if isinstance(content, str) else " ".join(part["text"] for part in content)
            for content in contents
        )

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def probe(self) -> bool:
        """Whether this is judge's probe for the way to ask for JSON."""
        return PROBE in self.prompt

    @cached_property
    def mode(self) -> str:
        """json_schema, tools, json (words and `json_object`), or text."""
        if self.body.get("tools"):
            return "tools"
        kind = (self.body.get("response_format") or {}).get("type")
        return {"json_schema": "json_schema", "json_object": "json"}.get(str(kind), "text")

    @property
    def schema_name(self) -> str | None:
        if self.mode == "tools":
            return str(self.body["tools"][0]["function"]["name"])
        if self.mode == "json_schema":
            return str(self.body["response_format"]["json_schema"]["name"])
        return None


@dataclass(frozen=True)
class Answer:
    """What the server sends: a completion made of `text`, or, with `body`, those very bytes."""

    text: str = ""
    finish_reason: str = "stop"
    refusal: str | None = None
    logprobs: Mapping[str, float] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    delay: float = 0.0


Script = Callable[[Asked], Answer]


def says(reply: object, **more: Any) -> Answer:
    """A completion: `reply` as it is where it is text, else as JSON."""
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    return Answer(text, **more)


def truncated(text: str = '{"answer": "ye') -> Answer:
    return Answer(text, finish_reason="length")


def refuses(words: str = "I cannot help with that.") -> Answer:
    return Answer(refusal=words)


def chances(**logprobs: float) -> Answer:
    """First-token alternatives with their natural log-probabilities: chances(Yes=-0.1, No=-2.3)."""
    return Answer(max(logprobs, key=lambda token: logprobs[token]), logprobs=logprobs)


def fails(
    status: int, message: str = "scripted", *, code: str | None = None, **headers: str
) -> Answer:
    """An HTTP error in OpenAI's form; header names with _ for -: fails(429, retry_after="1")."""
    error = {"error": {"message": message, "type": "scripted", "code": code, "param": None}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=json.dumps(error).encode(), headers=named)


class Loopback:
    """The server. Used as a context manager; `url` goes into OPENAI_BASE_URL.

    Args:
        script: what it says to each call that gets through; probes are answered without it.
        key: the only key that it lets in (None: any).
        modes: the ways to ask for JSON that it knows; others are 400.
    """

    def __init__(
        self,
        script: Script = lambda asked: says("{}"),
        *,
        key: str | None = None,
        modes: frozenset[str] = MODES,
        scripted_probe: bool = False,
    ) -> None:
        self.script, self.key, self.modes = script, key, modes
        self.calls: list[Asked] = []
        self.most_at_once = 0
        self.url = ""
        self._scripted_probe = scripted_probe
        self._at_once = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self._ending: asyncio.Event | None = None

    @property
    def count(self) -> int:
        """All calls so far, probes included."""
        return len(self.calls)

    @property
    def asked(self) -> list[Asked]:
        """The calls that were no probes."""
        return [call for call in self.calls if not call.probe]

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> int:
        self._ending = asyncio.Event()
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._handle)
        app.router.add_post("/v1/embeddings", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        port: int = self._runner.addresses[0][1]
        return port

    async def _stop(self) -> None:
        assert self._runner is not None and self._ending is not None
        self._ending.set()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(self.count + 1, await request.json(), dict(request.headers))
        self.calls.append(asked)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._send(asked, self._answer(asked))
        finally:
            self._at_once -= 1

    def _answer(self, asked: Asked) -> Answer:
        given = asked.headers.get("Authorization", "")
        if self.key is not None and given != f"Bearer {self.key}":
            return fails(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}")
        if asked.mode != "text" and asked.mode not in self.modes:
            return fails(400, f"{asked.mode} is not supported by this server")
        if asked.probe and not self._scripted_probe:
            return says(PROBE)
        return self.script(asked)

    async def _send(self, asked: Asked, answer: Answer) -> web.StreamResponse:
        assert self._ending is not None
        if answer.delay:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), answer.delay)
        body = answer.body
        if body is None:
            body = json.dumps(completion(asked, answer), ensure_ascii=True).encode()
        return web.Response(
            body=body,
            status=answer.status,
            headers=answer.headers,
            content_type=answer.content_type,
        )


def embeds(state: Sequence[float]) -> Answer:
    """An embedding, as OpenAI's servers send one."""
    told = {"data": [{"embedding": list(state)}], "usage": {"prompt_tokens": 7}}
    return Answer(body=json.dumps(told).encode())


def completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The JSON of a chat completion; text goes into a tool call where one was asked for."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.refusal is not None:
        message |= {"content": None, "refusal": answer.refusal}
    elif asked.mode == "tools":
        function = {"name": asked.schema_name, "arguments": answer.text}
        call = {"id": "call_1", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": answer.finish_reason,
        "message": message,
        "logprobs": None,
    }
    if answer.logprobs is not None and asked.body.get("logprobs"):
        top = [{"token": t, "logprob": p, "bytes": None} for t, p in answer.logprobs.items()]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}], "refusal": None}
    tokens_in, tokens_out = max(1, len(asked.prompt) // 4), max(1, len(answer.text) // 4)
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 1,
        "model": asked.model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }

"""A server on 127.0.0.1 that speaks OpenAI's chat protocol and says what a test tells it to say.

    with Loopback(lambda asked: says({"answer": "yes"})) as server:
        ...  # OPENAI_BASE_URL=server.url
        assert server.count == 2

It runs on a thread with a loop of its own, so subprocesses and tests of any kind can call it. HTTP
is written by hand, so that a server of the tests can misbehave (faults/server.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Self

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
    """A server's reply: a completion with the text `text`, or exactly the bytes `body`."""

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
    """A completion whose content is `reply`: text unchanged, anything else as JSON."""
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    return Answer(text, **more)


def truncated(text: str = '{"answer": "ye') -> Answer:
    return Answer(text, finish_reason="length")


def refuses(words: str = "I cannot help with that.") -> Answer:
    return Answer(refusal=words)


def chances(**logprobs: float) -> Answer:
    """First-token alternatives with their natural log-probabilities: chances(Yes=-0.1, No=-2.3)."""
    return Answer(max(logprobs, key=lambda token: logprobs[token]), logprobs=logprobs)


def embeds(state: Sequence[float]) -> Answer:
    """An embedding, as OpenAI's servers send one."""
    told = {"data": [{"embedding": list(state)}], "usage": {"prompt_tokens": 7}}
    return Answer(body=json.dumps(told).encode())


def fails(
    status: int, message: str = "scripted", *, code: str | None = None, **headers: str
) -> Answer:
    """An HTTP error in OpenAI's form; header names with _ for -: fails(429, retry_after="1")."""
    error = {"error": {"message": message, "type": "scripted", "code": code, "param": None}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=json.dumps(error).encode(), headers=named)


# ---------------------------------------------------------------- HTTP by hand

JSON = "application/json"


def response(
    code: int, data: bytes, content_type: str = JSON, headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole answer, with its length."""
    named = {"Content-Length": str(len(data)), **(headers or {})}
    return head(code, content_type, named) + b"\r\n" + data


def head(code: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    """Its first lines, without the empty one that ends them."""
    named = {"Content-Type": content_type, **headers}
    lines = [f"HTTP/1.1 {code} Scripted", *(f"{name}: {value}" for name, value in named.items())]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


class Exchange:
    """One call and the connection that it came by; `keep` the connection for another one."""

    def __init__(
        self, asked: Asked, writer: asyncio.StreamWriter, ending: asyncio.Event, url: str
    ) -> None:
        self.asked, self.url = asked, url
        self.keep = False
        self._writer, self._ending = writer, ending

    async def send(self, data: bytes) -> None:
        """Raises ConnectionError if the client has gone."""
        self._writer.write(data)
        await self._writer.drain()

    async def wait(self, seconds: float) -> None:
        """Wait, or as long as the server stands."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)

    @property
    def ending(self) -> bool:
        return self._ending.is_set()

    def reset(self) -> None:
        """Cut the connection hard (RST), with whatever was sent before still on its way."""
        self._writer.transport.abort()


Deed = Callable[[Exchange], Awaitable[None]]
"""What the server does with one call."""

Schedule = Callable[[Asked], Deed]
"""Which deed a call gets."""


# ---------------------------------------------------------------- servers


class OnThread:
    """A server on a thread with a loop of its own. Used as a context manager."""

    def __init__(self) -> None:
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @abstractmethod
    async def _start(self) -> int:
        """Listen on 127.0.0.1; gives the port."""

    @abstractmethod
    async def _stop(self) -> None:
        """Stop listening, and close the open connections."""

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(60)
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


class Scheduled(OnThread):
    """Does with each call what its schedule says. `url` goes into OPENAI_BASE_URL.

    Args:
        schedule: what each call gets; asked once for each, in the order in which they come.
        keep: whether calls are kept in `calls` (else only counted), for runs of many calls.

    `listed` are the models of its list (None: it has no list).
    """

    def __init__(self, schedule: Schedule, *, keep: bool = True) -> None:
        super().__init__()
        self.schedule = schedule
        self.calls: list[Asked] = []
        self.count = 0
        self.listed: Sequence[str] | None = ("loopback",)
        self._keep = keep
        self._server: asyncio.Server | None = None
        self._ending: asyncio.Event | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def _start(self) -> int:
        self._ending = asyncio.Event()
        return await self._listen(0)

    async def _listen(self, port: int) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, backlog=4096)
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    async def _stop(self) -> None:
        assert self._server is not None and self._ending is not None
        self._ending.set()
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection is good for another call."""
        assert self._ending is not None
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        named = [line.split(":", 1) for line in lines[1:] if ":" in line]
        headers = {name.strip().title(): value.strip() for name, value in named}
        sizes = (v for n, v in headers.items() if n == "Content-Length")
        sent = await reader.readexactly(int(next(sizes, "0")))
        if lines[0].startswith("GET "):
            listed = {"data": [{"id": name} for name in self.listed or ()]}
            code = 404 if self.listed is None else 200
            writer.write(response(code, json.dumps(listed).encode()))
            return True
        self.count += 1
        asked = Asked(self.count, json.loads(sent) if sent else {"messages": []}, headers)
        if self._keep:
            self.calls.append(asked)
        exchange = Exchange(asked, writer, self._ending, self.url)
        await self.schedule(asked)(exchange)
        return exchange.keep


class Loopback(Scheduled):
    """A server that works.

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
        super().__init__(lambda asked: self._deed)
        self.script, self.key, self.modes = script, key, modes
        self.most_at_once = 0
        self._scripted_probe = scripted_probe
        self._at_once = 0

    @property
    def asked(self) -> list[Asked]:
        """The calls that were no probes."""
        return [call for call in self.calls if not call.probe]

    async def _deed(self, exchange: Exchange) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            answer = self._answer(exchange.asked)
            if answer.delay:
                await exchange.wait(answer.delay)
            body = body_of(exchange.asked, answer)
        finally:
            self._at_once -= 1
        exchange.keep = True
        await exchange.send(response(answer.status, body, answer.content_type, answer.headers))

    def _answer(self, asked: Asked) -> Answer:
        given = asked.headers.get("Authorization", "")
        if self.key is not None and given != f"Bearer {self.key}":
            return fails(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}")
        if asked.mode != "text" and asked.mode not in self.modes:
            return fails(400, f"{asked.mode} is not supported by this server")
        if asked.probe and not self._scripted_probe:
            return says(PROBE)
        return self.script(asked)


def body_of(asked: Asked, answer: Answer) -> bytes:
    """The bytes of an answer: its own body, else a completion."""
    if answer.body is not None:
        return answer.body
    return json.dumps(completion(asked, answer)).encode()


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

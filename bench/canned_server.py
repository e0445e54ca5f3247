"""A loopback server for benchmarks: OpenAI's chat protocol with canned replies.

    with serving({"judge": [("", {"role": "assistant", "content": "{}"})]}, latency=0.05) as server:
        ...  # OPENAI_BASE_URL = f"{server.url}/judge/v1"

A path's first part names a list of (needle, message); the first needle found in the request's body
decides which message is sent (with a key `body`, which whole answer). So requests are never parsed
and cost about 50 microseconds. Several processes share the port, so that the server is not the
bottleneck; `cpu_seconds` is its CPU time.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Route = Sequence[tuple[str, Mapping[str, Any]]]
"""The answers of a path: the message of the first needle found in the request's body is sent."""


@dataclass(slots=True)
class Server:
    """A running server: its address, without a path, and the CPU seconds it took once stopped."""

    url: str
    cpu_seconds: float = 0.0


def _completion(message: Mapping[str, Any]) -> bytes:
    called = bool(message.get("tool_calls"))
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "canned",
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "tool_calls" if called else "stop",
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 250, "total_tokens": 1250},
    }
    text = json.dumps(message.get("body", body)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n"
    return head.encode() + b"\r\n" + text


class _Connection(asyncio.Protocol):
    """One kept-alive connection; its requests are answered in order."""

    def __init__(self, routes: Mapping[bytes, list[tuple[bytes, bytes]]], latency: float) -> None:
        self._routes, self._latency = routes, latency
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end])
            if b"100-continue" in head.lower():
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            size = end + 4 + _length(head)
            if len(self._received) < size:
                return
            body = bytes(self._received[end + 4 : size])
            del self._received[:size]
            self._answer(head.split(b"/", 2)[1], body)

    def _answer(self, name: bytes, body: bytes) -> None:
        reply = next((sent for needle, sent in self._routes[name] if needle in body), None)
        if reply is None:
            reply = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        if self._latency:
            asyncio.get_running_loop().call_later(self._latency, self._send, reply)
        else:
            self._send(reply)

    def _send(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _serve(listener: socket.socket, routes: Mapping[str, Route], latency: float) -> None:
    prepared = {
        name.encode(): [(needle.encode(), _completion(message)) for needle, message in route]
        for name, route in routes.items()
    }

    async def run() -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await asyncio.get_running_loop().create_server(
            lambda: _Connection(prepared, latency), sock=listener, backlog=2048
        )
        await stopped.wait()

    asyncio.run(run())


@contextmanager
def serving(
    routes: Mapping[str, Route], *, latency: float = 0.0, processes: int = 2
) -> Iterator[Server]:
    """Serve until the block is left, with `latency` seconds before each reply."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = Server(f"http://127.0.0.1:{listener.getsockname()[1]}")
    children = []
    for _ in range(processes):
        child = os.fork()
        if not child:
            try:
                _serve(listener, routes, latency)
            finally:
                os._exit(0)
        children.append(child)
    listener.close()
    try:
        yield server
    finally:
        for child in children:
            os.kill(child, signal.SIGTERM)
        for child in children:
            _, _, used = os.wait4(child, 0)
            server.cpu_seconds += used.ru_utime + used.ru_stime


def raise_file_limit() -> None:
    """Allow as many open files as the system does, because every connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    raise_file_limit()
    with serving(json.loads(sys.argv[1])) as started:
        print(started.url, flush=True)
        signal.pause()

"""The wire over real sockets: what is sent, and what becomes of a server that misbehaves."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from judge import errors
from judge.backends import wire as wire_module
from judge.backends.wire import Wire

BODY = b'{"choices": []}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n" + BODY

Sent = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


@asynccontextmanager
async def server(
    answer: bytes | Sent, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that sends `answer` to each request; gives its port and the requests it had."""
    had: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                had.append(head + await reader.readexactly(size))
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(reader, writer, head)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    started = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    async with started:
        yield started.sockets[0].getsockname()[1], had


@asynccontextmanager
async def wired(url: str, key: str = "k") -> AsyncIterator[Wire]:
    wire = Wire(url, {"Authorization": f"Bearer {key}"})
    try:
        yield wire
    finally:
        await wire.aclose()


async def failed(url: str) -> errors.BackendError:
    async with wired(url) as wire:
        with pytest.raises(errors.BackendError) as caught:
            await wire.post(b"{}")
    return caught.value


async def test_requests_share_a_connection_and_carry_the_key() -> None:
    async with server(OK) as (port, had), wired(f"http://127.0.0.1:{port}/v1/?sig=s") as wire:
        for number in range(3):
            answered = await wire.post(json.dumps(number).encode())
            assert (answered.status, answered.body) == (200, BODY)
    assert [request.rpartition(b"\r\n\r\n")[2] for request in had] == [b"0", b"1", b"2"]
    assert had[0].startswith(b"POST /v1/chat/completions?sig=s HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer k\r\n" in had[0]
    assert b"\r\nContent-Type: application/json\r\n" in had[0]
    assert wire.server == f"http://127.0.0.1:{port}/v1"


async def test_user_and_password_of_the_address_are_sent_as_basic_authentication() -> None:
    async with server(OK) as (port, had), wired(f"http://ann:p%40ss@127.0.0.1:{port}/v1") as wire:
        await wire.post(b"{}")
    login = base64.b64encode(b"ann:p@ss")
    assert b"\r\nAuthorization: Basic " + login + b"\r\n" in had[0]
    assert b"ann:p" not in had[0] and b"Bearer" not in had[0]


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(OK) as (port, had):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        async with wired("http://models.test/v1") as wire:
            assert (await wire.post(b"{}")).body == BODY
        assert had[0].startswith(b"POST http://models.test/v1/chat/completions HTTP/1.1\r\n")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with server(OK) as (other, direct), wired(f"http://127.0.0.1:{other}") as wire:
            await wire.post(b"{}")
        assert len(direct) == 1 and direct[0].startswith(b"POST /chat/completions ")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 15\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\x16\x03\x01\x00\x05hello\r\n\r\n",
    ],
    ids=["not gzip", "no length", "ssh", "rubbish"],
)
async def test_an_answer_that_is_no_http_is_a_fault_of_the_server(answer: bytes) -> None:
    async with server(answer) as (port, _):
        error = await failed(f"http://127.0.0.1:{port}/v1")
    assert isinstance(error, errors.ServerFault) and f"127.0.0.1:{port}" in str(error)


async def test_a_connection_lost_in_the_middle_is_a_fault_of_the_server() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        writer.write(OK[:-5])
        await writer.drain()
        writer.close()

    async with server(half) as (port, _):
        assert isinstance(await failed(f"http://127.0.0.1:{port}"), errors.ServerFault)


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "LONGEST_ANSWER", 100_000)

    async def endless(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            writer.write(b"[" * 10_000)
            await writer.drain()

    async with asyncio.timeout(60), server(endless) as (port, _):
        error = await failed(f"http://127.0.0.1:{port}")
    assert isinstance(error, errors.ServerFault) and "100000 bytes" in str(error)

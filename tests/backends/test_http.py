"""HTTP over real sockets: the requests, and the handling of servers that misbehave."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from judge.backends.http import CHAT, HttpServer

BODY = b'{"choices": []}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n" + BODY


@asynccontextmanager
async def server(answer: bytes = OK) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that sends `answer` to each request; gives its port and the requests it had."""
    had: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                sizes = (int(s.split(b":")[1]) for s in lines if s.startswith(b"content-length"))
                size = next(sizes, 0)
                had.append(head + await reader.readexactly(size))
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    started = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with started:
        yield started.sockets[0].getsockname()[1], had


@asynccontextmanager
async def opened(url: str, key: str = "k") -> AsyncIterator[HttpServer]:
    http = HttpServer(url, {"Authorization": f"Bearer {key}"})
    try:
        yield http
    finally:
        await http.aclose()


async def test_requests_share_a_connection_and_carry_the_key() -> None:
    async with server() as (port, had), opened(f"http://127.0.0.1:{port}/v1/?sig=s") as http:
        for number in range(3):
            response = await http.request("POST", CHAT, data=json.dumps(number).encode())
            assert (response.status, response.body) == (200, BODY)
    assert [request.rpartition(b"\r\n\r\n")[2] for request in had] == [b"0", b"1", b"2"]
    assert had[0].startswith(b"POST /v1/chat/completions?sig=s HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer k\r\n" in had[0]
    assert b"\r\nContent-Type: application/json\r\n" in had[0]
    assert http.server == f"http://127.0.0.1:{port}/v1"


async def test_no_header_of_ours_follows_a_file_to_another_host() -> None:
    """A key may be in any header; aiohttp by itself drops Authorization alone."""
    keys = {"Authorization": "Bearer k", "api-key": "secret", "X-Team": "lab"}
    async with server() as (port, had):
        moved = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/f\r\n"
        async with server(moved.encode() + b"Content-Length: 0\r\n\r\n") as (first, asked):
            http = HttpServer(f"http://127.0.0.1:{first}/v1", keys)
            response = await http.request("GET", "/files/1/content")
            await http.aclose()
            away = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://u:pw@"
            async with server(away + f"127.0.0.1:{port}/g\r\n\r\n".encode()) as (second, _):
                http = HttpServer(f"http://127.0.0.1:{second}/v1", keys)
                await http.request("GET", "/files/1/content")
                await http.aclose()
    # The other host's own login is not ours to drop.
    assert b"Authorization: Basic dTpwdw==" in had[1] and b"secret" not in had[1]
    assert (response.status, response.body) == (200, BODY)
    assert b"api-key: secret" in asked[0] and b"X-Team: lab" in asked[0]
    assert had[0].startswith(b"GET /f HTTP/1.1")
    for word in (b"secret", b"bearer", b"x-team", b"api-key"):
        assert word not in had[0].lower()


async def test_user_and_password_of_the_address_are_sent_as_basic_authentication() -> None:
    async with server() as (port, had), opened(f"http://ann:p%40ss@127.0.0.1:{port}/v1") as http:
        await http.request("POST", CHAT, data=b"{}")
    login = base64.b64encode(b"ann:p@ss")
    assert b"\r\nAuthorization: Basic " + login + b"\r\n" in had[0]
    assert b"ann:p" not in had[0] and b"Bearer" not in had[0]


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server() as (port, had):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        async with opened("http://models.test/v1") as http:
            assert (await http.request("POST", CHAT, data=b"{}")).body == BODY
        assert had[0].startswith(b"POST http://models.test/v1/chat/completions HTTP/1.1\r\n")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with server() as (other, direct), opened(f"http://127.0.0.1:{other}") as http:
            await http.request("POST", CHAT, data=b"{}")
        assert len(direct) == 1 and direct[0].startswith(b"POST /chat/completions ")


async def test_a_connection_lost_without_a_word_is_told_by_its_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened("http://127.0.0.1:1/v1") as http:
        told = [str(http._fault(e)) for e in (ConnectionResetError("by peer"), BrokenPipeError())]
    where = "http://127.0.0.1:1/v1: the connection was lost: "
    assert told == [f"{where}by peer", f"{where}BrokenPipeError"]

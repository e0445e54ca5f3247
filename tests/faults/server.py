"""A server on 127.0.0.1 that misbehaves by schedule, byte by byte where need be.

    with Misbehaving(about({"Guest number 1": status(503)}, else_=good(agreeable))) as server:
        ...  # OPENAI_BASE_URL=server.url
        assert server.count == 9

A schedule is asked once for each call, in the order in which the calls come, and gives the deed
that is done with it. It runs on a thread with a loop of its own, as tests/loopback.py does, whose
`Asked` and `Answer` are used here too; HTTP is written by hand, because a library is too polite.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from loopback import PROBE, Answer, Asked, Script, completion, says

JSON = "application/json"
BLOCK = 64 * 1024
LAST = {"Connection": "close"}
"""Said with a whole answer after which the connection is closed: the client, which may be quicker
than the closing, would make its next call by it, and that would be lost."""


class Exchange:
    """One call and the connection that it came by."""

    def __init__(
        self, asked: Asked, writer: asyncio.StreamWriter, ending: asyncio.Event, url: str
    ) -> None:
        self.asked, self.url = asked, url
        self.keep = False
        self._writer, self._ending = writer, ending

    async def send(self, data: bytes) -> None:
        """Raises ConnectionError where the client has gone."""
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


# ---------------------------------------------------------------- deeds


def good(script: Script) -> Deed:
    """An answer as it should be; the connection is kept."""

    async def deed(exchange: Exchange) -> None:
        answer = PROBED if exchange.asked.probe else script(exchange.asked)
        await exchange.wait(answer.delay) if answer.delay else None
        exchange.keep = True
        await exchange.send(response(answer.status, _body(exchange.asked, answer)))

    return deed


PROBED = says(PROBE)


def status(code: int, said: str = "scripted", **headers: str) -> Deed:
    """An HTTP error in OpenAI's form; header names with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    error = {"error": {"message": said, "type": "scripted", "code": None, "param": None}}
    body = json.dumps(error).encode()

    async def deed(exchange: Exchange) -> None:
        exchange.keep = True
        await exchange.send(response(code, body, headers=named))

    return deed


def sends(data: bytes) -> Deed:
    """These very bytes, and the end of the connection."""

    async def deed(exchange: Exchange) -> None:
        await exchange.send(data)

    return deed


def body(data: bytes, *, content_type: str = JSON, **headers: str) -> Deed:
    """A success with this body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return sends(response(200, data, content_type, named | LAST))


def told(answer: object) -> Deed:
    """A success whose JSON is this, whatever it is."""
    return body(json.dumps(answer).encode())


def completes(answer: Answer, change: Callable[[dict[str, Any]], object] | None = None) -> Deed:
    """A completion that may be changed before it is sent."""

    async def deed(exchange: Exchange) -> None:
        made = completion(exchange.asked, answer)
        if change is not None:
            change(made)
        exchange.keep = True
        await exchange.send(response(200, json.dumps(made).encode()))

    return deed


async def reset(exchange: Exchange) -> None:
    """The connection is reset before a byte is sent."""
    exchange.reset()


async def reset_in_body(exchange: Exchange) -> None:
    """Headers and some of the body come, then the connection is reset."""
    await exchange.send(response(200, b"{" + b" " * 99)[:-50])
    await exchange.wait(0.02)
    exchange.reset()


async def silent(exchange: Exchange) -> None:
    """The call is taken and never answered."""
    await exchange.wait(3600)


async def stall(exchange: Exchange) -> None:
    """Headers and half of the body come, and then nothing; the connection stays open."""
    await exchange.send(response(200, b'{"choices": [' + b" " * 99)[:-50])
    await exchange.wait(3600)


async def endless(exchange: Exchange) -> None:
    """A body without an end, as fast as it is taken."""
    await exchange.send(_head(200, JSON, {}) + b"\r\n")
    while not exchange.ending:
        await exchange.send(b"[" * BLOCK)


async def endless_headers(exchange: Exchange) -> None:
    """Header after header, as fast as they are taken."""
    await exchange.send(b"HTTP/1.1 200 OK\r\n")
    while not exchange.ending:
        await exchange.send(b"X-More: and more\r\n" * 512)


def truncated_body(script: Script, share: float = 0.5) -> Deed:
    """The first part of a good answer, under a length that it has."""

    async def deed(exchange: Exchange) -> None:
        whole = _body(exchange.asked, PROBED if exchange.asked.probe else script(exchange.asked))
        await exchange.send(response(200, whole[: int(len(whole) * share)], headers=LAST))

    return deed


def bomb(size: int = 1 << 30) -> Deed:
    """`size` bytes of spaces, packed with gzip a thousand to one."""
    packed = _packed(size)
    return body(packed, Content_Encoding="gzip")


# ---------------------------------------------------------------- schedules


def always(deed: Deed) -> Schedule:
    return lambda asked: deed


def after(calls: int, deed: Deed, else_: Deed) -> Schedule:
    """`else_` for the first so many calls, `deed` from then on."""
    return lambda asked: deed if asked.number > calls else else_


def about(deeds: Mapping[str, Deed], else_: Deed, *, times: int | None = None) -> Schedule:
    """By what stands in the prompt; each at most `times` times (None: always)."""
    done: dict[str, int] = {}

    def schedule(asked: Asked) -> Deed:
        for mark, deed in deeds.items():
            if mark in asked.prompt:
                done[mark] = done.get(mark, 0) + 1
                if times is None or done[mark] <= times:
                    return deed
        return else_

    return schedule


def for_seconds(seconds: float, deed: Deed, else_: Deed, *, after: int = 1) -> Schedule:
    """`else_` for the first `after` calls; then `deed` for so long, from the next call on."""
    began: list[float] = []

    def schedule(asked: Asked) -> Deed:
        if asked.number <= after:
            return else_
        began[:] = began or [time.monotonic()]
        return deed if time.monotonic() < began[0] + seconds else else_

    return schedule


def now_and_then(deeds: Sequence[Deed], share: float, else_: Deed, *, seed: int = 0) -> Schedule:
    """Each of `deeds` for that share of the calls (0 to 1), the same calls in every run.

    Which call is chosen follows from its number alone.
    """

    def schedule(asked: Asked) -> Deed:
        drawn = zlib.crc32(f"{seed}:{asked.number}".encode()) / 2**32
        place = int(drawn / share)
        return deeds[place] if place < len(deeds) and not asked.probe else else_

    return schedule


# ---------------------------------------------------------------- the server


class Misbehaving:
    """The server. Used as a context manager; `url` goes into OPENAI_BASE_URL.

    Args:
        schedule: what each call gets.
        keep: whether calls are kept in `calls` (else only counted), for runs of many calls.
    """

    def __init__(
        self,
        schedule: Schedule,
        *,
        keep: bool = True,
    ) -> None:
        self.schedule = schedule
        self.calls: list[Asked] = []
        self.count = 0
        self.url = ""
        self._keep = keep
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._ending: asyncio.Event | None = None
        self._connections: set[asyncio.Task[None]] = set()

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
        return await self._listen(0)

    async def _listen(self, port: int) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, backlog=4096)
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    def goes_away(self, seconds: float | None = None) -> Deed:
        """Every connection is cut and none is taken any more, for so long (None: for good)."""

        async def deed(exchange: Exchange) -> None:
            assert self._server is not None and self._ending is not None
            port: int = self._server.sockets[0].getsockname()[1]
            self._server.close()
            others = self._connections - {asyncio.current_task()}
            for task in others:
                task.cancel()
            exchange.reset()
            if seconds is not None:
                await exchange.wait(seconds)
                if not exchange.ending:
                    await self._listen(port)

        return deed

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
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        named = [line.split(":", 1) for line in head.split("\r\n")[1:] if ":" in line]
        headers = {name.strip(): value.strip() for name, value in named}
        sizes = (v for n, v in headers.items() if n.lower() == "content-length")
        sent = await reader.readexactly(int(next(sizes, "0")))
        self.count += 1
        asked = Asked(self.count, json.loads(sent) if sent else {"messages": []}, headers)
        if self._keep:
            self.calls.append(asked)
        exchange = Exchange(asked, writer, self._ending, self.url)
        await self.schedule(asked)(exchange)
        return exchange.keep


# ---------------------------------------------------------------- HTTP by hand


def response(
    code: int,
    data: bytes,
    content_type: str = JSON,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A whole answer, with its length."""
    named = {"Content-Length": str(len(data)), **(headers or {})}
    return _head(code, content_type, named) + b"\r\n" + data


def _head(code: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    named = {"Content-Type": content_type, **headers}
    lines = [f"HTTP/1.1 {code} Scripted", *(f"{name}: {value}" for name, value in named.items())]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _body(asked: Asked, answer: Answer) -> bytes:
    if answer.body is not None:
        return answer.body
    return json.dumps(completion(asked, answer)).encode()


def _packed(size: int) -> bytes:
    """So many blanks, in whole MB, without a sum at the end that is right."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    head = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3))
    return head + block * (size >> 20) + b"\x03\x00" + bytes(8)

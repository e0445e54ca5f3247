"""A server on 127.0.0.1 that misbehaves by schedule, byte by byte where need be.

    with Misbehaving(about({"Guest number 1": status(503)}, else_=good(agreeable))) as server:
        ...  # OPENAI_BASE_URL=server.url
        assert server.count == 9

A schedule is asked once for each call, in the order in which the calls come, and gives the deed
that is done with it; how calls are taken: tests/loopback.py.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopback import (
    JSON,
    PROBE,
    Answer,
    Asked,
    Deed,
    Exchange,
    Schedule,
    Scheduled,
    Script,
    body_of,
    completion,
    head,
    response,
    says,
)

BLOCK = 64 * 1024
LAST = {"Connection": "close"}
"""Said with a whole answer after which the connection is closed: the client, which may be quicker
than the closing, would make its next call by it, and that would be lost."""


# ---------------------------------------------------------------- deeds


def good(script: Script) -> Deed:
    """An answer as it should be; the connection is kept."""

    async def deed(exchange: Exchange) -> None:
        answer = PROBED if exchange.asked.probe else script(exchange.asked)
        await exchange.wait(answer.delay) if answer.delay else None
        exchange.keep = True
        await exchange.send(response(answer.status, body_of(exchange.asked, answer)))

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
    await exchange.send(head(200, JSON, {}) + b"\r\n")
    while not exchange.ending:
        await exchange.send(b"[" * BLOCK)


def truncated_body(script: Script, share: float = 0.5) -> Deed:
    """The first part of a good answer, under a length that it has."""

    async def deed(exchange: Exchange) -> None:
        whole = body_of(exchange.asked, PROBED if exchange.asked.probe else script(exchange.asked))
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
    """Choose the answer by words in the prompt, each at most `times` times (None: always)."""
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


class Misbehaving(Scheduled):
    """A server that can go away."""

    def goes_away(self, seconds: float | None = None) -> Deed:
        """Every connection is cut and none is taken any more, for so long (None: for good)."""

        async def deed(exchange: Exchange) -> None:
            assert self._server is not None
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


def _packed(size: int) -> bytes:
    """So many blanks, in whole MB, without a sum at the end that is right."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    head = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3))
    return head + block * (size >> 20) + b"\x03\x00" + bytes(8)

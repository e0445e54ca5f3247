"""The faults of servers that are tried, as data: each is a row of docs/reliability.md."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from loopback import Answer, Asked, refuses, says, truncated

from . import server as does
from .server import Deed

SHORT = 0.5
"""Seconds until a call is given up, where a fault is one of time."""


@dataclass(frozen=True)
class Fault:
    """What a server does wrong.

    Args:
        name: the row's.
        deed: what it does.
        timeout: seconds until a call is given up (`--timeout`).
        from_start: whether it is also tried on every call of a run, from the first on.
    """

    name: str
    deed: Deed
    timeout: float = 60.0
    from_start: bool = False


def agreeable(asked: Asked) -> Answer:
    """The verdict that all records here should get."""
    return says({"quote": "slipped off both shoes", "reason": "it does", "answer": "yes"})


_WORDS = random.Random(0).randbytes(999).hex()
_LONG = json.dumps({"choices": [{"message": {"content": _WORDS}}]}).encode()


def _changed(change: Callable[[dict[str, Any]], object]) -> Deed:
    return does.completes(agreeable(_NOBODY), change)


_NOBODY = Asked(0, {"messages": []}, {})


def _message(**parts: object) -> Deed:
    return _changed(lambda made: made["choices"][0]["message"].update(parts))


def _dated(days: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(days=days), usegmt=True)


def _coded(code: str, data: bytes) -> Deed:
    return does.body(data, Content_Encoding=code)


def _error_in_success() -> Deed:
    return does.told({"error": {"message": "no provider has room", "code": 502}})


_UNDER_THE_HTTP = (
    Fault("connection closed without an answer", does.sends(b"")),
    Fault("connection reset before the headers", does.reset()),
    Fault("connection reset in the body", does.reset_in_body()),
    Fault("bytes that are not HTTP", does.sends(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")),
    Fault("a call that is never answered", does.silent(), SHORT),
    Fault("headers a byte at a time", does.slow_headers(), SHORT),
    Fault("headers without end", does.endless_headers()),
    Fault("a header of 1 MB", does.sends(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**20 + b"\r\n\r\n")),
    Fault("stall in mid-body", does.stall(), SHORT),
    Fault("a body a byte at a time", does.drip(), SHORT),
    Fault("a body without end", does.endless()),
    Fault("a body that says it has 1 TB", does.body(b"{", Content_Length=str(10**12))),
    Fault("a body shorter than its length", does.truncated_body(agreeable)),
    Fault("a length that is no number", does.body(b"{}", Content_Length="many")),
)

_STATUS = (
    *(Fault(f"HTTP {code}", does.status(code)) for code in (408, 409, 500, 501, 502, 503, 504)),
    Fault("HTTP 503, Retry-After 0", does.status(503, Retry_After="0")),
    Fault("HTTP 429", does.status(429)),
    Fault("HTTP 429, Retry-After 0", does.status(429, Retry_After="0")),
    Fault("HTTP 429, Retry-After-Ms 50", does.status(429, Retry_After_Ms="50")),
    *(
        Fault(f"HTTP 429, Retry-After {said}", does.status(429, Retry_After=said))
        for said in ("1e9", "1799999999", "-5", "nan", "inf", "soon")
    ),
    Fault("HTTP 429, Retry-After without a value", does.status(429, Retry_After="")),
    Fault("HTTP 429, Retry-After a date gone by", does.status(429, Retry_After=_dated(-3000))),
    Fault("HTTP 429, Retry-After a date in 30 years", does.status(429, Retry_After=_dated(11000))),
    Fault(
        "HTTP 429, Retry-After a date that is none",
        does.status(429, Retry_After="Mon, 1 Jan 2026 00:00:00 +999999999999999999"),
    ),
    Fault("HTTP 429, Retry-After 3600", does.status(429, Retry_After="3600")),
    Fault("HTTP 400", does.status(400)),
    Fault("HTTP 413", does.status(413)),
    Fault("HTTP 422", does.status(422)),
    Fault("HTTP 401", does.status(401)),
    Fault("HTTP 402", does.status(402)),
    Fault("HTTP 403", does.status(403)),
    Fault("HTTP 404", does.status(404)),
    Fault("HTTP 204, nothing", does.sends(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")),
    Fault("HTTP 301 to another host", does.redirect(301, "https://elsewhere.invalid/v1?key=abc")),
    Fault("HTTP 307 to itself, again and again", does.redirect(307)),
)

_BODIES = (
    Fault("a web page", does.body(b"<html>It works!</html>", content_type="text/html")),
    Fault("no body", does.body(b"")),
    Fault("gzip rubbish", _coded("gzip", b"\x1f\x8b" + b"rubbish" * 20)),
    Fault(
        "gzip cut off",
        _coded("gzip", gzip.compress(_LONG)[:-300]),
    ),
    Fault("no gzip where gzip is said", _coded("gzip", b"{}")),
    Fault("an encoding that nobody knows", _coded("rot13", b"{}")),
    Fault("1 GB in 1 MB of gzip", does.bomb()),
    Fault("JSON cut off", does.body(b'{"choices": [{"message": {"cont')),
    Fault("JSON 100,000 deep", does.body(b"[" * 100_000 + b"]" * 100_000)),
    Fault("JSON with NaN", does.body(b'{"choices": NaN}')),
    Fault("JSON with half a surrogate pair", does.body(rb'{"choices": "\ud800"}')),
    Fault("JSON in UTF-16", does.body('{"choices": []}'.encode("utf-16"))),
    Fault("not UTF-8", does.body(b'{"choices": "\xff\xfe"}')),
    Fault("an error under HTTP 200", _error_in_success()),
)

_SHAPES = (
    *(Fault(f"JSON that is {json.dumps(it)}", does.told(it)) for it in (None, [], 7, "yes", {})),
    *(
        Fault(f"choices that are {json.dumps(it)}", does.told({"choices": it}))
        for it in (None, [], {}, "none", ["yes"], [None])
    ),
    Fault("a choice without message", does.told({"choices": [{"finish_reason": "stop"}]})),
    Fault("a message that is a list", does.told({"choices": [{"message": []}]})),
    Fault("content that is a number", _message(content=7)),
    Fault("content that is a list of parts", _message(content=[{"type": "text", "text": "{}"}])),
    Fault("tool calls that are text", _message(tool_calls="yes")),
    Fault("tool calls without a function", _message(tool_calls=[{"id": "1"}])),
)

_REPLIES = (
    Fault("a model that never stops (length)", does.completes(truncated())),
    Fault(
        "content filter",
        does.completes(Answer("I", finish_reason="content_filter")),
    ),
    Fault("refusal", does.completes(refuses("I will not."))),
    Fault("no text", does.completes(says(""))),
    Fault("text without JSON", does.completes(says("Sure!"))),
    Fault("a reply of another shape", does.completes(says({"verdict": True}))),
    Fault("a reply 100,000 deep", does.completes(says("[" * 100_000))),
    Fault("a reply of 2 MB of braces", does.completes(says("{" * 2**21))),
    Fault("a reply of 2 MB of blanks", does.completes(says(" " * 2**21))),
)

_WITHOUT_HARM = (
    Fault("a good answer as text/plain", does.good(agreeable)),
    Fault("token counts that are text", _changed(lambda made: made.update(usage="many"))),
    Fault(
        "token counts that are absurd",
        _changed(lambda made: made.update(usage={"prompt_tokens": 1e300, "completion_tokens": -5})),
    ),
    Fault(
        "an unknown finish reason",
        _changed(lambda made: made["choices"][0].update(finish_reason="eos")),
    ),
)

FAULTS = (
    *(replace(fault, from_start=fault.timeout != SHORT) for fault in _UNDER_THE_HTTP),
    *(replace(fault, from_start=True) for fault in _STATUS),
    *_BODIES,
    *_SHAPES,
    *_REPLIES,
    *_WITHOUT_HARM,
)

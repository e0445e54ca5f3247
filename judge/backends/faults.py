"""A server's errors: what a status, an error code and its message mean."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from judge import errors
from judge.redact import redacted

MAX_WAIT = 120.0
"""Seconds; a server that asks for a longer pause ends the run (`errors.GivenUp`)."""

_MAX_MESSAGE = 300
_MAX_PAUSE = 7 * 86_400.0

_MAX_BODY = 65_536
"""Most bytes read of an error message: far more than are shown, because secrets are redacted before
it is cut, and half of one would not be recognised."""

_CREDIT_CODES = frozenset(
    ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "arrearage")
)
_CREDIT = re.compile(
    r"credit balance|insufficient.(?:account.)?(?:credit|balance|fund|quota)|out of credit"
    r"|(?:no|any|all available|enough) credits|billing hard limit|spending limit"
    r"|current quota, please check your plan|account is not active|check your billing"
    r"|key limit exceeded|arrearage|overdue.payment|payment required|余额不足|欠费",
    re.IGNORECASE,
)
"""As OpenAI, Anthropic, OpenRouter, DeepSeek, xAI, Together, Moonshot, DashScope and Zhipu say
it."""

_MODERATION = re.compile(
    r"content.?(?:management|filter|policy|moderation|safety|inspection)|responsibleai"
    r"|data.?inspection|moderation|flagged|safety (?:system|filter|polic|setting)|usage polic"
    r"|inappropriate|prohibited|sensitive (?:content|word)|risk control|敏感",
    re.IGNORECASE,
)

_TOO_LONG = re.compile(
    r"(?:prompt|input) is too long|input token count .{0,40}exceeds|reduce the length of the"
    r"|range of input length"
)
"""As Anthropic, Bedrock, Gemini, Groq and DashScope say it; the others name the context."""

_GO_CONTEXT = re.compile(r"context (?:deadline exceeded|cancelled|canceled)")
"""How servers written in Go, such as Ollama, say that a request took too long or was dropped."""

_STATUS_BY_NAME = {
    "invalid_api_key": 401,
    "authentication_error": 401,
    "unauthenticated": 401,
    "unauthorized": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "invalid_request_error": 400,
    "invalid_argument": 400,
}
"""For errors under HTTP 200, with a name instead of a number."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PIECE = (
    r"(\d{1,12}(?:\.\d{1,12})?)\s?(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)"
)
_SPAN = re.compile(rf"(?:{_PIECE}[\s,]*)+\Z")
_IN_WORDS = re.compile(
    rf"(?:again|retry|wait)\D{{0,40}}?(?<![a-z0-9])((?:{_PIECE}\s?)+)(?![a-z0-9])",
    re.IGNORECASE,
)
_RESETS = ("", "-requests", "-tokens")


def scrubbed(text: object) -> str:
    """One line of at most 300 characters, without secrets (`judge.redact.redacted`)."""
    return redacted(" ".join(str(text).split()))[:_MAX_MESSAGE]


def complaint(body: bytes) -> tuple[str, str | None]:
    """(message, error code) of an unsuccessful answer, in OpenAI's form or any other."""
    body = body[:_MAX_BODY]
    try:
        data = orjson.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace"), None
    if (
        isinstance(data, list)
        and len(data) == 1
        and isinstance(data[0], dict)
        and "error" in data[0]
    ):
        data = data[0]  # Gemini's OpenAI-compatible form.
    if isinstance(data, dict):
        data = data.get("error") or data.get("detail") or data
    return _said(data)


def _said(error: Any) -> tuple[str, str | None]:
    if isinstance(error, list) and all(isinstance(part, dict) for part in error):
        # FastAPI's errors for a body that does not fit.
        parts = (f"{'.'.join(map(str, p.get('loc', ())))}: {p.get('msg')}" for p in error)
        return "; ".join(parts), None
    if not isinstance(error, dict):
        return str(error), None
    code = error.get("code") or error.get("error_type")
    message = str(error.get("message") or error)
    # OpenRouter's message is "Provider returned error"; the provider's is in `metadata`.
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and (raw := metadata.get("raw")) and str(raw) not in message:
        message = f"{message}: {raw}"
    return message, code if isinstance(code, str) else None


def error_within(
    answer: Mapping[str, Any], source: str, redact: Callable[[str], str]
) -> errors.BackendError | None:
    """The error that a server reports under HTTP 200, in the answer or in its choice; or None.

    `redact` removes the secrets of the server's address.
    """
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        error = choices[0].get("error")
    else:
        error = answer.get("error")
    if not error:
        return None
    message, code = _said(error)
    fields = error if isinstance(error, dict) else {}
    statuses = (_status(fields.get(name)) for name in ("code", "status", "type"))
    return status_error(
        next(filter(None, statuses), 500),
        scrubbed(redact(message)),
        {},
        code=code,
        source=source,
        within=True,
    )


def _status(name: object) -> int | None:
    """The HTTP status of an error's code or type; None if it has none."""
    if isinstance(name, str) and not name.isdecimal():
        return _STATUS_BY_NAME.get(name.lower())
    with suppress(TypeError, ValueError):
        if 400 <= (number := int(name)) < 600:  # type: ignore[call-overload]
            return int(number)
    return None


def status_error(
    status: int,
    message: str,
    headers: Mapping[str, str],
    *,
    code: str | None = None,
    source: str,
    within: bool = False,
) -> errors.BackendError:
    """The error for an HTTP status from 300 up.

    `message` is the server's, without secrets; `code` its own error code; `source` names model and
    server; `within`: the status is in an answer with HTTP 200.
    """
    if status < 400:
        return errors.Denied(f"{source}: the server redirects elsewhere (HTTP {status})")
    status_text = f"HTTP 200 with error {status}" if within else f"HTTP {status}"
    detail = f"{status_text}: {message}" if message else status_text
    words = f"{code or ''} {message}"
    wait = retry_after(status, headers, message)
    if status == 402 or (code or "").lower() in _CREDIT_CODES:
        return errors.Denied(f"{source}: the account is out of credit ({detail})")
    if status in (400, 403, 412, 429, 500) and wait is None and _CREDIT.search(words):
        denied = errors.Denied if status == 429 else errors.Forbidden
        return denied(f"{source}: the account is out of credit ({detail})")
    if code == "context_length_exceeded" or (
        status not in (401, 404) and _too_long(message.lower())
    ):
        return errors.ContextExceeded(detail)
    if status in (400, 403, 422, 451) and _MODERATION.search(words):
        return errors.Refused(detail)
    if status == 429:
        return errors.RateLimited(detail, retry_after=wait)
    if status == 401:
        return errors.Denied(f"{source}: the server refuses the key ({status_text})")
    if status == 403:
        return errors.Forbidden(f"{source}: the server refuses the key or the model ({detail})")
    if status == 404:
        return errors.Denied(
            f"{source}: there is no such model, or the address is wrong ({detail})"
        )
    if status >= 500 or status in (408, 409, 499):
        failed = errors.NoReply if within else errors.ServerFault
        return failed(detail, retry_after=wait)
    return errors.BadRequest(detail)


def _too_long(message: str) -> bool:
    message = _GO_CONTEXT.sub("", message)
    return _TOO_LONG.search(message) is not None or (
        "context" in message
        and any(word in message for word in ("length", "exceed", "size", "window"))
    )


# ---------------------------------------------------------------- how long to wait


def retry_after(status: int, headers: Mapping[str, str], message: str = "") -> float | None:
    """Seconds (0 to a week) that the server asks callers to wait; None if it gives no number.

    The number may be in `Retry-After` (seconds or a date), in `Retry-After-Ms`, in the error
    message ("try again in 20s"), or with HTTP 429 in `X-RateLimit-Reset` and its variants ("6m0s",
    seconds, an epoch).
    """
    headers = {name.lower(): value for name, value in headers.items()}
    waits = (
        _scaled(headers.get("retry-after-ms"), 0.001),
        _scaled(headers.get("retry-after"), 1.0),
        _until(headers.get("retry-after")),
        next((_span(match[1]) for match in _IN_WORDS.finditer(message)), None),
        _reset(headers) if status == 429 else None,
    )
    seconds = next((wait for wait in waits if wait is not None), None)
    return None if seconds is None or seconds > _MAX_PAUSE else max(0.0, seconds)


def _scaled(number: str | None, unit: float) -> float | None:
    try:
        seconds = float(number or "") * unit
    except ValueError:
        return None
    return None if seconds != seconds else seconds


def _until(date: str | None) -> float | None:
    try:
        return parsedate_to_datetime(date or "").timestamp() - time.time()
    except (ValueError, OverflowError):
        return None


def _span(text: str) -> float | None:
    """Seconds of a time span such as 1m30.5s, 120ms, 26 seconds."""
    if not _SPAN.match(text.strip()):
        return None
    pieces = re.findall(_PIECE, text)
    return sum(
        float(n) * _UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]] for n, unit in pieces
    )


def _reset(headers: Mapping[str, str]) -> float | None:
    """The longest wait among the limits that are used up; if none is said to be, the shortest.

    A limit with something left may be too small for the call, but does not end a run.
    """
    used_up, waits = list[float](), list[float]()
    for prefix in ("x-ratelimit", "ratelimit"):
        for of in _RESETS:
            seconds = _moment(headers.get(f"{prefix}-reset{of}", "").strip())
            remaining = _scaled(headers.get(f"{prefix}-remaining{of}"), 1.0)
            if seconds is None or (remaining and remaining > 0 and seconds > MAX_WAIT):
                continue
            (waits if remaining is None or remaining > 0 else used_up).append(seconds)
    return max(used_up) if used_up else min(waits, default=None)


def _moment(text: str) -> float | None:
    """Seconds until a limit's reset, given as a span, in seconds, or as an epoch (s or ms)."""
    number = _scaled(text, 1.0)
    if number is None:
        return _span(text)
    if number > 1e9:
        number = (number / 1000 if number > 1e11 else number) - time.time()
    return number

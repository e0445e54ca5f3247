"""How long servers ask callers to wait, in every form."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest

from judge.backends.faults import complaint, retry_after, status_error


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (504, "context deadline exceeded", "server-fault"),
        (500, 'Post "http://localhost:1/completion": context deadline exceeded '
         "(Client.Timeout exceeded while awaiting headers)", "server-fault"),
        (500, "do request: context canceled, window closed", "server-fault"),
        (499, "context canceled", "server-fault"),
        (400, "This model's maximum context length is 8 tokens", "context-exceeded"),
        (500, "the request exceeds the available context size", "context-exceeded"),
        (413, "input exceeds the context window", "context-exceeded"),
        (400, "prompt is too long: 219898 tokens > 200000 maximum", "context-exceeded"),
        (400, "Input is too long for requested model.", "context-exceeded"),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).",
         "context-exceeded"),
        (400, "Please reduce the length of the messages or completion.", "context-exceeded"),
        (400, "Range of input length should be [1, 30720]", "context-exceeded"),
        (400, "max_tokens is too long: at most 8", "bad-request"),
    ],
)  # fmt: skip
def test_a_prompt_that_is_too_long_is_told_from_a_time_out(
    status: int, said: str, kind: str
) -> None:
    assert status_error(status, said, {}, source="m").kind == kind


@pytest.mark.parametrize(
    ("headers", "said", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "1"}, "", 0.25),
        ({"x-ratelimit-reset-requests": "1s"}, "", 1),
        ({"x-ratelimit-reset-tokens": "6m0s"}, "", 360),
        ({"X-RateLimit-Reset-Tokens": "1h2m3.5s"}, "", 3723.5),
        ({"x-ratelimit-reset-requests": "120ms"}, "", 0.12),
        ({"x-ratelimit-reset": "30"}, "", 30),
        ({}, "Rate limit reached. Please try again in 20s. Visit ...", 20),
        ({}, "Please try again in 1m30.5s.", 90.5),
        ({}, "Please retry after 26 seconds", 26),
        ({}, "Please retry in 820ms", 0.82),
        ({}, "Retry in 1h 2 min, or later", 3720),
        ({}, "Service busy, please try again. Request ID: 5d41402abc4b2a76", None),
        ({}, "Please try again (req_ab5d)", None),
        ({"Retry-After": "-5"}, "", 0),
        ({"Retry-After": "1e9"}, "", None),
        ({"Retry-After": "nan"}, "", None),
        ({"Retry-After": "9" * 5000}, "", None),
        ({"Retry-After": "soon"}, "try again in 2 months", None),
        ({}, "", None),
    ],
    ids=str,
)
def test_a_wait(headers: dict[str, str], said: str, seconds: float | None) -> None:
    assert retry_after(429, headers, said) == (None if seconds is None else pytest.approx(seconds))


def test_of_several_limits_the_one_that_is_used_up_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "99",
        "x-ratelimit-reset-requests": "9m",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "8s",
    }
    assert retry_after(429, headers) == 8
    assert retry_after(429, headers | {"x-ratelimit-remaining-tokens": "3"}) == 8


@pytest.mark.parametrize(
    ("status", "remaining", "seconds"),
    [
        (503, "950", None),
        (503, "0", None),
        (429, "950", None),
        (429, "0", 3600),
        (429, "0.0", 3600),
        (429, None, 3600),
    ],
)
def test_a_limit_with_something_left_asks_for_no_long_pause(
    status: int, remaining: str | None, seconds: float | None
) -> None:
    headers = {"X-RateLimit-Limit": "1000", "X-RateLimit-Reset": "3600"}
    headers |= {} if remaining is None else {"X-RateLimit-Remaining": remaining}
    assert status_error(status, "overloaded", headers, source="m").retry_after == seconds


def test_a_moment_counts_from_now() -> None:
    at = time.time() + 90
    for headers in (
        {"Retry-After": formatdate(at, usegmt=True)},
        {"x-ratelimit-reset": f"{at:.0f}"},
        {"x-ratelimit-reset": f"{at * 1000:.0f}"},
    ):
        found = retry_after(429, headers)
        assert found is not None and at - time.time() - 1 <= found <= 91, headers


def test_geminis_errors_come_in_a_list() -> None:
    said = "You exceeded your current quota. Please retry in 34.07s."
    error = {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED"}
    text, code = complaint(json.dumps([{"error": error}]).encode())
    assert (text, code) == (said, None)
    assert status_error(429, text, {}, code=code, source="m").retry_after == pytest.approx(34.07)
    of_fastapi = [{"loc": ["body", "model"], "msg": "field required"}]
    assert complaint(json.dumps(of_fastapi).encode()) == ("body.model: field required", None)

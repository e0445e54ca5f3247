"""The errors that `judge` raises on purpose, each with the exit code that it leads to."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command (README, "Exit codes")."""

    OK = 0
    GATE = 1
    USAGE = 2
    INCOMPLETE = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130


class JudgeError(Exception):
    """Base of all expected errors: a message for the person who can act, and an exit code."""

    exit_code: Exit = Exit.USAGE


class UsageError(JudgeError):
    """A command, file, rubric or setting that cannot be used as given."""


class BackendError(JudgeError):
    """A model call that brought no reply.

    `retryable` says whether the same call may succeed later; `retry_after` is the server's own
    wish in seconds, where it gave one.
    """

    kind = "backend"
    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(BackendError):
    """The server asks for fewer calls (HTTP 429)."""

    kind = "rate-limited"
    retryable = True


class ServerFault(BackendError):
    """The server failed or timed out (HTTP 5xx, 408, a dropped connection)."""

    kind = "server-fault"
    retryable = True


class Unreachable(BackendError):
    """No server answers at the address: refused, unknown host, no route."""

    kind = "unreachable"
    retryable = True
    exit_code = Exit.UNAVAILABLE


class GivenUp(Unreachable):
    """The server answers nothing for longer than a run waits, or asks for so long a pause."""

    retryable = False


class Denied(BackendError):
    """The server refuses the key, or the model is not to be had (HTTP 401, 403, 404)."""

    kind = "denied"
    exit_code = Exit.UNAVAILABLE


class NotHere(BackendError):
    """The model is not on this machine; the record can be judged on one that has it."""

    kind = "not-here"


class BadRequest(BackendError):
    """The server rejects the call as such (HTTP 400, 413, 422); asking again is no use."""

    kind = "bad-request"


class ContextExceeded(BadRequest):
    """The prompt is longer than the model's context window."""

    kind = "context-exceeded"

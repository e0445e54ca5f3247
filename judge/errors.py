"""The errors that `judge` raises on purpose, each with its exit code."""

from __future__ import annotations

import errno
import json
from contextlib import contextmanager
from enum import IntEnum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal

from judge.redact import redacted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from judge.judgement import Unfinished
    from judge.verdict import Usage


class Exit(IntEnum):
    """Exit codes of every command (docs/reference/output.md)."""

    OK = 0
    GATE = 1
    USAGE = 2
    INCOMPLETE = 3
    UNAVAILABLE = 4
    INTERNAL = 70
    INTERRUPTED = 130
    READER_GONE = 141


class JudgeError(Exception):
    """Base of all expected errors: a message for the user, and an exit code."""

    exit_code: Exit = Exit.USAGE


class UsageError(JudgeError):
    """A command, file, rubric or setting that cannot be used as given."""


class Unavailable(JudgeError):
    """A resource became unavailable during a run; finished work is kept."""

    exit_code = Exit.UNAVAILABLE


class Undecided(JudgeError):
    """A text that must be judged got neither pass nor fail (`judge.testing`)."""

    exit_code = Exit.INCOMPLETE


DISTRIBUTION = "judge-text"
"""The package's name for pip; `judge` on PyPI is another project."""


def missing_extra(feature: str, extra: str) -> UsageError:
    """The error for a missing library that is part of `extra`; `feature` begins the message."""
    return UsageError(f"{feature}: {install_hint(extra)}")


def install_hint(extra: str) -> str:
    """The pip command that installs an extra, from the checkout if judge came from one."""
    from importlib.metadata import PackageNotFoundError, distribution

    source = DISTRIBUTION
    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
        source = str(origin.get("url", "")).removeprefix("file://") or DISTRIBUTION
    except (PackageNotFoundError, ValueError):
        pass
    return f"pip install '{source}[{extra}]'"


def writes_nothing(model: str, remedy: str = "a model that writes for it") -> str:
    """The message on asking a decision model for text or a hidden state."""
    return (
        f"{model} is a decision model: it answers typed questions with probabilities, and writes "
        f"nothing; name {remedy}, such as openai:gpt-4o"
    )


MAKE_ROOM = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EFBIG: "files of that size are not allowed here (ulimit -f)",
}
"""What to do where the system says that there is no room, by its number."""


def unwritable(target: str, error: Exception) -> Unavailable:
    """The error for a file that can no longer be written during a run (exit code 4).

    Args:
        target: what cannot be written, and where; the message begins with it.
        error: from the system or SQLite.
    """
    reason = getattr(error, "strerror", None) or str(error)
    remedy = MAKE_ROOM.get(getattr(error, "errno", None) or 0)
    return Unavailable(f"{target}: {reason}{f'; {remedy}' if remedy else ''}")


def read_text(path: Path, title: str = "") -> str:
    """A file's text, without a byte order mark; raises UsageError, which names the file by `title`
    or by its path."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{title or path}: cannot be read: {why_unread(error)}") from error


def why_unread(error: OSError | UnicodeDecodeError) -> str:
    """Why a text file cannot be read: the system's message, or the first byte that is not UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
    return error.strerror or str(error)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` closest to a mistyped name; None if none is close."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, [*names], 1)), None)


def meant(name: str, names: Collection[str]) -> str:
    """The end of a message about an unknown name: the nearest of `names`, else all of them."""
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"there are {', '.join(names)}"


def refuse_outside(
    name: str,
    number: float | None,
    least: float,
    most: float | None = None,
    *,
    whole: bool = True,
) -> None:
    """Raise UsageError for what is not a (whole) number within the bounds that the command line
    has, too."""
    if number is None:
        return
    if not isinstance(number, Integral if whole else Real):
        raise UsageError(f"{name}: must be a {'whole number' if whole else 'number'}")
    if number < least:
        raise UsageError(f"{name}: must be at least {least}")
    if most is not None and number > most:
        raise UsageError(f"{name}: must be at most {most}")


class BackendError(JudgeError):
    """A model call that got no reply. Secrets in the message are redacted.

    `retryable` says whether the same call may succeed later; `retry_after` is the pause that the
    server asks for, in seconds, if any; `tokens` are those of the prompt and the reply, if the call
    was billed nevertheless; `usage` is that of the replies to the same vote (None: there are none);
    `unfinished` holds the checks that the workflow had made.
    """

    kind = "backend"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(redacted(message))
        self.retry_after, self.tokens = retry_after, tokens
        self.usage: Usage | None = None
        self.unfinished: Unfinished | None = None

    @property
    def ends_run(self) -> bool:
        """Whether other records would fail, too: server unreachable, access denied, budget spent,
        run interrupted."""
        return self.kind in ("unreachable", "denied", "budget", "interrupted")


@contextmanager
def after(usage: Usage) -> Iterator[None]:
    """Add the usage of the replies that a vote has already to that of an error in the block."""
    try:
        yield
    except BackendError as error:
        error.usage = usage if error.usage is None else usage + error.usage
        raise


class RateLimited(BackendError):
    """The server asks for fewer calls (HTTP 429)."""

    kind = "rate-limited"
    retryable = True


class ServerFault(BackendError):
    """The server failed or timed out (HTTP 5xx, 408, a dropped connection)."""

    kind = "server-fault"
    retryable = True


class NoReply(ServerFault):
    """The server took the call, but sent no complete reply in time, or an error instead. Each try
    may be billed."""


class Unreachable(BackendError):
    """No server answers at the address: refused, unknown host, no route."""

    kind = "unreachable"
    retryable = True
    exit_code = Exit.UNAVAILABLE


class GivenUp(Unreachable):
    """The server is silent, or asks for a pause, for longer than a run waits."""

    retryable = False


class Denied(BackendError):
    """The server refuses the key, or has no such model (HTTP 401, 403, 404)."""

    kind = "denied"
    exit_code = Exit.UNAVAILABLE


class Forbidden(Denied):
    """HTTP 403, or a message about credit with another status: the fault is the account's, or only
    this call's. A small call shows which (`judge.judging.transport`)."""


class Refused(BackendError):
    """The server's moderation refuses this input (HTTP 400, 403, 451)."""

    kind = "refused"


class NotHere(BackendError):
    """The model is not on this machine; the record can be judged on one that has it."""

    kind = "not-here"


class BadRequest(BackendError):
    """The server rejects the call itself (HTTP 400, 413, 422); asking again does not help."""

    kind = "bad-request"


class Adapted(BadRequest):
    """The server refuses a part of the call, or the model's reasoning used up the reply's tokens.
    Later calls are adapted: ask again."""


class ContextExceeded(BadRequest):
    """The prompt is longer than the model's context window."""

    kind = "context-exceeded"


Trouble = Literal["truncated", "refused", "invalid", "the prompt was cut", "no distribution"]


class Unread(BackendError):
    """A call without a readable answer: the prompt was refused or cut, no reply was valid, or the
    listed first tokens are not a distribution. `usage` includes the call's."""

    kind = "unreadable"
    usage: Usage

    def __init__(self, trouble: Trouble, detail: str, usage: Usage) -> None:
        super().__init__(f"{trouble}: {detail}")
        self.trouble, self.detail, self.usage = trouble, detail, usage

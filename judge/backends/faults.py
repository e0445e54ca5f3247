"""What backends over HTTP share: text without secrets, and what a status means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from judge import errors
from judge.redact import redacted

_LONGEST = 300
_LONGEST_MEANT = 7 * 86_400.0


def scrubbed(text: object) -> str:
    """One line of at most 300 characters, without secrets (`judge.redact.redacted`)."""
    return redacted(" ".join(str(text).split()))[:_LONGEST]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds (0 and up) that the server wants to be left alone; None where it does not say.

    A point in time is held against the server's own clock (`Date`), where it tells it: ours may be
    wrong. More than a week is no wish but a mistake, such as a point in time where seconds belong,
    and so is what is no number and no date.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return _meant(float(headers[name]) / scale)
        except (KeyError, ValueError):
            continue
    then = _moment(headers, "retry-after")
    if then is None:
        return None
    return _meant((then - (_moment(headers, "date") or datetime.now(UTC))).total_seconds())


def _moment(headers: Mapping[str, str], name: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(headers[name])
    except (KeyError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _meant(seconds: float) -> float | None:
    return max(0.0, seconds) if seconds <= _LONGEST_MEANT else None


def status_error(
    status: int, said: str, headers: Mapping[str, str], *, code: str | None = None, what: str
) -> errors.BackendError:
    """The error for an HTTP status from 300 up.

    `said` is the server's message without secrets, `code` its own error code, `what` names model
    and server.
    """
    if status < 400:
        return errors.Denied(f"{what}: the server sends its callers elsewhere (HTTP {status})")
    told = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    if code == "insufficient_quota" or status == 402:
        return errors.Denied(f"{what}: the account is out of credit ({told})")
    if status == 429:
        return errors.RateLimited(told, retry_after=retry_after(headers))
    if status == 401:
        return errors.Denied(f"{what}: the server refuses the key (HTTP 401)")
    if status == 403:
        return errors.Denied(f"{what}: the server refuses the key or the model ({told})")
    if status == 404:
        return errors.Denied(f"{what}: there is no such model, or the address is wrong ({told})")
    if status >= 500 or status in (408, 409):
        return errors.ServerFault(told, retry_after=retry_after(headers))
    if code == "context_length_exceeded" or _too_long(said.lower()):
        return errors.ContextExceeded(told)
    return errors.BadRequest(told)


def _too_long(said: str) -> bool:
    return "context" in said and any(word in said for word in ("length", "exceed", "size"))

"""What backends over HTTP share: text without secrets, and what a status means."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit, urlunsplit

from judge import errors

_LONGEST = 300
_LEAST_SECRET = 8
_LONGEST_MEANT = 7 * 86_400.0
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$")
_USERINFO = re.compile(r"(?<=://)[^/\s@]+@")


def without_secrets(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def scrubbed(text: object) -> str:
    """One line of at most 300 characters, without the secrets that this process was given.

    Servers and libraries repeat what was sent to them. Taken out are the values of all environment
    variables whose names end in KEY, TOKEN, SECRET, PASSWORD or CREDENTIALS, and user names and
    passwords in addresses, those of $OPENAI_BASE_URL also where they stand alone or in base64.
    """
    told = " ".join(str(text).split())
    for secret in sorted(_secrets(), key=len, reverse=True):
        told = told.replace(secret, "[secret]")
    return _USERINFO.sub("", told)[:_LONGEST]


def _secrets() -> set[str]:
    given = {v.strip() for name, v in os.environ.items() if _SECRET_NAME.search(name.upper())}
    try:
        parts = urlsplit(os.environ.get("OPENAI_BASE_URL", ""))
    except ValueError:
        return {secret for secret in given if len(secret) >= _LEAST_SECRET}
    login = parts.netloc.rpartition("@")[0]
    given |= {parts.password or "", parts.query, *re.findall(r"=([^&]+)", parts.query)}
    given |= {unquote(parts.password or ""), b64encode(unquote(login).encode()).decode()}
    return {secret for secret in given if len(secret) >= _LEAST_SECRET}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds (0 and up) that the server wants to be left alone; None where it does not say.

    More than a week is no wish but a mistake, such as a point in time where seconds belong, and so
    is what is no number and no date.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return _meant(float(headers[name]) / scale)
        except (KeyError, ValueError):
            continue
    try:
        then = parsedate_to_datetime(headers["retry-after"])
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return _meant((then - datetime.now(UTC)).total_seconds())
    except (KeyError, ValueError, OverflowError):
        return None


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
        return errors.Denied(f"{what}: the server sends its callers elsewhere{_elsewhere(headers)}")
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


def _elsewhere(headers: Mapping[str, str]) -> str:
    place = headers.get("location", "")
    try:
        told = scrubbed(without_secrets(place))
    except ValueError:
        told = ""
    return f", to {told}; if that is the right server, give its address" if told else ""


def _too_long(said: str) -> bool:
    return "context" in said and any(word in said for word in ("length", "exceed", "size"))

"""Secrets that this process was given, and text without them.

Servers and libraries repeat what was sent to them: in error messages, in logs, in the middle of a
reply. What a run leaves behind passes through here first.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterable
from types import TracebackType
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from judge.printable import printable

MASK = "[secret]"
"""What stands where a secret stood."""

_LEAST_SECRET = 8
_LEAST_IN_REPLIES = 16
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS)$")
_USERINFO = re.compile(r"(?<=://)[^/\s@]+@")
# A password may hold what has no place in an address, such as a slash; it is a secret all the same.
_LOGIN = re.compile(r"://([^/\s@]+(?=@)|[^/:\s\[]+:(?!\d+/)\S+(?=@))")
_QUERY_VALUE = re.compile(r"[?&][^=&\s]*=([^&#\s]+)")


def without_secrets(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def masked(text: str) -> str:
    """The text with `[secret]` for each secret of at least 8 characters that the environment holds.

    Those are the values of all variables whose names end in KEY, TOKEN, SECRET, PASSWORD, PASSWD,
    PASSPHRASE or CREDENTIALS, and of all variables that hold an address (OPENAI_BASE_URL,
    HTTPS_PROXY, ...) its user name and password and the values of its query; as they stand, encoded
    for an address or for JSON, and logins in base64. User names and passwords in addresses are
    taken out of the text in any case.
    """
    return _USERINFO.sub("", _without(_secrets(), text))


def veiled(text: str) -> str:
    """A reply with `[secret]` for each of the environment's secrets of at least 16 characters.

    A shorter one may be a word that a reply holds for reasons of its own: local servers take
    "not-needed" for a key.
    """
    return _without((one for one in _secrets() if len(one) >= _LEAST_IN_REPLIES), text)


def _without(secrets: Iterable[str], text: str) -> str:
    # The longest first: else one that begins like a shorter one would leave its rest.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _secrets() -> set[str]:
    given: set[str] = set()
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name.upper()):
            given.add(value.strip())
        if "://" in value:
            given |= of_address(value)
    known = {form for secret in given for form in _forms(secret)}
    return {secret for secret in known if len(secret) >= _LEAST_SECRET}


def of_address(url: str) -> set[str]:
    """The secrets in an address, short ones too."""
    found = set(_QUERY_VALUE.findall(url))
    if login := _LOGIN.search(url):
        user, _, password = login[1].partition(":")
        found |= {password or user, *re.split(r"[/?#@]", password)}
        found.add(b64encode(unquote(login[1]).encode()).decode())
    return found


def _forms(secret: str) -> set[str]:
    plain = unquote(secret)
    return {secret, plain, quote(plain, safe=""), json.dumps(plain)[1:-1]}


# ---------------------------------------------------------------- what servers answer


class Veil:
    """Takes a caller's own secrets out of what a server answers; which ones, as in `veiled`."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {form for secret in secrets for form in _forms(secret)}
        long = sorted((s for s in known if len(s) >= _LEAST_IN_REPLIES), key=len, reverse=True)
        self._secrets = tuple(secret.encode() for secret in long)

    def over(self, body: bytes) -> bytes:
        """The bytes with `[secret]` for each secret."""
        for secret in self._secrets:
            if secret in body:
                body = body.replace(secret, MASK.encode())
        return body

    def piecewise(self, into: Callable[[bytes], object]) -> Piecewise:
        """The same for what comes in pieces."""
        return Piecewise(self, max((len(one) - 1 for one in self._secrets), default=0), into)


class Piecewise:
    """Hands bytes on, without the secrets, however they are cut; `end` hands on the last."""

    def __init__(self, veil: Veil, longest: int, into: Callable[[bytes], object]) -> None:
        self._veil, self._longest, self._into = veil, longest, into
        self._held = b""

    def __call__(self, piece: bytes) -> None:
        whole = self._veil.over(self._held + piece)
        cut = max(0, len(whole) - self._longest)
        self._held = whole[cut:]
        self._into(whole[:cut])

    def end(self) -> None:
        self._into(self._held)
        self._held = b""


# ---------------------------------------------------------------- what a process writes


class _Masking(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(masked(super().format(record)))


def guard_process() -> None:
    """From here on, tracebacks and warnings that reach standard error have no secrets in them, and
    nothing that steers a terminal.

    Of warnings, those that Python writes where nobody has set up logging.
    """
    sys.excepthook = _tell
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Masking())


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if sys.stderr is not None:
        told = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(printable(masked(told)))

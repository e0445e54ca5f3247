"""Redacts secrets, and escapes terminal controls, in all text that leaves this process.

Servers and libraries echo what was sent to them: in error messages, in logs, in the middle of a
reply. Everything that a run writes is redacted here first, as decoded text: JSON may spell a key in
escapes that no search of its bytes would find.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import traceback
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from types import TracebackType
from urllib.parse import quote, unquote, urlsplit, urlunsplit

MASK = "[secret]"
"""The replacement for a secret."""

MIN_SECRET = 8
"""Characters of the shortest secret that is redacted in messages."""

_MIN_REPLY_SECRET = 16
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS)$")
_USERINFO = re.compile(r"(?<=://)[^/\s@]+@")
# A password may have characters that are invalid in an address, such as a slash.
_LOGIN = re.compile(r"://([^/\s@]+(?=@)|[^/:\s\[]+:(?!\d+/)\S+(?=@))")
_QUERY_VALUE = re.compile(r"[?&][^=&\s]*=([^&#\s]+)")
# Text that was encoded as JSON more than once has more backslashes, or an escaped one.
_ESCAPE = re.compile(
    r"\\+(?:u(d[89ab][0-9a-f]{2})\\+u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|/)", re.IGNORECASE
)
_MAX_LAYERS = 8
"""How many layers of JSON in JSON are decoded."""


def without_secrets(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def redacted(text: str) -> str:
    """The text with `[secret]` for each of the environment's secrets of at least 8 characters.

    Secrets are the values of all variables whose names end in KEY, TOKEN, SECRET, PASSWORD, PASSWD,
    PASSPHRASE or CREDENTIALS, and the user name, password and query values in all variables that
    hold an address (OPENAI_BASE_URL, HTTPS_PROXY, ...): as they are, encoded for an address or for
    JSON, and logins in base64. User names and passwords in addresses are always removed.
    """
    return _USERINFO.sub("", _redactor(_environment(), MIN_SECRET)(text))


class Redactor:
    """Redacts secrets in texts.

    Args:
        secrets: the secrets; those shorter than `least` characters are ignored.
    """

    def __init__(self, secrets: Iterable[str], least: int) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= least}
        # Longest first: otherwise a secret that begins with a shorter one would leave its rest.
        self._secrets = tuple(sorted(forms, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        """The text with `[secret]` for each secret, also if it is spelt with JSON escapes."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        if self._secrets and ("\\u" in text or "\\/" in text):
            text = self._without_escaped(text)
        return text

    def _without_escaped(self, text: str) -> str:
        """The text without the secrets that appear when its escapes are decoded, layer by layer."""
        plain, places = text, list(range(len(text) + 1))
        spans = set[tuple[int, int]]()
        for _ in range(_MAX_LAYERS):
            plain, places = _unescaped(plain, places)
            for secret in self._secrets:
                at = plain.find(secret)
                while at >= 0:
                    spans.add((places[at], places[at + len(secret)]))
                    at = plain.find(secret, at + 1)
            if not _ESCAPE.search(plain):
                break
        parts, behind = list[str](), 0
        for start, end in sorted(spans):
            # A secret may overlap with another one.
            parts += (text[behind:start], MASK) if start >= behind else ()
            behind = max(behind, end)
        return "".join((*parts, text[behind:]))


def reply_redactor(keys: Iterable[str] = ()) -> Redactor:
    """A redactor for replies: of the environment's secrets and `keys`, of at least 16 characters.

    A shorter secret may be an ordinary word in a reply: local servers take "not-needed" as a key.
    """
    return _redactor(_environment() | frozenset(keys), _MIN_REPLY_SECRET)


_redactor = lru_cache(maxsize=16)(Redactor)


def _environment() -> frozenset[str]:
    secrets: set[str] = set()
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name.upper()):
            secrets.add(value.strip())
        if "://" in value:
            secrets |= secrets_of_address(value)
    return frozenset(secrets)


def secrets_of_address(url: str) -> set[str]:
    """The secrets in an address, short ones too."""
    secrets = set(_QUERY_VALUE.findall(url))
    if login := _LOGIN.search(url):
        user, _, password = login[1].partition(":")
        secrets |= {password or user, *re.split(r"[/?#@]", password)}
        secrets.add(b64encode(unquote(login[1]).encode()).decode())
    return secrets


def _forms(secret: str) -> set[str]:
    plain = unquote(secret)
    return {secret, plain, quote(plain, safe=""), json.dumps(plain)[1:-1]}


def _unescaped(text: str, places: list[int]) -> tuple[str, list[int]]:
    """The text with one layer of JSON escapes decoded.

    Args:
        places: the offset of each character, and of the end, in another text; returned in the same
            form for the result.
    """
    parts, starts, end = list[str](), list[int](), 0
    for match in _ESCAPE.finditer(text):
        high, low, unit = match.groups()
        pair = f"{high}{low}" if high else unit
        char = bytes.fromhex(pair).decode("utf-16-be", "replace") if pair else "/"
        parts += text[end : match.start()], char
        starts += places[end : match.start() + 1]
        end = match.end()
    return "".join((*parts, text[end:])), [*starts, *places[end:]]


# ---------------------------------------------------------------- what a process writes

_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` with everything that controls a terminal as JSON escapes: an escape is `\\u001b`.

    These are the control characters except tab and newline, and the marks that change the direction
    of text. In JSON the result means the same as before.
    """
    return _STEERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(redacted(super().format(record)))


def guard_process() -> None:
    """From now on, redact tracebacks and warnings on standard error, and escape terminal controls.

    Warnings are ours, and those that Python writes if logging is not set up.
    """
    sys.excepthook = _show
    sys.unraisablehook = _unraisable
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Formatter())
        logging.getLogger("judge").addHandler(logging.lastResort)


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if sys.stderr is not None:
        report = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(printable(redacted(report)))


def _unraisable(fault: sys.UnraisableHookArgs) -> None:
    """Report a fault in deleting an object, without its frames; not that a file which a full disk
    left open or closed cannot be written to: the error behind that is reported."""
    of_file = isinstance(fault.exc_value, OSError) or "closed file" in str(fault.exc_value)
    if not of_file and sys.stderr:
        sys.stderr.write(printable(redacted(f"{fault.exc_value!r} in {fault.object!r}\n")))


def in_utf8(text: str) -> str:
    """The text with each lone surrogate, which UTF-8 cannot encode, as its escape."""
    return text.encode(errors="backslashreplace").decode()


def names_in_utf8(names: Iterable[str]) -> dict[str, str]:
    """For each name its `in_utf8`, with _ behind it where another name has that already."""
    encodable: dict[str, str] = {}
    for name in names:
        text = in_utf8(name)
        while text in encodable:
            text += "_"
        encodable[text] = name
    return {name: text for text, name in encodable.items()}

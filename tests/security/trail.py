"""Search what a run leaves behind for secrets, in every form that they may take."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

KEY = "sk-canary-7f3a91/c2d4+e5b6a8"
"""Looks like no other text, and other than itself in addresses and in base64."""


def forms(secret: str) -> set[bytes]:
    plain = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], secret[:-4]}
    return {one.encode() for one in plain} | {base64.b64encode(secret.encode())}


def left(folder: Path, *told: bytes) -> bytes:
    """All files below `folder`, with the raw bytes of databases and their logs, and the printed
    output."""
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert files, "a run leaves something"
    named = "\n".join(map(str, files)).encode()
    return b"\n".join((named, *told, *(path.read_bytes() for path in files)))


def assert_clean(trail: bytes, secrets: Iterable[str] = (KEY,)) -> None:
    for secret in secrets:
        for form in forms(secret):
            at = trail.find(form)
            assert at < 0, f"{form!r} in {trail[max(0, at - 200) : at + 100]!r}"

"""The one function behind every digest, fingerprint and key."""

from __future__ import annotations

import hashlib
import json

import orjson


def digest(content: object, size: int = 20) -> str:
    """The blake2b hash of bytes, or of the JSON of plain data with sorted keys: two hex digits for
    each of `size` bytes (1 to 64)."""
    if isinstance(content, bytes):
        return hashlib.blake2b(content, digest_size=size).hexdigest()
    try:
        body = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # A lone surrogate, or a number beyond 64 bits.
        body = json.dumps(content, sort_keys=True).encode("ascii")
    return hashlib.blake2b(body, digest_size=size).hexdigest()

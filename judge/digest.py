"""The one function behind every digest, fingerprint and key."""

from __future__ import annotations

import hashlib
import json

import orjson


def digest(content: object, size: int = 20) -> str:
    """Two hex digits for each of `size` bytes (1 to 64) of blake2b over bytes as they are, or over
    the JSON of plain data with sorted keys, whatever the order of its parts."""
    if isinstance(content, bytes):
        return hashlib.blake2b(content, digest_size=size).hexdigest()
    try:
        body = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair, or a number beyond 64 bits.
        body = json.dumps(content, sort_keys=True).encode("ascii")
    return hashlib.blake2b(body, digest_size=size).hexdigest()

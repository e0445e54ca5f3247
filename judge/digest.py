"""The hash of plain data, which cache keys rest on."""

from __future__ import annotations

import hashlib
import json

import orjson


def digest(plain: object) -> str:
    """40 hex digits over the JSON of `plain` with sorted keys, whatever the order of its parts."""
    try:
        body = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair, or a number beyond 64 bits.
        body = json.dumps(plain, sort_keys=True).encode("ascii")
    return hashlib.blake2b(body, digest_size=20).hexdigest()

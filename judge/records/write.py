"""Writing records as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def dump(fields: Mapping[str, Any]) -> bytes:
    """One JSON line in UTF-8, with its newline at the end and none inside.

    Text that UTF-8 cannot hold (lone surrogates) makes the whole line ASCII with escapes.
    Raises nothing for fields that a reader gave; ValueError for NaN and infinities.
    """
    try:
        line = json.dumps(fields, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        line = json.dumps(fields, ensure_ascii=True, allow_nan=False).encode("ascii")
    return line + b"\n"

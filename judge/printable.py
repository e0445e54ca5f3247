"""Text that may be shown on a terminal."""

from __future__ import annotations

import re

_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` with all that steers a terminal written as JSON writes it: an escape is `\\u001b`.

    Those are the control characters but tab and newline, and the marks that turn the direction of
    text around. In JSON text the result means the same as before.
    """
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

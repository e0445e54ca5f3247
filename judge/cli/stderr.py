"""Standard error that fails nobody.

A log on a full disk, a terminal that has gone, a reader that has left: what is told there is for
people, and a run of days does not end because nobody hears it.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


class _Unfailing(io.TextIOWrapper):
    """Drops what cannot be written."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def unfailing() -> None:
    """Make `sys.stderr` such a stream; one that somebody has put in its place is left alone.

    Of the standard streams those that are closed are opened on nothing: else the next file that is
    opened takes their number, and a library that prints writes into it.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(opened)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        # Without a buffer, which would keep what could not be written and fail again at exit.
        raw = io.FileIO(2, "w", closefd=False)
        sys.stderr = _Unfailing(raw, "utf-8", "backslashreplace", write_through=True)

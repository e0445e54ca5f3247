"""Standard output whose failures are told, for all commands at one place.

Whoever prints (typer, Rich, a command itself) learns of a full disk as an error with exit code 4,
and of a reader that has left as `ReaderGone`, which ends the process silently.
"""

from __future__ import annotations

import io
import select
import sys
from typing import IO, TYPE_CHECKING

from judge.errors import Exit, JudgeError, unwritable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ReaderGone(Exception):
    """Nobody reads standard output any more, as in `judge plan ... | head -1`."""


class _Told(io.RawIOBase):
    """The descriptor under standard output, or under none; fails once, then drops all.

    Neither error is an OSError: typer takes that of a closed pipe for itself and exits with 1.
    """

    def __init__(self, raw: IO[bytes] | None) -> None:
        self._raw = raw
        self._failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self._failed:
            # What waits in a buffer would fail once more when the interpreter ends.
            return memoryview(data).nbytes
        try:
            raw = self._open()
            while (written := raw.write(data)) is None:
                # A pipe that another process has made non-blocking, and that is full.
                select.select([], [raw], [])
            return written
        except BrokenPipeError as error:
            self._failed = True
            raise ReaderGone from error
        except OSError as error:
            self._failed = True
            raise unwritable("standard output cannot be written", error) from error

    def fileno(self) -> int:
        return self._open().fileno()

    def isatty(self) -> bool:
        return self._raw is not None and self._raw.isatty()

    def writable(self) -> bool:
        return True

    def _open(self) -> IO[bytes]:
        if self._raw is not None:
            return self._raw
        self._failed = True
        told = JudgeError(
            "standard output is closed: open it, or name a file where the command takes -o"
        )
        told.exit_code = Exit.UNAVAILABLE
        raise told


def guard_stdout() -> None:
    """Make `sys.stdout` such a stream, unless somebody has put another one in its place.

    Halves of surrogate pairs, which records may hold, have no UTF-8 form: they are written as
    escapes, in JSON, too, where they mean the same.
    """
    now = sys.stdout
    if isinstance(now, io.TextIOWrapper) and now.errors != "backslashreplace":
        now.reconfigure(errors="backslashreplace")
    if now is None:
        sys.stdout = _wrapped(None, "utf-8")
    elif now is sys.__stdout__ and isinstance(now, io.TextIOWrapper):
        raw = getattr(now.buffer, "raw", now.buffer)
        sys.stdout = _wrapped(raw, now.encoding, now.line_buffering, now.write_through)


def _wrapped(
    raw: IO[bytes] | None, encoding: str, by_lines: bool = False, at_once: bool = False
) -> io.TextIOWrapper:
    buffer = io.BufferedWriter(_Told(raw))
    return io.TextIOWrapper(
        buffer, encoding, "backslashreplace", line_buffering=by_lines, write_through=at_once
    )

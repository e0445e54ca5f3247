"""The standard streams of the process.

Standard output has the data: a full disk is an error with exit code 4, a reader that has left is
`ReaderGone`, which ends the process silently. Standard error is for people: what cannot be written
there is dropped, because a run of days must not end for a log on a full disk.
"""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from judge.errors import Exit, JudgeError, unwritable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class ReaderGone(Exception):
    """The reader of standard output has left, as in `judge plan ... | head -1`."""


class _Output(io.RawIOBase):
    """The descriptor under standard output, if it is open; fails once, then drops everything.

    Neither error is an OSError: typer would exit with 1 on that of a closed pipe.
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
    """Make `sys.stdout` such a stream, unless it was replaced already.

    Lone surrogates, which records may hold, have no UTF-8 form: they are written as escapes, which
    mean the same in JSON.
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
    buffer = io.BufferedWriter(_Output(raw))
    return io.TextIOWrapper(
        buffer, encoding, "backslashreplace", line_buffering=by_lines, write_through=at_once
    )


class _Errors(io.TextIOWrapper):
    """Drops what cannot be written."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def guard_stderr() -> None:
    """Make `sys.stderr` a stream whose writes never fail, unless it was replaced already.

    Standard streams that are closed are opened on the null device: otherwise the next file that is
    opened gets their number, and a library that prints writes into it.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(opened)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        # Without a buffer, which would keep what could not be written and fail again at exit.
        raw = io.FileIO(2, "w", closefd=False)
        sys.stderr = _Errors(raw, "utf-8", "backslashreplace", write_through=True)

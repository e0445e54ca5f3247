"""Where output lines go.

A file only ever grows by whole lines, each written with one call; a torn last line (the machine
went down in the middle of it) is cut off on resume.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from pathlib import Path

from judge.errors import Exit, JudgeError, UsageError
from judge.locking import lock


class Sink:
    """Takes output lines and writes each at once, without a buffer in this process."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def write(self, line: bytes) -> None:
        """One whole line.

        Raises:
            BrokenPipeError: the reader has gone away.
            JudgeError: the line cannot be written, such as to a full disk.
        """
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # A pipe that another process has made non-blocking, and that is full.
                select.select([], [self._descriptor], [])
            except BrokenPipeError:
                raise
            except OSError as error:
                told = JudgeError(f"{self._name} cannot be written further: {error.strerror}")
                told.exit_code = Exit.UNAVAILABLE
                raise told from error

    def close(self) -> None:
        """Nothing more will be written."""


class StreamSink(Sink):
    """Standard output."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise UsageError("standard output is closed: name a file with -o")
        sys.stdout.flush()
        super().__init__(sys.stdout.fileno(), "standard output")


class NoSink(Sink):
    """Nowhere: of a run whose lines nobody wants."""

    def __init__(self) -> None:
        pass

    def write(self, line: bytes) -> None:
        """Drops the line."""


class FileSink(Sink):
    """A file, locked while it is open, so that no two runs write to it."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        try:
            super().__init__(os.open(path, flags, 0o666), str(path))
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
        if not lock(self._descriptor):
            os.close(self._descriptor)
            raise UsageError(f"another run is writing to {path}: let it end, or name another file")

    def empty(self) -> None:
        """Throw away what the file holds."""
        if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        os.close(self._descriptor)


def refuse_existing(path: Path, flag: str = "-o") -> None:
    """Raises UsageError if `path`, which `flag` names, holds something already."""
    if path.exists() and path.stat().st_size:
        raise UsageError(
            f"{path} exists. Go on with it (--resume), replace it (--overwrite), "
            f"or name another file with {flag}"
        )


def refuse_input(path: Path, source: str, flag: str = "-o") -> None:
    """Raises UsageError if `path` is the very file that `source` is read from."""
    try:
        there = os.fstat(0) if source == "-" else Path(source).stat()
        same = os.path.samestat(there, path.stat()) and stat.S_ISREG(there.st_mode)
    except (OSError, ValueError):
        return
    if same:
        raise UsageError(f"{path} is the input: name another file with {flag}")

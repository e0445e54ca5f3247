"""Where output lines go.

A file only ever grows by whole lines, each written with one call; a torn last line (the machine
went down in the middle of it) is cut off on resume. Whoever deletes, replaces or shortens it under
the run is noticed within a second or two, and what can be saved is saved.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

from judge.errors import Exit, JudgeError, UsageError, unwritable
from judge.locking import lock
from judge.redact import printable

LOOK_SECONDS = 1.0
"""Between two looks at whether OUT still is what it was."""

_COPY = 1 << 20


class Sink:
    """Takes output lines and writes each at once, without a buffer in this process."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self.fault: JudgeError | None = None
        """What happened to OUT, where lines are still taken but the run should end."""

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
                raise unwritable(f"{self._name} cannot be written further", error) from error

    def look(self) -> None:
        """See that what was written is still there; `fault` says what happened if it is not."""

    def withdraw(self) -> None:
        """Take away what this run made and has written nothing to."""

    def close(self) -> None:
        """Nothing more will be written."""


class StreamSink(Sink):
    """Standard output."""

    def __init__(self) -> None:
        if sys.stdout is None:
            raise UsageError("standard output is closed: name a file with -o")
        sys.stdout.flush()
        super().__init__(sys.stdout.fileno(), "standard output")
        self._terminal = os.isatty(sys.stdout.fileno())

    def write(self, line: bytes) -> None:
        """As `Sink.write`; what would steer a terminal is escaped where it is one."""
        super().write(printable(line.decode()).encode() if self._terminal else line)


class NoSink(Sink):
    """Nowhere: of a run whose lines nobody wants."""

    def __init__(self) -> None:
        self.fault = None

    def write(self, line: bytes) -> None:
        """Drops the line."""


class FileSink(Sink):
    """A file, locked while it is open (if it is no device), so that no two runs write to it.

    When it is deleted or replaced, the lines that stood in it are saved to the end of `aside`,
    where there is one, and further ones follow them there.
    """

    def __init__(self, path: Path, aside: Path | None = None) -> None:
        self._path, self._aside = path, aside
        self._size: int | None = None
        self._looked = time.monotonic()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        try:
            super().__init__(self._open(flags), str(path))
        except OSError as error:
            raise UsageError(
                f"{path}: cannot be written: {error.strerror}; "
                "name a file in a folder that is there and can be written"
            ) from error
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        # Of a device, such as /dev/null, everybody may be one of many writers.
        if self._regular and not lock(self._descriptor):
            os.close(self._descriptor)
            raise UsageError(f"another run is writing to {path}: let it end, or name another file")
        self._reading = self._opened_to_read() if self._regular else None

    def _open(self, flags: int) -> int:
        self._made = True
        with suppress(FileExistsError):
            return os.open(self._path, flags | os.O_EXCL, 0o666)
        self._made = False
        return os.open(self._path, flags, 0o666)

    def _opened_to_read(self) -> int | None:
        """The very file once more, to save it from should it be deleted."""
        with suppress(OSError):
            opened = os.open(self._path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            if os.path.sameopenfile(opened, self._descriptor):
                return opened
            os.close(opened)
        return None

    def withdraw(self) -> None:
        here = os.fstat(self._descriptor)
        with suppress(OSError):
            if self._made and not here.st_size and os.path.samestat(here, self._path.stat()):
                self._path.unlink()

    def empty(self) -> None:
        """Throw away what the file holds."""
        if self._regular:
            os.ftruncate(self._descriptor, 0)

    def write(self, line: bytes) -> None:
        if not self._regular:
            super().write(line)
            return
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self.look()
        if self._size is None or self.fault is not None:
            # Others write there now: the shelf (judge/run/shelf.py), or whoever changed OUT.
            self._size = os.fstat(self._descriptor).st_size
        try:
            super().write(line)
        except JudgeError:
            # The beginning of a line would keep other programs from reading the file.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(line)

    def look(self) -> None:
        self._looked = time.monotonic()
        if self.fault is not None or not self._regular:
            return
        here = os.fstat(self._descriptor)
        try:
            there: os.stat_result | None = self._path.stat()
        except FileNotFoundError:
            there = None
        except OSError:
            # A server of files that does not answer now says nothing about the file.
            return
        if there is None or not os.path.samestat(here, there):
            what = "deleted or moved away" if there is None else "replaced by another file"
            self._tell(what, self._saved())
        elif self._size is not None and here.st_size != self._size:
            how = "shortened" if here.st_size < self._size else "written to by another program"
            self._tell(how, "--resume judges again what is not in it")

    def _tell(self, what: str, rest: str) -> None:
        self.fault = JudgeError(f"{self._path} was {what} while this run was writing to it; {rest}")
        self.fault.exit_code = Exit.UNAVAILABLE

    def _saved(self) -> str:
        """Go on at the end of `aside`, behind a copy of the file's lines; says where they are."""
        if self._aside is None or self._reading is None:
            return "--resume writes it anew"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        try:
            beside = os.open(self._aside, flags, 0o666)
            self._descriptor, gone = beside, self._descriptor
            os.close(gone)
            self._size = os.fstat(beside).st_size
            os.lseek(self._reading, 0, os.SEEK_SET)
            while piece := os.read(self._reading, _COPY):
                Sink.write(self, piece)
                self._size += len(piece)
        except (OSError, JudgeError) as error:
            return f"what stood in it could not be saved to {self._aside}: {error}"
        return f"its finished lines are in {self._aside}, where --resume finds them"

    def close(self) -> None:
        if self._reading is not None:
            os.close(self._reading)
        os.close(self._descriptor)


def refuse_nameless(flag: str, path: Path, what: str) -> None:
    """Raises UsageError if `path`, which `flag` names, is `-` or a folder.

    `what` goes to standard output without the flag; nothing does where it is empty.
    """
    if path.is_dir():
        raise UsageError(f"{flag} {path}: is a folder: name a file")
    if str(path) == "-":
        instead = f"; without {flag}, {what} go to standard output" if what else ""
        raise UsageError(f"{flag} -: is no name for a file{instead}")


def refuse_same(path: Path, flag: str, other: Path | None, what: str) -> None:
    """Raises UsageError if `path`, which `flag` names, and `other` (`what`) are one file.

    A device, such as /dev/null, may take both.
    """
    if other is None or (path.exists() and not path.is_file()):
        return
    there = path.exists() and other.exists()
    if path.samefile(other) if there else path.resolve() == other.resolve():
        raise UsageError(f"{flag} {path} is {what}: name another file")


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

"""Where output lines go: OUT or standard output, the review, and the description beside OUT.

A file grows by whole lines, each written with one call. What stood in it stays until there is a
first line to take its place: a run that comes to nothing leaves it as it was. Deleting, replacing
or shortening it under the run is noticed within a second or two, and ends the run.
"""

from __future__ import annotations

import json
import os
import select
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from judge.errors import Exit, JudgeError, UsageError, unwritable
from judge.locking import lock
from judge.redact import printable

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class Sink:
    """Takes output lines and writes each at once, without a buffer in this process."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor = descriptor
        self._name = name
        self.fault: JudgeError | None = None
        """What happened to the file, where the run should end."""

    def write(self, line: bytes) -> None:
        """Write one whole line.

        Raises:
            BrokenPipeError: the reader has gone away.
            JudgeError: the line cannot be written, such as to a full disk.
        """
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:
                # A pipe that another process has made non-blocking, and that is full.
                select.select([], [self.descriptor], [])
            except BrokenPipeError:
                raise
            except OSError as error:
                raise unwritable(f"{self._name} cannot be written further", error) from error

    def look(self) -> None:
        """See that what was written is still there; else set `fault`."""

    def sync(self) -> None:
        """Have the system bring what was written to the disk."""

    def empty(self) -> None:
        """Throw away what the file holds."""

    def withdraw(self) -> None:
        """Remove the file if this run made it and has written nothing to it."""

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
    """Nowhere: for a run whose lines are not wanted."""

    def __init__(self) -> None:
        self.fault = None

    def write(self, line: bytes) -> None:
        """Drop the line."""


class FileSink(Sink):
    """A file, locked while it is open (if it is no device), so that no two runs write to it.

    Args:
        fresh: the file must hold nothing yet, as seen under the lock.
    """

    def __init__(self, path: Path, *, fresh: bool = False, flag: str = "-o") -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _BINARY
        try:
            super().__init__(self._open(flags), str(path))
        except OSError as error:
            raise UsageError(
                f"{path}: cannot be written: {error.strerror}; "
                "name a file in a folder that is there and can be written"
            ) from error
        self.regular = stat.S_ISREG(os.fstat(self.descriptor).st_mode)
        # A device such as /dev/null may have many writers.
        if self.regular and not (lock(self.descriptor) and self._in_place()):
            os.close(self.descriptor)
            raise UsageError(f"another run is writing to {path}: let it end, or name another file")
        self.size = os.fstat(self.descriptor).st_size
        if fresh and self.regular and self.size:
            os.close(self.descriptor)
            refuse_existing(path, flag)

    def _open(self, flags: int) -> int:
        self._made = True
        with suppress(FileExistsError):
            return os.open(self.path, flags | os.O_EXCL, 0o666)
        self._made = False
        return os.open(self.path, flags, 0o666)

    def _in_place(self) -> bool:
        """Whether the open file is still the one that has this name."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), self.path.stat())
        except FileNotFoundError:
            return False
        except OSError:
            # A file server that does not answer now says nothing about the file.
            return True

    def withdraw(self) -> None:
        here = os.fstat(self.descriptor)
        with suppress(OSError):
            if self._made and not here.st_size and self._in_place():
                self.path.unlink()

    def empty(self) -> None:
        self.cut(0)

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes alone.

        Raises:
            JudgeError: the system does not allow it.
        """
        if self.regular:
            try:
                os.ftruncate(self.descriptor, size)
            except OSError as error:
                raise unwritable(f"{self._name} cannot be shortened", error) from error
            self.size = size

    def write(self, line: bytes) -> None:
        """As `Sink.write`; raises `fault`, too, where the size is not what was written."""
        if self.regular and os.fstat(self.descriptor).st_size != self.size:
            self.look()
        if self.fault is not None:
            raise self.fault
        try:
            super().write(line)
        except JudgeError:
            # The beginning of a line would keep other programs from reading the file.
            with suppress(OSError):
                if self.regular:
                    os.ftruncate(self.descriptor, self.size)
            raise
        self.size += len(line)

    def look(self) -> None:
        if self.fault is not None or not self.regular:
            return
        size = os.fstat(self.descriptor).st_size
        if not self._in_place():
            what = "replaced by another file" if self.path.exists() else "deleted or moved away"
        elif size != self.size:
            what = "shortened" if size < self.size else "written to by another program"
        else:
            return
        self.fault = JudgeError(
            f"{self.path} was {what} while this run was writing to it; the replies are in the "
            "cache, if there is one: --resume judges again what is not in the file"
        )
        self.fault.exit_code = Exit.UNAVAILABLE

    def sync(self) -> None:
        if self.regular:
            with suppress(OSError):
                os.fsync(self.descriptor)
                sync_folder(self.path)

    def close(self) -> None:
        os.close(self.descriptor)


def sync_folder(path: Path) -> None:
    """Bring the folder that `path` is in to the disk, as far as the system can."""
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def open_new(path: Path) -> IO[bytes]:
    """A file of this name that was not there before, to be written; no link is followed.

    Raises:
        OSError: it cannot be made.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    return os.fdopen(os.open(path, _NEW | _BINARY, 0o666), "wb")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as a whole: at each moment the old content or the new one stands there.

    Raises:
        OSError: it cannot be written; it is as it was.
    """
    new = path.with_name(f"{path.name}.new")
    with open_new(new) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path)


# ---------------------------------------------------------------- the description beside OUT


def description_file(out: Path) -> Path:
    """Where it is written what the lines of OUT were made with, by fingerprint."""
    return out.parent / f"{out.name}.run.json"


def read_description(out: Path) -> dict[str, Any]:
    """What the lines of OUT were made with, by fingerprint; empty where it cannot be read."""
    try:
        found = json.loads(description_file(out).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_description(out: Path, runs: Mapping[str, Any]) -> None:
    """Write what the lines of OUT were made with.

    Raises:
        JudgeError: it cannot be written.
    """
    path = description_file(out)
    try:
        write_whole(path, json.dumps(runs, ensure_ascii=True, indent=1).encode() + b"\n")
    except OSError as error:
        raise unwritable(f"{path} cannot be written", error) from error


# ---------------------------------------------------------------- names that are refused


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

"""Files that a run writes: OUT (or standard output) and the review.

A file grows by whole lines. Its earlier content stays until the first new line: a run that writes
none leaves the file unchanged. If another program deletes, replaces or changes the file, the run
notices within a second or two, and ends.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

from judge.errors import MAKE_ROOM, Unavailable, UsageError, unwritable
from judge.locking import lock
from judge.records.lines import Line
from judge.records.read import file_and_sheet
from judge.redact import printable
from judge.verdict import Verdict

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_AT_ONCE = getattr(select, "PIPE_BUF", 0)
"""Bytes that a writable pipe takes without blocking."""


class Sink:
    """Writes each output line at once, without a buffer in this process.

    A regular file is locked while it is open, so that no two runs write to it.

    Args:
        path: None for standard output.
        fresh: the file must be new or empty, which is checked under the lock.

    Raises:
        UsageError: the file cannot be written, or another run writes to it.
        JudgeError: there is no room for it.
    """

    def __init__(self, path: Path | None, *, fresh: bool = False, flag: str = "-o") -> None:
        self.path = path
        self.size = 0
        self.started = self.regular = self._terminal = False
        if path is None:
            if sys.stdout is None:
                raise UsageError("standard output is closed: name a file with -o")
            sys.stdout.flush()
            self.descriptor = sys.stdout.fileno()
            # Another process may have made the pipe non-blocking.
            if os.name == "posix":
                os.set_blocking(self.descriptor, True)
            self._terminal = os.isatty(self.descriptor)
            return
        self._made = not path.exists()
        try:
            self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _BINARY, 0o666)
        except OSError as error:
            if error.errno in MAKE_ROOM:
                raise unwritable(f"{path} cannot be written", error) from error
            advice = "name a file in a folder that is there and can be written"
            raise UsageError(f"{path}: cannot be written: {error.strerror}; {advice}") from error
        # A device such as /dev/null may have many writers.
        self.regular = stat.S_ISREG(os.fstat(self.descriptor).st_mode)
        try:
            if self.regular and not (lock(self.descriptor) and self._in_place()):
                advice = "let it end, or name another file"
                raise UsageError(f"another run is writing to {path}: {advice}")
            if fresh:
                refuse_replacing(path, flag)
        except UsageError:
            os.close(self.descriptor)
            raise
        self.size = os.fstat(self.descriptor).st_size

    def _in_place(self) -> bool:
        """Whether the path still leads to the open file."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), Path(self.path or "").stat())
        except FileNotFoundError:
            return False
        except OSError:
            # A file server that does not answer is no evidence that the file has gone.
            return True

    def start(self, keep: int = 0) -> None:
        """Before the first line, cut the file to its first `keep` bytes; later calls do nothing.

        Raises:
            JudgeError: the file cannot be shortened.
        """
        if self.started:
            return
        self.started = True
        if self.regular and self.size != keep:
            try:
                os.ftruncate(self.descriptor, keep)
            except OSError as error:
                raise unwritable(f"{self.path} cannot be shortened", error) from error
            self.size = keep

    def write(self, line: bytes) -> None:
        """Write one whole line; on a terminal, control characters are escaped.

        Raises:
            BrokenPipeError: the reader has gone away.
            JudgeError: the line cannot be written, such as to a full disk; or see `fault`.
        """
        changed = self.regular and os.fstat(self.descriptor).st_size != self.size
        if changed and (fault := self.fault()):
            raise fault
        view = memoryview(printable(line.decode()).encode() if self._terminal else line)
        try:
            while view:
                view = view[os.write(self.descriptor, view) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            # Other programs could not read a file that ends in a partial line.
            with suppress(OSError):
                if self.regular:
                    os.ftruncate(self.descriptor, self.size)
            message = f"{self.path or 'standard output'} cannot be written further"
            raise unwritable(message, error) from error
        self.size += len(line)

    async def put(self, line: bytes) -> None:
        """As `write`, but a slow reader of a pipe does not hold up calls under way."""
        short = len(line) <= _AT_ONCE
        if self.regular or (short and select.select([], [self.descriptor], [], 0)[1]):
            self.write(line)
        else:
            await asyncio.to_thread(self.write, line)

    def fault(self) -> Unavailable | None:
        """The error that ends the run, if another program changed, replaced or deleted the file."""
        if not self.regular:
            return None
        if not self._in_place():
            change = "deleted or replaced"
        elif os.fstat(self.descriptor).st_size != self.size:
            change = "changed by another program"
        else:
            return None
        return Unavailable(
            f"{self.path} was {change} while this run was writing to it; the replies are in the "
            "cache, if there is one: --resume judges again what is not in the file"
        )

    def sync(self) -> None:
        """Flush the file to disk."""
        if self.regular and self.path is not None:
            with suppress(OSError):
                os.fsync(self.descriptor)
                sync_folder(self.path)

    def close(self) -> None:
        """Close the file; remove it if this run made it and wrote nothing."""
        if self.path is None:
            return
        try:
            if self.started:
                self.sync()
            elif self._made and not os.fstat(self.descriptor).st_size and self._in_place():
                with suppress(OSError):
                    self.path.unlink()
        finally:
            os.close(self.descriptor)


def sync_folder(path: Path) -> None:
    """Flush the folder of `path` to disk, as far as the system can."""
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that replaces `path` at the end, in one step.

    Until then it is a new file `.judge-….tmp` in the same folder. If `path` is a link, its target
    is replaced; a device or a pipe is written to.

    Raises:
        OSError: it cannot be written; `path` is unchanged.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = real(path)
    new = path.with_name(f".judge-{token_hex(8)}.tmp")
    descriptor = os.open(new, _NEW | _BINARY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, new)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _put(new, path)
    sync_folder(path)


def _put(new: Path, path: Path) -> None:
    try:
        new.replace(path)
    except OSError as error:
        # A file mounted into a container, or open on Windows, cannot be renamed over, so `new` is
        # copied; it is complete, and stays until then.
        if error.errno not in (errno.EBUSY, errno.EACCES) or not os.access(path, os.W_OK):
            new.unlink()
            raise
        with new.open("rb") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
            os.fsync(target.fileno())
        new.unlink()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as a whole: at each moment it has the old content or the new, except where it
    cannot be renamed over (`_put`).

    Raises:
        OSError: it cannot be written; it is unchanged.
    """
    with replacing(path) as file:
        file.write(content)


# ---------------------------------------------------------------- lines in another order


def reorder(path: Path, starts: Iterable[int]) -> None:
    """Rewrite a file with only the lines that begin at `starts`, in this order.

    Raises:
        JudgeError: it cannot be rewritten; it is unchanged.
    """
    try:
        with path.open("rb") as old, replacing(path) as new:
            for start in starts:
                old.seek(start)
                new.write(old.readline())
    except OSError as error:
        raise unwritable(f"{path} cannot be put in order", error) from error


def sort_review(path: Path) -> None:
    """Put the most informative lines of a review first; equal ones keep their order.

    Raises:
        JudgeError: it cannot be rewritten; it is unchanged.
    """
    ranked, start = list[tuple[float, int]](), 0
    with path.open("rb") as file:
        for line in file:
            ranked.append((rank(Line.parse(line)), start))
            start += len(line)
    if (in_order := sorted(ranked)) != ranked:
        reorder(path, (start for _, start in in_order))


def rank(line: Line | None) -> float:
    """The rank of a line in the review; the lowest is the most informative for a person to answer.

    The least distance of a check's P(pass) from 0.5; 1 without a probability, 2 unless the record
    abstains.
    """
    if line is None or line.verdict != Verdict.ABSTAIN:
        return 2.0
    chances = (check.get("probability") for check in line.last_checks.values())
    return min(
        (round(abs(chance - 0.5), 6) for chance in chances if chance is not None), default=1.0
    )


def discarded_file(out: Path) -> Path | None:
    """The file beside OUT for what is not kept; None beside a device, such as /dev/null."""
    is_device = out.exists() and not out.is_file()
    return None if is_device else out.with_name(f"{out.name}.discarded.jsonl")


def decisions_file(out: Path) -> Path:
    """The file beside OUT for people's answers on the page of `judge review`."""
    return out.parent / f"{out.name}.decisions.jsonl"


# ---------------------------------------------------------------- names that are refused


_LINES = ("", ".jsonl", ".ndjson")
"""Endings of JSON lines. With another ending, the file would be read as another format."""


def refuse_ending(flag: str, path: Path) -> None:
    """Raises UsageError if `path`, given by `flag`, has not the ending of JSON lines."""
    if path.suffix.lower() not in _LINES:
        raise UsageError(
            f"{flag} {path}: judge writes plain JSON lines, not {path.suffix}: name a .jsonl file "
            "(of validate's -o also .jsonl.gz, .csv, .parquet or .xlsx)"
        )


def refuse_nameless(flag: str, path: Path, content: str = "") -> None:
    """Raises UsageError if `path`, given by `flag`, is `-`, a folder or a loop of links.

    `content` is what goes to standard output without the flag; empty if nothing does.
    """
    if path.is_dir():
        raise UsageError(f"{flag} {path}: is a folder: name a file")
    if str(path) == "-":
        instead = f", or leave {flag} out to write {content} to standard output" if content else ""
        raise UsageError(f"{flag} -: give a file name{instead}")
    if real(path).is_symlink():
        raise UsageError(f"{flag} {path}: the symbolic links form a loop; name a file")


def refuse_same(flag: str, path: Path, file: Path, role: str) -> None:
    """Raises UsageError if `path`, given by `flag`, and `file` (`role`) are the same file.

    A device, such as /dev/null, may be both.
    """
    try:
        identical = path.samefile(file) and path.is_file()
    except OSError:
        identical = real(path) == real(file)
    if identical:
        raise UsageError(f"{flag} {path} is {role}: name another file")


def refuse_replacing(path: Path, flag: str = "-o") -> None:
    """Raises UsageError if `path`, given by `flag`, has content."""
    if path.exists() and path.stat().st_size:
        raise UsageError(
            f"{path} exists. Continue it (--resume), replace it (--overwrite), "
            f"or name another file with {flag}"
        )


def real(path: Path) -> Path:
    """The path with links resolved; for a loop of links, a path that cannot be opened."""
    return Path(os.path.realpath(path))


def input_path(source: str) -> Path:
    """The file that `source` is read from; for `-`, standard input's."""
    return file_and_sheet("/dev/stdin" if source == "-" else source)[0]

"""Where output lines go, and what is kept of an interrupted run.

A file only ever grows by whole lines, each written with one call; a torn last line (the machine went
down in the middle of it) is cut off on resume. Resuming works by content, not by count: the finished
lines that already stand in the right order at the beginning stay where they are; any others go to a
file beside OUT (`OUT.resume`) and are copied back when their record comes by. That file is complete
before OUT is shortened, so at no moment is a finished line in neither.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from judge.errors import UsageError
from judge.run.lines import Earlier, earlier


class Sink(Protocol):
    """Takes output lines, one call a line."""

    def write(self, line: bytes) -> None: ...

    def close(self) -> None: ...


class StreamSink:
    """Standard output. A reader that has gone away ends the run quietly (`BrokenPipeError`)."""

    def __init__(self, stream: IO[bytes] | None = None) -> None:
        self._stream = stream or sys.stdout.buffer

    def write(self, line: bytes) -> None:
        self._stream.write(line)
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()


class FileSink:
    """A file, written line by line without a buffer in this process."""

    def __init__(self, path: Path, *, append: bool = False) -> None:
        mode = os.O_APPEND if append else os.O_TRUNC
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o666)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error

    def write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def close(self) -> None:
        os.close(self._fd)


def refuse_existing(path: Path) -> None:
    """Raises UsageError if `path` holds something already."""
    if path.exists() and path.stat().st_size:
        raise UsageError(
            f"{path} exists. Go on with it (--resume), replace it (--overwrite), "
            "or name another file with -o"
        )


class Kept:
    """The finished lines of an earlier run that wait for their record, found by content."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._index = sqlite3.connect("", isolation_level=None)
        self._index.execute("PRAGMA journal_mode=OFF")
        self._index.execute("CREATE TABLE kept (key BLOB, start INTEGER, size INTEGER)")
        self._index.execute("CREATE INDEX by_key ON kept (key)")

    def load(self) -> None:
        """Index the lines that lie in the file; a file that is not there holds none."""
        if not self.path.exists():
            return
        self._index.execute("BEGIN")
        for start, text in whole_lines(self.path):
            if (found := earlier(text)) and found.finished:
                row = (bytes.fromhex(found.key), start, len(text))
                self._index.execute("INSERT INTO kept VALUES (?, ?, ?)", row)
        self._index.execute("COMMIT")
        self._file = self.path.open("rb")

    def take(self, key: str) -> bytes | None:
        """The line of the record with this content hash, once for each line there is."""
        if self._file is None:
            return None
        select = "SELECT rowid, start, size FROM kept WHERE key = ? ORDER BY rowid LIMIT 1"
        row = self._index.execute(select, (bytes.fromhex(key),)).fetchone()
        if row is None:
            return None
        self._index.execute("DELETE FROM kept WHERE rowid = ?", (row[0],))
        self._file.seek(row[1])
        return self._file.read(row[2])

    def close(self, *, remove: bool) -> None:
        """`remove` when the run came to its end and every line that was wanted is in OUT."""
        if self._file is not None:
            self._file.close()
        self._index.close()
        if remove:
            self.path.unlink(missing_ok=True)


class Resumption:
    """OUT of an interrupted run, made ready to be gone on with.

    Used in three steps, because which lines can stay is known only beside the input: `prefix`
    walks the finished lines from the top, `keep` says how many bytes of them the input confirms,
    `kept` gives the others back by content.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.kept = Kept(out.with_name(out.name + ".resume"))

    def judgements(self) -> Iterator[Mapping[str, Any]]:
        """What every finished line says, for comparing fingerprints."""
        for path in (self.out, self.kept.path):
            if path.exists():
                for _, text in whole_lines(path):
                    if (found := earlier(text)) and found.finished:
                        yield found.judgement

    def prefix(self) -> Iterator[tuple[bytes, Earlier]]:
        """The lines from the top of OUT up to the first that is torn, foreign or unfinished."""
        if not self.out.exists():
            return
        for _, text in whole_lines(self.out):
            found = earlier(text)
            if found is None or not found.finished:
                return
            yield text, found

    def keep(self, size: int) -> None:
        """Shorten OUT to its first `size` bytes; finished lines behind them go to the side file."""
        if not self.out.exists():
            self.kept.load()
            return
        aside = self.kept.path.with_name(self.kept.path.name + ".new")
        with aside.open("wb") as file:
            if self.kept.path.exists():
                for _, text in whole_lines(self.kept.path):
                    file.write(text)
            for start, text in whole_lines(self.out):
                if start >= size and (found := earlier(text)) and found.finished:
                    file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.kept.path)
        os.truncate(self.out, size)
        self.kept.load()


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(offset, line with its newline) for each whole line; a torn last line is left out."""
    start = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield start, line
            start += len(line)

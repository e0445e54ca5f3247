"""Finished output lines that wait on disk for an earlier one."""

from __future__ import annotations

import io
import os
import tempfile
from array import array
from contextlib import suppress
from pathlib import Path

from judge.errors import unwritable
from judge.run.lines import Line, reread

_CHUNK = 4096
_ABSENT = -1
_READ = 1 << 16


class LineShelf:
    """Lines in a file, found by their place.

    The file is `path`, to which lines are added and which stays; None takes a temporary one. In
    memory lie 8 bytes for each line, in chunks that are dropped once they are passed. With the file
    where `--resume` looks for finished lines, what waits there outlives this process.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        # Without a buffer: what one could not get rid of would come up at each later use.
        self._file: io.FileIO | None = None
        self._end = 0
        self._starts: dict[int, array[int]] = {}
        self._left: dict[int, int] = {}

    def put(self, place: int, line: Line) -> None:
        """Keep a line.

        Raises:
            JudgeError: the file cannot be written, such as on a full disk; the line is not kept.
        """
        chunk, at = divmod(place, _CHUNK)
        try:
            self._append(line.text)
        except OSError as error:
            where = self._path or tempfile.gettempdir()
            raise unwritable(f"finished lines cannot be kept in {where}", error) from error
        if chunk not in self._starts:
            self._starts[chunk] = array("q", [_ABSENT]) * _CHUNK
        self._starts[chunk][at] = 2 * self._end + line.kept
        self._left[chunk] = self._left.get(chunk, 0) + 1
        self._end += len(line.text)

    def take(self, place: int) -> Line | None:
        """Give a line back, once; None where the place has none.

        Raises:
            JudgeError: the file cannot be read.
        """
        chunk, at = divmod(place, _CHUNK)
        starts = self._starts.get(chunk)
        if starts is None or starts[at] == _ABSENT or self._file is None:
            return None
        start, kept = divmod(starts[at], 2)
        starts[at] = _ABSENT
        self._left[chunk] -= 1
        if not self._left[chunk]:
            del self._starts[chunk], self._left[chunk]
        try:
            return reread(_line_at(self._file, start), kept=bool(kept))
        except OSError as error:
            where = self._path or tempfile.gettempdir()
            raise unwritable(f"finished lines cannot be read from {where}", error) from error

    def _append(self, text: bytes) -> None:
        file = self._file or self._opened()
        # Found anew each time: what OUT has lost is saved to the same file (judge/run/output.py).
        self._end = file.seek(0, os.SEEK_END)
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[file.write(rest) or 0 :]
        except OSError:
            # A torn line would swallow the next one.
            with suppress(OSError):
                file.truncate(self._end)
            raise

    def _opened(self) -> io.FileIO:
        if self._path is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - see `close`
        else:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            descriptor = os.open(self._path, flags, 0o666)
            self._file = io.FileIO(descriptor, "r+")
        self._end = self._file.seek(0, os.SEEK_END)
        return self._file

    def close(self) -> None:
        """Close the file; a temporary one is gone then."""
        if self._file is not None:
            self._file.close()


def _line_at(file: io.FileIO, start: int) -> bytes:
    file.seek(start)
    pieces = []
    while piece := file.read(_READ):
        head, newline, _ = piece.partition(b"\n")
        pieces.append(head + newline)
        if newline:
            break
    return b"".join(pieces)

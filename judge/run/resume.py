"""`--resume`: which lines of OUT stand, and OUT in the order of the input at the end.

OUT only grows while a run goes on with it: a record's finished line stays where it is, new lines
are added at the end, and only when the run ends, and only if the order differs from that of the
input, OUT is written anew beside itself and takes its own place in one step. So no finished line is
lost whenever the run is killed. A line belongs to a record by its content: the record's own fields,
with the original ones in the place of those that were rewritten.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from judge.errors import UsageError, unwritable
from judge.run.lines import Line, Mark, earlier, flat
from judge.run.output import read_description, replacing

REDONE = frozenset(("error", "unreadable"))
"""Verdicts whose records `--resume` always judges again."""

_NOWHERE = -1


def unmatched_file(out: Path) -> Path:
    """Where finished lines of OUT are put for which the input has no record."""
    return out.parent / f"{out.name}.unmatched.jsonl"


class Resumption:
    """OUT of an earlier run that is gone on with.

    `take` finds the line of a record, `wrote` notes where a new one begins, `settle` puts all in
    order. `end` is where the whole lines of OUT end.

    Args:
        mark_of: what lines of a workflow or benchmark are made with now.
        redo: verdicts whose records are judged again, besides `REDONE`. With any, lines made under
            another fingerprint are kept; without, they are refused.

    Raises:
        UsageError: OUT holds a line that is none of judge's, or finished ones under another
            fingerprint.
        JudgeError: there is no room for an index of OUT.
    """

    def __init__(
        self, out: Path, mark_of: Callable[[str], Mark], redo: Collection[str] = ()
    ) -> None:
        # A link stays one: it is the file behind it that is written anew.
        self.out = out.resolve()
        again = REDONE | set(redo)
        self.end = self._count = 0
        self._starts = array("q")
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA journal_mode=OFF")
        self._index.execute("CREATE TABLE old (key BLOB, start INTEGER, finished, stands)")
        self._index.execute("CREATE INDEX by_key ON old (key)")
        if self.out.exists() and not self.out.is_file():
            raise UsageError(f"{self.out} is no file that --resume could go on with")
        self._file: IO[bytes] = self.out.open("rb")
        with self._usable():
            self._index.execute("BEGIN")
            for start, text in self._whole_lines():
                self._count += 1
                if (found := earlier(text)) is None:
                    raise UsageError(
                        f"{self.out}: line {self._count} was not written by judge, so --resume "
                        "cannot go on: take it out, or name another file with -o"
                    )
                self.end = start + len(text)
                unasked = found.fingerprint is None
                stands = found.verdict not in again if found.finished else unasked
                if stands and found.finished:
                    now = mark_of(found.made_by)
                    if not redo and found.fingerprint != now.fingerprint:
                        refuse_other(self.out, found, now)
                row = (bytes.fromhex(found.key), start, found.finished, stands)
                self._index.execute("INSERT INTO old VALUES (?, ?, ?, ?)", row)
            self._index.execute("COMMIT")

    def _whole_lines(self) -> Iterator[tuple[int, bytes]]:
        """(offset, line) for each line, but for a torn last one, as a run that was killed left it.

        Where it is the first one, too, it must look like ours.
        """
        start = 0
        for line in self._file:
            if line.endswith(b"\n") or not (start or line.startswith(b"{")):
                yield start, line
            start += len(line)

    def take(self, place: int, key: str) -> bytes | None:
        """The line that stands for the record with this key; None if it is judged again.

        Each line is given once, to the record at this place of the input; one that does not stand
        is given up for the new one.

        Raises:
            JudgeError: OUT, or its index, cannot be read.
        """
        select = "SELECT rowid, start, stands FROM old WHERE key = ? ORDER BY stands DESC, rowid"
        with self._usable():
            row = self._index.execute(f"{select} LIMIT 1", (bytes.fromhex(key),)).fetchone()
            if row is None:
                return None
            self._index.execute("DELETE FROM old WHERE rowid = ?", (row[0],))
            self.wrote(place, row[1], new=False)
            return self._line(row[1]) if row[2] else None

    def wrote(self, place: int, start: int, *, new: bool = True) -> None:
        """The line for the record at this place begins there; `new` if this run has added it."""
        self._count += new
        while len(self._starts) <= place:
            self._starts.append(_NOWHERE)
        self._starts[place] = start

    def _line(self, start: int) -> bytes:
        self._file.seek(start)
        return self._file.readline()

    def settle(self, *, finished: bool) -> int:
        """Put OUT into the order of the input; says how many finished lines found no record.

        Those are put into `unmatched_file` where all of the input was read (`finished`), else they
        stay at the end of OUT.

        Raises:
            JudgeError: OUT cannot be written anew, and is as it was.
        """
        with self._usable():
            left = "SELECT start FROM old WHERE finished OR ? ORDER BY rowid"
            rest = [row[0] for row in self._index.execute(left, (not finished,))]
            order = [start for start in self._starts if start != _NOWHERE]
            order += [] if finished else rest
            if len(order) == self._count and order == sorted(order):
                return 0
            # What was read so far may hold a torn last line that has been written over.
            self._file.close()
            self._file = self.out.open("rb")
            if finished and rest:
                self._set_aside(rest)
            with replacing(self.out) as file:
                self._copy(order, file)
        return len(rest) if finished else 0

    def _set_aside(self, starts: Collection[int]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(unmatched_file(self.out), flags, 0o666), "wb") as file:
            self._copy(starts, file)
            file.flush()
            os.fsync(file.fileno())

    def _copy(self, starts: Collection[int], file: IO[bytes]) -> None:
        for start in starts:
            file.write(self._line(start))

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            what = f"an index of {self.out} cannot be kept in {tempfile.gettempdir()}"
            raise unwritable(what, error) from error
        except OSError as error:
            raise unwritable(f"{self.out} cannot be put in order", error) from error

    def close(self) -> None:
        self._file.close()
        self._index.close()


def refuse_other(out: Path, found: Line, now: Mark) -> None:
    """Raises UsageError for a finished line with another fingerprint; names what differs."""
    before = read_description(out).get(str(found.fingerprint))
    told = "not known"
    if isinstance(before, Mapping):
        told = _differences(before, now) or "the model behind the name (server, weights or script)"
    raise UsageError(
        f"{out} was made under another fingerprint ({found.fingerprint}, now {now.fingerprint}). "
        f"What differs: {told}. Use the same settings, name with --redo the verdicts that these "
        "settings are to judge again, or start anew with --overwrite"
    )


def _differences(before: Mapping[str, Any], now: Mark) -> str:
    then, here = flat(before), flat(now.described)
    names = sorted(k for k in then.keys() | here.keys() if then.get(k) != here.get(k))
    return "; ".join(f"{name} was {then.get(name)!r}, is {here.get(name)!r}" for name in names)

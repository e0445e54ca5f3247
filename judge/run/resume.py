"""`--resume`: which lines of OUT stand, and OUT in the order of the input at the end.

OUT only grows while a run goes on with it: a record's finished line stays where it is, new lines
are added at the end, and only when the run ends, and only if the order differs from that of the
input, OUT is written anew beside itself and takes its own place in one step. So no finished line is
lost whenever the run is killed. A line belongs to a record by its content: the record's own fields,
with the original ones in the place of those that were rewritten.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from judge.errors import UsageError, unwritable
from judge.run.fingerprint import Mark
from judge.run.lines import Earlier, earlier
from judge.run.output import FileSink, open_new, read_description, sync_folder

REDONE = frozenset(("error", "unreadable"))
"""Verdicts whose records `--resume` always judges again."""

_NOWHERE = -1


def unmatched_file(out: Path) -> Path:
    """Where finished lines of OUT are put for which the input has no record."""
    return out.parent / f"{out.name}.unmatched.jsonl"


class Resumption:
    """OUT of an earlier run that is gone on with.

    Used in steps: `check` before anything is done; `prefix` gives the lines from the top, of which
    the input confirms the first `size` bytes; `index` looks through the rest, `take` finds the line
    of a record in it, `wrote` notes where a new one begins, `settle` puts all in order.

    Args:
        redo: verdicts whose records are judged again, besides `REDONE`. With any, lines made under
            another fingerprint are kept; without, they are refused.
    """

    def __init__(self, out: Path, redo: Collection[str] = ()) -> None:
        # A link stays one: it is the file behind it that is written anew.
        self.out = out.resolve()
        self._mixed = bool(redo)
        self._redo = REDONE | set(redo)
        self._size = 0
        self._later = False
        self._end = 0
        self._kept = 0
        self._starts = array("q")
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA journal_mode=OFF")
        self._index.execute("CREATE TABLE old (key BLOB, start INTEGER, finished, stands)")
        self._index.execute("CREATE INDEX by_key ON old (key)")
        self._file: IO[bytes] | None = None

    def check(self, mark_of: Callable[[str], Mark]) -> int:
        """How many lines of OUT were not written by judge, and will be left out.

        Raises:
            UsageError: OUT holds none that was, or finished ones under another fingerprint.
        """
        if not self.out.exists():
            return 0
        if not self.out.is_file():
            raise UsageError(f"{self.out} is no file that --resume could go on with")
        ours = foreign = 0
        by_mark: dict[str, Earlier] = {}
        for start, text in whole_lines(self.out):
            self._end = start + len(text)
            found = earlier(text)
            ours += found is not None
            foreign += found is None
            if found is not None and self.stands(found):
                by_mark.setdefault(found.fingerprint, found)
        foreign += _foreign_tail(self.out, self._end)
        if foreign and not ours:
            raise UsageError(
                f"{self.out} was not written by judge, so --resume cannot go on with it; "
                "name another file with -o"
            )
        for found in by_mark.values():
            now = mark_of(found.made_by)
            if not self._mixed and found.fingerprint != now.fingerprint:
                refuse_other(str(self.out), found, now, read_description(self.out))
        return foreign

    def stands(self, found: Earlier) -> bool:
        """Whether a line is kept, if its record comes by."""
        return found.finished and found.verdict not in self._redo

    def prefix(self) -> Iterator[tuple[bytes, Earlier]]:
        """The lines from the top of OUT up to the first that was not written by judge."""
        if self.out.exists():
            for _, text in whole_lines(self.out):
                if (found := earlier(text)) is None:
                    return
                yield text, found

    def index(self, size: int) -> None:
        """Remember the lines behind the first `size` bytes, which stay where they are.

        Raises:
            JudgeError: there is no room for the index, or OUT cannot be read.
        """
        self._size = size
        if not self.out.exists():
            return
        with self._usable():
            self._file = self.out.open("rb")
            self._index.execute("BEGIN")
            for start, text in whole_lines(self.out, size):
                self._later = True
                if (found := earlier(text)) is not None:
                    row = (bytes.fromhex(found.key), start, found.finished, self.stands(found))
                    self._index.execute("INSERT INTO old VALUES (?, ?, ?, ?)", row)
            self._index.execute("COMMIT")

    def begin(self, sink: FileSink) -> None:
        """Cut off a torn last line, before a first one is added."""
        if sink.size != self._end:
            sink.cut(self._end)

    def take(self, place: int, key: str) -> bytes | None:
        """The line that stands for the record with this content hash; None if it is judged again.

        Each line is given once. One that does not stand is given up for the new one.

        Args:
            place: of the record in the input.

        Raises:
            JudgeError: as `index`.
        """
        select = "SELECT rowid, start, stands FROM old WHERE key = ? ORDER BY stands DESC, rowid"
        with self._usable():
            row = self._index.execute(f"{select} LIMIT 1", (bytes.fromhex(key),)).fetchone()
            if row is None:
                return None
            self._index.execute("DELETE FROM old WHERE rowid = ?", (row[0],))
            self._place(place, row[1])
            return self._line(row[1]) if row[2] else None

    def wrote(self, place: int, start: int) -> None:
        """A new line for the record at this place begins there."""
        self._place(place, start)

    def _place(self, place: int, start: int) -> None:
        while len(self._starts) <= place:
            self._starts.append(_NOWHERE)
        self._starts[place] = start

    def _line(self, start: int) -> bytes:
        if self._file is None:
            raise RuntimeError("lines are read once they are indexed")
        self._file.seek(start)
        return self._file.readline()

    def settle(self, *, finished: bool) -> int:
        """Put OUT into the order of the input; says how many finished lines found no record.

        Those are put into `unmatched_file` where all of the input was read (`finished`), else they
        stay at the end of OUT.

        Raises:
            JudgeError: OUT cannot be written anew, and is as it was.
        """
        if not self._later:
            return 0
        with self._usable():
            if self._file is not None:
                # What was read so far may hold a torn last line that has been written over.
                self._file.close()
                self._file = self.out.open("rb")
            left = "SELECT start FROM old WHERE finished OR ? ORDER BY rowid"
            rest = [row[0] for row in self._index.execute(left, (not finished,))]
            if finished and rest:
                self._set_aside(rest)
            self._rewrite(() if finished else rest)
        return len(rest) if finished else 0

    def _set_aside(self, starts: Collection[int]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(unmatched_file(self.out), flags, 0o666), "wb") as file:
            for start in starts:
                file.write(self._line(start))
            file.flush()
            os.fsync(file.fileno())

    def _rewrite(self, rest: Collection[int]) -> None:
        new = self.out.with_name(f"{self.out.name}.new")
        try:
            with open_new(new) as file:
                for chunk in self._top():
                    file.write(chunk)
                for start in chain((s for s in self._starts if s != _NOWHERE), rest):
                    file.write(self._line(start))
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(self.out, new)
            new.replace(self.out)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        sync_folder(self.out)

    def _top(self) -> Iterator[bytes]:
        assert self._file is not None
        self._file.seek(0)
        left = self._size
        while left and (chunk := self._file.read(min(left, 1 << 20))):
            left -= len(chunk)
            yield chunk

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
        if self._file is not None:
            self._file.close()
        self._index.close()


def whole_lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """(offset, line with its newline) for each whole line from `start` on; no torn last line."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield start, line
            start += len(line)


def _foreign_tail(path: Path, start: int) -> bool:
    """Whether what stands behind the last newline cannot be the beginning of a line of ours."""
    with path.open("rb") as file:
        file.seek(start)
        tail = file.read(1)
    return bool(tail) and tail != b"{"


def refuse_other(what: str, found: Earlier, now: Mark, known: Mapping[str, Any]) -> None:
    """Raises UsageError for a finished line with another fingerprint; names what differs.

    Args:
        what: where the line stands.
        known: what lines there were made with, by fingerprint.
    """
    before = known.get(found.fingerprint)
    told = "not known"
    if isinstance(before, Mapping):
        told = _differences(before, now) or "the model behind the name (server, weights or script)"
    raise UsageError(
        f"{what} was made under another fingerprint ({found.fingerprint}, now {now.fingerprint}). "
        f"What differs: {told}. Use the same settings, name with --redo the verdicts that these "
        "settings are to judge again, or start anew with --overwrite"
    )


def _differences(before: Mapping[str, Any], now: Mark) -> str:
    then, here = _flat(before), _flat(now.described)
    names = sorted(k for k in then.keys() | here.keys() if then.get(k) != here.get(k))
    told = [f"{name} was {then.get(name)!r}, is {here.get(name)!r}" for name in names[:6]]
    if len(names) > len(told):
        told.append(f"and {len(names) - len(told)} more")
    return "; ".join(told)


def _flat(tree: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(tree, Mapping):
        return {path: tree}
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= _flat(value, f"{path}.{key}" if path else str(key))
    return found

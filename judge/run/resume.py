"""What is kept of an interrupted run.

Resuming works by content, not by count: the finished lines that already stand in the right order at
the beginning of OUT stay where they are; any others go to a file beside it (`OUT.resume`) and are
copied back when their record comes by. That file is complete before OUT is shortened, so at no
moment is a finished line in neither. Lines whose record does not come by stay there.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from judge.errors import JudgeError, UsageError, unwritable
from judge.run.fingerprint import Mark
from judge.run.lines import Earlier, earlier, made_by


def side_file(out: Path) -> Path:
    """Where finished lines of OUT wait for their record."""
    # Not `with_name`, which wants a name: OUT may be "." and is refused further on.
    return out.parent / f"{out.name}.resume"


class Kept:
    """The finished lines of an earlier run that wait for their record, found by content.

    For one thread at a time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA journal_mode=OFF")
        self._index.execute("CREATE TABLE kept (key BLOB, start INTEGER, size INTEGER)")
        self._index.execute("CREATE INDEX by_key ON kept (key)")

    def load(self, path: Path | None = None) -> None:
        """Index the lines that lie in the file; a file that is not there holds none.

        With `path` they lie there, and the file takes its name later.

        Raises:
            JudgeError: there is no room for the index, or the file cannot be read.
        """
        path = path or self.path
        if not path.exists():
            return
        with self._usable():
            self._index.execute("BEGIN")
            for start, text in whole_lines(path):
                if (found := earlier(text)) and found.finished:
                    row = (bytes.fromhex(found.key), start, len(text))
                    self._index.execute("INSERT INTO kept VALUES (?, ?, ?)", row)
            self._index.execute("COMMIT")
            self._file = path.open("rb")

    def take(self, key: str) -> bytes | None:
        """The line of the record with this content hash, once for each line there is.

        Raises:
            JudgeError: as `load`.
        """
        if self._file is None:
            return None
        select = "SELECT rowid, start, size FROM kept WHERE key = ? ORDER BY rowid LIMIT 1"
        with self._usable():
            row = self._index.execute(select, (bytes.fromhex(key),)).fetchone()
            if row is None:
                return None
            self._index.execute("DELETE FROM kept WHERE rowid = ?", (row[0],))
            return self._read(row[1], row[2])

    def _read(self, start: int, size: int) -> bytes:
        if self._file is None:
            raise RuntimeError("lines are read once they are loaded")
        self._file.seek(start)
        return self._file.read(size)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            what = f"an index of {self.path} cannot be kept in {tempfile.gettempdir()}"
            raise unwritable(what, error) from error
        except OSError as error:
            raise unwritable(f"{self.path} cannot be read", error) from error

    def forget(self, key: str) -> None:
        """Give the lines of this record no more.

        Raises:
            JudgeError: as `load`.
        """
        with self._usable():
            self._index.execute("DELETE FROM kept WHERE key = ?", (bytes.fromhex(key),))

    def left(self) -> int:
        """How many lines have not been taken.

        Raises:
            JudgeError: as `load`.
        """
        with self._usable():
            count: int = self._index.execute("SELECT COUNT(*) FROM kept").fetchone()[0]
        return count

    def rest(self) -> Iterator[bytes]:
        """The lines that have not been taken, in their order, those that are equal once.

        Raises:
            JudgeError: as `load`.
        """
        with self._usable():
            if self._file is None:
                return
            alike = "SELECT start, size FROM kept WHERE key = ? AND size = ? AND rowid < ?"
            for row, key, start, size in self._index.execute(
                "SELECT rowid, key, start, size FROM kept ORDER BY rowid"
            ):
                text = self._read(start, size)
                before = self._index.execute(alike, (key, size, row))
                if all(self._read(*place) != text for place in before):
                    yield text

    def close(self) -> None:
        """The file stays."""
        if self._file is not None:
            self._file.close()
        self._index.close()


@dataclass(slots=True)
class Survey:
    """What stands in OUT, or its side file: a judgement for each fingerprint, and line counts."""

    judgements: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    ours: int = 0
    foreign: int = 0


class Resumption:
    """OUT of an interrupted run, made ready to be gone on with.

    Used in steps, because which lines can stay is known only beside the input: `check` before
    anything is done, then `prefix` walks the finished lines from the top, `keep` says how many
    bytes of them the input confirms, `kept` gives the others back by content. `shorten` makes room
    for the first new line, and `settle` says at the end what found no record.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.kept = Kept(side_file(out))
        self._size: int | None = None

    def check(self, mark_of: Callable[[str], Mark]) -> int:
        """How many lines of OUT are none of ours and will be left out.

        Raises:
            UsageError: OUT holds nothing of ours, or finished lines under another fingerprint.
        """
        if self.out.exists() and not self.out.is_file():
            raise UsageError(f"{self.out} is no file that --resume could go on with")
        foreign = 0
        for path in (self.out, self.kept.path):
            if not path.exists():
                continue
            survey = self._survey(path)
            if survey.foreign and not survey.ours:
                raise UsageError(
                    f"{path} was not written by judge, so --resume cannot go on with it; "
                    "name another file with -o"
                )
            for judgement in survey.judgements.values():
                refuse_other(
                    str(path),
                    judgement,
                    mark_of(made_by(judgement)),
                    "Use the same settings, or start anew with --overwrite",
                )
            foreign += survey.foreign
        return foreign

    def _survey(self, path: Path) -> Survey:
        survey, end = Survey(), 0
        for start, text in whole_lines(path):
            end = start + len(text)
            found = earlier(text)
            survey.ours += found is not None
            survey.foreign += found is None
            if found and found.finished:
                survey.judgements.setdefault(found.judgement["fingerprint"], found.judgement)
        survey.foreign += _foreign_tail(path, end)
        return survey

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
        """Copy the finished lines behind the first `size` bytes of OUT to a new side file.

        Raises:
            JudgeError: it cannot be written, such as on a full disk.
        """
        if not self.out.exists():
            self.kept.load()
            return
        with self._keeping():
            self._write_new(self._waiting(size))
        self._size = size
        self.kept.load(self._new)

    def shorten(self) -> None:
        """Put the new side file in its place, and cut OUT down to what `keep` was told.

        Raises:
            JudgeError: they cannot be; OUT is as it was.
        """
        if self._size is not None:
            with self._keeping():
                self._new.replace(self.kept.path)
                os.truncate(self.out, self._size)

    def withdraw(self) -> None:
        """Take away what `keep` has made, where OUT was not shortened."""
        if self._size is not None:
            with suppress(OSError):
                self._new.unlink(missing_ok=True)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = f"finished lines of {self.out} cannot be kept in {self.kept.path}"
            raise unwritable(what, error) from error

    def settle(self) -> int:
        """Leave in the side file only finished lines whose record does not stand in OUT.

        Returns how many these are; without any the file goes. Where it cannot be written anew, it
        stays as it is, which is more than it need hold.
        """
        left = self.kept.left()
        with suppress(OSError, JudgeError):
            if left:
                # What a run that was killed had both here and in OUT.
                for found in self._lines_of_ours(self.out):
                    self.kept.forget(found.key)
                left = self.kept.left()
            if left:
                count = self._write_new(self.kept.rest())
                self._new.replace(self.kept.path)
                return count
            self.kept.path.unlink(missing_ok=True)
        return left

    @property
    def _new(self) -> Path:
        return self.kept.path.with_name(self.kept.path.name + ".new")

    def _write_new(self, texts: Iterable[bytes]) -> int:
        """Write a new side file, of all these lines or none at all; says how many they are."""
        count = 0
        try:
            with self._new.open("wb") as file:
                for text in texts:
                    file.write(text)
                    count += 1
                file.flush()
                os.fsync(file.fileno())
        except (OSError, JudgeError):
            with suppress(OSError):
                self._new.unlink(missing_ok=True)
            raise
        return count

    def _waiting(self, size: int) -> Iterator[bytes]:
        if self.kept.path.exists():
            for _, text in whole_lines(self.kept.path):
                yield text
        for start, text in whole_lines(self.out):
            if start >= size and (found := earlier(text)) and found.finished:
                yield text

    def _lines_of_ours(self, path: Path) -> Iterator[Earlier]:
        for _, text in whole_lines(path):
            if (found := earlier(text)) and found.finished:
                yield found


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(offset, line with its newline) for each whole line; a torn last line is left out."""
    start = 0
    with path.open("rb") as file:
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


def refuse_other(what: str, judgement: Mapping[str, Any], now: Mark, remedy: str) -> None:
    """See that a finished line was made with what this run works with.

    Args:
        what: where the line stands; the message begins with it, and ends with `remedy`.

    Raises:
        UsageError: it has another fingerprint; names what differs.
    """
    mark = judgement["fingerprint"]
    if mark != now.fingerprint:
        raise UsageError(
            f"{what} was made under another fingerprint ({mark}, now {now.fingerprint}). "
            f"What differs: {_differences(judgement, now)}. {remedy}"
        )


def _differences(judgement: Mapping[str, Any], now: Mark) -> str:
    before = _flat({**(judgement.get("models") or {}), "workflow": made_by(judgement)})
    after = _flat({**now.models, "workflow": now.name})
    names = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    told = [f"{name} was {before.get(name)!r}, is {after.get(name)!r}" for name in names[:6]]
    if len(names) > len(told):
        told.append(f"and {len(names) - len(told)} more")
    return "; ".join(told) or "the model behind the name (server, weights or script)"


def _flat(tree: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(tree, Mapping):
        return {path: tree}
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= _flat(value, f"{path}.{key}" if path else str(key))
    return found

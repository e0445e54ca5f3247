"""What is kept of an interrupted run.

Resuming works by content, not by count: the finished lines that already stand in the right order at
the beginning of OUT stay where they are; any others go to a file beside it (`OUT.resume`) and are
copied back when their record comes by. That file is complete before OUT is shortened, so at no
moment is a finished line in neither.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from judge.errors import UsageError, unwritable
from judge.run.fingerprint import Mark
from judge.run.lines import Earlier, earlier, made_by


def side_file(out: Path) -> Path:
    """Where finished lines of OUT wait for their record."""
    # Not `with_name`, which wants a name: OUT may be "." and is refused further on.
    return out.parent / f"{out.name}.resume"


class Kept:
    """The finished lines of an earlier run that wait for their record, found by content.

    For one thread at a time. With `open_stands`, lines that the cheap stage left open are kept,
    too.
    """

    def __init__(self, path: Path, *, open_stands: bool = False) -> None:
        self.path = path
        self._open_stands = open_stands
        self._file: IO[bytes] | None = None
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA journal_mode=OFF")
        self._index.execute("CREATE TABLE kept (key BLOB, start INTEGER, size INTEGER)")
        self._index.execute("CREATE INDEX by_key ON kept (key)")

    def load(self) -> None:
        """Index the lines that lie in the file; a file that is not there holds none.

        Raises:
            JudgeError: there is no room for the index, or the file cannot be read.
        """
        if not self.path.exists():
            return
        with self._usable():
            self._index.execute("BEGIN")
            for start, text in whole_lines(self.path):
                if (found := earlier(text)) and found.stands(open_stands=self._open_stands):
                    row = (bytes.fromhex(found.key), start, len(text))
                    self._index.execute("INSERT INTO kept VALUES (?, ?, ?)", row)
            self._index.execute("COMMIT")
            self._file = self.path.open("rb")

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
            self._file.seek(row[1])
            return self._file.read(row[2])

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            what = f"an index of {self.path} cannot be kept in {tempfile.gettempdir()}"
            raise unwritable(what, error) from error
        except OSError as error:
            raise unwritable(f"{self.path} cannot be read", error) from error

    def close(self) -> None:
        """The file stays."""
        if self._file is not None:
            self._file.close()
        self._index.close()


@dataclass(slots=True)
class Survey:
    """What stands in OUT and its side file: a judgement for each fingerprint, and line counts."""

    judgements: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    ours: int = 0
    foreign: int = 0


class Resumption:
    """OUT of an interrupted run, made ready to be gone on with.

    Used in steps, because which lines can stay is known only beside the input: `check` before
    anything is done, then `prefix` walks the finished lines from the top, `keep` says how many
    bytes of them the input confirms, `kept` gives the others back by content. With `open_stands`,
    lines that the cheap stage left open count as finished.
    """

    def __init__(self, out: Path, *, open_stands: bool = False) -> None:
        self.out = out
        self.kept = Kept(side_file(out), open_stands=open_stands)
        self._open_stands = open_stands

    def check(self, mark_of: Callable[[str], Mark]) -> int:
        """How many lines of OUT are none of ours and will be left out.

        Raises:
            UsageError: OUT holds nothing of ours, or finished lines under another fingerprint.
        """
        if self.out.exists() and not self.out.is_file():
            raise UsageError(f"{self.out} is no file that --resume could go on with")
        survey = self._survey()
        if survey.foreign and not survey.ours:
            raise UsageError(
                f"{self.out} was not written by judge, so --resume cannot go on with it; "
                "name another file with -o"
            )
        for judgement in survey.judgements.values():
            refuse_other(
                str(self.out),
                judgement,
                mark_of(made_by(judgement)),
                "Use the same settings, or start anew with --overwrite",
            )
        return survey.foreign

    def _stands(self, found: Earlier) -> bool:
        return found.stands(open_stands=self._open_stands)

    def _survey(self) -> Survey:
        survey = Survey()
        for path in (self.out, self.kept.path):
            if not path.exists():
                continue
            end = 0
            for start, text in whole_lines(path):
                end = start + len(text)
                found = earlier(text)
                survey.ours += found is not None
                survey.foreign += found is None
                if found and self._stands(found):
                    survey.judgements.setdefault(found.judgement["fingerprint"], found.judgement)
            survey.foreign += _foreign_tail(path, end)
        return survey

    def prefix(self) -> Iterator[tuple[bytes, Earlier]]:
        """The lines from the top of OUT up to the first that is torn, foreign or unfinished."""
        if not self.out.exists():
            return
        for _, text in whole_lines(self.out):
            found = earlier(text)
            if found is None or not self._stands(found):
                return
            yield text, found

    def keep(self, size: int) -> None:
        """Shorten OUT to its first `size` bytes; finished lines behind them go to the side file.

        Raises:
            JudgeError: the side file cannot be written, such as on a full disk; OUT is as it was.
        """
        if self.out.exists():
            aside = self.kept.path.with_name(self.kept.path.name + ".new")
            try:
                self._set_aside(aside, size)
                os.truncate(self.out, size)
            except OSError as error:
                with suppress(OSError):
                    aside.unlink(missing_ok=True)
                what = f"finished lines of {self.out} cannot be kept in {aside}"
                raise unwritable(what, error) from error
        self.kept.load()

    def _set_aside(self, aside: Path, size: int) -> None:
        with aside.open("wb") as file:
            if self.kept.path.exists():
                for _, text in whole_lines(self.kept.path):
                    file.write(text)
            for start, text in whole_lines(self.out):
                if start >= size and (found := earlier(text)) and self._stands(found):
                    file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.kept.path)


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

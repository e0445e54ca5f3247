"""`--resume`: finds the lines of OUT that stand, and puts OUT into input order at the end.

While a run continues OUT, it only appends: finished lines stay where they are, new lines are added
at the end. When the run ends, OUT is rewritten and replaced in one step, if its order differs from
that of the input. So a kill loses no finished line, whenever it comes. Lines are matched to records
by content: the record's own fields, with the original texts in place of rewritten ones.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from judge.digest import digest
from judge.errors import UsageError, unwritable
from judge.records.base import flat
from judge.records.lines import REDONE, Line, parsed
from judge.run.description import OBSERVED, described, read_description
from judge.run.output import real, reorder
from judge.run.task import RunInfo


def unmatched_file(out: Path) -> Path:
    """The file for lines of OUT that match no input record."""
    return out.parent / f"{out.name}.unmatched.jsonl"


class Resumption:
    """OUT of an earlier run, which this run continues; `end` is where its whole lines end,
    `unmatched` the file for lines whose records the input lacks, `by_people` the number of lines
    that stand in spite of `rejudge` because a person decided them, `undone` the number of those
    with a person's answer that are judged again for another check's sake.

    An index on disk has each line's offset and, once known, its record's place in the input.

    Args:
        info_of: how lines of a workflow or benchmark are made now.
        rejudge: verdicts whose records are judged again, besides `REDONE` and those that abstain
            for want of a vote. If any are given, lines with another fingerprint are kept; otherwise
            they are refused.
        described_by: the file whose description covers these lines.

    Raises:
        UsageError: OUT has a line that judge did not write, or finished lines with another
            fingerprint.
        JudgeError: there is no space for the index.
    """

    def __init__(
        self,
        out: Path,
        info_of: Callable[[str], RunInfo],
        rejudge: Collection[str],
        *,
        described_by: Path,
    ) -> None:
        # A link stays a link: its target is rewritten.
        self.out = real(out)
        self._described = described_by
        self.unmatched = unmatched_file(self.out)
        self.end = self._count = self.by_people = self.undone = 0
        if self.out.exists() and not self.out.is_file():
            raise UsageError(f"{self.out} is not a regular file; --resume cannot continue it")
        self._file: IO[bytes] = self.out.open("rb")
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        with self._usable():
            self._index.execute("PRAGMA journal_mode=OFF")
            self._index.execute(
                "CREATE TABLE lines "
                "(start INTEGER PRIMARY KEY, key BLOB, finished, stands, place, named DEFAULT 0)"
            )
            self._index.execute("CREATE INDEX by_key ON lines (key)")
            self._index.execute("CREATE INDEX by_place ON lines (place)")
            self._index.execute("BEGIN")
            self._index.executemany(
                "INSERT INTO lines (start, key, finished, stands) VALUES (?, ?, ?, ?)",
                self._rows(info_of, rejudge),
            )
            self._index.execute("COMMIT")

    def _rows(
        self, info_of: Callable[[str], RunInfo], rejudge: Collection[str]
    ) -> Iterator[tuple[int, bytes, bool, bool]]:
        """(start, key, finished, stands) of each whole line."""
        again = REDONE | set(rejudge)
        for text in self._file:
            if self._torn(text):
                return
            self._count += 1
            if (line := Line.parse(text)) is None:
                raise UsageError(
                    f"{self.out}: line {self._count} was not written by judge, so --resume "
                    "cannot continue: remove it, or name another file with -o"
                )
            stands = line.fingerprint is None
            if line.finished:
                stands = line.verdict not in again and not line.lacks_votes
            if not stands and line.decided:
                stands = line.verdict not in REDONE
                self.by_people += stands
                self.undone += not stands
            if stands and line.finished and not rejudge:
                refuse_other(self.out, line, info_of(line.made_by))
            yield self.end, bytes.fromhex(line.key), line.finished, stands
            self.end += len(text)

    def about_decided(self, out: Path) -> Iterator[str]:
        """What comes of the records in `out` that people decided and that would be judged again."""
        for count, outcome in (
            (self.by_people, "not judged again"),
            (self.undone, "judged again for want of a reply; --decisions decides them anew"),
        ):
            if count:
                records = "1 record" if count == 1 else f"{count} records"
                yield f"{records} in {out} decided by people: {outcome}"

    def _torn(self, text: bytes) -> bool:
        """Whether this is a partial last line of judge's, left by a kill.

        The beginning of a JSON object is not enough: a file of nothing else may not be judge's.
        """
        if text.endswith(b"\n") or not text.startswith(b"{") or parsed(text) is not None:
            return False
        return self.end > 0 or described(self._described)

    def take(self, place: int, key: str) -> bytes | None:
        """The line that stands for the record with this key; None if the record is judged again.

        Each line is returned once, for the record at `place` in the input; the new line replaces
        one that does not stand.

        Raises:
            JudgeError: OUT, or its index, cannot be read.
        """
        find = (
            "SELECT start, stands FROM lines WHERE key = ? AND place IS NULL "
            "ORDER BY stands DESC, start LIMIT 1"
        )
        with self._usable():
            row = self._index.execute(find, (bytes.fromhex(key),)).fetchone()
            if row is None:
                return None
            self._index.execute("UPDATE lines SET place = ? WHERE start = ?", (place, row[0]))
            self._index.execute("UPDATE lines SET named = 1 WHERE key = ?", (bytes.fromhex(key),))
            return self._line(row[0]) if row[1] else None

    def wrote(self, place: int, start: int) -> None:
        """Note that the new line for the record at `place` begins at `start`."""
        with self._usable():
            self._index.execute("DELETE FROM lines WHERE place = ?", (place,))
            row = (start, place)
            self._index.execute("INSERT INTO lines (start, place, finished) VALUES (?, ?, 1)", row)
        self._count += 1

    def left(self, place: int) -> None:
        """Note that the line of the record at `place`, if any, is to leave this file."""
        with self._usable():
            self._index.execute("DELETE FROM lines WHERE place = ?", (place,))

    def _line(self, start: int) -> bytes:
        self._file.seek(start)
        return self._file.readline()

    def settle(self, *, whole: bool) -> int:
        """Put OUT into input order; returns how many lines were moved to `unmatched`.

        These are the finished lines without a record, if the `whole` input was read, neither
        stopped nor cut by --limit or --sample; otherwise all lines without a record stay, at the
        end of OUT.

        Raises:
            JudgeError: OUT cannot be rewritten; it is unchanged.
        """
        with self._usable():
            placed = "SELECT start FROM lines WHERE place IS NOT NULL ORDER BY place"
            order = [start for (start,) in self._index.execute(placed)]
            # After a kill, a line that does not stand may be left beside its replacement.
            query = (
                "SELECT start FROM lines WHERE place IS NULL "
                "AND (finished AND (stands OR NOT named) OR ?) ORDER BY start"
            )
            starts = [start for (start,) in self._index.execute(query, (not whole,))]
            if whole and starts:
                self._set_aside(starts)
        unmatched = len(starts) if whole else 0
        order += [] if whole else starts
        if len(order) != self._count or order != sorted(order):
            reorder(self.out, order)
        return unmatched

    def _set_aside(self, starts: Collection[int]) -> None:
        """Append lines to `unmatched`, unless an earlier run did so and was killed before they left
        OUT."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(self.unmatched, flags, 0o666), "a+b") as file:
            lacking = Counter(digest(self._line(start), 16) for start in starts)
            file.seek(0)
            end, line = 0, b"\n"
            for line in file:
                end += 0 if _cut_off(line) else len(line)
                lacking[digest(line, 16)] -= 1
            file.truncate(end)
            if end and not line.endswith(b"\n") and not _cut_off(line):
                file.write(b"\n")
            for start in starts:
                line = self._line(start)
                if lacking[digest(line, 16)] > 0:
                    lacking[digest(line, 16)] -= 1
                    file.write(line)
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            message = f"an index of {self.out} cannot be kept in {tempfile.gettempdir()}"
            raise unwritable(message, error) from error
        except OSError as error:
            raise unwritable(f"{self.out} cannot be put in order", error) from error

    def close(self) -> None:
        self._file.close()
        self._index.close()


def refuse_other(out: Path, line: Line, now: RunInfo) -> None:
    """Raises UsageError for a finished line with another fingerprint; names what differs."""
    if line.fingerprint == now.fingerprint:
        return
    before = read_description(out).get(str(line.fingerprint))
    difference = "not known"
    if isinstance(before, Mapping):
        difference = (
            _differences(before, now) or "the model behind the name (server, weights or script)"
        )
    raise UsageError(
        f"{out} was made under another fingerprint ({line.fingerprint}, now {now.fingerprint}). "
        f"What differs: {difference}. Use the same settings, start over with --overwrite, or, in "
        "judge validate, choose with --rejudge the verdicts to judge again"
    )


def _differences(before: Mapping[str, Any], now: RunInfo) -> str:
    observations: dict[str, Any] = dict.fromkeys((*OBSERVED, "identities"))
    then, here = flat({**before, **observations}), flat({**now.described, **observations})
    names = {k for k in then.keys() | here.keys() if then.get(k) != here.get(k)}
    # If both runs have a question's words, they tell more than its rubric's digest.
    questions = {name for name in names if name.startswith("questions.")}
    if "questions" in before:
        names -= {name.replace("questions.", "rubrics.", 1) for name in questions}
    else:
        names -= questions
    names -= {n for n in ("final", "rewrite") if _follows(then, n) and _follows(here, n)}
    if "cheap" in names:
        names -= {name for name in names if name.startswith("cheap_identity.")}
    earlier = before.get("identities", {})
    behind = [
        f"{key} of {spec} was {_told(earlier[spec].get(key))}, is {_told(identity.get(key))}"
        for spec, identity in now.identities.items()
        for key in sorted({*earlier.get(spec, {}), *identity})
        if spec in earlier and earlier[spec].get(key) != identity.get(key)
    ]
    options = _MODELS | ({"judge": "--judge-model"} if "model" in here else {})
    differences = (
        f"{options.get(name, name)} was {_told(then.get(name))}, is {_told(here.get(name))}"
        for name in sorted(names)
    )
    return "; ".join((*differences, *behind))


_MODELS = {
    "judge": "--model",
    "final": "--final-model",
    "rewrite": "--rewrite-model",
    "cheap": "--cheap-model",
    "explain": "--explain-with",
}
"""The options that name a run's models, by key of its description, the judges' first."""


def _follows(run: Mapping[str, Any], name: str) -> bool:
    """Whether the models of a key are the judges, or the first, which --model names."""
    judges = next(map(run.get, _MODELS)) or [None]
    return (run.get(name) or None) in (judges, judges[0], None)


def _told(value: Any) -> str:
    return ", ".join(map(repr, value)) if isinstance(value, list) and value else repr(value)


# ---------------------------------------------------------------- what judge did not write


def refuse_edited_review(review: Path, out: Path, *beside: Path) -> None:
    """Raises UsageError if a line of the review is neither in OUT nor in a file `beside` it.

    People write labels or notes into the lines, and these would be lost.
    """
    with review.open("rb") as file:
        numbers = {_digest(line): n for n, line in enumerate(file, 1) if not _cut_off(line)}
    for path in (out, *beside):
        if path.is_file():
            with path.open("rb") as file:
                for line in file:
                    numbers.pop(_digest(line), None)
    if numbers:
        raise UsageError(
            f"--review {review}: line {min(numbers.values())} is not in {out} and may hold labels "
            "of people: leave --review out, or name another file"
        )


def _digest(line: bytes) -> str:
    """A hash of a line's content, without its spacing."""
    content = parsed(line)
    text = line if content is None else json.dumps(content, sort_keys=True).encode("ascii")
    return digest(text, 16)


def _cut_off(line: bytes) -> bool:
    """Whether this is a partial line, cut off by a kill."""
    return not line.endswith(b"\n") and parsed(line) is None


def refuse_foreign(path: Path, flag: str) -> None:
    """Raises UsageError for a file that judge did not write; the run would change it."""
    if path.is_file():
        with path.open("rb") as file:
            first = file.readline()
        if first and not (first.startswith(b"{") and _cut_off(first)) and Line.parse(first) is None:
            raise UsageError(f"{path} was not written by judge: name another file with {flag}")

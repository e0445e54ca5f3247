"""People's answers in a file of labels (`judge.records.labels.own`): a line for each answer.

A line is flushed to disk before the next question is shown, so that a kill loses no answer. Several
people, each with their own page, may write to one file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from judge.errors import UsageError, unwritable
from judge.locking import lock
from judge.records import Record, dump, read
from judge.records.answers import scalar_text
from judge.records.base import LabelError, key_for, own_id
from judge.records.labels.items import Annotation, LabelledItem
from judge.records.labels.own import OwnByFields, label_key
from judge.records.lines import MAX_OUTPUT_LINE, parsed
from judge.run.output import real, sync_folder


class Place(NamedTuple):
    """What an answer is about: a record (`label_key`), a check, and an entry from 1 (0: none)."""

    record: str
    check: str
    number: int = 0


class AnswerFile:
    """A file of all annotators' answers, to which one annotator adds.

    Args:
        path: a file of answers, or a new one.
        annotator: who answers here.
        id_column: the column that names records (None: their id).

    Attributes:
        given: the current answers of each annotator, in the order in which they were given.

    Raises:
        UsageError: the file has other lines.
    """

    def __init__(self, path: Path, annotator: str, id_column: str | None = None) -> None:
        self.path, self.annotator, self._id_column = path, annotator, id_column
        self.given: dict[str, dict[Place, Annotation]] = {annotator: {}}
        self._form = OwnByFields(None, path.parent)
        self._end = self._file_number = 0
        self._records: dict[str, str] = {}
        if not path.parent.is_dir():
            raise UsageError(f"-o {path}: there is no folder {path.parent}")
        place = path if path.exists() else real(path).parent
        if not os.access(place, os.W_OK) or (path.exists() and not path.is_file()):
            raise UsageError(
                f"{path}: answers cannot be kept there; name a file that can be written"
            )
        if path.exists() and path.stat().st_size:
            self._refuse_foreign()
        self.refresh()

    def _refuse_foreign(self) -> None:
        """Raise UsageError for a line without answers, except a last line that is cut off."""
        items = read(self.path, format="jsonl", max_line=MAX_OUTPUT_LINE)
        whole = self.path.read_bytes().count(b"\n")
        for item in OwnByFields(None, self.path.parent).read(items):
            if not isinstance(item, LabelledItem) and item.line <= whole:
                message = f"{self.path}, line {item.line}: {item.fault}: name another file with -o"
                raise UsageError(message)

    @property
    def own(self) -> Mapping[Place, Annotation]:
        """The current answers of `annotator`."""
        return self.given[self.annotator]

    def _id(self, fields: Mapping[str, Any]) -> str | None:
        if (column := self._id_column) is None:
            return own_id(fields)
        return scalar_text(fields.get(key_for(fields, column)))

    def refuse_other_text(self, record: str, fields: Mapping[str, Any]) -> None:
        """Raise UsageError if the file has another record with the id in these fields."""
        if (id := self._id(fields)) is not None and self._records.get(id, record) != record:
            raise UsageError(
                f"{self.path} has answers about another text of record {id!r}: name another file"
            )

    def refresh(self) -> None:
        """Read the whole lines appended since the last call; if the file is shorter, gone or
        written anew, read it from the start.

        Raises:
            JudgeError: the file cannot be read.
        """
        try:
            self._refresh()
        except OSError as error:
            raise unwritable(f"{self.path} cannot be read", error) from error

    def _refresh(self) -> None:
        about = self.path.stat() if self.path.exists() else None
        size, file_number = (about.st_size, about.st_ino) if about else (0, 0)
        if size < self._end or file_number != self._file_number:
            self._forget(file_number)
        if not size:
            return
        with self.path.open("rb") as file:
            file.seek(max(self._end - 1, 0))
            if self._end and file.read(1) != b"\n":
                self._forget(file_number)
            file.seek(self._end)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._end += len(line)
                self._take(parsed(line) or {})

    def _forget(self, file_number: int) -> None:
        self.given, self._records = {self.annotator: {}}, {}
        self._end, self._file_number = 0, file_number

    def _take(self, fields: dict[str, Any]) -> None:
        try:
            items = list(self._form.items(Record(str(self.path), 0, fields), fields))
        except LabelError:
            return  # Another program's line; who opens the file next is told of it.
        record = label_key(fields)
        if (id := self._id(fields)) is not None:
            self._records[id] = record
        answers: dict[tuple[str, str], dict[Place, Annotation]] = {
            (check, annotator): {}
            for check, by_annotator in fields["labels"].items()
            for annotator in (by_annotator if isinstance(by_annotator, dict) else ())
        }
        for item in items:
            for one in item.annotations:
                texts = {"why": one.why or "", "asked": one.asked or ""}
                answer = replace(one, answer=item.spelt(one.answer), **texts)
                by_place = answers.setdefault((item.check, one.annotator), {})
                by_place[Place(record, item.check, item.number)] = answer
        for (check, annotator), new in answers.items():
            standing = self.given.setdefault(annotator, {})
            for place in [p for p in standing if p[:2] == (record, check)]:
                # The line repeats the answers to other entries; these keep their order.
                if place not in new or new[place].answer != standing[place].answer:
                    del standing[place]
            standing |= new

    def put(
        self,
        place: Place,
        answer: Annotation | None,
        fields: Mapping[str, Any],
        entries: int = 0,
        weight: float | None = None,
    ) -> None:
        """Append an answer to a question about the record with these fields; None takes back the
        earlier one. It is on disk when this returns.

        `entries` is the number of the record's entries that the check is asked about. The line has
        the annotator's answers to all of them, so that it is complete by itself.

        Raises:
            JudgeError: the file cannot be written.
        """
        numbers = range(1, entries + 1)
        standing = {n: self.own.get(place._replace(number=n)) for n in numbers}
        several = [*{**standing, place.number: answer}.values()]

        def of_line(part: str) -> Any:
            parts = [getattr(entry, part, None) for entry in several]
            return parts if place.number else parts[-1]

        texts = {name: of_line(name) for name in ("why", "asked")}
        about: dict[str, Any] = {n: {place.check: t} for n, t in texts.items() if any(t or ())}
        about |= {} if weight is None else {"weight": weight}
        line = dump(
            {
                **{name: part for name, part in fields.items() if name != "annotators"},
                "labels": {place.check: {self.annotator: of_line("answer")}},
                **({"annotators": {self.annotator: about}} if about else {}),
            }
        )
        try:
            self._append(line)
        except OSError as error:
            raise unwritable(f"{self.path} cannot be written", error) from error
        self.refresh()
        if answer is not None:  # Undo takes back the last answer in this order.
            self.given[self.annotator][place] = self.given[self.annotator].pop(place)

    def _append(self, line: bytes) -> None:
        """Write the line after the last whole one, and flush it to disk."""
        new = not self.path.exists()
        with self.path.open("ab+", buffering=0) as file:
            while not lock(file.fileno()):  # Another process is writing an answer.
                time.sleep(0.01)
            self.refresh()
            file.seek(self._end)
            if parsed(file.read()) is not None:
                line = b"\n" + line
            else:
                file.truncate(self._end)
            view = memoryview(line)
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())
        if new:
            sync_folder(self.path)

"""Reads the first records of a run before any is judged: a field that none has ends it early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from unicodedata import normalize

from judge.errors import UsageError
from judge.judging.prompts import LACKS
from judge.questions.from_flags import test_from_flag
from judge.questions.ready_made import ready_made
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.answers import by_spelling, spelling
from judge.records.base import NO_CONTENT, RESERVED, flat, holds, no_such_field, stratum
from judge.records.kinds import RECORD
from judge.records.names import plain_name
from judge.records.read import flag_of
from judge.records.text import form, shown
from judge.settings import Settings

MAX_LOOK_AHEAD = 10_000
"""How many records are read ahead, at most, to look for the fields of --on, --test, --by and
--map."""

MAX_LISTED = 20
"""How many fields a message lists."""


class LookAhead:
    """The records read ahead, and what they lack.

    Args:
        rubrics: the user's own.
        by: the fields by which the summary groups records.
        search: whether to read on until a record can be judged, also if all rubrics name fields.
        part: the flags that leave records out.

    `items`: the records; `first`: the first that can be judged; `shown`: which of its fields are
    shown, if a rubric names none, and `hidden` which are not; `compared`: the message on the fields
    that a comparison leaves out; `origins`: the fields that the user's own rubrics need, each with
    the flag or rubric that names it.
    """

    def __init__(
        self,
        settings: Settings,
        rubrics: Sequence[Rubric],
        by: Sequence[str],
        *,
        search: bool,
        part: str = "",
    ) -> None:
        self._part = part
        self.items: list[Record] = []
        self.first: Record | None = None
        self.shown: str | None = None
        self.hidden: dict[str, str] = {}
        self.compared: str | None = None
        self._rubrics, self._columns = rubrics, settings.columns
        self._whole = any(not (rubric.fields or rubric.tested) for rubric in rubrics)
        self._search = search or self._whole
        self._flags = _fields_of_flags(settings)
        self.origins = {
            field: f"rubric {rubric.name}: {field}"
            for rubric in reversed(rubrics)
            for field in rubric.required
        } | self._flags
        self._absent = self.origins
        self._by = {*by}
        self._paths = {flag_of(name, path): path for name, path in self._columns.items()}
        self._askable, self._reason = not rubrics, ""
        self._problem: str | None = None

    @property
    def complete(self) -> bool:
        """Whether no further record need be read."""
        if len(self.items) >= MAX_LOOK_AHEAD:
            return True
        sought = self._absent.keys() & self._flags or self._paths or self._by or not self._askable
        return not (sought or (self._search and self.first is None))

    def add(self, item: Record, record: Record, *, asked: bool) -> None:
        """Add a record as it was read, and as checks see it.

        Args:
            asked: whether a workflow or a question applies to it, or it cannot be read.
        """
        self.items.append(item)
        renamed = {RESERVED: item.input_key or RESERVED}
        self._paths = {
            origin: path
            for origin, path in self._paths.items()
            if not holds(item.fields, renamed.get(path, path))
        }
        self._by = {
            name
            for name in self._by
            if stratum(item.fields, [renamed.get(name, name)]) == (NO_CONTENT,)
        }
        if record.problem is not None:
            if not asked and self._problem is None:
                self._problem = f"line {item.line} of {item.source}: {record.problem.message}"
            return
        if self.first is None:
            self._note_fields(record)
        lacks = [_lack(rubric, record) for rubric in self._rubrics]
        self._reason = self._reason or next(filter(None, lacks), "")
        self._askable = self._askable or record.kind != RECORD or not all(lacks)
        self._absent = {n: why for n, why in self._absent.items() if not record.has(n)}

    def _note_fields(self, record: Record) -> None:
        self.first = record
        if self._whole:
            self.shown, self.hidden = fields_shown(record), record.hidden()
            self.shown += self._answers_among(record)
        else:
            self.compared = compared_alone(self._rubrics, record)

    def _answers_among(self, record: Record) -> str:
        """The warning that a field that is shown, or one in it, holds an answer of a question; else
        ""."""
        rubrics = [rubric for rubric in self._rubrics if not (rubric.fields or rubric.tested)]
        answers = {form for rubric in rubrics for form in by_spelling(rubric.answers)}
        parts = {name: record.texts.content(name) for name in record.texts}
        leaves = {path: shown(part).text for path, part in flat(parts).items()}
        names = [plain_name(name) for name, text in leaves.items() if spelling(text) in answers]
        if not names:
            return ""
        verb = "holds an answer" if len(names) == 1 else "hold answers"
        return (
            f"; {', '.join(names)} {verb} to the question: if people's, name the others with --on"
        )

    def refuse(self) -> None:
        """Raise UsageError if a field is in no record, every record would be skipped, or no
        question is asked; the first two only if all records of the input were read.
        """
        among = f"none of the records of {self._part}" if self._part else "no record"
        first, whole = self.first, len(self.items) < MAX_LOOK_AHEAD
        readable = next((item.fields for item in self.items if item.fields), None)
        paths = {**self._paths, **{f"--by {name}": name for name in sorted(self._by)}}
        if readable and paths and whole:
            raise UsageError(no_such_field(*next(iter(paths.items())), readable, among))
        if first is None:
            if self._problem is not None:
                raise UsageError(f'add --ask "QUESTION" or --rubric FILE: {self._problem}')
            return
        if whole and (typed := self._absent.keys() & self._flags):
            name = min(typed)
            raise UsageError(no_field(self._absent[name], name, first, self._columns, among))
        if not self._askable and whole:
            for name, origin in self._absent.items():
                raise UsageError(no_field(origin, name, first, self._columns, among))
            raise UsageError(f"every record would be skipped: {self._reason}")


def _fields_of_flags(settings: Settings) -> dict[str, str]:
    """The fields that --on and --test name, each with its flag."""
    tested = (field for text in settings.test for field in test_from_flag(text).required)
    shown = settings.on if settings.questions else ()
    return {name: f"--test {name}" for name in tested} | {name: f"--on {name}" for name in shown}


def no_field(
    origin: str, name: str, first: Record, columns: Mapping[str, str], among: str = "no record"
) -> str:
    """The message that no record has a field: --id or --map may have renamed it; for a ready-made
    rubric it suggests --map."""
    for new, column in columns.items():
        if column == name:
            flag = flag_of(new, column)
            return f"{origin}: with {flag} the field is {new}: name that, or leave {flag} out"
    message = no_such_field(origin, name, [*first.texts], among)
    of_ready = origin.removeprefix("rubric ").partition(":")[0] in ready_made()
    return f"{message} (--map {name}=COLUMN names yours)" if of_ready else message


def fields_shown(record: Record) -> str:
    """The message that lists the fields that a rubric without `fields` shows, and why it does not
    show the others."""
    contents, omissions = record.contents(), record.hidden()
    forms = {name: form(content) for name, content in contents.items() if name in record.texts}
    message = f"fields shown: {listed(forms) or 'none'}"
    return f"{message}; not shown: {listed(omissions)}" if omissions else message


def compared_alone(rubrics: Sequence[Rubric], record: Record) -> str | None:
    """The message that a comparison shows only the fields compared, if the record has others."""
    pairs = [r for r in rubrics if r.compare is not None and {*r.fields} == {*r.compare}]
    compared = dict.fromkeys((name for rubric in pairs for name in rubric.fields), "compared")
    there = [name for name in record.contents() if name in record.texts]
    further = [name for name in there if normalize("NFC", name) not in compared]
    if not pairs or not further:
        return None
    return (
        f"fields shown: {listed(compared)}; not shown: {listed(dict.fromkeys(further, ''))}: "
        "name those that the judge needs with --on (in a rubric: fields)"
    )


def _lack(rubric: Rubric, record: Record) -> str | None:
    """Why this rubric is skipped on the record, which lacks fields; None if it has all."""
    lacking = [name for name in rubric.required if not record.has(name)]
    return f"{rubric.name}: {LACKS}{', '.join(lacking)}" if lacking else None


def listed(names: Mapping[str, str]) -> str:
    """Names with what is said about each, such as `label (people's answers)`; the first
    `MAX_LISTED`."""
    parts = [
        f"{plain_name(name)} ({why})" if why else plain_name(name)
        for name, why in islice(names.items(), MAX_LISTED)
    ]
    remainder = len(names) - len(parts)
    return ", ".join([*parts, f"and {remainder} more"] if remainder else parts)

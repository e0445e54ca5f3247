"""Reads and validates labels, and removes the fields that hold people's answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from judge.calibration.answer_fields import MAX_CATEGORIES, without_answers
from judge.calibration.observe import record_for, texts_of
from judge.digest import digest
from judge.errors import UsageError
from judge.questions.answers import in_words_of
from judge.questions.rubric import ASKED, Rubric
from judge.records import Problem, Record
from judge.records.answers import OWN_ANSWERS, SEVERAL
from judge.records.base import clip, key_for
from judge.records.labels import UNNAMED, LabelledItem, no_label, read_labels, without_label
from judge.records.labels.matching import SharedNames

RubricOf = Callable[[str], Rubric]
"""Gives the rubric of a check; raises UsageError if there is none."""


@dataclass(frozen=True, slots=True)
class CalibrationJob:
    """The labels of a calibration, and its options.

    - `sources`: files with labels, or NAME:PATH of a public set
    - `checks`: the checks to calibrate; empty: all. A single one also names labels without a check
    - `records`: how many records to draw per check and source, by source if a mapping; None: all
    - `held_out`: the share of the records (0 to 1) not used for fitting; None: the default
    - `folds`: the number of parts for cross-validation, each reported on by a fit to the others;
      None: one part is for fitting and the other for the report
    - `by`: fields to report results by
    - `group`: a field whose values are never both in the fitting and in the report
    - `contrast_set`: a set of labels in which the deciding field is turned round
    - `test_sets`: further sets to report on, not used for fitting
    - `adapters`: whether the embedded model uses the shipped adapters
    - `controls`: whether each judge is also asked without the deciding field, and with another's
    - `agreement`: the agreement with people to guarantee (0.5 to 1); None for no guarantee
    - `draws`, `seed`: resamples of each interval, and the seed of everything random
    - `problems`: problems of labels that were left out earlier
    - `labels_in`: the columns of the labels in messages; None: by the column or the check
    - `label_places`: the file and line of the label of each record, by id, if not with the record
    """

    sources: Sequence[str]
    checks: Sequence[str] = ()
    held_out: float | None = None
    folds: int | None = None
    records: int | Mapping[str, int | None] | None = None
    by: Sequence[str] = ()
    group: str | None = None
    contrast_set: str | None = None
    test_sets: Sequence[str] = ()
    adapters: bool = False
    controls: bool = True
    agreement: float | None = None
    draws: int = 1000
    seed: int = 0
    problems: Sequence[Record] = ()
    labels_in: str | None = None
    label_places: Mapping[str, tuple[str, int]] = field(default_factory=dict)


class JobLabels(NamedTuple):
    """The labelled items of a job by check, the lines left out, with their problem, and how many
    rows have no label."""

    items: dict[str, list[LabelledItem]]
    problems: list[Record]
    blank: int


def gather(
    job: CalibrationJob, rubric_of: RubricOf, columns: Mapping[str, str] = MappingProxyType({})
) -> JobLabels:
    """The job's labelled items, and what was left out.

    If an earlier source has the same item, answers of other annotators are added to it. Left out
    are unreadable lines, items with an answer that their check's rubric does not have, and repeated
    items. `columns` maps field names to the columns that hold them.

    Raises:
        UsageError: a source cannot be read, a requested check has no label that is an answer of its
            rubric, a check with labels has no rubric, the labels for an unnamed question name
            different checks, or an item lacks the field to group by.
    """
    labels = _LabelReader(job, rubric_of, columns)
    for source in job.sources:
        labels.read(source)
    items = labels.by_check()
    labels.refuse_unusable()
    return JobLabels(items, labels.problems, len(labels.blank))


class _LabelReader:
    """The labels of a job, as its sources are read: the items, and what cannot be used and why."""

    def __init__(
        self, job: CalibrationJob, rubric_of: RubricOf, columns: Mapping[str, str]
    ) -> None:
        self.problems: list[Record] = [*job.problems]
        self._job, self._rubric_of, self._columns = job, rubric_of, columns
        column = clip(columns["label"]) if "label" in columns else None
        self._labels_in = job.labels_in or column
        self._rubrics: dict[str, Rubric] = {}
        self._entries: list[tuple[str, LabelledItem]] = []
        self._places: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        self._names = SharedNames()
        self._usable: set[str] = set()
        self._strange: list[Record] = []
        self._unknown: dict[str, None] = {}
        self._undecided: dict[str, None] = {}
        self.blank: list[int] = []
        self._others: dict[str, str] = {}

    def read(self, source: str) -> None:
        """Add the source's items for the job's checks; raises UsageError."""
        for item in self._requested(source):
            if isinstance(item, Record):
                self.problems.append(item)
                continue
            if item.check not in self._rubrics:
                self._rubrics[item.check] = self._rubric(item)
            item = in_words_of(self._names.of(item), self._rubrics[item.check])
            record, places = item.record, self._job.label_places
            if (problem := self._wrong(item)) is not None:
                file, line = places.get(record.id, (record.source, record.line))
                record = replace(record, source=file, line=line)
                self._strange.append(replace(record, problem=problem))
            elif (problem := self._add(source, item)) is None:
                continue
            if (left_out := replace(record, problem=problem)) not in self.problems[-1:]:
                self.problems.append(left_out)  # Once of a list, of which each answer is an item.

    def _requested(self, source: str) -> Iterator[LabelledItem | Record]:
        """The source's items for the requested checks, and its problems.

        Labels without a check get the check that was requested, if it is one. If the request is for
        an unnamed question, it gets the labels of the source's only check. The checks of the other
        labels are noted, each with its first source.
        """
        checks = self._job.checks
        labels = list(read_labels(source, columns=self._columns, blank=self.blank))
        there = dict.fromkeys(item.check for item in labels if isinstance(item, LabelledItem))
        unnamed = [*there] == [UNNAMED] or (len(there) == 1 and [*checks] == [ASKED])
        if len(there) > 1 and [*checks] == [ASKED] and ASKED not in there:
            how = f"choose one, --map label={next(iter(there))}"
            raise UsageError(f"{source} has labels for {', '.join(there)}: {how}")
        for item in labels:
            if isinstance(item, Record) or not checks or item.check in checks:
                yield item
            elif not (unnamed and len(checks) == 1):
                self._others.setdefault(item.check, source)
            elif item.check == UNNAMED:
                yield replace(item, check=checks[0])
            else:
                yield replace(item, check=checks[0], named=item.check)

    def _rubric(self, item: LabelledItem) -> Rubric:
        try:
            return self._rubric_of(item.check)
        except UsageError as error:
            message = f"{item.record.source}:{item.record.line}: {_label_name(item)}: {error}"
            if self._job.checks:
                raise UsageError(message) from error
            remedy = (
                "name the checks that are meant with --check, or the rubric's file with --rubric"
            )
            if item.check == UNNAMED:
                remedy = "name the check with --check"
            raise UsageError(f"{message}; {remedy}") from error

    def _wrong(self, item: LabelledItem) -> Problem | None:
        """Why the item's answers cannot be used; None if they can."""
        rubric = self._rubrics[item.check]
        if (problem := _other_count(item, rubric)) is not None:
            return problem
        answers = rubric.answers
        problem = self._no_answer(item, answers)
        spellings = dict.fromkeys(map(item.spelt, _answers_of(item)))
        if problem is not None:
            # A comparison's answers are always the names of its fields.
            self._unknown |= spellings if item.check == ASKED and not rubric.comparing else {}
        elif {*answers}.isdisjoint(_answers_of(item)):
            self._undecided |= spellings
        else:
            self._usable.add(item.check)
        return problem

    def _no_answer(self, item: LabelledItem, answers: Sequence[str]) -> Problem | None:
        """The problem of an item with an answer that is none of these; None if it has none."""
        name = self._labels_in or _label_name(item)
        pairs = [] if item.gold is None else [(name, item.gold)]
        for annotation in item.annotations:
            person = clip(annotation.annotator)
            # An item of a table has the line of its first row, which may be another annotator's.
            where = person if "annotators" in self._columns else f"{name} of {person}"
            pairs.append((f"{where}, item {clip(item.record.id)},", annotation.answer))
        # An answer is one or several of the rubric's, or an undecided one.
        usable = {*answers, *OWN_ANSWERS}
        for place, answer in pairs:
            parts = answer.split(SEVERAL)
            if not usable.issuperset(parts):
                given = clip(SEVERAL.join(map(item.spelt, parts)))
                return Problem(f"{place} must be one of {', '.join(answers)}, not {given}")
        return None

    def _add(self, source: str, item: LabelledItem) -> Problem | None:
        """Add the item, or its answers to those of the same item; a problem if they are there."""
        alike = self._places[item.key]
        earlier = [(n, self._entries[n][1]) for n in alike]
        index = _earlier(earlier, item, self._rubrics[item.check])
        if index is None:
            alike.append(len(self._entries))
            self._entries.append((source, item))
            return None
        origin, first = self._entries[index]
        joined = _joined(first, item)
        if joined is None:
            return _repeated(item, first)
        self._entries[index] = origin, joined
        return None

    def by_check(self) -> dict[str, list[LabelledItem]]:
        """The items to judge by check: of each source as many as the job draws, without people's
        answers in their fields; raises UsageError."""
        job = self._job
        for check in self._rubrics:
            refuse_mixed(entry for entry in self._entries if entry[1].check == check)
        parts: dict[str, dict[str, list[LabelledItem]]] = {}
        for source, item in self._entries:
            parts.setdefault(source, {}).setdefault(item.check, []).append(item)
        labels: dict[str, list[LabelledItem]] = defaultdict(list)
        for source, part in parts.items():
            records = job.records.get(source) if isinstance(job.records, Mapping) else job.records
            for check, items in part.items():
                visible = without_answers(items, self._rubrics[check])
                drawn = visible if records is None else sample(visible, records, job.seed)
                labels[check] += drawn if job.group is None else grouped(drawn, job.group)
        return labels

    def refuse_unusable(self) -> None:
        """Raise UsageError if a requested check has no label that answers its question."""
        checks = self._job.checks
        if self._usable and self._usable.issuperset(checks):
            return
        named = [check for check in checks if check not in (ASKED, *self._usable)]
        without = "label answers the question" if [*checks] == [ASKED] else "labels at all"
        lack = f"labels for {named[0]}" if named else without
        message = f"{', '.join(self._job.sources)}: no {lack}"
        if self._undecided:
            message += f" ({', '.join(self._undecided)}: decides nothing)"
        if self._others:
            message += f"; there are labels for {', '.join(self._others)}"
        if self.blank:
            column = self._columns.get("label", "label")
            message += f"; {without_label(len(self.blank))}: people answer in the column {column}"
            message += ", or in the field labels of JSON"
        if none := sum(item.left_out for _, item in self._entries):
            message += f"; {no_label(none)}"
        # A label that answers no question tells more than a line with another fault.
        for item in (self._strange or self.problems)[:1]:
            place, why = f"{item.source}:{item.line}", item.fault
            message += f"; a line that cannot be used is {place}: {why}"
        raise UsageError(f"{message}{_to_type([*self._unknown])}")


def refuse_mixed(entries: Iterable[tuple[str, LabelledItem]]) -> None:
    """Raise UsageError if labels that name different checks were taken for one; `entries` are its
    items, each with its source."""
    sources: dict[str, str] = {}
    for source, item in entries:
        sources.setdefault(item.named or item.check, source)
    if len(sources) > 1:
        (first, place), (name, source), *_ = sources.items()
        raise UsageError(
            f"{source} has labels for {name}, and {place} for {first}: choose one, --name {name}"
        )


def _other_count(item: LabelledItem, rubric: Rubric) -> Problem | None:
    """The problem of a list of answers that is longer or shorter than the list that they are about:
    which is about which is unknown. The rows of a sheet are numbered, and some may be deleted."""
    if not (rubric.each and item.of) or item.rows:
        return None
    count = len(record_for(item, rubric).entries(rubric.each))
    if count in (0, item.of):  # Of a record without entries, the run says why it is not asked.
        return None
    return Problem(
        f"label {clip(item.check)} needs an answer for each entry of {rubric.each} that is not "
        f"empty: {count}, not {item.of}"
    )


def labels_taken(items: Iterable[LabelledItem]) -> tuple[str, ...]:
    """The checks that the items' labels name, where they were taken for another."""
    return tuple(
        dict.fromkeys(item.named for item in items if item.named not in (None, item.check))
    )


def _answers_of(item: LabelledItem) -> Iterator[str]:
    for answer in (item.gold, *(annotation.answer for annotation in item.annotations)):
        yield from answer.split(SEVERAL) if answer else ()


def _to_type(words: Sequence[str]) -> str:
    """The flags that make such labels the answers of a question on the command line."""
    if not 1 < len(words) <= MAX_CATEGORIES or any("," in word for word in words):
        return ""
    answers = ",".join(words)
    return f"; to ask for these words, type --answers '{answers}' --pass and the one that passes"


def _earlier(
    items: Sequence[tuple[int, LabelledItem]], item: LabelledItem, rubric: Rubric
) -> int | None:
    """The index of the item about the same record, among earlier ones of its name.

    Each annotator's file may have columns of its own, such as comments. So if the rubric names the
    fields that are shown, they alone tell whether another annotator's answers are added.
    """
    texts = texts_of(item, rubric) if items and rubric.fields else {}
    records = (n for n, earlier in items if _same_record(earlier, item))
    by_texts = (
        n
        for n, earlier in items
        if texts and _joined(earlier, item) and texts == texts_of(earlier, rubric)
    )
    return next(chain(records, by_texts), None)


def _same_record(one: LabelledItem, other: LabelledItem) -> bool:
    """Whether two items of one name are about one record.

    Only shared fields are compared, because a sheet has only the fields that people were shown.
    """
    fewer, more = sorted((one.record.fields, other.record.fields), key=len)
    shared = all(name in more and more[name] == content for name, content in fewer.items())
    return shared and bool(fewer) >= bool(more)


def _joined(first: LabelledItem, item: LabelledItem) -> LabelledItem | None:
    """The item with the answers of both; None unless these are from different annotators."""
    annotators = {annotation.annotator for annotation in first.annotations}
    single = first.gold is None is item.gold and annotators
    if not single or any(one.annotator in annotators for one in item.annotations):
        return None
    return replace(
        first,
        annotations=(*first.annotations, *item.annotations),
        rows=(*first.rows, *item.rows),
        weight=first.weight_beside(item),
        left_out=first.left_out + item.left_out,
        read_as={**first.read_as, **item.read_as},
    )


def _repeated(item: LabelledItem, first: LabelledItem) -> Problem:
    place = f"{first.record.source}:{first.record.line}"
    message = f"{_label_name(item)}: item {clip(item.record.id)} was already on {place}"
    return Problem(f"{message}; give each item once, with all of its answers", type="duplicate-id")


def _label_name(item: LabelledItem) -> str:
    number = f" (value {item.number})" if item.number else ""
    return f"label {clip(item.check)}{number}"


def grouped(
    items: Sequence[LabelledItem], name: str, *, everywhere: bool = True
) -> list[LabelledItem]:
    """The items, grouped by the value of a slice or field.

    Raises:
        UsageError: an item lacks it, and `everywhere` requires it of every item.
    """
    items_grouped = []
    for item in items:
        fields = {**item.record.visible, **item.slices}
        group = fields.get(key_for(fields, name))
        no_group = group in (None, "")
        if no_group and everywhere:
            place = f"{item.record.source}:{item.record.line}"
            raise UsageError(f"{place}: item {clip(item.record.id)} has no '{name}' to group by")
        items_grouped.append(item if no_group else replace(item, group=f"{name}={group}"))
    return items_grouped


def sample(items: Sequence[LabelledItem], records: int, seed: int = 0) -> list[LabelledItem]:
    """All items of `records` records, drawn with the seed."""
    names = sorted({item.record.id for item in items}, key=lambda name: drawn(name, seed))
    names_drawn = set(names[:records])
    return [item for item in items if item.record.id in names_drawn]


def drawn(name: str, seed: int) -> str:
    """A sort key that orders names at random, by the seed."""
    return digest(f"{seed}\n{name}".encode("utf-8", "surrogatepass"), 64)


def unreadable_lines(problems: Iterable[Record]) -> list[dict[str, Any]]:
    """Lines of labels that could not be read, in the form that reports have."""
    return [{"source": item.source, "line": item.line, "message": item.fault} for item in problems]

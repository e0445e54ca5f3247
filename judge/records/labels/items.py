"""Labelled items, the base class of label sets, and the project's own form of labels.

The own form is JSON lines: a record, as it is validated or as `judge validate` wrote it, with

    "labels": {CHECK: ANSWER}                   a reference answer (gold)
    "labels": {CHECK: {ANNOTATOR: ANSWER}}      each annotator's answer
    "annotators": {ANNOTATOR: {"group": ...}}   optional. "labels", {CHECK: ANSWER}: answers beside
                                                a reference; "why", {CHECK: TEXT}: reasons of
                                                answers; "asked", {CHECK: TEXT}: the question in
                                                the words that were asked; "weight": the number of
                                                records that the labelled one stands for (default
                                                1), if records were drawn with different chances
    "author"                                    optional: who gave the labels

For a check about values, ANSWER is a list with one answer for each value. null means no label.
Spellings of an answer are unified (`judge.records.answers`). Several lines may hold annotators'
answers about one record (the same fields): an annotator's last answer to a check counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from judge.records.answers import (
    NO_LABEL,
    SEVERAL,
    scalar_text,
    spelling,
    without_no_label,
    written,
)
from judge.records.base import RESERVED, LabelError, SeenIds, clip, content_hash
from judge.records.fields import answer_of, id_text, object_of, refused, slices_of
from judge.records.kinds import find_names, kind_named, normalise, recognise
from judge.records.lines import Line
from judge.records.record import Record

ABOUT_LABELS = ("labels", "annotators", "author", RESERVED)
"""The fields with people's answers and what is known of the people."""


def label_key(fields: Mapping[str, Any]) -> str:
    """The hash of a record's fields without labels; lines about one record share it."""
    return content_hash({name: part for name, part in fields.items() if name not in ABOUT_LABELS})


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answer about one item; `why` is the reason, `group` for example a
    nationality (one named `all`, as figures call everyone, is `all (group)`), `asked` the question
    in the words that were asked."""

    annotator: str
    answer: str
    group: str | None = None
    why: str | None = None
    asked: str | None = None

    def __post_init__(self) -> None:
        if self.group == "all":
            object.__setattr__(self, "group", "all (group)")


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One question about one record, and the answers to it.

    Attributes:
        record: the fields that a judge may be shown, under typed names. Items whose records have
            the same name are about one record.
        check: the name of the question.
        number: the value that the check asks about (from 1), or 0 for the whole record.
        gold: the data set's own reference answer.
        annotations: the annotators' answers.
        slices: the fields to group results by.
        group: the name shared by items that are not independent ("": those about one record).
        withheld: the fields left out of the record because they hold people's answers.
        left_out: the number of answers that meant no label.
        settled: whether `gold` is the outcome of people's answers, also if it is None.
        rows: the rows of a sheet of `judge label` that ask this question; their fields are the
            texts that people were shown.
        weight: the number of records that this one stands for in estimates.
        read_as: the labels that `answered` read as another answer, each with that answer.
        named: the check that the label names, if it was taken for another.
        written: the answers as the file spells them, by their normal form.
        of: the length of the list of answers that this one is of (0: there is no list).
    """

    record: Record
    check: str
    number: int = 0
    gold: str | None = None
    annotations: tuple[Annotation, ...] = ()
    slices: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    withheld: tuple[str, ...] = ()
    left_out: int = 0
    settled: bool = False
    rows: tuple[Record, ...] = ()
    weight: float = 1.0
    read_as: Mapping[str, str] = field(default_factory=dict)
    named: str | None = None
    written: Mapping[str, str] = field(default_factory=dict, compare=False)
    of: int = 0

    def spelt(self, answer: str) -> str:
        """An answer as the file spells it."""
        return self.written.get(answer, answer)

    @property
    def cluster(self) -> str:
        """The name shared by items that are never split between fitting and reporting: the group,
        else the record (`judge.calibration.split` gives every item its group)."""
        return self.group or self.record.id

    def weight_beside(self, item: LabelledItem) -> float:
        """The weight of the record that both are about: a file without weights tells none."""
        return item.weight if self.weight == 1 else self.weight

    def answered(
        self, answers: Collection[str] = (), words: Mapping[str, str] = MappingProxyType({})
    ) -> LabelledItem:
        """The item with its answers in the spelling of `answers` (a rubric's), and without those
        that mean no label (`NO_LABEL`), unless the rubric has them. `words` maps further words to
        answers."""
        spellings = {**words, **{spelling(answer): answer for answer in answers}}
        given = [self.gold or "", *(annotation.answer for annotation in self.annotations)]
        said = {part for answer in given for part in answer.split(SEVERAL)} & words.keys()
        read_as = {w: spellings[w] for w in sorted(said) if spellings[w] != w}

        def spelt(answer: str | None) -> str | None:
            text = without_no_label(answer, spellings) if answer is not None else None
            return text and SEVERAL.join(spellings.get(part, part) for part in text.split(SEVERAL))

        gold, pairs = (
            spelt(self.gold),
            [(annotation, spelt(annotation.answer)) for annotation in self.annotations],
        )
        annotations = tuple(
            replace(annotation, answer=answer) for annotation, answer in pairs if answer is not None
        )
        left_out = len(pairs) - len(annotations) + (self.gold != gold is None)
        return replace(self, gold=gold, annotations=annotations, left_out=left_out, read_as=read_as)

    @property
    def reference(self) -> str | None:
        """The answer that judges are compared with: gold, else that of more than half of the
        annotators, else None."""
        if self.gold is not None or self.settled or not self.annotations:
            return self.gold
        counts = Counter(annotation.answer for annotation in self.annotations)
        answer, count = counts.most_common(1)[0]
        return answer if 2 * count > len(self.annotations) else None


Labelled = LabelledItem | Record
"""What a reader yields: a labelled item, or a line with its problem."""


class LabelSet:
    """A form of labelled data, and the reader of one set of that form.

    `files` are the patterns of a set's files in a folder. In a `merged` set, lines about one record
    and check make one item, and all items are yielded after the last line. Without `unique_ids`
    several records may have one id. `check` is the check that was asked for, `folder` the folder of
    the files (None: standard input).
    """

    name: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = ()
    merged: ClassVar[bool] = False
    unique_ids: ClassVar[bool] = True

    def __init__(self, check: str | None, folder: Path | None) -> None:
        self.check, self.folder, self._ids = check, folder, SeenIds()
        self._unnamed: Counter[str] = Counter()
        self._held: dict[tuple[str, str, int], tuple[LabelledItem, dict[str, Annotation]]] = {}
        self.start()

    def start(self) -> None:
        """Prepare for the first line."""

    def items(self, item: Record, fields: dict[str, Any]) -> Iterable[LabelledItem]:
        """The labelled items of a line. Raises LabelError if the line cannot be used."""
        raise NotImplementedError

    def rest(self) -> Iterable[LabelledItem]:
        """The items that are known only after the last line."""
        for item, by_annotator in self._held.values():
            yield replace(item, annotations=tuple(by_annotator.values()))

    def record(
        self,
        item: Record,
        fields: dict[str, Any],
        id: object = None,
        field: str = "id",
        source: str = "",
    ) -> Record:
        """A line's record, with the `fields` that a judge may be shown.

        Its name is its id, else `SOURCE#LINE`, then `SOURCE#LINE.2` and so on for further records
        of the line. Raises LabelError for an invalid or repeated id.
        """
        identifier = id_text(id, field)
        line = f"line {item.line} of {item.source}"
        first = None if identifier is None else self._ids.first_place(identifier, line)
        if first is not None and self.unique_ids:
            raise LabelError(f"id {clip(identifier)} was already on {first}", field, "duplicate-id")
        if identifier is None or first is not None:
            place = f"{source or item.source}#{item.line}"
            self._unnamed[place] += 1
            count = self._unnamed[place]
            identifier = place if count == 1 else f"{place}.{count}"
        return Record(item.source, item.line, fields, name=identifier)

    def read(self, items: Iterable[Record]) -> Iterator[Labelled]:
        """The labelled items of all lines; an unusable line is yielded with its problem."""
        for item in items:
            if item.fields is None:
                yield item
                continue
            try:
                labels = list(self.items(item, item.fields))
                for labelled in labels if self.merged else ():
                    self._hold(labelled)
            except LabelError as error:
                yield refused(item, error.problem)
            else:
                yield from [] if self.merged else labels
        yield from self.rest()

    def _hold(self, item: LabelledItem) -> None:
        key = (item.record.id, item.check, item.number)
        first, by_annotator = self._held.setdefault(key, (item, {}))
        golds = [gold for gold in (first.gold, item.gold) if gold not in (None, *NO_LABEL)]
        if len({*golds}) > 1:
            message = f"field 'gold' differs from line {first.record.line} of this item"
            raise LabelError(message, "gold")
        for annotation in item.annotations:
            if by_annotator.setdefault(annotation.annotator, annotation) is not annotation:
                annotator = f"annotator {clip(annotation.annotator)}"
                message = (
                    f"{annotator} labelled item {clip(item.record.id)} on an earlier line already"
                )
                raise LabelError(message, "annotator")
        gold = golds[0] if golds else first.gold or item.gold
        slices = {**item.slices, **first.slices}
        rows = (*first.rows, *(() if first is item else item.rows))
        spelt = {**item.written, **first.written}
        joined = replace(first, gold=gold, slices=slices, rows=rows, written=spelt)
        self._held[key] = joined, by_annotator


class Own(LabelSet):
    """The project's own form: an item for each check of a line, or each value it asks about.

    Slices are the short scalar fields, `author`, and in output of `judge validate` `edited` (yes or
    no: whether the record was rewritten). A line without labels is a problem of type `unlabelled`.
    """

    name = "own"
    merged = True

    def start(self) -> None:
        self._names: dict[str, str] = {}
        self._most = 0

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        """Whether a line has this form."""
        return isinstance(fields.get("labels"), dict)

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        if fields.get("labels") is None:
            message = "field 'labels' is missing: the line has no labels"
            raise LabelError(message, "labels", "unlabelled")
        visible, values = typed_fields(fields)
        slices = slices_of({**visible, "author": fields.get("author")})
        if (line := Line.of(fields)) is not None:
            slices["edited"] = "yes" if line.edits else "no"
        answers_by_check = {
            check: _answers(answers, f"labels.{check}", values)
            for check, answers in object_of(fields["labels"], "labels").items()
        }
        people_fields = {
            annotator: object_of(about, annotator)
            for annotator, about in object_of(fields.get("annotators") or {}, "annotators").items()
        }
        groups = {name: scalar_text(about.get("group")) for name, about in people_fields.items()}
        for annotator, about in people_fields.items():
            for check, given in object_of(about.get("labels") or {}, f"{annotator}.labels").items():
                numbered = _answers({annotator: given}, f"labels.{check}", values)
                for number, answers in numbered.items():
                    answers_by_check.setdefault(check, {}).setdefault(number, {}).update(answers)
        record = self._about(item, visible, fields["labels"])
        weight = _weight(people_fields)
        for check, numbered in answers_by_check.items():
            spelt = written([fields["labels"].get(check)])
            by_people = [p["labels"] for p in people_fields.values() if p.get("labels")]
            settled = any(check in answers for answers in by_people)
            of = max(_longest(given.get(check)) for given in (fields["labels"], *by_people))
            for number, answers in numbered.items():
                self._most = max(number, self._most)
                annotations = tuple(
                    Annotation(
                        annotator,
                        answer,
                        groups.get(annotator),
                        _reason(people_fields.get(annotator), check, number),
                        _asked(people_fields.get(annotator), check, number),
                    )
                    for annotator, answer in answers.items()
                    if annotator is not None
                )
                gold = answers.get(None)
                item_of = LabelledItem(record, check, number, gold, annotations, slices)
                yield replace(item_of, settled=settled, weight=weight, written=spelt, of=of)

    def rest(self) -> Iterator[LabelledItem]:
        return (item for item in super().rest() if item.gold or item.annotations or item.settled)

    def _about(self, item: Record, visible: dict[str, Any], labels: Mapping[str, Any]) -> Record:
        """The line's record. If an earlier line is about it, too, this line's annotators' answers
        to the same checks there are dropped."""
        name = self._names.get(content := content_hash(visible))
        if name is None or not all(isinstance(answers, dict) for answers in labels.values()):
            key = next((key for key in visible if normalise(key) == "id"), "id")
            record = self.record(item, visible, visible.get(key), key)
            self._names[content] = record.name
            return record
        for check, answers in labels.items():
            for number in range(self._most + 1):
                _, by_annotator = self._held.get((name, check, number), (None, {}))
                for annotator in answers:
                    by_annotator.pop(annotator, None)
        return Record(item.source, item.line, visible, name=name)


class OwnByFields(Own):
    """The project's own form where a record is known by its fields (`label_key`), not by its id."""

    unique_ids = False


def _longest(answers: object) -> int:
    """The length of the list of answers, or of the longest annotator's; 0 without a list."""
    parts = answers.values() if isinstance(answers, dict) else [answers]
    return max((len(part) for part in parts if isinstance(part, list)), default=0)


def _reason(about: Mapping[str, Any] | None, check: str, number: int) -> str | None:
    """An annotator's reason; for a check about values the reason for value `number` (from 1)."""
    return _numbered(object_of((about or {}).get("why") or {}, "why").get(check), number)


def _asked(about: Mapping[str, Any] | None, check: str, number: int) -> str | None:
    """The words of the question that an annotator answered, if the line has them."""
    questions = (about or {}).get("asked")
    return _numbered(questions.get(check), number) if isinstance(questions, dict) else None


def _numbered(texts: Any, number: int) -> str | None:
    if isinstance(texts, list):
        texts = texts[number - 1] if 0 < number <= len(texts) else None
    return scalar_text(texts) or None


def _weight(annotators: Mapping[str, Mapping[str, Any]]) -> float:
    """The number of records that the labelled one stands for."""
    weight = next((about["weight"] for about in annotators.values() if "weight" in about), 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < inf:
        raise LabelError(f"field 'weight' must be a number above 0, not {clip(weight)}", "weight")
    return float(weight)


def typed_fields(fields: Mapping[str, Any]) -> tuple[dict[str, Any], int | None]:
    """The record's fields without labels, under the typed names of its kind; and the number of
    entries in the list that its checks are about (None: there is no list, or it cannot be
    counted)."""
    fields = {key: content for key, content in fields.items() if key not in ABOUT_LABELS}
    kind = recognise(fields)
    names = find_names(kind, fields) if kind else {}
    typed = {name: fields[key] for name, key in names.items()}
    typed |= {key: fields[key] for key in fields if key not in names.values()}
    entries = typed.get(kind_named(kind).each or "") if kind else None
    if isinstance(entries, str):
        entries = [line for line in entries.split("\n") if line.strip()]
    return typed, len(entries) if isinstance(entries, list) else None


def _answers(answers: object, field: str, values: int | None) -> dict[int, dict[str | None, str]]:
    """The answers by value (0: the whole record) and annotator (None: the gold answer)."""
    counts: set[int] = set()
    by_number: dict[int, dict[str | None, str]] = {}
    for annotator, content in (answers if isinstance(answers, dict) else {None: answers}).items():
        if content is None:
            continue
        several = list(enumerate(content, 1)) if isinstance(content, list) else [(0, content)]
        counts.add(several[-1][0] if several else 0)
        for number, entry in several:
            answer = answer_of(entry, f"{field}.{annotator}" if annotator is not None else field)
            if answer is not None:
                by_number.setdefault(number, {})[annotator] = answer
    if len(counts) > 1:
        raise LabelError(
            f"field {field!r}: the annotators answered different numbers of values", field
        )
    count = max(counts, default=0)
    if count and values not in (None, count):
        message = f"field {field!r} has {count} answers, the record {values} values"
        raise LabelError(message, field)
    return dict(sorted(by_number.items()))

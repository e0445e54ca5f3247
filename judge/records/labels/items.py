"""Labelled items, and the base class of label sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from judge.records.answers import NO_LABEL, SEVERAL, by_spelling, in_order, without_no_label
from judge.records.base import LabelError, SeenIds, clip
from judge.records.fields import id_text, refused
from judge.records.record import Record


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
        of: the length of the list of answers that this one is of, in a sheet the number of the last
            entry asked about (0: there is no list).
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
    def key(self) -> tuple[str, str, int]:
        """What the question is about: record, check and entry."""
        return self.record.id, self.check, self.number

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
        that mean no label (`NO_LABEL`), unless the rubric has them; several of one annotator are
        sorted. `words` maps further words to answers."""
        spellings = {**words, **by_spelling(answers)}
        given = [self.gold or "", *(annotation.answer for annotation in self.annotations)]
        said = {part for answer in given for part in answer.split(SEVERAL)} & words.keys()
        read_as = {w: spellings[w] for w in sorted(said) if spellings[w] != w}

        def spelt(answer: str | None) -> str | None:
            text = without_no_label(answer, spellings) if answer is not None else None
            parts = text.split(SEVERAL) if text else ()
            return in_order(SEVERAL.join(spellings.get(part, part) for part in parts)) or None

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
        annotators (several joined by `|`, if they gave several), else None."""
        if self.gold is not None or self.settled:
            return self.gold
        votes = Counter(part for a in self.annotations for part in {*a.answer.split(SEVERAL)})
        most = [part for part, count in votes.items() if 2 * count > len(self.annotations)]
        return SEVERAL.join(sorted(most)) or None


Labelled = LabelledItem | Record
"""What a reader yields: a labelled item, or a line with its problem."""


class LabelSet:
    """A form of labelled data, and the reader of one set of that form.

    `files` are the patterns of a set's files in a folder. In a `merged` set, lines about one record
    and check make one item, and all items are yielded after the last line. Without `unique_ids`
    several records may have one id. `check` is the check that was asked for, `folder` the folder of
    the files (None: standard input). `blank` are the lines without a label.
    """

    name: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = ()
    merged: ClassVar[bool] = False
    unique_ids: ClassVar[bool] = True

    def __init__(self, check: str | None, folder: Path | None) -> None:
        self.check, self.folder, self._ids = check, folder, SeenIds()
        self.blank: list[int] = []
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
            if item.problem is not None:
                yield item
                continue
            try:
                labels = list(self.items(item, item.fields))
                for labelled in labels if self.merged else ():
                    self._refuse_repeated(labelled)
                for labelled in labels if self.merged else ():
                    self._hold(labelled)
            except LabelError as error:
                yield refused(item, error.problem)
            else:
                yield from [] if self.merged else labels
        yield from self.rest()

    def _refuse_repeated(self, item: LabelledItem) -> None:
        """Raise LabelError if an earlier line has another gold answer, or one of the annotators."""
        first, by_annotator = self._held.get(item.key, (item, {}))
        if len({*_golds(first, item)}) > 1:
            message = f"field 'gold' differs from line {first.record.line} of this item"
            raise LabelError(message, "gold")
        for annotator in (a.annotator for a in item.annotations if a.annotator in by_annotator):
            message = f"annotator {clip(annotator)} labelled item {clip(item.record.id)}"
            raise LabelError(f"{message} on an earlier line already", "annotator")

    def _hold(self, item: LabelledItem) -> None:
        first, by_annotator = self._held.setdefault(item.key, (item, {}))
        by_annotator |= {annotation.annotator: annotation for annotation in item.annotations}
        golds = _golds(first, item)
        gold = golds[0] if golds else first.gold or item.gold
        slices = {**item.slices, **first.slices}
        rows = (*first.rows, *(() if first is item else item.rows))
        spelt = {**item.written, **first.written}
        weight = first.weight_beside(item)
        of = max(first.of, item.of)
        joined = replace(first, gold=gold, slices=slices, rows=rows, weight=weight, of=of)
        self._held[item.key] = replace(joined, written=spelt), by_annotator


def _golds(*items: LabelledItem) -> list[str]:
    """The items' gold answers, without those that mean no label."""
    return [item.gold for item in items if item.gold is not None and item.gold not in NO_LABEL]

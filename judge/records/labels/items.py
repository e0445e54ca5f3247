"""Labelled items, and how the readers of label sets give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from judge.records.base import Item, LabelError, clip
from judge.records.fields import id_text, refused
from judge.records.kinds import normalised


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answer about one item, in lower case; `group` is a nationality, say."""

    annotator: str
    answer: str
    group: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One question about one record, with the answers that were given to it.

    `fields` is what a judge may be shown, under typed names; `number` is the value that the check
    asks about (from 1), or 0 for the record as a whole; `gold` the data set's own reference answer;
    `slices` the fields to group results by. Items with the same `record` are about one record;
    `group` names those that must not be told apart, on which one is fitted and another reports
    ("": those about one record).
    """

    record: str
    check: str
    fields: Mapping[str, Any]
    number: int = 0
    gold: str | None = None
    annotations: tuple[Annotation, ...] = ()
    slices: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    line: int = 0
    group: str = ""

    @property
    def cluster(self) -> str:
        """Its group, else its record."""
        return self.group or self.record

    @property
    def reference(self) -> str | None:
        """The answer that judges are held against: gold, else that of more than half of the
        annotators, else None."""
        counts = Counter(annotation.answer for annotation in self.annotations)
        for answer, count in counts.most_common(1) if self.gold is None else ():
            return answer if 2 * count > len(self.annotations) else None
        return self.gold


Labelled = LabelledItem | Item
"""What a reader gives: a labelled item, or a line with its problem."""


class LabelSet:
    """One form of labelled data, and the reader of one set of that form.

    A line with all of `keys`, and one of `marks` if there are any, is of its form. `files` are the
    patterns of its files where it is a folder of several. In a `merged` set what several lines say
    of one record and check is one item, and items come last. `check` is the one asked for.
    """

    name: ClassVar[str]
    keys: ClassVar[frozenset[str]] = frozenset()
    marks: ClassVar[frozenset[str]] = frozenset()
    files: ClassVar[tuple[str, ...]] = ()
    merged: ClassVar[bool] = False

    def __init__(self, check: str | None) -> None:
        self.check = check
        self._lines: dict[tuple[str, str], int] = {}
        self._unnamed: Counter[str] = Counter()
        self._held: dict[tuple[str, str], tuple[LabelledItem, dict[str, Annotation]]] = {}
        self.start()

    def start(self) -> None:
        """Prepare for the first line."""

    @classmethod
    def knows(cls, fields: Mapping[str, Any]) -> bool:
        """Whether a line's fields are of this form, beyond doubt."""
        there = normalised(fields)
        return bool(cls.keys) and there >= cls.keys and not (cls.marks and not cls.marks & there)

    def items(self, item: Item, fields: dict[str, Any]) -> Iterable[LabelledItem]:
        """The labelled items of a line. Raises LabelError for one that cannot be used."""
        raise NotImplementedError

    def rest(self) -> Iterable[LabelledItem]:
        """Items that only the whole file tells."""
        for held, given in self._held.values():
            yield replace(held, annotations=tuple(given.values()))

    def record(self, item: Item, id: object = None, field: str = "id", source: str = "") -> str:
        """The name of a line's record: its id, else `SOURCE#LINE`, and `SOURCE#LINE.2` and on where
        several share a line. Raises LabelError for an id that is no id, or came before."""
        own = id_text(id, field)
        if own is None:
            place = f"{source or item.source}#{item.line}"
            self._unnamed[place] += 1
            count = self._unnamed[place]
            return place if count == 1 else f"{place}.{count}"
        if (first := self._lines.get((item.source, own))) is not None:
            message = f"id {clip(own)} was already on line {first}"
            raise LabelError(message, field, "duplicate-id")
        self._lines[item.source, own] = item.line
        return own

    def read(self, items: Iterable[Item]) -> Iterator[Labelled]:
        """The labelled items of all lines; a line that cannot be used comes with its problem."""
        for item in items:
            if item.fields is None:
                yield item
                continue
            try:
                made = self.items(item, item.fields)
                found = [replace(one, source=item.source, line=item.line) for one in made]
                for one in found if self.merged else ():
                    self._hold(one)
            except LabelError as error:
                yield refused(item, error.problem)
            else:
                yield from [] if self.merged else found
        yield from self.rest()

    def _hold(self, one: LabelledItem) -> None:
        key = (one.record, one.check)
        held, given = self._held.setdefault(key, (one, {}))
        if one.gold is not None and held.gold not in (None, one.gold):
            message = f"field 'gold' differs from line {held.line} of this item"
            raise LabelError(message, "gold")
        for annotation in one.annotations:
            if given.setdefault(annotation.annotator, annotation) is not annotation:
                who = f"annotator {clip(annotation.annotator)}"
                message = f"{who} labelled item {clip(one.record)} on an earlier line already"
                raise LabelError(message, "annotator")
        gold = one.gold if held.gold is None else held.gold
        slices = {**one.slices, **held.slices}
        self._held[key] = (replace(held, gold=gold, slices=slices), given)

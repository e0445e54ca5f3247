"""Labelled items, and the protocol by which the readers of label sets give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from judge.records.base import Item
from judge.records.fields import LabelError, id_text, refused
from judge.records.values import clip


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answer about one item.

    `answer` is in lower case and one of the check's answers (`yes`, `no`, `neutral`,
    `entailment`, `1`, ...), or one that decides nothing such as `unanswerable` or `unsure`;
    `group` is the annotator's group (a nationality, say) where the data has one.
    """

    annotator: str
    answer: str
    group: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One question about one record, with the answers that were given to it.

    `fields` is what a judge may be shown, under typed names (`rule_of_thumb`, `story`, `premise`,
    ...); `number` is the value that the check asks about (from 1), or 0 for the record as a whole;
    `gold` the data set's own reference answer; `annotations` the answers of single annotators;
    `slices` the fields to group results by. Items with the same `record` are about one record
    and form a cluster.
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

    @property
    def reference(self) -> str | None:
        """The answer that judges are held against: gold, else more than half of the annotations.

        None where there is neither.
        """
        if self.gold is not None:
            return self.gold
        counts = Counter(annotation.answer for annotation in self.annotations)
        if not counts:
            return None
        answer, count = counts.most_common(1)[0]
        return answer if 2 * count > len(self.annotations) else None


Labelled = LabelledItem | Item
"""What a reader gives: a labelled item, or a line with its problem."""


class LabelSet:
    """One form of labelled data; an instance reads one file, or all files of a `merged` set.

    A subclass says which lines it `knows`, makes labelled items of a line in `items`, and gives
    in `rest` those that only the whole file tells. `checks` are those that the set has labels for,
    empty where only the lines tell. `files` are the patterns of its files where it is a folder of
    several. `groups` is the pattern of the file beside it that holds the annotators' groups. In a
    `merged` set what several lines say of one record and check is one item, given at the end.

    Args:
        path: the file, None for standard input.
        check: the check that was asked for.
    """

    name: ClassVar[str]
    checks: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ()
    merged: ClassVar[bool] = False
    groups: ClassVar[str | None] = None

    def __init__(self, path: Path | None = None, check: str | None = None) -> None:
        self.path = path
        self.check = check
        self._lines: dict[str, int] = {}
        self._unnamed: Counter[str] = Counter()
        self._held: dict[tuple[str, str], tuple[LabelledItem, dict[str, Annotation]]] = {}
        self.start()

    def start(self) -> None:
        """Prepare for the first line."""

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        """Whether a line's fields are of this form, beyond doubt."""
        raise NotImplementedError

    def parts(self, fields: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
        """The entries of a line, each with a name for messages; itself, if it is one."""
        return [("", fields)]

    def items(self, item: Item, fields: dict[str, Any]) -> Iterable[LabelledItem]:
        """The labelled items of an entry. Raises LabelError for one that cannot be used."""
        raise NotImplementedError

    def rest(self) -> Iterable[LabelledItem]:
        """Items that only the whole file tells."""
        return ()

    def record(self, item: Item, id: object = None, field: str = "id", source: str = "") -> str:
        """The name of a line's record: its id, else its place in `source` (the item's own).

        A line without an id is `SOURCE#LINE`; where several records share a line, those after the
        first are `SOURCE#LINE.2` and on. Raises LabelError for an id that is neither text nor
        number, and for one that came before.
        """
        own = id_text(id, field)
        if own is None:
            place = f"{source or item.source}#{item.line}"
            self._unnamed[place] += 1
            count = self._unnamed[place]
            return place if count == 1 else f"{place}.{count}"
        if own in self._lines:
            message = f"id {clip(own)} was already on line {self._lines[own]}"
            raise LabelError(message, field, "duplicate-id")
        self._lines[own] = item.line
        return own

    def read(self, items: Iterable[Item]) -> Iterator[Labelled]:
        """The labelled items of all lines; a line that cannot be used comes with its problem."""
        for item in items:
            if item.fields is None:
                yield item
                continue
            for name, fields in self.parts(item.fields):
                try:
                    found = [
                        replace(one, source=item.source, line=item.line)
                        for one in self.items(item, fields)
                    ]
                    if self.merged:
                        self._hold(found)
                except LabelError as error:
                    message = f"entry {name!r}: {error}" if name else str(error)
                    problem = replace(error.problem, message=message)
                    yield refused(replace(item, fields=fields), problem)
                else:
                    yield from [] if self.merged else found
        for held, given in self._held.values():
            yield replace(held, annotations=tuple(given.values()))
        yield from self.rest()

    def _hold(self, found: Iterable[LabelledItem]) -> None:
        for one in found:
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

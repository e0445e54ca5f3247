"""The project's own forms of labels: JSON lines with `labels`, and tables.

A line of the first form is a record as it is validated, or the output line of a validation, and
beside its fields

    "labels": {CHECK: ANSWER}                   the authors' own, or a reference answer: gold
    "labels": {CHECK: {ANNOTATOR: ANSWER}}      the answers of single annotators
    "annotators": {ANNOTATOR: {"group": ...}}   what is known of them, may be left out
    "author"                                    who gave the labels, may be left out

For a check about values, ANSWER is a list with one answer for each value. An answer of null means
that there is no label. Answers are folded to lower case; true and false stand for yes and no.

A table has a row for each answer of each annotator: columns `item`, `annotator`, `label`, in any
format that is read, in any case; further `group` (the annotator's), `check`, `gold` (the reference
answer), and any others, which describe the item: its first row tells. An empty label is none. A
row may hold a gold answer without annotator and label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.records.base import RESERVED, Item, Problem
from judge.records.fields import LabelError, answer_of, id_text, scalar_text, slices_of
from judge.records.jsonfiles import kind_of
from judge.records.kinds import (
    ClashError,
    StoryRecord,
    build,
    find_names,
    normalise,
    normalised,
    recognise,
)
from judge.records.labels.items import Annotation, LabelledItem, LabelSet

_ABOUT_LABELS = ("labels", "annotators", "author", RESERVED)
_NEEDED = ("annotator", "item", "label")
_COLUMNS = (*_NEEDED, "group", "check", "gold")


class Own(LabelSet):
    """The labelled items of each line, one for each check, or each value that it asks about.

    `fields` are the record's other fields, under typed names where its kind has them; slices are
    the short scalar ones, `author`, and after a validation `edited` (yes or no: whether the story
    was rewritten). A line without labels comes as an item with a problem of type `unlabelled`.
    """

    name = "own"

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return isinstance(fields.get("labels"), dict)

    def items(self, item: Item, fields: dict[str, Any]) -> list[LabelledItem]:
        if fields.get("labels") is None:
            message = "field 'labels' is missing: the line has no labels"
            raise LabelError(message, "labels", "unlabelled")
        own = {key: content for key, content in fields.items() if key not in _ABOUT_LABELS}
        shown = _typed(own)
        slices = slices_of({**shown, "author": fields.get("author")})
        if isinstance(earlier := fields.get(RESERVED), dict):
            slices["edited"] = "yes" if earlier.get("edits") else "no"
        asked = {
            check: _questions(answers, f"labels.{check}")
            for check, answers in _object(fields, "labels").items()
        }
        for check, questions in asked.items():
            _count_values(item, own, f"labels.{check}", questions)
        groups = {
            annotator: scalar_text(_object({annotator: known}, annotator).get("group"))
            for annotator, known in _object(fields, "annotators").items()
        }
        key = next((key for key in own if normalise(key) == "id"), "id")
        record = self.record(item, own.get(key), key)
        found: list[LabelledItem] = []
        for check, questions in asked.items():
            for number, (gold, given) in questions.items():
                annotations = tuple(Annotation(who, one, groups.get(who)) for who, one in given)
                one = LabelledItem(record, check, shown, number, gold, annotations, slices)
                found += [one] if gold or annotations else []
        return found


_Questions = dict[int, tuple[str | None, list[tuple[str, str]]]]
"""By number (of a value, else 0): the gold answer, and who answered what."""


def _object(line: Mapping[str, Any], key: str) -> dict[str, Any]:
    content = line.get(key)
    if content is not None and not isinstance(content, dict):
        raise LabelError(f"field {key!r} must be an object, not {kind_of(content)}", key)
    return content or {}


def _typed(own: dict[str, Any]) -> dict[str, Any]:
    """The record's fields, under typed names where its kind has one for them."""
    kind = recognise(own)
    if kind is None:
        return own
    try:
        names = find_names(kind, own)
    except ClashError as error:
        raise LabelError(str(error), error.key) from None
    typed = {name: own[key] for name, key in names.items()}
    return {**typed, **{key: own[key] for key in own if key not in names.values()}}


def _questions(answers: object, field: str) -> _Questions:
    if not isinstance(answers, dict):
        return {number: (answer, []) for number, answer in _answers(answers, field).items()}
    given = {
        annotator: _answers(content, f"{field}.{annotator}")
        for annotator, content in answers.items()
        if content is not None
    }
    numbers = next(iter(given.values()), {}).keys()
    if any(one.keys() != numbers for one in given.values()):
        raise LabelError(f"field {field!r}: the annotators did not answer as many values", field)
    return {
        number: (None, [(who, text) for who, one in given.items() if (text := one[number])])
        for number in numbers
    }


def _answers(content: object, field: str) -> dict[int, str | None]:
    """The answer under number 0, or those of a list under 1 and on."""
    if not isinstance(content, list):
        return {0: answer_of(content, field)}
    return {number: answer_of(one, field) for number, one in enumerate(content, 1)}


def _count_values(item: Item, own: dict[str, Any], field: str, questions: _Questions) -> None:
    """Raises LabelError where the answers about a story's values are not as many as these."""
    count = max(questions, default=0)
    # A story that lost its values can still have labels that are about none of them.
    if not count or recognise(own) != "story":
        return
    record = build(Item(item.source, item.line, own))
    if isinstance(record, Problem):
        raise LabelError(record.message, record.field)
    assert isinstance(record.data, StoryRecord), "recognised as one"
    values = len(record.data.values)
    if count != values:
        message = f"field {field!r} has {count} answers, the record {values} values"
        raise LabelError(message, field)


class Table(LabelSet):
    """One item for each `item` and check, in the order of their first rows; problems come first.

    The check is the row's `check`, else the one that was asked for, else `label`. Fields are the
    other columns as they stand, slices the short ones. A row is a problem where its gold answer
    differs from an earlier one of its item, or its annotator has labelled the item before. Holds
    all items in memory.
    """

    name = "table"
    merged = True

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        return normalised(fields) >= set(_NEEDED)

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        keys = {normalise(key): key for key in fields if normalise(key) in _COLUMNS}
        for name in _NEEDED:
            if name not in keys:
                raise LabelError(f"field {name!r} is missing", name)
        own = {name: fields[key] for name, key in keys.items() if fields[key] not in (None, "")}
        record = id_text(own.get("item"), keys["item"])
        if record is None:
            raise LabelError(f"field {keys['item']!r} is empty", keys["item"])
        gold = answer_of(own.get("gold"), "gold")
        label = answer_of(own.get("label"), keys["label"])
        annotations: tuple[Annotation, ...] = ()
        if label is not None:
            annotator = id_text(own.get("annotator"), keys["annotator"])
            if annotator is None:
                key = keys["annotator"]
                raise LabelError(f"field {key!r} is empty beside a label", key)
            annotations = (Annotation(annotator, label, scalar_text(own.get("group"))),)
        if annotations or gold is not None:
            check = scalar_text(own.get("check")) or self.check or "label"
            about = {key: content for key, content in fields.items() if key not in keys.values()}
            yield LabelledItem(record, check, about, 0, gold, annotations, slices_of(about))

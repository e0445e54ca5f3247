"""The project's own form of labelled records: JSON lines with `labels`.

A line is a record as it is validated, or the output line of a validation, and beside its fields

    "labels": {CHECK: ANSWER}                   the authors' own, or a reference answer: gold
    "labels": {CHECK: {ANNOTATOR: ANSWER}}      the answers of single annotators
    "annotators": {ANNOTATOR: {"group": ...}}   what is known of them, may be left out
    "author"                                    who gave the labels, may be left out

For a check about values, ANSWER is a list with one answer for each value. An answer of null means
that there is no label. Answers are folded to lower case; true and false stand for yes and no.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from judge.records.base import RESERVED, Item
from judge.records.fields import LabelError, answer_of, slices_of
from judge.records.jsontext import kind_of
from judge.records.kinds import recognise
from judge.records.labels.items import Annotation, LabelledItem, LabelSet
from judge.records.names import ClashError, find_names, normalise
from judge.records.values import BadValueError, parse_values

_ABOUT_LABELS = ("labels", "annotators", "author", RESERVED)


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
        labels = _object(fields, "labels")
        if labels is None:
            message = "field 'labels' is missing: the line has no labels"
            raise LabelError(message, "labels", "unlabelled")
        own = {key: content for key, content in fields.items() if key not in _ABOUT_LABELS}
        shown = _typed(own)
        groups = _groups(fields)
        slices = {**slices_of(shown), **_slices_about(fields)}
        found = [
            LabelledItem("", check, shown, number, gold, given, slices)
            for check, answers in labels.items()
            for number, gold, given in _questions(answers, f"labels.{check}", groups)
        ]
        _count_values(own, shown, found)
        key = next((key for key in own if normalise(key) == "id"), "id")
        record = self.record(item, own.get(key), key)
        return [replace(one, record=record) for one in found if one.gold or one.annotations]


def _object(line: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    content = line.get(key)
    if content is not None and not isinstance(content, dict):
        raise LabelError(f"field {key!r} must be an object, not {kind_of(content)}", key)
    return content


def _typed(own: dict[str, Any]) -> dict[str, Any]:
    """The record's fields, under typed names where its kind has one for them."""
    kind = recognise(own)
    if kind is None:
        return own
    try:
        typed = {key: name for name, key in find_names(kind, own).items()}
    except ClashError as error:
        raise LabelError(str(error), error.key) from None
    fields: dict[str, Any] = {}
    for key, content in own.items():
        fields.setdefault(typed.get(key, key), content)
    return fields


def _groups(line: Mapping[str, Any]) -> dict[str, str]:
    groups: dict[str, str] = {}
    for annotator, known in (_object(line, "annotators") or {}).items():
        group = known.get("group") if isinstance(known, dict) else known
        if not isinstance(known, dict) or not isinstance(group, str | None):
            message = f"field 'annotators' must hold {{'group': TEXT}} for {annotator!r}"
            raise LabelError(message, "annotators")
        if group is not None:
            groups[annotator] = group
    return groups


def _slices_about(line: Mapping[str, Any]) -> dict[str, str]:
    slices: dict[str, str] = {}
    author = line.get("author")
    if author is not None and not isinstance(author, str):
        raise LabelError(f"field 'author' must be a text, not {kind_of(author)}", "author")
    if author is not None:
        slices["author"] = author
    earlier = _object(line, RESERVED)
    if earlier is not None:
        slices["edited"] = "yes" if earlier.get("edits") else "no"
    return slices


def _questions(
    answers: object, field: str, groups: Mapping[str, str]
) -> Iterator[tuple[int, str | None, tuple[Annotation, ...]]]:
    """For each question its number (of a value, else 0), gold answer, and annotations."""
    if not isinstance(answers, dict):
        for number, answer in _answers(answers, field).items():
            yield number, answer, ()
        return
    given = {
        annotator: _answers(content, f"{field}.{annotator}")
        for annotator, content in answers.items()
        if content is not None
    }
    numbers = next(iter(given.values()), {}).keys()
    if any(one.keys() != numbers for one in given.values()):
        raise LabelError(f"field {field!r}: the annotators did not answer as many values", field)
    for number in numbers:
        annotations = (
            Annotation(annotator, answer, groups.get(annotator))
            for annotator, one in given.items()
            if (answer := one[number]) is not None
        )
        yield number, None, tuple(annotations)


def _answers(content: object, field: str) -> dict[int, str | None]:
    """The answer under number 0, or those of a list under 1 and on."""
    if not isinstance(content, list):
        return {0: answer_of(content, field)}
    return {number: answer_of(one, field) for number, one in enumerate(content, 1)}


def _count_values(own: dict[str, Any], fields: dict[str, Any], found: list[LabelledItem]) -> None:
    """Raises LabelError where the answers about a story's values are not as many as these."""
    answered = {one.check: one.number for one in found if one.number}
    # A story that lost its values can still have labels that are about none of them.
    if not answered or recognise(own) != "story":
        return
    try:
        values = parse_values(
            fields["values"], story=fields["story"], setting=fields.get("setting")
        )
    except BadValueError as error:
        raise LabelError(f"field 'values' {error}", "values") from None
    for check, count in answered.items():
        if count != len(values):
            field = f"labels.{check}"
            message = f"field {field!r} has {count} answers, the record {len(values)} values"
            raise LabelError(message, field)

"""The project's own form of labelled records: JSON lines with `labels`.

A line is a record as it is validated, or the output line of a validation, and beside its fields

    "labels": {CHECK: ANSWER}                   the authors' own, or a reference answer: gold
    "labels": {CHECK: {ANNOTATOR: ANSWER}}      the answers of single annotators
    "annotators": {ANNOTATOR: {"group": ...}}   what is known of them, may be left out
    "author"                                    who gave the labels, may be left out

For a check about values, ANSWER is a list with one answer for each value. An answer of null means
that there is no label. Text is folded to lower case; true and false stand for yes and no.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from judge.records.base import RESERVED, Item
from judge.records.jsontext import kind_of
from judge.records.kinds import recognise
from judge.records.labelled import Annotation, LabelledItem
from judge.records.names import ClashError, Kind, find_names, normalise
from judge.records.released.common import (
    Form,
    LabelError,
    Labelled,
    Place,
    RecordNames,
    answer_of,
    each_line,
    slices_of,
)
from judge.records.values import BadValueError, parse_values

_ABOUT_LABELS = ("labels", "annotators", "author", RESERVED)


def read_own(items: Iterable[Item], place: Place) -> Iterator[Labelled]:
    """The labelled items of each line, one for each check, or each value that it asks about.

    `fields` are the record's other fields, under typed names where its kind has them; slices are
    the short scalar ones, `author`, and after a validation `edited` (yes or no: whether the story
    was rewritten). A line without labels comes as an item with a problem of type `unlabelled`.
    """
    with RecordNames() as names:
        yield from each_line(items, partial(_line, names))


def is_own(fields: Mapping[str, Any]) -> bool:
    """Whether a line is in the own form."""
    return isinstance(fields.get("labels"), dict)


def _line(names: RecordNames, item: Item, line: dict[str, Any]) -> list[LabelledItem]:
    labels = _object(line, "labels")
    if labels is None:
        raise LabelError(
            "field 'labels' is missing: the line has no labels", "labels", "unlabelled"
        )
    own = {key: content for key, content in line.items() if key not in _ABOUT_LABELS}
    kind = recognise(own)
    fields = _typed(kind, own)
    groups = _groups(line)
    slices = {**slices_of(fields), **_slices_about(line)}
    # A story that lost its values can still have labels that are about none of them.
    values = _number_of_values(fields) if kind == "story" and _holds_list(labels) else None
    questions = [
        (check, *question)
        for check, answers in labels.items()
        for question in _questions(answers, f"labels.{check}", values, groups)
    ]
    key = next((key for key in own if normalise(key) == "id"), "id")
    record = names.name(item, own.get(key), key)
    return [
        LabelledItem(record, check, fields, number, gold, given, slices, item.source, item.line)
        for check, number, gold, given in questions
    ]


def _object(line: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    content = line.get(key)
    if content is not None and not isinstance(content, dict):
        raise LabelError(f"field {key!r} must be an object, not {kind_of(content)}", key)
    return content


def _typed(kind: Kind | None, own: dict[str, Any]) -> dict[str, Any]:
    """The record's fields, under typed names where its kind has one for them."""
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


def _number_of_values(fields: Mapping[str, Any]) -> int:
    story, setting = fields["story"], fields.get("setting")
    try:
        values = parse_values(
            fields["values"],
            story=story if isinstance(story, str) else "",
            setting=setting if isinstance(setting, str) else None,
        )
    except BadValueError as error:
        raise LabelError(f"field 'values' {error}", "values") from None
    return len(values)


def _holds_list(labels: Mapping[str, Any]) -> bool:
    """Whether an answer, or one annotator's, is a list."""
    return any(
        isinstance(one, list)
        for answers in labels.values()
        for one in (answers.values() if isinstance(answers, dict) else [answers])
    )


_Question = tuple[int, str | None, tuple[Annotation, ...]]


def _questions(
    answers: object, field: str, values: int | None, groups: Mapping[str, str]
) -> list[_Question]:
    """The questions that were answered: their number, the gold answer, the annotations."""
    if not isinstance(answers, dict):
        gold = _answers(answers, field, values)
        return [(number, answer, ()) for number, answer in gold.items() if answer is not None]
    given = {
        annotator: _answers(content, f"{field}.{annotator}", values)
        for annotator, content in answers.items()
        if content is not None
    }
    numbers = next(iter(given.values()), {}).keys()
    if any(one.keys() != numbers for one in given.values()):
        raise LabelError(f"field {field!r}: the annotators did not answer as many values", field)
    questions: list[_Question] = []
    for number in numbers:
        annotations = tuple(
            Annotation(annotator, answer, groups.get(annotator))
            for annotator, one in given.items()
            if (answer := one[number]) is not None
        )
        questions += [(number, None, annotations)] if annotations else []
    return questions


def _answers(content: object, field: str, values: int | None) -> dict[int, str | None]:
    """The answer under number 0, or those of a list under 1 and on."""
    if not isinstance(content, list):
        return {0: answer_of(content, field)}
    if values is not None and len(content) != values:
        message = f"field {field!r} has {len(content)} answers, the record {values} values"
        raise LabelError(message, field)
    return {number: answer_of(one, field) for number, one in enumerate(content, 1)}


FORM = Form("own", read_own, is_own)

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
row may hold a gold answer without annotator and label; in a table without the column `annotator`
the label is the reference answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.records.base import RESERVED, Item, LabelError
from judge.records.fields import answer_of, id_text, object_of, scalar_text, slices_of
from judge.records.kinds import find_names, normalise, recognise
from judge.records.labels.items import Annotation, LabelledItem, LabelSet

_ABOUT_LABELS = ("labels", "annotators", "author", RESERVED)
_NEEDED = ("item", "label")
_COLUMNS = (*_NEEDED, "annotator", "group", "check", "gold")


class Own(LabelSet):
    """The labelled items of each line, one for each check, or each value that it asks about.

    Slices are the short scalar fields, `author`, and after a validation `edited` (yes or no:
    whether the story was rewritten). A line without labels is a problem of type `unlabelled`.
    """

    name = "own"

    @classmethod
    def knows(cls, fields: Mapping[str, Any]) -> bool:
        return isinstance(fields.get("labels"), dict)

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        if fields.get("labels") is None:
            message = "field 'labels' is missing: the line has no labels"
            raise LabelError(message, "labels", "unlabelled")
        shown, values = _typed({k: c for k, c in fields.items() if k not in _ABOUT_LABELS})
        slices = slices_of({**shown, "author": fields.get("author")})
        if isinstance(earlier := fields.get(RESERVED), dict):
            slices["edited"] = "yes" if earlier.get("edits") else "no"
        asked = {
            check: _answers(answers, f"labels.{check}", values)
            for check, answers in object_of(fields["labels"], "labels").items()
        }
        groups = {
            annotator: scalar_text(object_of(known, annotator).get("group"))
            for annotator, known in object_of(fields.get("annotators") or {}, "annotators").items()
        }
        key = next((key for key in shown if normalise(key) == "id"), "id")
        record = self.record(item, shown.get(key), key)
        for check, numbered in asked.items():
            for number, given in numbered.items():
                people = [(who, one) for who, one in given.items() if who is not None]
                annotations = tuple(Annotation(who, one, groups.get(who)) for who, one in people)
                gold = given.get(None)
                yield LabelledItem(record, check, shown, number, gold, annotations, slices)


def _typed(own: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
    """The record's fields, under typed names where its kind has them; how many values a story has.

    None for other records, and for values that cannot be counted.
    """
    kind = recognise(own)
    names = find_names(kind, own) if kind else {}
    typed = {name: own[key] for name, key in names.items()}
    typed |= {key: own[key] for key in own if key not in names.values()}
    values = typed.get("values") if kind == "story" else None
    if isinstance(values, str):
        values = [line for line in values.split("\n") if line.strip()]
    return typed, len(values) if isinstance(values, list) else None


def _answers(answers: object, field: str, values: int | None) -> dict[int, dict[str | None, str]]:
    """By number (of a value, else 0), who answered what; under None the gold answer."""
    counts: set[int] = set()
    found: dict[int, dict[str | None, str]] = {}
    for who, content in (answers if isinstance(answers, dict) else {None: answers}).items():
        if content is None:
            continue
        several = list(enumerate(content, 1)) if isinstance(content, list) else [(0, content)]
        counts.add(several[-1][0] if several else 0)
        for number, one in several:
            answer = answer_of(one, f"{field}.{who}" if who is not None else field)
            if answer is not None:
                found.setdefault(number, {})[who] = answer
    if len(counts) > 1:
        raise LabelError(f"field {field!r}: the annotators did not answer as many values", field)
    count = max(counts, default=0)
    if count and values not in (None, count):
        message = f"field {field!r} has {count} answers, the record {values} values"
        raise LabelError(message, field)
    return dict(sorted(found.items()))


class Table(LabelSet):
    """One item for each `item` and check; problems come first.

    The check is the row's, else the one that was asked for, else `label`. Fields are the other
    columns as they stand, slices the short ones. A row is a problem where its gold answer differs
    from an earlier one of its item, or its annotator has labelled the item before.
    """

    name = "table"
    keys = frozenset(_NEEDED)
    merged = True

    def items(self, item: Item, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        keys = {normalise(key): key for key in fields if normalise(key) in _COLUMNS}
        own = {name: fields[key] for name, key in keys.items() if fields[key] not in (None, "")}
        record = id_text(own.get("item"), "item")
        if record is None:
            raise LabelError("field 'item' is empty", "item")
        gold = answer_of(own.get("gold"), "gold")
        label = answer_of(own.get("label"), "label")
        if "annotator" not in keys and gold is None:
            gold, label = label, None
        annotations: tuple[Annotation, ...] = ()
        if label is not None:
            annotator = id_text(own.get("annotator"), "annotator")
            if annotator is None:
                raise LabelError("field 'annotator' is empty beside a label", "annotator")
            annotations = (Annotation(annotator, label, scalar_text(own.get("group"))),)
        if annotations or gold is not None:
            check = scalar_text(own.get("check")) or self.check or "label"
            about = {key: content for key, content in fields.items() if key not in keys.values()}
            yield LabelledItem(record, check, about, 0, gold, annotations, slices_of(about))

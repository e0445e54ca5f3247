"""The project's own form of labels.

It is JSON lines: a record, as it is validated or as `judge validate` wrote it, with

    "labels": {CHECK: ANSWER}                   a reference answer (gold)
    "labels": {CHECK: {ANNOTATOR: ANSWER}}      each annotator's answer
    "annotators": {ANNOTATOR: {"group": ...}}   optional. "labels", {CHECK: ANSWER}: answers beside
                                                a reference; "why", {CHECK: TEXT}: reasons of
                                                answers; "asked", {CHECK: TEXT}: the question in
                                                the words that were asked; "weight": the number of
                                                records that the labelled one stands for (default
                                                1), if records were drawn with different chances
    "labelled_by"                               optional: who gave the labels

For a check about values, ANSWER is a list with one answer for each value. null means no label.
Spellings of an answer are unified (`judge.records.answers`). Several lines may hold annotators'
answers about one record (the same fields): an annotator's last answer to a check counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from judge.records.answers import scalar_text, written
from judge.records.base import RESERVED, LabelError, clip, content_hash, keys_of, normalise
from judge.records.fields import answer_of, object_of, slices_of
from judge.records.kinds import kind_named, recognise
from judge.records.labels.items import Annotation, LabelledItem, LabelSet
from judge.records.lines import Line
from judge.records.record import Record

ABOUT_LABELS = ("labels", "annotators", "labelled_by", RESERVED)
"""The fields with people's answers and what is known of the people."""


def label_key(fields: Mapping[str, Any]) -> str:
    """The hash of a record's fields without labels; lines about one record share it."""
    return content_hash({name: part for name, part in fields.items() if name not in ABOUT_LABELS})


class Own(LabelSet):
    """The project's own form: an item for each check of a line, or each value it asks about.

    Slices are the short scalar fields, `labelled_by`, and in output of `judge validate` `edited`
    (yes or no: whether the record was rewritten). A line without labels is a problem of type
    `unlabelled`.
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
        visible = typed_fields(fields)
        slices = slices_of({**visible, "labelled_by": fields.get("labelled_by")})
        if (line := Line.of(fields)) is not None:
            slices["edited"] = "yes" if line.edits else "no"
        answers_by_check = {
            check: _answers(answers, f"labels.{check}")
            for check, answers in object_of(fields["labels"], "labels").items()
        }
        people_fields = {
            annotator: object_of(about, annotator)
            for annotator, about in object_of(fields.get("annotators") or {}, "annotators").items()
        }
        for annotator, about in people_fields.items():
            for check, given in object_of(about.get("labels") or {}, f"{annotator}.labels").items():
                numbered = _answers({annotator: given}, f"labels.{check}")
                for number, answers in numbered.items():
                    answers_by_check.setdefault(check, {}).setdefault(number, {}).update(answers)
        by_name = any(isinstance(answers, dict) for answers in fields["labels"].values())
        # Where lines name annotators, not everyone answers about everything.
        if not (any(answers_by_check.values()) or by_name or people_fields):
            self.blank.append(item.line)
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
                    _annotation(annotator, answer, people_fields.get(annotator, {}), check, number)
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


def _annotation(
    annotator: str, answer: str, about: Mapping[str, Any], check: str, number: int
) -> Annotation:
    """An annotator's answer, with what the line says `about` the annotator."""
    why = object_of(about.get("why") or {}, "why")
    group, asked = scalar_text(about.get("group")), about.get("asked")
    reason, question = (_text_for(check, number, texts) for texts in (why, asked))
    return Annotation(annotator, answer, group, reason, question)


def _text_for(check: str, number: int, texts: object) -> str | None:
    """The text about a check; if that is a list, the one about value `number` (from 1)."""
    text = texts.get(check) if isinstance(texts, dict) else None
    if isinstance(text, list):
        text = text[number - 1] if 0 < number <= len(text) else None
    return scalar_text(text) or None


def _weight(annotators: Mapping[str, Mapping[str, Any]]) -> float:
    """The number of records that the labelled one stands for."""
    weight = next((about["weight"] for about in annotators.values() if "weight" in about), 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < inf:
        raise LabelError(f"field 'weight' must be a number above 0, not {clip(weight)}", "weight")
    return float(weight)


def typed_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The record's fields without labels, under the typed names of its kind."""
    fields = {key: content for key, content in fields.items() if key not in ABOUT_LABELS}
    kind = recognise(fields)
    names = keys_of(kind_named(kind).names, fields) if kind else {}
    typed = {name: fields[key] for name, key in names.items()}
    return typed | {key: fields[key] for key in fields if key not in names.values()}


def _answers(answers: object, field: str) -> dict[int, dict[str | None, str]]:
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
            f"field {field!r}: the annotators answered about different numbers of entries", field
        )
    return dict(sorted(by_number.items()))

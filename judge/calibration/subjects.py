"""From a labelled item to what a judge is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from judge.records import Item, Kind, Problem, build
from judge.records.labels import LabelledItem
from judge.rubric import TEXT_FIELDS, Rubric
from judge.subject import Subject


def subject_of(item: LabelledItem, rubric: Rubric) -> Subject | str:
    """The item as the rubric's judges see it, or why they cannot be asked about it.

    A rubric that passes what bears out the record's label is given the reference answer where the
    record has no label of its own, and any answer where there is no reference: its question is
    asked all the same, and the label is no part of it.
    """
    made = _subject(item, rubric)
    if isinstance(made, str):
        return made
    rule = rubric.verdict
    if rule is not None and rule.pass_equals and made.label is None:
        known = item.reference in rubric.answers
        made = replace(made, label=item.reference if known else rubric.answers[0])
    if missing := made.lacks(rubric.required):
        return f"the record has no {', '.join(missing)}"
    if item.number > len(made.values):
        return f"the record has no value {item.number}"
    if rubric.about == "values" and not item.number:
        return "the label is about the record, the check about its values"
    if rubric.about == "record" and item.number:
        return "the label is about a value, the check about the record"
    return made


def _subject(item: LabelledItem, rubric: Rubric) -> Subject | str:
    for kind in _MARKS:
        if kind not in rubric.kinds or not _filled(item, kind):
            continue
        made = build(Item(item.source, item.line, {"id": item.record, **item.fields}), kind)
        return made.message if isinstance(made, Problem) else Subject.of(made)
    label = item.fields.get("label")
    texts = {name: text for name in TEXT_FIELDS if isinstance(text := item.fields.get(name), str)}
    known = label if isinstance(label, str) else None
    return Subject.of_texts(item.record, rubric.kinds[0], texts, known)


_MARKS: Mapping[Kind, str] = {
    "story": "values",
    "norm": "rule_of_thumb",
    "extraction": "predicted",
}
"""The field that tells records of a kind from others."""


def _filled(item: LabelledItem, kind: Kind) -> bool:
    return bool(item.fields.get(_MARKS[kind]))

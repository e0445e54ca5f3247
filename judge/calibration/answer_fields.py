"""Finds the fields that hold people's answers, which are not shown to any judge."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judge.questions.rubric import Rubric
from judge.records.answers import (
    NO_LABEL,
    SEVERAL,
    by_spelling,
    number_of,
    scalar_text,
    spelling,
)
from judge.records.fields import MAX_SLICE
from judge.records.labels import LabelledItem
from judge.stats.classification import kappas

OF_PEOPLE = frozenset(
    [
        "annotation",
        "annotator",
        "consensus",
        "gold",
        "human",
        "judgement",
        "judgment",
        "label",
        "majority",
        "preference",
        "preferred",
        "rater",
        "rating",
        "score",
        "verdict",
        "vote",
        "winner",
    ]
)
"""Words in the names of fields that hold people's answers, unless the content is prose."""


PERHAPS = frozenset(["answer", "choice", "class", "decision", "target"])
"""Words in the names of fields that may hold people's answers."""

FieldPath = tuple[str, ...]
"""A field's name, preceded by the names of the objects around it."""

FieldContent = tuple[Any, str | None]
"""A field's content in an item, and the item's label."""

MAX_CATEGORIES = 10
_MIN_ITEMS = 10

_AGREES, _AGREES_BY_NAME = 0.4, 0.1
"""Least kappa with the label at which a field of the rubric's answers counts as another person's;
the second if its name has a word of `PERHAPS`."""


def without_answers(items: Sequence[LabelledItem], rubric: Rubric) -> list[LabelledItem]:
    """The items of a source without the fields that hold people's answers, named in `withheld`.

    If the rubric names the fields to show, nothing is removed. Otherwise a field is removed if it
    holds scores or categories under a name such as `winner` or `annotator2`, or, under any name,
    only answers of the rubric that agree with the label. Prose is always shown. Fields of objects,
    also in lists, are treated like top-level ones, and named by their path (`meta.vote`).
    """
    if rubric.fields:
        return list(items)
    columns: dict[FieldPath, list[FieldContent]] = defaultdict(list)
    for item in items:
        for path, content in _fields_in(item.record.visible):
            columns[path].append((content, item.reference))
    paths = {path for path, rows in columns.items() if _of_people(path[-1], rows, rubric.answers)}
    if not paths:
        return list(items)
    withheld = tuple(
        ".".join(path)
        for path in columns
        if path in paths and not any(path[:n] in paths for n in range(1, len(path)))
    )
    records = (replace(item.record, fields=_without(item.record.visible, paths)) for item in items)
    return [
        replace(item, record=record, withheld=withheld)
        for item, record in zip(items, records, strict=True)
    ]


def _fields_in(content: object, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """The fields of an object and those inside them; a list's entries have the list's path."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield (*path, name), value
            yield from _fields_in(value, (*path, name))
    elif isinstance(content, list):
        for value in content:
            yield from _fields_in(value, path)


def _without(content: Any, paths: Collection[FieldPath], path: FieldPath = ()) -> Any:
    if isinstance(content, Mapping):
        return {
            name: _without(value, paths, (*path, name))
            for name, value in content.items()
            if (*path, name) not in paths
        }
    return (
        [_without(value, paths, path) for value in content]
        if isinstance(content, list)
        else content
    )


def _of_people(name: str, rows: Sequence[FieldContent], answers: Collection[str]) -> bool:
    contents = [content for content, _ in rows if content is not None]
    words = {word.removesuffix(end) for word in _words(name) for end in ("", "s", "es")}
    spelt = [text for content in contents for text in _spelt(content)]
    kinds, forms = set(spelt), by_spelling(answers)
    if not kinds:
        return False
    if any(isinstance(content, list | dict) for content in contents):
        count = sum(not forms.keys().isdisjoint(_spelt(content)) for content in contents)
        return bool(words & OF_PEOPLE) and 2 * count > len(contents)
    if kinds <= forms.keys():
        least = _AGREES_BY_NAME if words & PERHAPS else _AGREES
        return bool(words & OF_PEOPLE) or _agreement(rows, forms) >= least
    numbers = all(number_of(text) is not None for text in kinds)
    few = len(kinds) <= min(MAX_CATEGORIES, max(len(spelt) / 2, len(answers) + 1))
    short = max(map(len, kinds)) <= MAX_SLICE
    return bool(words & OF_PEOPLE) and (numbers or (few and short))


def _words(name: str) -> list[str]:
    """The words of a name: human and label for `humanLabel_2`."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())


def _spelt(content: object) -> Iterator[str]:
    """Every answer in a field, normalised, without spellings of "no label"."""
    if isinstance(content, dict | list):
        parts = content.values() if isinstance(content, dict) else content
        for part in parts:
            yield from _spelt(part)
    elif (text := scalar_text(content)) is not None:
        yield from (label for label in spelling(text).split(SEVERAL) if label not in NO_LABEL)


def _agreement(rows: Sequence[FieldContent], answers: Mapping[str, str]) -> float:
    """Cohen's kappa of a field with the reference; 0 if undefined or over too few items. `answers`
    are by their normal forms."""
    labels = sorted({*answers.values()})
    counts = np.zeros((1, len(labels), len(labels)))
    for content, reference in rows:
        texts = [*_spelt(content)]
        true = answers.get(spelling(reference or ""))
        if true is not None and len(texts) == 1:
            counts[0, labels.index(true), labels.index(answers[texts[0]])] += 1
    return float(np.nan_to_num(kappas(counts)[0])) if counts.sum() >= _MIN_ITEMS else 0.0

"""Labels among what a judge is shown: fields with people's answers, and fields that tell the label.

Fields that hold answers of people are left out where a rubric names no fields. Where a field that
is shown tells the label all the same, what a judge has in common with the labels is no agreement.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judge.answers import NO_LABEL, SEVERAL, scalar_text, spelling
from judge.records.fields import LONGEST_SLICE
from judge.records.labels import LabelledItem
from judge.rubric import Rubric
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
"""Words in the names of fields that hold answers of people, where the content is no text."""

PERHAPS = frozenset(["answer", "choice", "class", "decision", "target"])
"""Words in the names of fields that may hold them."""

Path = tuple[str, ...]
"""A field's name, behind those of the objects that it lies in."""

Row = tuple[Any, str | None]
"""A field's content in an item, and the item's label."""

_CATEGORIES = 10
_ENOUGH = 10
_AGREES, _AGREES_BY_NAME = 0.4, 0.1
"""Kappa with the label from which on a field of the rubric's answers is another person's; the
second where its name is one of `PERHAPS`."""

NINE_IN_TEN = 0.9
_LEAST_ITEMS = 20


# ---------------------------------------------------------------- people's answers


def without_answers(items: Sequence[LabelledItem], rubric: Rubric) -> list[LabelledItem]:
    """The items of a source without the fields that hold people's answers, named in `withheld`.

    Where the rubric names the fields that are shown, all stay. Else a field is left out by its name
    and content together: a score or category under a name such as `winner` or `annotator2`, or, by
    whatever name, nothing but answers of the rubric that agree with the label. A text is shown,
    whatever its name. Fields of objects, also in lists, are judged like the record's own, and named
    by their path (`meta.vote`).
    """
    if rubric.fields:
        return list(items)
    columns: dict[Path, list[Row]] = defaultdict(list)
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
    records = (replace(it.record, fields=_without(it.record.visible, paths)) for it in items)
    return [
        replace(item, record=record, withheld=withheld)
        for item, record in zip(items, records, strict=True)
    ]


def _fields_in(content: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The fields of an object, then those within them; entries of lists have their list's path."""
    if isinstance(content, Mapping):
        for name, one in content.items():
            yield (*path, name), one
            yield from _fields_in(one, (*path, name))
    elif isinstance(content, list):
        for one in content:
            yield from _fields_in(one, path)


def _without(content: Any, paths: Collection[Path], path: Path = ()) -> Any:
    if isinstance(content, Mapping):
        return {
            name: _without(one, paths, (*path, name))
            for name, one in content.items()
            if (*path, name) not in paths
        }
    return [_without(one, paths, path) for one in content] if isinstance(content, list) else content


def _of_people(name: str, rows: Sequence[Row], answers: Collection[str]) -> bool:
    contents = [content for content, _ in rows if content is not None]
    words = {word.removesuffix("s") for word in _words(name)}
    spelt = [one for content in contents for one in _spelt(content)]
    kinds, known = set(spelt), set(map(spelling, answers))
    if not kinds:
        return False
    if any(isinstance(content, list | dict) for content in contents):
        given = sum(not known.isdisjoint(_spelt(content)) for content in contents)
        return bool(words & OF_PEOPLE) and 2 * given > len(contents)
    if kinds <= known:
        needed = _AGREES_BY_NAME if words & PERHAPS else _AGREES
        return bool(words & OF_PEOPLE) or _agreement(rows, sorted(known)) >= needed
    numbers = all(isinstance(one, int | float) or _number(one) is not None for one in contents)
    few = len(kinds) <= min(_CATEGORIES, max(len(spelt) / 2, len(known) + 1))
    short = max(map(len, kinds)) <= LONGEST_SLICE
    return bool(words & OF_PEOPLE) and (numbers or (few and short))


def _words(name: str) -> list[str]:
    """`humanLabel_2` is human and label."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())


def _spelt(content: object) -> Iterator[str]:
    """Every scalar in a field, each of several answers by itself, without what is no label."""
    if isinstance(content, dict | list):
        parts = content.values() if isinstance(content, dict) else content
        for part in parts:
            yield from _spelt(part)
    elif (text := scalar_text(content)) is not None:
        yield from (one for one in spelling(text).split(SEVERAL) if one not in NO_LABEL)


def _number(content: object) -> float | None:
    try:
        return float(str(content))
    except ValueError:
        return None


def _agreement(rows: Sequence[Row], known: Sequence[str]) -> float:
    """Cohen's kappa of a field with the reference, 0 where it is undefined or over few items."""
    counts = np.zeros((1, len(known), len(known)))
    for content, reference in rows:
        said = [*_spelt(content)]
        if reference is not None and len(said) == 1 and (true := spelling(reference)) in known:
            counts[0, known.index(true), known.index(said[0])] += 1
    return float(np.nan_to_num(kappas(counts)[0])) if counts.sum() >= _ENOUGH else 0.0


# ---------------------------------------------------------------- fields that tell the label


@dataclass(frozen=True, slots=True)
class Leak:
    """A field whose value alone is enough for `right` of the labels of `items`; the most frequent
    label is right of `most`."""

    field: str
    right: int
    items: int
    most: int

    def __str__(self) -> str:
        return (
            f"field '{self.field}' alone tells {self.right} of {self.items} labels, the most "
            f"frequent label {self.most}: this is no agreement. Name the fields to show without it "
            "(--on)"
        )


def leak_of(items: Sequence[LabelledItem], texts: Sequence[Mapping[str, str]]) -> Leak | None:
    """The field that tells the label best, where one does so for nine items in ten.

    Each item is answered by the most frequent label of the other records with the same value (of a
    number with many values: the same tenth), and counts as wrong where there is none. So a text
    that no other record has tells nothing. That must be right of nine items in ten, and leave half
    of the errors, or fewer, of the most frequent label. Fields of long texts, and of more
    different values than the root of the number of items, are none that tell by value.

    Args:
        texts: what a judge is shown of each item, by field.
    """
    rows = [
        (item.record.id, item.reference, shown)
        for item, shown in zip(items, texts, strict=True)
        if item.reference is not None
    ]
    if len(rows) < _LEAST_ITEMS:
        return None
    labels = Counter(label for _, label, _ in rows)
    most = max(labels.values())
    found = []
    for field in dict.fromkeys(name for *_, shown in rows for name in shown):
        values = _values([shown.get(field, "") for *_, shown in rows])
        kinds = {value for value in values if value is not None}
        if len(kinds) <= max(2 * len(labels), len(rows) ** 0.5):
            told = [(record, label) for record, label, _ in rows]
            found.append(Leak(field, _right(told, values), len(rows), most))
    best = max(found, key=lambda leak: leak.right, default=None)
    if best is None or best.right < max(NINE_IN_TEN * best.items, most + 1):
        return None
    return best if 2 * (best.items - best.right) <= best.items - most else None


def _values(texts: Sequence[str]) -> list[str | None]:
    """The values to go by: None for a long text; of numbers with many values up to ten parts."""
    numbers = [_number(text) for text in texts]
    known = [number for number in numbers if number is not None]
    if len(known) == len(texts) and len(set(known)) > _CATEGORIES:
        parts = min(_CATEGORIES, int(len(known) ** 0.5))
        edges = np.quantile(known, np.linspace(0, 1, parts + 1)[1:-1])
        return [str(part) for part in np.digitize(known, edges)]
    return [spelling(text) if len(text) <= LONGEST_SLICE else None for text in texts]


def _right(rows: Sequence[tuple[str, str]], values: Sequence[str | None]) -> int:
    """Of how many rows (record, label) the other records with their value have the label most."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    own: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (record, label), value in zip(rows, values, strict=True):
        if value is not None:
            counts[value][label] += 1
            own[value, record][label] += 1
    right = 0
    for (record, label), value in zip(rows, values, strict=True):
        if value is not None:
            others = (counts[value] - own[value, record]).most_common(2)
            tied = len(others) > 1 and others[0][1] == others[1][1]
            right += bool(others) and not tied and others[0][0] == label
    return right

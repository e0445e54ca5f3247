"""Helpers that inspect the output of the label readers."""

from __future__ import annotations

import json
from typing import Any

from judge.records import Record
from judge.records.labels import LabelledItem, read_labels

from .conftest import Written

Found = list[LabelledItem | Record]


def item(found: Found) -> LabelledItem:
    """The one item that was found."""
    (only,) = found
    assert isinstance(only, LabelledItem), only
    return only


def says(found: Found) -> str:
    """The message of the only problem."""
    ((_, message),) = faults(found)
    return message


def sound(found: Found) -> list[LabelledItem]:
    """The items, which all must be readable and different from one another."""
    items = [one for one in found if isinstance(one, LabelledItem)]
    assert len(items) == len(found), [one for one in found if isinstance(one, Record)]
    assert len({(one.record.source, one.record.id, one.check, one.number) for one in items}) == len(
        items
    )
    return items


def faults(found: Found) -> list[tuple[int, str]]:
    """The places and messages of the problems."""
    problems = [one for one in found if isinstance(one, Record)]
    assert all(one.raw is not None for one in problems)
    return [(one.line, one.problem.message) for one in problems if one.problem is not None]


def answers(item: LabelledItem) -> dict[str, str]:
    """The annotators' answers by their names."""
    return {one.annotator: one.answer for one in item.annotations}


def lines(*objects: object) -> str:
    """JSON lines; text is kept unchanged."""
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in objects)


def read_back(
    write: Written, *objects: object, name: str = "a.jsonl", set: str = "", **options: Any
) -> Found:
    """The labels in a file of these lines, read as the label set `set` if it is named."""
    path = write(name, lines(*objects))
    return list(read_labels(f"{set}:{path}" if set else str(path), **options))

"""The measures of a judge, told apart by any field of the records, or by group of annotators."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from judge.calibration.judged import Judged
from judge.calibration.measures import Measures, measure
from judge.errors import UsageError

ANNOTATOR_GROUP = "annotator_group"
ABSENT = "(none)"
"""The slice of the items that lack the field."""


def by_slice(
    judged: Sequence[Judged],
    name: str,
    classes: Sequence[str],
    *,
    ordinal: bool = False,
    seed: int = 0,
    draws: int = 1000,
) -> dict[str, Measures]:
    """The measures of each slice, by the slice's value, in the order of the values.

    Args:
        judged: one judge's answers on one check.
        name: one of the items' slices, else one of their fields, else `source`; or
            `annotator_group`: then the reference is what more than half of one group's annotators
            say, whatever the gold answer is, and an item is in every group that annotated it.
        classes, ordinal, seed, draws: as `measure` takes them.

    Raises:
        UsageError: no item has the field.
        ValueError: as `measure`.
    """
    parts = slices(judged, name)
    return {
        value: measure(parts[value], classes, ordinal=ordinal, seed=seed, draws=draws)
        for value in sorted(parts)
    }


def slices(judged: Sequence[Judged], name: str) -> dict[str, list[Judged]]:
    """The items of each slice; arguments and errors as in `by_slice`."""
    parts: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        if name == ANNOTATOR_GROUP:
            for group, part in _by_group(one).items():
                parts[group].append(part)
        else:
            parts[_value(one, name)].append(one)
    if judged and not set(parts) - {ABSENT}:
        known = sorted({key for one in judged for key in (*one.item.slices, *one.item.fields)})
        raise UsageError(f"no item has '{name}' to slice by; items have: {', '.join(known)}")
    return dict(parts)


def _value(judged: Judged, name: str) -> str:
    item = judged.item
    found: Any = item.slices.get(name, item.fields.get(name))
    if found is None and name == "source":
        found = item.source
    if found is None or found == "":
        return ABSENT
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)


def _by_group(judged: Judged) -> dict[str, Judged]:
    """The item as each group saw it: their annotations, and no gold answer."""
    groups = {one.group for one in judged.item.annotations if one.group is not None}
    return {
        group: replace(
            judged,
            item=replace(
                judged.item,
                gold=None,
                annotations=tuple(one for one in judged.item.annotations if one.group == group),
            ),
        )
        for group in groups
    }

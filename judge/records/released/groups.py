"""Which group each annotator belongs to, from a file beside the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.records.names import normalise
from judge.records.read import read

_GROUP_KEYS = ("group", "nationality", "country")
_LEWIDI_PREFIX = "Ann"


def read_groups(path: Path) -> dict[str, str]:
    """Annotator to group.

    `path` is a JSON object `{ANNOTATOR: GROUP}` or `{ANNOTATOR: {"group": GROUP, ...}}`, in whose
    place `nationality` or `country` may stand (as in the metadata of Le-Wi-Di), or a table with
    the columns `annotator` and one of these. Annotators without a group are left out.

    Raises UsageError for a file that cannot be read, or holds no group at all.
    """
    groups: dict[str, str] = {}
    for fields in _objects(path):
        annotator = _under(fields, ("annotator",))
        rows = fields if annotator is None else {annotator: fields}
        for name, known in rows.items():
            group = _under(known, _GROUP_KEYS) if isinstance(known, dict) else known
            if isinstance(group, str) and group.strip():
                groups[name] = group.strip()
    if not groups:
        raise UsageError(f"{path} gives no annotator a group: write {{ANNOTATOR: GROUP}}")
    return groups


def _objects(path: Path) -> list[dict[str, Any]]:
    items = list(read(path))
    whole = _with_nan(path) if any(item.problem is not None for item in items) else None
    if whole is not None:
        return [whole]
    for item in items:
        if item.problem is not None:
            raise UsageError(f"{path}, line {item.line}: {item.problem.message}")
    return [item.fields for item in items if item.fields is not None]


def _with_nan(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file that may hold NaN, as the released metadata do; else None."""
    try:
        found = json.loads(path.read_bytes(), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def group_of(annotator: str, groups: Mapping[str, str]) -> str | None:
    """The annotator's group, or None. `Ann7` is found under `7`, as Le-Wi-Di writes it."""
    return groups.get(annotator, groups.get(annotator.removeprefix(_LEWIDI_PREFIX)))


def _under(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for wanted in keys:
        for key, content in fields.items():
            if normalise(key) == wanted and isinstance(content, str) and content.strip():
                return content
    return None

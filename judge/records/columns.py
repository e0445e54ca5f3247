"""Columns renamed for judging (`--map`): how judges see a record, which itself stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from judge.records.base import RESERVED, Item, Problem, at, clip


def parse_columns(pairs: Iterable[str]) -> dict[str, str]:
    """Names for judges to columns, from texts like `story=Labeled_Dialogue`.

    A column is a field of the record, or a path into its objects (`meta.text`).

    Raises ValueError for a text of another form, a name given twice, and the verdict's own.
    """
    columns: dict[str, str] = {}
    for pair in pairs:
        name, _, column = (part.strip() for part in pair.partition("="))
        if not name or not column:
            raise ValueError(f"{pair!r} is not NAME=COLUMN")
        if name in columns:
            raise ValueError(f"{name} is named twice: {columns[name]} and {column}")
        if name == RESERVED:
            raise ValueError(f"{pair}: the name {RESERVED} is reserved for the verdict")
        columns[name] = column
    return columns


def mapped(items: Iterable[Item], columns: Mapping[str, str]) -> Iterator[Item]:
    """The items with their columns; a problem where a record lacks one, or has the new name."""
    if not columns:
        yield from items
        return
    for item in items:
        problem = item.problem if item.fields is None else _misfit(item.fields, columns)
        yield replace(item, columns=columns, problem=problem)


def _misfit(fields: Mapping[str, object], columns: Mapping[str, str]) -> Problem | None:
    for name, column in columns.items():
        told = f"--map {name}={column}: the record"
        try:
            at(fields, column)
        except KeyError:
            there = clip([key for key in fields if key != RESERVED], 300)
            return Problem(f"{told} has no field {column!r}, its fields are {there}", column)
        if name in fields and name not in columns.values():
            return Problem(f"{told} has a field {name!r} already: choose another name", name)
    return None

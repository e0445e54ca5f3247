"""Columns renamed for judging (`--map`): how judges see a record, which itself stays as it is.

Columns are fields of the record, or paths into its objects, by the name that judges see them under.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from judge.records.base import RESERVED, Item, Problem, at, clip


def mapped(items: Iterable[Item], columns: Mapping[str, str]) -> Iterator[Item]:
    """The items with their columns; a problem where a record lacks one, or has the new name."""
    if not columns:
        yield from items
        return
    for item in items:
        problem = item.problem if item.fields is None else _misfit(item.fields, columns)
        yield replace(item, columns=columns, problem=problem)


def renamed(items: Iterable[Item], columns: Mapping[str, str]) -> Iterator[Item]:
    """The items with the fields that judges see in place of the record's own, for readers that
    write no record back; as `mapped`."""
    for item in mapped(items, columns):
        if item.problem is not None:
            yield replace(item, fields=None)
        else:
            yield replace(item, fields=item.shown, columns={})


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

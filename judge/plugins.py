"""Backends and workflows, ours and third parties', found through entry points."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any


@cache
def _installed() -> Any:
    # Reads the metadata of every package there is, which takes tens of milliseconds. Untyped,
    # because what comes back has another class in Python 3.11 than in 3.12.
    return entry_points()


def names(group: str) -> tuple[str, ...]:
    """The names in an entry-point group, sorted."""
    return tuple(sorted({point.name for point in _installed().select(group=group)}))


def load(group: str, name: str) -> Any:
    """What an entry point names; None where there is none.

    Raises:
        ImportError: it is there, and something that it needs is not.
    """
    for point in _installed().select(group=group, name=name):
        return point.load()
    return None

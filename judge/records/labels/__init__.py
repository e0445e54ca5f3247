"""Labelled records: a project's own form, tables, and public sets as they were released."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType

from judge.errors import UsageError
from judge.records.base import Item, renamed
from judge.records.labels.items import Annotation, Labelled, LabelledItem, LabelSet, Own, Table
from judge.records.labels.public import Ambient, LLMBar, MoralStories, MultiPico, NormAd
from judge.records.read import read

__all__ = ["SETS", "Annotation", "LabelledItem", "read_labels"]

_SETS: dict[str, type[LabelSet]] = {
    one.name: one for one in (Own, Table, MoralStories, NormAd, Ambient, MultiPico, LLMBar)
}
_LOOK = 1_000
_NAME = re.compile(r"[A-Za-z][\w-]+")

SETS = tuple(_SETS)
"""The names that may stand before a path."""


def read_labels(
    source: str, check: str | None = None, columns: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Labelled]:
    """The labelled items of `source`, in the order of its lines as far as its form allows.

    `source` is `NAME:PATH` with a name of SETS, or the path alone of a file in one of the project's
    own forms (`judge.records.labels.items`). PATH may be a folder where a set is several files.
    `check` keeps the items of that check; in a table without a column `check` it names what the
    labels are about. A line that cannot be read, or holds no usable label, comes as an `Item` with
    its problem, whatever the check. `columns` are renamed (`judge.records.base.mapped`).

    Raises UsageError: at the call for an unknown name, a path that is not there or cannot be read,
    and a form that cannot be told; at the end for a check that no item was about.
    """
    name, colon, path = source.partition(":")
    form = _SETS.get(name) if colon else None
    if form is None:
        if colon and _NAME.fullmatch(name) and not Path(source).exists():
            raise UsageError(f"there is no labelled set {name!r}: there are {', '.join(SETS)}")
        path = source
    files = [Path(path)]
    if form is not None and form.files and files[0].is_dir():
        found = chain.from_iterable(sorted(files[0].glob(pattern)) for pattern in form.files)
        files = list(dict.fromkeys(found))
        if not files:
            raise UsageError(f"{path} holds no file of {name}: {', '.join(form.files)}")
    items: Iterator[Item] = chain.from_iterable([renamed(read(file), columns) for file in files])
    if form is None:
        form, items = _recognised(source, items)
    folder = None if path == "-" else files[0].parent
    return _chosen(form(check, folder).read(items), check, source)


def _recognised(source: str, items: Iterator[Item]) -> tuple[type[LabelSet], Iterator[Item]]:
    """The project's own form that one of the first lines tells, and all items.

    The first lines of a file that is being labelled may have no labels yet.
    """
    head = list(islice(items, _LOOK))
    lines = [item.fields for item in head if item.fields is not None]
    for form in (Own, Table):
        if any(map(form.knows, lines)) or not lines:
            return form, chain(head, items)
    raise UsageError(
        f"{source}: cannot tell what these labels are. Give each line a field 'labels' "
        '({"labels": {"relevance": "yes"}}), or the columns item, annotator and label, or name '
        f"the set, as in moral-stories:{source}; there are {', '.join(SETS)}"
    )


def _chosen(found: Iterator[Labelled], check: str | None, source: str) -> Iterator[Labelled]:
    checks: set[str] = set()
    for item in found:
        if isinstance(item, LabelledItem):
            checks.add(item.check)
            if check not in (None, item.check):
                continue
        yield item
    if check is not None and check not in checks:
        there = ", ".join(sorted(checks)) or "nothing"
        raise UsageError(f"{source} has no labels for {check!r}: there are labels for {there}")

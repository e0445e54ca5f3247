"""Reading labelled records: the own form, plain tables, and public sets as they are released."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from judge.errors import UsageError
from judge.records.base import Item
from judge.records.labelled import Annotation, LabelledItem
from judge.records.read import read
from judge.records.released import (
    ambient,
    cali,
    culturalbench,
    lewidi,
    llmbar,
    moral_stories,
    multipico,
    normad,
    own,
    table,
)
from judge.records.released.common import Form, Labelled, Place
from judge.records.released.groups import group_of, read_groups

__all__ = ["SETS", "read_labels"]

# In the order in which they are tried: MultiPICo comes before the form that it is a case of.
_FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        own.FORM,
        moral_stories.FORM,
        normad.FORM,
        cali.FORM,
        ambient.FORM,
        multipico.FORM,
        llmbar.FORM,
        culturalbench.FORM,
        lewidi.FORM,
        table.FORM,
    )
}
_LOOK = 1_000
_NAME = re.compile(r"[A-Za-z][\w-]+")

SETS = tuple(_FORMS)
"""The names that may stand before a path."""


def read_labels(
    source: str, check: str | None = None, *, annotators: Path | None = None
) -> Iterator[LabelledItem | Item]:
    """The labelled items of `source`, in the order of its lines as far as its form allows.

    `source` is `NAME:PATH` with a name of SETS, or a path alone: a file in the own form
    (`judge.records.released.own`), or one whose fields tell its form. PATH is read as
    `judge.records.read` reads it, `-` is standard input, and it may be a folder where a set is
    several files. `check` keeps the items of that check; in a table without a column `check` it
    names what the labels are about. `annotators` is a file with the annotators' groups
    (`judge.records.released.groups`); groups that the set itself gives stay.

    A line that cannot be read, or holds no label that can be, comes as an `Item` with its problem,
    whatever the check.

    Raises UsageError, at the call: for an unknown name, a path that is not there or cannot be
    read, a form that cannot be told, a check that the set has no labels for. Where only the lines
    say which checks there are, that last one comes at the end, when none had the check.
    """
    form, path = _parse(source)
    _check_known(form, check, source)
    places = [Place(file, check) for file in _files(form, path)]
    opened = [read(place.path or "-") for place in places]
    if form is None:
        form, opened[0] = _recognised(source, opened[0])
        _check_known(form, check, source)
    groups = _groups(form, places[0], annotators)
    if form.merged:
        found = form.convert(chain.from_iterable(opened), places[0])
    else:
        pairs = zip(opened, places, strict=True)
        found = chain.from_iterable(form.convert(items, place) for items, place in pairs)
    return _chosen(_grouped(found, groups), check, source)


def _parse(source: str) -> tuple[Form | None, str]:
    name, colon, path = source.partition(":")
    form = _FORMS.get(name.casefold().replace("_", "-")) if colon else None
    if form is not None:
        return form, path
    if colon and _NAME.fullmatch(name) and not Path(source).exists():
        raise UsageError(f"there is no labelled set {name!r}: there are {', '.join(SETS)}")
    return None, source


def _check_known(form: Form | None, check: str | None, source: str) -> None:
    if form is not None and form.checks and check not in (None, *form.checks):
        there = ", ".join(form.checks)
        raise UsageError(f"{source} has no labels for {check!r}: there are labels for {there}")


def _files(form: Form | None, path: str) -> list[Path | None]:
    if path == "-":
        return [None]
    folder = Path(path)
    if form is None or not form.files or not folder.is_dir():
        return [folder]
    found = [file for pattern in form.files for file in sorted(folder.glob(pattern))]
    files = list(dict.fromkeys(found))
    if not files:
        raise UsageError(f"{path} holds no file of {form.name}: {', '.join(form.files)}")
    return [*files]


def _recognised(source: str, items: Iterator[Item]) -> tuple[Form, Iterator[Item]]:
    """The form that one of the first lines tells, and all items.

    The first lines of a file that is being labelled may have no labels yet.
    """
    head: list[Item] = []
    for item in islice(items, _LOOK):
        head.append(item)
        for form in _FORMS.values():
            if item.fields is not None and form.known(item.fields):
                return form, chain(head, items)
    if all(item.fields is None for item in head):
        return own.FORM, chain(head, items)
    raise UsageError(
        f"{source}: cannot tell what these labels are. Give each line a field 'labels' "
        '({"labels": {"relevance": "yes"}}), or the columns item, annotator and label, or name '
        f"the set, as in moral-stories:{source}; there are {', '.join(SETS)}"
    )


def _groups(form: Form, place: Place, annotators: Path | None) -> Mapping[str, str]:
    if annotators is not None:
        return read_groups(annotators)
    found = place.beside(form.groups) if form.groups else []
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise UsageError(f"{place.path}: which file gives the annotators' groups? {names}: name it")
    return read_groups(found[0]) if found else {}


def _grouped(found: Iterable[Labelled], groups: Mapping[str, str]) -> Iterator[Labelled]:
    for item in found:
        if groups and isinstance(item, LabelledItem):
            annotations = tuple(_with_group(one, groups) for one in item.annotations)
            yield replace(item, annotations=annotations)
        else:
            yield item


def _with_group(annotation: Annotation, groups: Mapping[str, str]) -> Annotation:
    if annotation.group is not None:
        return annotation
    return replace(annotation, group=group_of(annotation.annotator, groups))


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

"""Finding out which form labelled records are in, and reading them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.records.base import Item
from judge.records.kinds import normalise
from judge.records.labels.items import Annotation, Labelled, LabelledItem, LabelSet
from judge.records.labels.own import Own, Table
from judge.records.labels.public import (
    Ambient,
    Cali,
    LLMBar,
    MoralStories,
    MultiPico,
    NormAd,
)
from judge.records.read import read

# In the order in which they are tried.
_FORMS = (Own, MoralStories, NormAd, Cali, Ambient, MultiPico, LLMBar, Table)
_SETS: dict[str, type[LabelSet]] = {one.name: one for one in _FORMS}
_LOOK = 1_000
_NAME = re.compile(r"[A-Za-z][\w-]+")
_GROUP_KEYS = ("group", "nationality", "country")

SETS = tuple(_SETS)
"""The names that may stand before a path."""


def read_labels(
    source: str, check: str | None = None, *, annotators: Path | None = None
) -> Iterator[Labelled]:
    """The labelled items of `source`, in the order of its lines as far as its form allows.

    `source` is `NAME:PATH` with a name of SETS, or a path alone: a file whose fields tell its
    form. PATH is read as `judge.records.read` reads it, `-` is standard input, and it may be a
    folder where a set is several files. `check` keeps the items of that check; in a table without
    a column `check` it names what the labels are about. `annotators` is a file with the
    annotators' groups: `{ANNOTATOR: GROUP}` as JSON, or a table with the columns annotator and
    group; groups that the set itself gives stay.

    A line that cannot be read, or holds no usable label, comes as an `Item` with its problem,
    whatever the check.

    Raises UsageError, at the call: for an unknown name, a path that is not there or cannot be
    read, a form that cannot be told, a check that the set has no labels for. Where only the lines
    say which checks there are, that last one comes at the end, when none had the check.
    """
    form, path = _parse(source)
    if form is not None and form.checks:
        _check_known(form.checks, check, source)
    files = _files(form, path)
    opened = [read(file or "-") for file in files]
    if form is None:
        form, opened[0] = _recognised(source, opened[0])
        if form.checks:
            _check_known(form.checks, check, source)
    groups = _groups(form, files[0], annotators)
    if form.merged:
        opened, files = [chain.from_iterable(opened)], files[:1]
    found = chain.from_iterable(
        form(file, check).read(items) for file, items in zip(files, opened, strict=True)
    )
    return _chosen(_grouped(found, groups), check, source)


def _parse(source: str) -> tuple[type[LabelSet] | None, str]:
    name, colon, path = source.partition(":")
    form = _SETS.get(name.casefold().replace("_", "-")) if colon else None
    if form is not None:
        return form, path
    if colon and _NAME.fullmatch(name) and not Path(source).exists():
        raise UsageError(f"there is no labelled set {name!r}: there are {', '.join(SETS)}")
    return None, source


def _check_known(checks: Iterable[str], check: str | None, source: str) -> None:
    if check is not None and check not in checks:
        there = ", ".join(checks) or "nothing"
        raise UsageError(f"{source} has no labels for {check!r}: there are labels for {there}")


def _files(form: type[LabelSet] | None, path: str) -> list[Path | None]:
    if path == "-":
        return [None]
    folder = Path(path)
    if form is None or not form.files or not folder.is_dir():
        return [folder]
    files = dict.fromkeys(file for pattern in form.files for file in sorted(folder.glob(pattern)))
    if not files:
        raise UsageError(f"{path} holds no file of {form.name}: {', '.join(form.files)}")
    return [*files]


def _recognised(source: str, items: Iterator[Item]) -> tuple[type[LabelSet], Iterator[Item]]:
    """The form that one of the first lines tells, and all items.

    The first lines of a file that is being labelled may have no labels yet.
    """
    head: list[Item] = []
    for item in islice(items, _LOOK):
        head.append(item)
        for form in _FORMS:
            if item.fields is not None and form.knows(item.fields):
                return form, chain(head, items)
    if all(item.fields is None for item in head):
        return Own, chain(head, items)
    raise UsageError(
        f"{source}: cannot tell what these labels are. Give each line a field 'labels' "
        '({"labels": {"relevance": "yes"}}), or the columns item, annotator and label, or name '
        f"the set, as in moral-stories:{source}; there are {', '.join(SETS)}"
    )


def _groups(form: type[LabelSet], path: Path | None, annotators: Path | None) -> dict[str, str]:
    """Annotator to group; in place of `group` may stand nationality or country."""
    files = [annotators] if annotators else []
    if not files and path is not None and form.groups:
        files = sorted(path.parent.glob(form.groups))
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise UsageError(f"{path}: which file gives the annotators' groups? {names}: name it")
    groups: dict[str, str] = {}
    for fields in _objects(files[0]) if files else []:
        annotator = _under(fields, ("annotator",))
        for name, known in (fields if annotator is None else {annotator: fields}).items():
            group = _under(known, _GROUP_KEYS) if isinstance(known, dict) else known
            if isinstance(group, str) and group.strip():
                groups[name] = group.strip()
    if files and not groups:
        raise UsageError(f"{files[0]} gives no annotator a group: write {{ANNOTATOR: GROUP}}")
    return groups


def _objects(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json" and path.is_file():
        try:
            # Le-Wi-Di's metadata hold NaN, which is no JSON.
            found = json.loads(path.read_bytes(), parse_constant=lambda _: None)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path} is not JSON: {error}") from error
        return [
            one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)
        ]
    items = list(read(path))
    for item in items:
        if item.problem is not None:
            raise UsageError(f"{path}, line {item.line}: {item.problem.message}")
    return [item.fields for item in items if item.fields is not None]


def _under(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    named = {normalise(key): content for key, content in fields.items()}
    texts = [named[key] for key in keys if isinstance(named.get(key), str) and named[key].strip()]
    return texts[0] if texts else None


def _grouped(found: Iterable[Labelled], groups: Mapping[str, str]) -> Iterator[Labelled]:
    def with_group(one: Annotation) -> Annotation:
        # Le-Wi-Di's metadata have 7 for the annotator Ann7.
        group = groups.get(one.annotator, groups.get(one.annotator.removeprefix("Ann")))
        return one if one.group is not None else replace(one, group=group)

    for item in found:
        if groups and isinstance(item, LabelledItem):
            item = replace(item, annotations=tuple(map(with_group, item.annotations)))
        yield item


def _chosen(found: Iterator[Labelled], check: str | None, source: str) -> Iterator[Labelled]:
    checks: set[str] = set()
    for item in found:
        if isinstance(item, LabelledItem):
            checks.add(item.check)
            if check not in (None, item.check):
                continue
        yield item
    _check_known(sorted(checks), check, source)

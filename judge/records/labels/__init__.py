"""Readers of labelled records: the project's own form, tables, and public sets as released."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType

from judge import plugins
from judge.errors import UsageError, meant
from judge.records.answers import spelling
from judge.records.base import clip, key_for
from judge.records.labels.forms import FORMS, UNNAMED, Form
from judge.records.labels.items import Annotation, Labelled, LabelledItem, LabelSet
from judge.records.labels.own import Own
from judge.records.labels.table import QUESTION, ROLES, TABLE, LabelTable
from judge.records.labels.tasks import is_task, rows_of
from judge.records.read import mapped, read, renamed
from judge.records.record import Record

__all__ = [
    "QUESTION",
    "ROLES",
    "UNNAMED",
    "Annotation",
    "LabelledItem",
    "read_labels",
    "set_names",
    "without_label",
]

_FORMS = {form.name: form for form in (TABLE, *FORMS)}
_LOOK = 1_000
_SIMILAR = 3
"""Most published forms that a message names."""

_NAME = re.compile(r"[A-Za-z][\w-]+")


def set_names() -> tuple[str, ...]:
    """The valid names in `NAME:PATH`: `own`, the forms of tables, and the entry points in
    `judge.labels`, each a `LabelSet`."""
    return ("own", *_FORMS, *plugins.names("judge.labels"))


def read_labels(
    source: str,
    check: str | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    blank: list[int] | None = None,
    accepted: Collection[str] = (),
    named_by: str | None = None,
) -> Iterator[Labelled]:
    """Read the labelled items of `source`, in the order of its lines if its form allows.

    A line that cannot be read, or has no usable label, is yielded as a `Record` with its problem,
    whatever its check.

    Args:
        source: `NAME:PATH` with a name of `set_names`, or the path alone of a file in one of the
            project's own forms (`items`, `table`) or of `forms.FORMS`. PATH may be a folder if a
            set has several files. A sheet of `judge label` that another tool exported is read as a
            sheet (`tasks`).
        check: yield only the items of this check; in a table without a column `check` it names
            what the labels are about.
        columns: the columns of a table's roles (`table.ROLES`); others are renamed
            (`judge.records.read.mapped`). In a set whose lines name their checks, `label` names one
            of these, and its items are yielded as UNNAMED.
        blank: is extended by the lines without a label of a sheet of `judge label`, a table, or
            the own form.
        accepted: valid answers besides those that a sheet offers.
        named_by: the column that names the records of the own form, where they have it.

    Raises:
        UsageError: at the call for an unknown name, a path that does not exist or cannot be read,
            or an unrecognised form; at the end if no item is about `check`.
    """
    name, colon, path = source.partition(":")
    names = set_names()
    if not colon or name not in names:
        if colon and _NAME.fullmatch(name) and not Path(source).exists():
            raise UsageError(f"there is no labelled set {name!r}; {meant(name, names)}")
        name, path = "", source
    if name == "argilla" and (Path(path) / "records.json").is_file():
        path = str(Path(path) / "records.json")  # A folder of `Dataset.to_disk`.
    folder = None if path == "-" else Path(path).parent
    roles = {role: column for role, column in columns.items() if role in ROLES}
    renames = {name: column for name, column in columns.items() if name not in ROLES}
    if name and name not in _FORMS:
        form: type[LabelSet] = (
            Own if name == "own" else plugins.load("judge.labels", name, LabelSet)
        )
        files = [Path(path)]
        if form.files and files[0].is_dir():
            paths = chain.from_iterable(sorted(files[0].glob(pattern)) for pattern in form.files)
            files, folder = list(dict.fromkeys(paths)), Path(path)
            if not files:
                raise UsageError(f"{path} holds no file of {name}: {', '.join(form.files)}")
        found_in = chain.from_iterable([renamed(read(file), renames) for file in files])
        return _about(form(check, folder).read(found_in), roles, check, source)
    items = chain.from_iterable(map(rows_of, read(path)))
    head = list(islice(items, _LOOK))
    recognised, items = _recognised(source, name, head, roles), chain(head, items)
    sheets = (item.fields for item in head if LabelTable.is_sheet(item.fields))
    if sheet := next(sheets, None):
        # Its ids are in the column `item`, and its fields have the names that people were shown.
        columns = {role: column for role, column in columns.items() if role != "id"}
        renames = {n: c for n, c in renames.items() if c in sheet or n not in (*sheet, "id")}
    if recognised is None:
        keys = [item.fields for item in head]
        if named_by and any(key_for(names, named_by) in names for names in keys):
            renames |= {"id": named_by}
        own = Own(check, folder)
        own.blank = own.blank if blank is None else blank
        return _about(own.read(renamed(items, renames)), roles, check, source)
    if recognised[0] is TABLE and "id" in columns:
        roles.setdefault("item", columns["id"])
    table = LabelTable(check, folder, *recognised, roles, {*map(spelling, accepted)})
    table.blank = table.blank if blank is None else blank
    return _chosen(table.read(mapped(items, renames)), check, source)


def no_label(answers: int) -> str:
    """The message for this many answers that mean no label."""
    noun = "answer" if answers == 1 else "answers"
    return f"no label (none, NULL, NA, - and the like): {answers} {noun}"


def without_label(rows: int) -> str:
    """The message for this many rows without a label."""
    return f"{rows} row{' has' if rows == 1 else 's have'} no label"


def _recognised(
    source: str, name: str, head: Sequence[Record], roles: Mapping[str, str]
) -> tuple[Form, Sequence[str]] | None:
    """The form of a file, and further columns with people's answers; None for the own form.

    All of `head` is searched, because the first lines of a file may have no labels yet.
    """
    lines = [item.fields for item in head if item.problem is None]
    if name and not any(map(LabelTable.is_sheet, lines)):
        return _FORMS[name], ()
    labels_fields = [line["labels"] for line in lines if Own.knows(line)]
    by_name = [*roles] == ["label"] and any(roles["label"] in labels for labels in labels_fields)
    if lines and all(is_task(line) for line in lines):
        raise UsageError(
            f"{source} holds tasks for Label Studio, without answers: give its JSON export"
        )
    if not lines or (labels_fields and (not roles or by_name)):
        return None
    if any(map(LabelTable.is_sheet, lines)):
        return TABLE, ()
    form = next((form for form in FORMS if any(map(form.knows, lines))), None)
    by_hand = "annotators" in roles or {"item", "label"} <= roles.keys()
    if form is not None and not by_hand:
        return form, ()
    if by_hand or "label" in roles or any(map(LabelTable.knows, lines)):
        return TABLE, () if form is None else (form.label, *form.annotators, *form.annotator)
    raise UsageError(
        f"{source}: cannot tell what these labels are; the fields are {clip([*lines[0]], 300)}. "
        "Name the column of the labels: --label-column NAME. Or give each line a field 'labels' "
        '({"labels": {"relevance": "yes"}}), or the columns item, annotator and label. '
        f"{_similar(lines[0])}All published forms are in docs/howto/calibrate.md, and public sets, "
        "which are named as in NAME:PATH, in docs/papers/protocols.md"
    )


def _similar(fields: Collection[str]) -> str:
    """The published forms of which a line has at least half of the fields, and the other fields."""
    others = {form.name: [need for need in form.needs if need not in fields] for form in FORMS}
    shares = {form.name: len(others[form.name]) / len(form.needs) for form in FORMS}
    near = sorted((name for name, share in shares.items() if share <= 0.5), key=shares.__getitem__)
    told = [f"{name} also has {', '.join(others[name])}" for name in near[:_SIMILAR]]
    return f"Of similar forms, {'; '.join(told)}. " if told else ""


def _about(
    items: Iterator[Labelled], roles: Mapping[str, str], check: str | None, source: str
) -> Iterator[Labelled]:
    """As `_chosen`; if the role `label` names a check, only its items, renamed to `check`."""
    if (label := roles.get("label")) is None:
        yield from _chosen(items, check, source)
        return
    for item in _chosen(items, label, source):
        yield item if isinstance(item, Record) else replace(item, check=check or UNNAMED)


def _chosen(items: Iterator[Labelled], check: str | None, source: str) -> Iterator[Labelled]:
    checks: set[str] = set()
    for item in items:
        if isinstance(item, LabelledItem):
            checks.add(item.check)
            if check not in (None, item.check):
                continue
        yield item
    # If there are no labels at all, the lines' problems say why.
    if check is not None and checks and check not in checks:
        there = ", ".join(sorted(checks))
        raise UsageError(f"{source} has no labels for {check!r}: there are labels for {there}")

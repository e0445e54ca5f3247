"""Join a sheet of labels to records by their ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judge.errors import UsageError, meant
from judge.records.base import LabelError, Problem, at, clip, key_for, own_id
from judge.records.fields import id_text
from judge.records.kinds import normalise
from judge.records.labels.forms import UNNAMED
from judge.records.labels.own import ABOUT_LABELS
from judge.records.read import InMemory, read
from judge.records.record import Record

_IDS = ("id", "item")
_WITH_POINT = re.compile(r"\d+\.0")


def with_labels(
    files: Sequence[str], sheet: str, columns: Sequence[str], id: str | None = None
) -> tuple[list[str], list[Record], dict[str, tuple[str, int]]]:
    """Sources of labels: the records of the files with the sheet's labels; as problems the rows of
    the sheet whose id no record has; and the place of each id's label, the sheet and the line.

    Args:
        columns: the sheet's columns of labels; several are one person's each.
        id: the records' column of ids, if it is not `id`; the sheet may have this column, too.

    Raises:
        UsageError: a column is missing, an id is repeated, or no record has an id of the sheet.
    """
    labels, lines = _labels(sheet, columns, id, files)
    records = {file: [*read(file)] for file in files}
    joined, places = _joined(records, labels, id)
    if places.keys().isdisjoint(labels) and all(map(_WITH_POINT.fullmatch, labels)):
        # pandas writes a column of whole numbers with a gap as 1.0.
        labels, lines = ({n[:-2]: cell for n, cell in part.items()} for part in (labels, lines))
        joined, places = _joined(records, labels, id)
    sources: list[str] = [InMemory.of(file, of_file) for file, of_file in joined.items()]
    unknown = [name for name in labels if name not in places]
    if len(unknown) == len(labels):
        ids = f"the sheet has {_some(labels)}, the records {_some(places)}"
        hint = "" if id else "; name their column of ids with --id"
        raise UsageError(f"--labels {sheet}: no record has an id of the sheet: {ids}{hint}")
    problems = [
        Record.unreadable(sheet, lines[name], Problem(f"no record has the id {clip(name)}"))
        for name in unknown
    ]
    return sources, problems, {name: (sheet, line) for name, line in lines.items()}


def _labels(
    sheet: str, columns: Sequence[str], id: str | None, files: Sequence[str]
) -> tuple[dict[str, Any], dict[str, int]]:
    """The label of each id (with several columns, its labels by column), and its line."""
    labels: dict[str, Any] = {}
    heads = ",".join((id or "id", *columns))
    places: dict[str, int] = {}
    for row in read(sheet):
        if row.problem is not None:
            raise UsageError(f"--labels {row.source}, line {row.line}: {row.fault}")
        fields, place = row.fields, f"--labels {sheet}, line {row.line}"
        own_id_column = key_for(fields, id or "")
        names = [key for key in fields if key == own_id_column or normalise(key) in _IDS]
        if not names:
            raise UsageError(
                f"{place}: no column `id`; its columns are {', '.join(fields)}; the first "
                f"line of a table must name them ({heads})"
            )
        keys = {column: key_for(fields, column) for column in columns}
        for column, key in keys.items():
            if key not in fields:
                hint = f"{meant(column, [*fields])}; --label-column names another"
                raise UsageError(f"{place}: no column {column!r}; {hint}")
        name = _text(fields[names[0]], names[0], place)
        if name in places:
            several = any(normalise(key) == "annotator" for key in fields)
            hint = (
                f"; for a sheet of several people type: judge calibrate {sheet}, in the place of "
                f"{' '.join(map(str, files))} --labels {sheet}, and the other flags as they are"
            )
            raise UsageError(
                f"{place}: id {clip(name)} was already on line {places[name]}"
                f"{hint if several else ''}"
            )
        answers = {column: fields[key] for column, key in keys.items()}
        labels[name] = answers if len(columns) > 1 else answers[columns[0]]
        places[name] = row.line
    if not labels:
        raise UsageError(
            f"--labels {sheet}: no rows below the first line, which must name the columns ({heads})"
        )
    return labels, places


def _joined(
    records: Mapping[str, Sequence[Record]], labels: Mapping[str, Any], id: str | None
) -> tuple[dict[str, list[Record]], dict[str, str]]:
    """The records of each file in the project's own form of labels, without a label those that are
    not in the sheet; and the place of each id."""
    places: dict[str, str] = {}

    def labelled(record: Record) -> Record:
        if record.problem is not None:
            return record
        fields = {k: content for k, content in record.fields.items() if k not in ABOUT_LABELS}
        place = f"{record.source}, line {record.line}"
        try:
            name = own_id(fields) if id is None else _text(at(fields, id), id, place)
        except (KeyError, LabelError):
            raise UsageError(f"--id {id}: {place} has no such field") from None
        if name in labels and name in places:
            raise UsageError(f"{place}: id {clip(name)} was already in {places[name]}")
        if name is not None:
            places[name] = place
        return replace(record, fields=fields | {"labels": {UNNAMED: labels.get(name or "")}})

    return {file: [*map(labelled, of_file)] for file, of_file in records.items()}, places


def _text(content: object, field: str, place: str) -> str:
    try:
        text = id_text(content, field)
    except LabelError as error:
        raise UsageError(f"{place}: {error}") from None
    if text is None:
        raise UsageError(f"{place}: field {field!r} is empty")
    return text


def _some(names: Iterable[str]) -> str:
    several = [*names]
    return ", ".join(map(clip, several[:3])) + (", ..." if len(several) > 3 else "") or "none"

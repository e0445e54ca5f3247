"""Turn exports of Label Studio or Argilla back into rows of a sheet of `judge label`.

A task that `judge.report.sheet_files` wrote has the cells of a row. `forms.FORMS` says where its
annotators' answers to the questions `label` and `why` are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from judge.records.base import LabelError
from judge.records.fields import refused
from judge.records.labels.forms import FORMS, Form
from judge.records.record import Record

OF_TOOLS = frozenset((
    *("id", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "choices"),
    *("_server_id", "status", "score"),
))  # fmt: skip
"""Columns that the tools, or our tasks for them, add to those of a sheet."""

_TASK = {"item", "question", "answers"}
_ROW = ("item", "check", "entry")
_ANSWERS = {"annotator": "", "label": "", "why": ""}
_TOOLS = ("label-studio", "label-studio-min", "argilla", "argilla-columns")


def is_task(fields: Mapping[str, Any]) -> bool:
    """Whether a line is a task to import into Label Studio, not one it exported."""
    data = fields.get("data")
    return fields.keys() == {"data"} and isinstance(data, dict) and data.keys() >= _TASK


def rows_of(record: Record) -> Iterator[Record]:
    """The rows of a sheet for a tool's task: one for each annotator, or one without a label if
    there is no annotator. Any other record is yielded unchanged."""
    fields = record.fields
    form = next((form for form in FORMS if form.name in _TOOLS and form.knows(fields)), None)
    task = {} if form is None else _task(form, fields)
    if form is None or not task.keys() >= _TASK:
        yield record
        return
    shown = {name: cell for name, cell in task.items() if name not in (*_TASK, *_ROW)}
    row = {name: task.get(name) or "" for name in _ROW}
    asked = {name: task[name] for name in ("question", "answers")}
    try:
        people = _given(form, fields) or [("", {})]
    except LabelError as error:
        yield refused(record, error.problem)
        return
    for annotator, given in people:
        # Label Studio's "ground truth" has no annotator.
        answers = {**given, "annotator": annotator} if annotator is not None else {}
        gold = {} if annotator is not None else {"gold": given.get("label")}
        yield replace(record, fields={**row, **gold, **shown, **asked, **_ANSWERS, **answers})


def _task(form: Form, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of the task that the tool imported."""
    parts = [fields.get(form.within), fields.get("metadata")] if form.within else [fields]
    return {
        name: cell
        for part in parts
        if isinstance(part, dict)
        for name, cell in part.items()
        if name not in (*OF_TOOLS, *_ANSWERS) and not re.fullmatch(form.omit, name)
    }


def _given(form: Form, fields: Mapping[str, Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Each annotator with the answers to `label` and `why`. Raises LabelError."""
    if form.reader is None:
        answers = {name: fields[name] for name in ("label", "why") if fields.get(name)}
        return [(fields.get("annotator") or "", answers)]
    rows: list[tuple[Any, dict[str, Any]]] = []
    for one in form.reader(fields):
        answer = one.answer
        if isinstance(answer, list) and (len(answer) == 1 or one.question == "why"):
            answer = "\n".join(map(str, answer))
        # A second answer of one annotator makes a second row, which is refused as in any sheet.
        own = [answers for annotator, answers in rows if annotator == one.annotator]
        if not own or one.question in own[-1]:
            own.append({})
            rows.append((one.annotator, own[-1]))
        own[-1][one.question] = answer
    return rows

"""The forms of a sheet for people: a table, a page in one file, tasks of another tool.

Each comes back as the rows of a table: what a page saves, and what Label Studio and Argilla export
(`judge.records.labels.tasks`). A tool has a task for each question; both accept field names of
letters, digits and underscores.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from markupsafe import Markup

from judge.digest import digest
from judge.errors import UsageError
from judge.records.labels.table import OFFERED
from judge.records.labels.tasks import OF_TOOLS
from judge.redact import in_utf8
from judge.report import page
from judge.report.export import inert
from judge.report.files import writing

Row = dict[str, str]

_ABOUT = ("item", "check", "annotator", "group", "entry", "question", "answers")
"""Cells of a row that are not texts of the record."""


@dataclass(frozen=True, slots=True)
class SheetRows:
    """The content of a sheet: the rows of each record (or of several that are kept together), the
    number of annotators for each, the seed of orders, the instructions; and the two columns that a
    check compares, each with its answer."""

    units: Sequence[Sequence[Row]]
    workers: int
    seed: int
    instructions: str
    compared: Mapping[str, Sequence[tuple[str, str]]]

    def ordered(self, name: str = "") -> list[Row]:
        """The rows in the order for an annotator of this name."""
        order = [*self.units]
        Random(f"{self.seed} {name}").shuffle(order)
        return [row for unit in order for row in unit]

    @property
    def names(self) -> dict[str, str]:
        """The record's fields, each with a name that both tools accept."""
        fields = dict.fromkeys(n for unit in self.units for r in unit for n in r if n not in _ABOUT)
        names: dict[str, str] = {}
        for field in fields:
            name = re.sub("[^a-z0-9]+", "_", field.lower()).strip("_") or "text"
            name = f"text_of_{name}" if name in {*_ABOUT, *OF_TOOLS} else name
            taken = {*names.values()}
            numbers = (f"{name}_{number}" for number in range(2, len(fields) + 2))
            names[field] = name if name not in taken else next(n for n in numbers if n not in taken)
        return names


@dataclass(frozen=True, slots=True)
class SheetForm:
    """A form of sheets. `contents` makes the content of each file of a sheet at a path. `counted`:
    the form is made for a number of annotators; `told`: it has a place for instructions."""

    name: str
    contents: Callable[[Path, SheetRows], dict[Path, bytes]]
    counted: bool = False
    told: bool = True

    def write(
        self, out: Path, rows: SheetRows, sources: Sequence[str], overwrite: bool
    ) -> list[Path]:
        """Write all the files of a sheet made of these sources, or none if one is refused; returns
        them, or their folder."""
        files = self.contents(out, rows)
        with ExitStack() as stack:
            opened = [
                stack.enter_context(writing(p, sources, overwrite=overwrite, flag="--sheet"))
                for p in files
            ]
            for file, content in zip(opened, files.values(), strict=True):
                file.write(content)
                # A full disk is noticed here, before one of the files is in place.
                file.flush()
        return [*files] if out in files else [out]

    def instructions_of(self, path: Path | None) -> str:
        """The text of the instructions. Raises UsageError if it cannot be read or shown."""
        if path is None:
            return ""
        if not self.told:
            raise UsageError("--instructions: a .csv file has no place for them: name a .html file")
        try:
            return path.read_text("utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "is not UTF-8"
            raise UsageError(f"--instructions {path}: {why}") from error


def form_of(sheet: Path) -> tuple[SheetForm, Path]:
    """The form that NAME:PATH, or the path's ending, names, and the path alone.

    Raises:
        UsageError: there is no such form.
    """
    tool, _, path = str(sheet).partition(":")
    form = TOOLS.get(tool) if path else None
    path = str(sheet) if form is None else path
    if form is None and (form := ENDINGS.get(sheet.suffix.lower())) is None:
        raise UsageError(
            f"--sheet {sheet}: name a .csv file for spreadsheets, a .html file for browsers, "
            "label-studio:TASKS.json, or argilla:FOLDER"
        )
    if form.name == "label-studio" and Path(path).suffix.lower() != ".json":
        raise UsageError(f"--sheet {sheet}: Label Studio imports a .json file: name one")
    return form, Path(path)


def _csv(out: Path, rows: SheetRows) -> dict[Path, bytes]:
    """A CSV file with a column for every field; text that a spreadsheet would run gets an
    apostrophe."""
    lines = [
        row | {"annotator": f"annotator-{worker}"}
        for worker in range(1, rows.workers + 1)
        for row in rows.ordered(str(worker))
    ]
    last = ("question", "answers", "label", "why")
    heads = dict.fromkeys(head for line in lines for head in line if head not in last)
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, [*heads, *last], restval="", lineterminator="\n")
    table.writerow({name: inert(name) for name in table.fieldnames})
    table.writerows({name: inert(cell) for name, cell in line.items()} for line in lines)
    # With a byte-order mark Excel reads UTF-8.
    return {out: text.getvalue().encode("utf-8-sig")}


def _html(out: Path, rows: SheetRows) -> dict[Path, bytes]:
    """A page in one file. It has each text once, however many rows show it; its script gives each
    annotator an order, and hides the names of compared columns."""
    texts: dict[str, int] = {}
    order = [*rows.units]
    Random(rows.seed).shuffle(order)
    units = [
        [{name: texts.setdefault(cell, len(texts)) for name, cell in row.items()} for row in unit]
        for unit in order
    ]
    content = {"name": out.stem, "texts": [*texts], "units": units, "compared": rows.compared}
    # Escaped, so that no text can end its element or be read as markup.
    data = _json({**content, "sheet": digest(content)[:16]}).replace("<", "\\u003c")
    text = page.from_template(
        "sheet.html",
        ("keys.js", "sheet.js"),
        asking=True,
        data=Markup(data),
        records=len(units),
        questions=sum(map(len, units)),
        instructions=rows.instructions,
    )
    return {out: text.encode()}


def _label_studio(out: Path, rows: SheetRows) -> dict[Path, bytes]:
    """Tasks to import, and the labelling configuration (XML) beside them."""
    names, lines = rows.names, rows.ordered()
    alike = len({row["answers"] for row in lines}) == 1
    tasks = [
        {
            "data": {
                **{name: row.get(name, "") for name in ("item", "check", "entry")},
                # Label Studio refuses tasks that lack a field of the configuration.
                **{name: row.get(field, "") for field, name in names.items()},
                "question": row["question"],
                "answers": row["answers"],
                **({} if alike else {"choices": [{"value": a} for a in _answers(row)]}),
            }
        }
        for row in lines
    ]
    view = Element("View")
    SubElement(view, "Style").text = ".htx-text { white-space: pre-wrap; }"
    if rows.instructions:
        told = SubElement(SubElement(view, "Collapse"), "Panel", value="Instructions")
        SubElement(told, "Header", value=_plain(rows.instructions), size="6")
    for field, name in names.items():
        SubElement(view, "Header", value=_plain(field), size="6")
        SubElement(view, "Text", name=name, value=f"${name}")
    SubElement(view, "Header", value="Question", size="6")
    SubElement(view, "Text", name="question", value="$question")
    about = {"toName": "question"}
    choices = SubElement(
        view, "Choices", about, name="label", choice="single", showInline="true", required="true"
    )
    if not alike:
        choices.set("value", "$choices")
    for answer in _answers(lines[0]) if alike else ():
        SubElement(choices, "Choice", value=answer)
    SubElement(view, "TextArea", about, name="why", rows="2", maxSubmissions="1")
    indent(view)
    config = io.BytesIO()
    ElementTree(view).write(config, "utf-8")
    return {out: _json(tasks, 1).encode(), out.with_suffix(".xml"): config.getvalue()}


def _argilla(out: Path, rows: SheetRows) -> dict[Path, bytes]:
    """A folder, made here, that `Dataset.from_disk` of Argilla's SDK reads; nothing is suggested.

    Raises UsageError where the questions have different answers: a question of Argilla offers the
    same for all records.
    """
    names, lines = rows.names, rows.ordered()
    if len({row["answers"] for row in lines}) > 1:
        raise UsageError(
            "--sheet argilla: the questions have different answers, and Argilla offers the same "
            "for all records: write a folder for each question"
        )
    every = [name for field, name in names.items() if all(row.get(field) for row in lines)]
    settings = {
        "guidelines": rows.instructions or None,
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": rows.workers},
        "fields": [
            *(_of_argilla(name, field, name in every, _TEXT) for field, name in names.items()),
            _of_argilla("question", "Question", True, _TEXT),
        ],
        "questions": [
            _of_argilla("label", "Your answer", True, {
                "type": "label_selection",
                "options": [{"value": answer, "text": answer} for answer in _answers(lines[0])],
            }),
            _of_argilla("why", "Why?", False, _TEXT),
        ],
        "vectors": [],
        "metadata": [],
    }  # fmt: skip
    records = [
        {
            "id": "#".join(row[name] for name in ("item", "check", "entry") if row.get(name)),
            "fields": {name: row[field] for field, name in names.items() if row.get(field)}
            | {"question": row["question"]},
            "metadata": {
                name: row[name] for name in ("item", "check", "entry", "answers") if row.get(name)
            },
            "suggestions": {},
            "responses": {},
            "vectors": {},
        }
        for row in lines
    ]
    name = re.sub(r"[^A-Za-z0-9_ -]+", "-", out.name).strip("-_ ") or "judge"
    about = {n: settings[n] for n in ("guidelines", "allow_extra_metadata", "distribution")}
    contents = {
        "records.json": records,
        ".argilla/settings.json": settings,
        ".argilla/dataset.json": {"name": name, **about},
    }
    try:
        (out / ".argilla").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"{out}: cannot be written: {error.strerror}; name a folder that can be"
        raise UsageError(f"--sheet argilla:{why}") from error
    return {out / name: _json(content, 1).encode() for name, content in contents.items()}


_TEXT = {"type": "text", "use_markdown": False}


def _of_argilla(
    name: str, title: str, required: bool, settings: Mapping[str, object]
) -> dict[str, Any]:
    return {"name": name, "title": title, "required": required, "settings": settings}


def _answers(row: Row) -> list[str]:
    return row["answers"].split(OFFERED)


def _plain(text: str) -> str:
    """Text for an attribute of Label Studio, which would read `$word` as a field of the task."""
    return "".join(_XML_TEXT.findall(text)).replace("$", "\uff04")


_XML_TEXT = re.compile("[\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _json(content: object, indent: int | None = None) -> str:
    """JSON that UTF-8 can encode, even if a text has a lone surrogate."""
    return in_utf8(json.dumps(content, ensure_ascii=False, indent=indent))


ENDINGS = {
    ".csv": SheetForm("csv", _csv, counted=True, told=False),
    ".html": SheetForm("html", _html),
}
"""Forms of files, by ending."""

TOOLS = {
    "label-studio": SheetForm("label-studio", _label_studio),
    "argilla": SheetForm("argilla", _argilla, counted=True),
}
"""Forms for tools, by the name before the path."""

"""A sheet for people: a row for each question about a record, to be filled in.

It is a table of labels (`judge.records.labels.table`): `judge agreement` and `judge calibrate` read
it back. It shows records as judges see them, without labels and verdicts. Control questions among
them look like the others. `sheet_files` writes it as a table, a page, or tasks of another tool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random

from judge.errors import UsageError
from judge.judging.prompts import lack, shown_texts
from judge.questions.rubric import Rubric
from judge.questions.templates import render, variables_of
from judge.records import RECORD, Record, mapped
from judge.records.answers import SEVERAL, spelt_as
from judge.records.base import key_for, no_such_field, normalise
from judge.records.fields import record_name
from judge.records.labels import QUESTION, ROLES, LabelledItem, read_labels
from judge.records.labels.matching import in_column
from judge.records.labels.table import OFFERED
from judge.records.names import entry_name
from judge.report.sheet_files import SheetRows, form_of
from judge.run.job import Job
from judge.run.rubrics import RubricSet
from judge.settings import Settings

WORKERS = 3
"""Annotators of each record."""

CONTROL_SHARE = 0.15
"""The share of an annotator's records that are control questions (Huang and Yang, B.3)."""

_HEADS = ("item", "check", "annotator", "group")
_OURS = {*ROLES, *QUESTION}


@dataclass(frozen=True, slots=True)
class Sheet:
    """A written sheet: its form, files and counts. `workers` is None if the form does not fix their
    number; `most_controls` is the number for the share, if there are as many. `reasons` and
    `unread` are those of the `Questionnaire`, `notes` are about questions that some records lack.
    `not_offered` are messages about controls whose right answer the sheet does not offer.
    """

    form: str
    files: Sequence[Path]
    rows: int
    workers: int | None
    records: int
    controls: int
    most_controls: int
    reasons: Sequence[str]
    unread: int
    notes: Sequence[str]
    not_offered: Sequence[str]


def write_sheet(
    out: Path,
    job: Job,
    settings: Settings,
    *,
    workers: int | None = None,
    controls: Sequence[str] = (),
    control_share: float = CONTROL_SHARE,
    opt_outs: Sequence[str] = (),
    together: str | None = None,
    instructions: Path | None = None,
) -> Sheet:
    """Write the questions of the settings (`ask`, `rubric`, `check`) about a job's records.

    `out` is a .csv or .html file, or NAME:PATH of a tool (`sheet_files.TOOLS`). Each of `workers`
    annotators (default WORKERS) gets every record, in an order set by the seed, mixed with control
    questions from the files `controls` (`control_share` of all, rounded up). `opt_outs` may be
    chosen besides a question's answers. Records with the same text in the field `together` are kept
    together (Huang and Yang, 3.5: three hypotheses at once). `instructions` is a text file that a
    page or a tool shows to annotators.

    Raises:
        UsageError: no question is named, a file cannot be used, or there is nothing to ask about.
    """
    form, path = form_of(out)
    told = form.instructions_of(instructions)
    if workers is not None and not form.counted:
        raise UsageError(
            f"--workers: any number of people can answer a sheet of form {form.name}: leave it out"
        )
    if control_share != CONTROL_SHARE and not controls:
        raise UsageError("--control-share needs --controls, the labelled records to mix in")
    workers = workers or WORKERS
    asked = rubrics_asked(job, settings)
    for answer in (answer for rubric in asked for answer in (*rubric.answers, *opt_outs)):
        if not answer.strip() or OFFERED in answer:
            raise UsageError(
                f"answer {answer!r}: on a sheet, an answer must not be empty or contain {OFFERED!r}"
            )
    questions = Questionnaire(asked)
    units = _units(job, settings, questions, opt_outs)
    golden, not_offered = _controls(controls, asked, opt_outs, settings.id)
    records = len(units)
    if together:
        units, golden = _joined(units, together), _joined(golden, together)
        if telling_sizes := {*map(len, golden)} - {*map(len, units)}:
            raise UsageError(
                f"{controls[0]}: {min(telling_sizes)} rows of the same {together} would give the "
                "controls away: no records have that many"
            )
    share = Fraction(str(control_share))  # As typed: 0.4 of five is two, not a little more.
    most = ceil(len(units) * share / (1 - share))
    golden = Random(settings.seed).sample(golden, min(most, len(golden)))
    _refuse_telling(controls, golden, units, questions.ids)
    compared = {
        rubric.name: tuple((_head(name), name) for name in rubric.compare)
        for rubric in asked
        if rubric.compare
    }
    content = SheetRows([*units, *golden], workers, settings.seed, told, compared)
    sources = [*job.inputs, *controls, *([str(instructions)] if instructions else [])]
    files = form.write(path, content, sources, job.overwrite)
    count = sum(map(len, content.units)) * (workers if form.name == "csv" else 1)
    return Sheet(
        form.name,
        files,
        count,
        workers=workers if form.counted else None,
        records=records,
        controls=len(golden),
        most_controls=most if controls else 0,
        reasons=questions.reasons,
        unread=questions.unread,
        notes=questions.notes(),
        not_offered=not_offered,
    )


def _refuse_telling(
    sources: Sequence[str],
    controls: Sequence[list[dict[str, str]]],
    units: Sequence[list[dict[str, str]]],
    ids: Collection[str],
) -> None:
    """Raise UsageError if a control has the id of a record, or a field that no record has."""
    if twice := {row["item"] for unit in controls for row in unit}.intersection(ids):
        raise UsageError(
            f"{sources[0]}: {min(twice)} is also a record: give the control another id"
        )
    fields, extra = ({n for u in part for row in u for n in row} for part in (units, controls))
    if telling := extra - fields:
        raise UsageError(
            f"{sources[0]}: field {min(telling)!r} would give the controls away: no record has "
            "it; name the fields to show (--on)"
        )


def _units(
    job: Job, settings: Settings, questions: Questionnaire, opt_outs: Sequence[str]
) -> list[list[dict[str, str]]]:
    """The rows about each of a job's records that can be asked about; raises UsageError if there
    are none."""
    units = []
    for item in mapped(job.items(), settings.columns):
        record = item if item.problem else replace(item, name=record_name(item))
        record = record.of_kind(default=RECORD)
        if settings.id and record.problem is None:
            record = replace(record, name=record.typed.get("id") or record.name)
        units.append(_rows(questions.about(record), opt_outs))
    questions.refuse_unasked(settings.on)
    return [rows for rows in units if rows]


def _joined(units: Sequence[list[dict[str, str]]], field: str) -> list[list[dict[str, str]]]:
    """The rows of records with the same text in a field as one unit. Raises UsageError."""
    joined: dict[str, list[dict[str, str]]] = {}
    for unit in units:
        if (key := key_for(unit[0], field)) not in unit[0]:
            raise UsageError(f"--together {field}: record {unit[0]['item']!r} shows no such field")
        joined.setdefault(unit[0][key], []).extend(unit)
    return [*joined.values()]


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """A rubric's question to a person, in words: about a record, or its entry with this number
    (from 1; 0 for the record)."""

    record: Record
    rubric: Rubric
    number: int
    text: str


def questions_about(
    record: Record, asked: Sequence[Rubric]
) -> tuple[list[PersonQuestion], dict[str, str]]:
    """The questions about a typed record; and why others are not asked, by the rubric's name, if
    the record cannot be read or lacks a field that they need."""
    if record.problem is not None:
        return [], dict.fromkeys((rubric.name for rubric in asked), record.problem.message)
    questions, reasons = [], {}
    for rubric in asked:
        if (reason := lack(rubric, record)) is not None:
            reasons[rubric.name] = reason
            continue
        for number in record.numbers(rubric.each):
            entry = record.entry(rubric.each, number) or ""
            names = variables_of(rubric.question)
            texts = {name: record.texts[name] for name in names if name in record.texts}
            texts |= {"label": record.label or "", "values": entry}
            texts |= {entry_name(rubric.each): entry} if rubric.each else {}
            text = render(rubric.question, texts).strip()
            text = text if entry in text else f"{entry}\n\n{text}"
            questions.append(PersonQuestion(record, rubric, number, text))
    return questions, reasons


@dataclass(slots=True)
class Questionnaire:
    """The questions of `rubrics` to people, about one record after the other.

    `reasons` say why records are left out, first the `unread` ones, which cannot be read; `lacking`
    by rubric why it is not asked about a record that others are asked about; `asked` are the
    rubrics' names with questions, `ids` are the names of all records, and `names` those of the
    fields of all readable ones.
    """

    rubrics: Sequence[Rubric]
    reasons: list[str] = field(default_factory=list)
    unread: int = 0
    lacking: dict[str, list[str]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    names: dict[str, None] = field(default_factory=dict)

    def about(self, record: Record) -> list[PersonQuestion]:
        """The questions about a typed record; none if it cannot be read, lacks what they need, or
        an earlier one has its name or id."""
        questions, lacks = questions_about(record, self.rubrics)
        why = next(iter(lacks.values()), None)
        if record.problem is None:
            self.names |= dict.fromkeys(record.texts)
        id = record.typed.get("id", record.id)
        if questions and self.ids.intersection((record.id, id)):
            questions, why = [], f"an earlier record has id {id!r}"
        self.ids.add(record.id)
        place = f"line {record.line} of {record.source}"
        if record.problem is not None:
            self.reasons.insert(self.unread, f"{place}: {why}")
            self.unread += 1
        elif why and not questions:
            self.reasons.append(f"{place}: {why}")
        self.asked |= {question.rubric.name for question in questions}
        for name, reason in lacks.items() if questions else ():
            self.lacking.setdefault(name, []).append(f"{place}: {reason}")
        return questions

    def refuse_unasked(self, on: Collection[str]) -> None:
        """Raise UsageError if a question is about no record: with the field that none has, else the
        first of the reasons. `on` are the fields of `--on`."""
        unasked = [rubric for rubric in self.rubrics if rubric.name not in self.asked]
        for rubric in unasked:
            for name in rubric.required if self.names else ():
                if name not in self.names:
                    origin = f"--on {name}" if name in on else f"rubric {rubric.name}: {name}"
                    raise UsageError(no_such_field(origin, name, self.names))
        for rubric in unasked:
            about = "" if len(self.rubrics) == 1 else f" for {rubric.name}"
            reasons = self.lacking.get(rubric.name) or self.reasons or ["the input has none"]
            raise UsageError(f"no record can be asked about{about}; {reasons[0]}")

    def notes(self) -> list[str]:
        """The messages that a rubric is not asked about records that others are asked about."""
        return [
            f"{name} is not asked about {len(reasons)} record{'s' * (len(reasons) > 1)}; "
            f"the first: {reasons[0]}"
            for name, reasons in self.lacking.items()
        ]


def rubrics_asked(job: Job, settings: Settings) -> list[Rubric]:
    """The rubrics that a job's settings name; raises UsageError if they name none."""
    rubrics = RubricSet.of(settings, job.rubrics)
    asked = [rubrics.asking(n) for n in dict.fromkeys((*rubrics.added, *settings.check))]
    if not asked:
        raise UsageError("name the questions: --ask, --rubric or --check")
    return asked


def _rows(questions: Iterable[PersonQuestion], opt_outs: Sequence[str]) -> list[dict[str, str]]:
    """A row for each question about a record, or about one of its entries."""
    rows = []
    for question in questions:
        record, rubric = question.record, question.rubric
        shown = {_head(name): text for name, text in shown_texts(rubric, record).items()}
        rows.append({
            **dict.fromkeys(_HEADS, ""), "item": record.id, "check": rubric.name,
            **({"entry": str(question.number)} if question.number else {}),
            **shown,
            "question": question.text,
            "answers": OFFERED.join(dict.fromkeys((*rubric.answers, *opt_outs))),
        })  # fmt: skip
    return rows


def _head(field: str) -> str:
    """The column of a record's field, which is none of the sheet's own."""
    return f"text of {field}" if normalise(field) in _OURS else field


def _controls(
    sources: Sequence[str],
    asked: Sequence[Rubric],
    opt_outs: Sequence[str],
    id_column: str | None,
) -> tuple[list[list[dict[str, str]]], list[str]]:
    """The rows of each control question's record, and a message about each right answer that the
    sheet does not offer."""
    by_name, not_offered = {rubric.name: rubric for rubric in asked}, list[str]()
    units: dict[str, list[dict[str, str]]] = {}
    items = [item for source in sources for item in read_labels(source)]
    checks = {item.check for item in items if isinstance(item, LabelledItem)}
    if len(asked) == len(checks) == 1:
        by_name[min(checks)] = asked[0]
    for item in items:
        record = item if isinstance(item, Record) else item.record
        record = replace(record, name=in_column(record, id_column) or record.name)
        place = f"{record.source}, line {record.line}"
        if isinstance(item, Record) or item.reference is None:
            raise UsageError(f"{place}: a control question needs its right answer")
        if (rubric := by_name.get(item.check)) is None:
            continue
        record = record.of_kind(default=RECORD)
        if record.problem is not None:
            raise UsageError(f"{place}: {record.problem.message}")
        questions, lacks = questions_about(record, [rubric])
        if lacks:
            raise UsageError(f"{place}: {lacks[rubric.name]}")
        rows = _rows(questions, opt_outs)
        offered = (*rubric.answers, *opt_outs)
        if any(spelt_as(part, offered) is None for part in item.reference.split(SEVERAL)):
            not_offered.append(f"{place}: {item.reference!r} is none of {', '.join(offered)}")
        rows = [row for row in rows if not item.number or row.get("entry") == str(item.number)]
        units.setdefault(record.id, []).extend(rows)
    if sources and not units:
        raise UsageError(f"{sources[0]}: no control answers {', '.join(by_name)}")
    return [*units.values()], not_offered

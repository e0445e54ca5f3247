"""Tables of labels, and the published forms that `forms.FORMS` describes.

A table has a row for each answer of each annotator, with the columns `item`, `annotator` and
`label`, in upper or lower case. Optional columns: `group` (the annotator's), `check` and `gold`
(the reference answer). Any other column describes the item; its first row counts. An empty label is
no label. A row may hold a gold answer without annotator and label. Without `item`, `id` names the
item, else each row is one. `--label-column a,b`: columns that each hold one annotator's labels.

Without a column `annotator` a row is a record, and its label the reference answer. Beside a label
column that the user names, `id` names it, and `gold`, `group` and `label` are fields of the record.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.records.answers import NO_LABEL as NONE_GIVEN
from judge.records.answers import (
    SEVERAL,
    by_spelling,
    number_of,
    scalar_text,
    spelling,
    without_no_label,
    written,
)
from judge.records.base import RESERVED, LabelError, at, clip, content_hash, key_for, keys_of
from judge.records.fields import answer_of, id_text, one_of, slices_of
from judge.records.kinds import normalise, normalised, recognise
from judge.records.labels.forms import NO_LABEL, UNNAMED, Form, RawLabel
from judge.records.labels.items import Annotation, LabelledItem, LabelSet
from judge.records.record import Record

ROLES = ("item", "label", "annotator", "annotators", "group", "check", "gold")
"""The roles that `--map` can give to columns; `item` and `annotators` may have several."""

QUESTION = ("entry", "question", "answers", "why")
"""Further columns of a sheet of `judge label` that are not fields of the record; `entry` is the
number of the list entry that the question is about."""

OFFERED = " / "
"""Separates the answers that a row of a sheet offers."""

JOIN = "+"
"""Separates several columns."""

TABLE = Form("table", ())
_NAMES = {role: role for role in ROLES}
_PAIR = ("response_1", "response_2")


class LabelTable(LabelSet):
    """The reader of tables and published forms: an item for each `item` and check, problems first.

    `columns` are the user's columns for ROLES, which override the form's; `omit` names more columns
    with people's answers. The check is the row's, else the one that was asked for, else UNNAMED; in
    a form with several questions each is a check. A record has the fields that the form names, else
    all other columns, unchanged; slices are the short ones. A row is a problem if its gold answer
    differs from an earlier one of its item, if its annotator has labelled the item before, or if
    its sheet does not offer its answer. `accepted` are further answers, besides those that a sheet
    offers, as `spelling` spells them.
    """

    name = "table"
    merged = True

    def __init__(
        self,
        check: str | None,
        folder: Path | None,
        form: Form,
        omit: Sequence[str],
        columns: Mapping[str, str],
        accepted: Collection[str],
    ) -> None:
        super().__init__(check, folder)
        self.form, self.omit, self.columns, self.accepted = form, omit, columns, accepted
        self._entries = Counter[tuple[str | None, str]]()

    @staticmethod
    def knows(fields: Mapping[str, Any]) -> bool:
        """Whether a line is a row of a table of labels."""
        names = normalised(fields)
        return names >= {"item", "label"} or ("label" in names and not recognise(fields))

    @staticmethod
    def is_sheet(fields: Mapping[str, Any]) -> bool:
        """Whether `judge label` wrote the table."""
        return fields.keys() >= {"item", "annotator", "question", "answers", "label", "why"}

    def items(self, item: Record, fields: dict[str, Any]) -> Iterator[LabelledItem]:
        if item.input_key:  # Labels get no output, so a column `judge` keeps its name.
            fields = {
                RESERVED if key == item.input_key else key: value for key, value in fields.items()
            }
            item = replace(item, fields=fields)
        if not self.form.knows(fields):
            names = clip([*fields], 300)
            raise LabelError(f"the line lacks fields that the first line has; it has {names}")
        if self.form.sides:
            fields = self.form.in_order(fields)
            item = replace(item, fields=fields)
        sheet = self.is_sheet(fields)
        row = _LabelRow(fields, self.form, self.columns)
        visible = row.shown(item, {*self.omit, *(QUESTION if sheet else ())})
        gold = answer_of(row.content("gold"), "gold")
        if self.form.pair is not None:
            visible, gold = _blinded(self.form.pair, visible, fields)
        spelt = written(row.content("gold"))
        check, group = (scalar_text(row.content(role)) for role in ("check", "group"))
        answers: dict[str, dict[str | None, str]] = defaultdict(dict)
        for label in row.labels(gold):
            answer = row.answer(label)
            if answer is None:
                continue
            annotator = None if label.annotator is None else _names(label.annotator)
            if label.annotator is not None and annotator is None and answer not in NONE_GIVEN:
                raise LabelError("field 'annotator' is empty beside a label", "annotator")
            if sheet and "label" not in self.columns:
                answer = _as_offered(answer, fields, self.accepted)
            first = answers[label.question].setdefault(annotator, answer)
            relevant = label.question in (UNNAMED, self.check or label.question)
            if first != answer and relevant:
                who = "the reference" if annotator is None else f"annotator {clip(annotator)}"
                message = f"{who} answers {label.question} twice: {clip(first)}, {clip(answer)}"
                raise LabelError(message, label.question)
            spelt |= written(label.answer)
        if gold is not None:
            answers[UNNAMED][None] = gold
        # pandas writes a column of whole numbers with a gap as 1.0.
        entry = str(fields.get("entry") or "").removesuffix(".0") if sheet else ""
        number = int(entry) if entry.isdecimal() else 0
        name = row.name(visible) if answers or number else None
        name = _ESCAPED.sub("", name) if name and sheet else name
        place = name, check or self.check or UNNAMED
        self._entries[place] = max(number, self._entries[place])
        if not answers:
            # Where rows name annotators, not everyone answers about everything.
            one_each = self.form is TABLE and "annotator" not in row.columns
            if (sheet or one_each) and self.check in (None, check or self.check):
                self.blank.append(item.line)
            return
        record = Record(item.source, item.line, visible, name=name or self.record(item, {}).name)
        rows = (replace(record, fields=_before_question(visible, fields)),) if sheet else ()
        why, asked = (scalar_text(fields.get(n)) if sheet else None for n in ("why", "question"))
        for question, people in answers.items():
            about = question if question != UNNAMED else check or self.check or UNNAMED
            annotations = tuple(
                Annotation(annotator, value, group, why or None, asked or None)
                for annotator, value in people.items()
                if annotator
            )
            slices = slices_of(visible)
            labelled = LabelledItem(record, about, number, people.get(None), annotations, slices)
            if not row.names_people:
                self._refuse_other_record(labelled)
            yield replace(labelled, rows=rows, written=spelt)

    def _refuse_other_record(self, item: LabelledItem) -> None:
        """Raise LabelError if an earlier record with this name has other fields."""
        first, _ = self._held.get(item.key, (item, {}))
        if self.form is TABLE and first.record.fields != item.record.fields:
            place = f"already on line {first.record.line}, with other fields"
            message = f"item {clip(item.record.id)} was {place}: name the column of ids with --id"
            raise LabelError(message, "item", "duplicate-id")

    def rest(self) -> Iterator[LabelledItem]:
        lengths = self._entries
        items = [replace(i, of=lengths[i.record.id, i.check]) for i in super().rest()]
        # A file's only question is the check that was asked for.
        alone = self.form.reader is not None and len({item.check for item in items}) == 1
        for item in items:
            named = None if item.check == UNNAMED else item.check
            yield replace(item, check=self.check or UNNAMED, named=named) if alone else item


class _LabelRow:
    """A line of a table or of a published form, and its columns by their roles.

    `by_user` are the columns that the user gave to roles, as the line spells them; `by_name` those
    of a table whose own names say their roles; `columns` are all of them, and those of the form.
    `names_people`: whether a line of a table says who answered; else it is a record with its label.
    """

    def __init__(self, fields: Mapping[str, Any], form: Form, columns: Mapping[str, str]) -> None:
        self.fields, self.form = fields, form
        self.by_user = {role: _spelt(name, fields) for role, name in columns.items()}
        self.names_people = not self.by_user.keys().isdisjoint(("annotator", "annotators")) or any(
            normalise(key) == "annotator" for key in fields
        )
        self.by_name = keys_of(_NAMES, fields) if form is TABLE else {}
        if not self.names_people:
            # Beside the column that the user calls the label, a record may have fields of these
            # names.
            roles = {"item", "check"} if "label" in self.by_user else {*ROLES} - {"group"}
            self.by_name = {role: key for role, key in self.by_name.items() if role in roles}
        self.columns = form.columns(fields) | self.by_name | self.by_user

    def content(self, role: str) -> Any:
        """The content of a role's column; None if it is empty, or the line has none."""
        if role in self.by_user:
            content = _at(self.fields, self.by_user[role])
        else:
            content = self.fields[self.columns[role]] if role in self.columns else None
        return None if content == "" else content

    def labels(self, gold: str | None) -> Iterator[RawLabel]:
        """The answers of the line; gold ones have no annotator."""
        fields, form, label_column = self.fields, self.form, self.by_user.get("label")
        several = self.by_user.get("annotators", "")
        columns = several.split(JOIN) if several else list(form.annotators)
        if columns and label_column is None:
            for column in columns:
                if several or column in fields:
                    yield RawLabel(column, UNNAMED, _at(fields, column))
        elif form.pair is not None:
            return
        elif form.reader is not None:
            for label in form.reader(fields):
                if label_column in (None, label.question):
                    yield label if label_column is None else label._replace(question=UNNAMED)
        else:
            if not form.label and label_column is None:
                names = clip([*fields], 300)
                raise UsageError(f"name the column of the labels, --map label=COLUMN: {names}")
            annotator = self.content("annotator")
            named_people = "annotator" in self.columns
            if annotator is None and gold is not None and not named_people:
                # The column's name stands for the one person who answered beside the reference.
                annotator = self.columns.get("label")
            anonymous = annotator is None and named_people
            counts = all(fields.get(key) == value for key, value in form.counts.items())
            answer = self.content("label") if counts else NO_LABEL
            yield RawLabel("" if anonymous else annotator, UNNAMED, answer)

    def answer(self, label: RawLabel) -> str | None:
        """The answer that a label means. Raises LabelError if the form does not know the label."""
        content, form = label.answer, self.form
        if isinstance(content, list):
            parts = [answer_of(part, "label") for part in content]
            return SEVERAL.join(part for part in parts if part) or None
        answer = answer_of(content, "label")
        if answer is None or "label" in self.by_user or "annotators" in self.by_user:
            return answer
        if form.middle is not None and (number := number_of(answer)) is not None:
            side = "middle" if number in (0, form.middle) else "above"
            return form.answers["below" if 0 < number < form.middle else side]
        return one_of(content, form.answers, form.label) if form.answers else answer

    def name(self, visible: Mapping[str, Any]) -> str | None:
        """The name of the item; None if it is that of its place."""
        fields, form_item = self.fields, self.form.item
        form_item = form_item if all(part in fields for part in form_item.split(JOIN)) else ""
        column = self.by_user.get("item") or form_item
        if not column and self.form is not TABLE:
            if "id" not in fields:
                return content_hash(visible)[:12]
            column = "id"
        if not column:
            labels = "label" in self.by_user and not self.names_people
            roles = ("id", "item") if labels else ("item", "id")
            ids = [key for role in roles for key in fields if normalise(key) == role]
            if not ids and "annotator" in self.columns:
                names = clip([*fields], 300)
                raise UsageError(f"name the columns of the item, --map item=A+B: {names}")
            if not ids:
                return None
            column = ids[0]
        try:
            parts = [_at(fields, column)]
        except LabelError:
            parts = [_at(fields, part) for part in column.split(JOIN)]
        texts = [id_text(part, column) for part in parts]
        if None in texts:
            raise LabelError(f"field {column!r} is empty", column)
        return JOIN.join(text for text in texts if text)

    def shown(self, item: Record, omit: Collection[str]) -> dict[str, Any]:
        """The fields of the line's record that a judge may see: none with labels."""
        fields, form = self.fields, self.form
        renamed = {name: _at(fields, path) for name, path in item.columns.items()}
        if form.fields is not None:
            there = {name: at(fields, path) for name, path in form.fields.items() if path in fields}
            return there | renamed
        if form.within:
            content = fields.get(form.within)
            return (dict(content) if isinstance(content, dict) else {}) | renamed
        columns = {*omit, RESERVED, ""}  # The index that pandas writes has no name.
        for column in self.columns.values():
            columns |= {column, *column.split(JOIN)}
        columns |= {key for key in fields if normalise(key) in self.by_name}
        columns |= {key for key in fields if re.fullmatch(form.omit, key)}
        visible = {key: value for key, value in item.visible.items() if key not in columns}
        for path in columns - fields.keys():
            visible = _without(visible, path)
        return visible


def _spelt(column: str, fields: Mapping[str, Any]) -> str:
    """The name of a column, or of several joined ones, as a line spells it."""
    if (key := key_for(fields, column)) in fields:
        return key
    return JOIN.join(key_for(fields, part) for part in column.split(JOIN))


_ESCAPED = re.compile("^'(?=[=+\\-@＝＋－＠])")
"""The apostrophe that a sheet puts before a cell that a spreadsheet would read as a formula."""


def _as_offered(answer: str, fields: Mapping[str, Any], accepted: Collection[str]) -> str:
    """The answer in the words of its row of a sheet; LabelError if the row does not offer it."""
    offered = _ESCAPED.sub("", scalar_text(fields.get("answers")) or "")
    forms = by_spelling(offered.split(OFFERED))
    known = {*forms, *accepted}
    given = without_no_label(answer, known) or ""
    if offered.strip() and any(part not in known for part in given.split(SEVERAL) if part):
        raise LabelError(f"label {clip(answer)} is none of the answers {offered}", "label")
    return SEVERAL.join(spelling(forms.get(part, part)) for part in answer.split(SEVERAL))


def _before_question(visible: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The texts that a row of a sheet shows; people may add columns after the question."""
    before = [*fields][: [*fields].index("question")]
    texts = {name: text for name, text in visible.items() if name in before}
    return texts or dict(visible)


def _without(fields: dict[str, Any], path: str) -> dict[str, Any]:
    """The fields without the one at a dotted path."""
    head, _, tail = path.partition(".")
    if not tail or not isinstance(fields.get(head), dict):
        return {key: value for key, value in fields.items() if key != path}
    return fields | {head: _without(fields[head], tail)}


def _at(fields: Mapping[str, Any], column: str) -> Any:
    try:
        return at(fields, column)
    except KeyError:
        names = clip([*fields], 300)
        message = f"the record has no field {column!r}, its fields are {names}"
        raise LabelError(message, column) from None


def _names(annotator: object) -> str | None:
    """An annotator's name; MT-Bench may name a judge by a list of its model and prompt."""
    if isinstance(annotator, list):
        return JOIN.join(filter(None, (id_text(part, "annotator") for part in annotator))) or None
    return id_text(annotator, "annotator")


def _blinded(
    pair: tuple[str, str], visible: dict[str, Any], fields: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """The pair's two texts in an order that only their content decides, and the better one's name:
    if the better text were always first, its place would be the answer."""
    better = int(content_hash({key: fields[key] for key in pair}), 16) % 2
    texts = [fields[key] for key in (pair if better == 0 else pair[::-1])]
    return visible | dict(zip(_PAIR, texts, strict=True)), _PAIR[better]

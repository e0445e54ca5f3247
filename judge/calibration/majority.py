"""The majority of people's votes, and the records that carry it as their label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from judge.errors import UsageError
from judge.records import Record, read
from judge.records.answers import OPT_OUTS, SEVERAL, spelling
from judge.records.base import content_hash
from judge.records.fields import record_name
from judge.records.labels import Annotation, LabelledItem
from judge.records.labels.matching import in_column, is_place, need_same_text
from judge.records.labels.own import label_key
from judge.stats.majority import MORE_THAN_HALF, MajorityRule, majorities


@dataclass(frozen=True, slots=True)
class Majority:
    """The rule for a majority, and the answers that never make one.

    Args:
        rule: the votes that make a majority.
        opt_outs: answers that never make a majority.
        ties: a seed. If there is no majority, the most frequent answer wins, unless it is an
            opt-out; of several the seed draws one. None: there is no winner then.
        raters: how many ratings of an item the class kappas draw; None: all.
    """

    rule: MajorityRule = MORE_THAN_HALF
    opt_outs: Collection[str] = OPT_OUTS
    ties: int | None = None
    raters: int | None = None

    def winner(self, answers: Sequence[str], name: str = "") -> str | None:
        """The majority answer, or several if annotators gave several; None if there is none.

        `name` is the question's name, which with the seed decides a tie.
        """
        several = any(SEVERAL in answer for answer in answers)
        never = {*map(spelling, self.opt_outs)}
        winners = majorities([{*answer.split(SEVERAL)} for answer in answers], self.rule)
        winners = [answer for answer in winners if answer not in never]
        if self.ties is not None and not winners:
            counts = Counter(answers)
            most = {answer for answer, count in counts.items() if count == max(counts.values())}
            equals = sorted(most - never)
            return Random(f"{self.ties} {name}").choice(equals) if equals else None
        return SEVERAL.join(winners) or None if several or len(winners) == 1 else None


PLAIN = Majority()
"""More than half of the annotators."""


@dataclass(slots=True)
class VotedQuestion:
    """One check about one record (or entry), with each annotator's first annotation, by name, and
    the rows of sheets that asked it."""

    item: LabelledItem
    gold: str | None
    annotations: dict[str, Annotation] = field(default_factory=dict)
    rows: list[Record] = field(default_factory=list)

    @property
    def answers(self) -> dict[str, str]:
        """Each annotator's answer."""
        return {name: annotation.answer for name, annotation in self.annotations.items()}

    @property
    def record(self) -> str:
        return self.item.record.id

    @property
    def has_id(self) -> bool:
        """Whether the record has an id; else its name is its place."""
        record = self.item.record
        return not is_place(record.id, record.source)

    @property
    def name(self) -> str:
        """Its name, with which a seed decides a tie."""
        return f"{self.item.check} {self.record} {self.item.number}"


def majority_records(
    checks: Mapping[str, Mapping[tuple[str, int], VotedQuestion]],
    majority: Majority,
    records: Sequence[str] = (),
    controls: Collection[str] = (),
    id_column: str | None = None,
) -> list[dict[str, Any]]:
    """One line per record with answers, in the order of `records`, else of the questions.

    A line holds the record's fields; then `labels`, the majority's answer by check (null if there
    is none; for a check of list entries, a list); then `annotators`, each with their own `labels`
    and, if known, `weight`, `group`, `why` and `asked`. The fields are those in the files
    `records`, else those that came with the labels: records of `controls`, whose answers to other
    checks count, are in other files, and their lines are last.

    Args:
        id_column: the field of `records` that names them (None: their id).

    Raises:
        UsageError: a file of `records` cannot be read, lacks another record, or its text differs
            from the text that people were shown.
    """
    whole: dict[str, Record] = {}
    for item in (item for path in records for item in read(path) if item.fields):
        # Of several records of one name, `judge label` asks about the first.
        whole.setdefault(in_column(item, id_column) or record_name(item), item)
    of_content = {label_key(item.fields): name for name, item in whole.items()}
    lines: dict[str, dict[str, Any]] = {}
    labels: dict[str, dict[str, Any]] = defaultdict(dict)
    for check, questions in checks.items():
        # The number of entries as far as it is known, else of the last that has an answer.
        entries: dict[str, int] = {}
        places = [(_whole(question, of_content), question) for question in questions.values()]
        for id, question in places:
            entries[id] = max(question.item.number, question.item.of, entries.get(id, 0))
        for id, question in places:
            if not question.annotations:
                continue
            if id not in lines:
                if records and id not in whole and id not in controls:
                    raise UsageError(f"{records[0]}: there is no record {id!r}, which has labels")
                lines[id] = _line(whole.get(id), id, question)
            for row in question.rows if id in whole else ():
                need_same_text(row, whole[id])
            winner = majority.winner([*question.answers.values()], question.name)
            _put(labels[id], check, winner, question.item.number, entries[id])
            _put_annotators(lines[id]["annotators"], check, question, entries[id])
    for id, line in lines.items():
        line["labels"] |= labels[id]
    return [lines[id] for id in dict.fromkeys((*whole, *lines)) if id in lines]


def _line(record: Record | None, id: str, question: VotedQuestion) -> dict[str, Any]:
    """A record's line without majorities, with labels that it had before. Its fields are its own,
    else those that came with its labels."""
    own = None if record is None else record.fields
    fields = own or {**({"id": id} if question.has_id else {}), **question.item.record.visible}
    earlier = fields.get("labels")
    return {
        **fields,
        "labels": dict(earlier) if isinstance(earlier, dict) else {},
        "annotators": {},
    }


def _put_annotators(
    annotators: dict[str, Any], check: str, question: VotedQuestion, entries: int
) -> None:
    """Set each annotator's answer to a question, and what is known about it."""
    number = question.item.number
    for name, annotation in question.annotations.items():
        about = annotators.setdefault(name, {"labels": {}})
        _put(about["labels"], check, annotation.answer, number, entries)
        if (weight := question.item.weight) != 1:
            about["weight"] = weight
        if annotation.group is not None:
            about["group"] = annotation.group
        for key, text in {"why": annotation.why, "asked": annotation.asked}.items():
            if text is not None:
                _put(about.setdefault(key, {}), check, text, number, entries)


def _whole(question: VotedQuestion, of_content: Mapping[str, str]) -> str:
    """The name of the question's record among whole records, by content if it has no id."""
    if question.has_id:
        return question.record
    content = content_hash(question.item.record.fields)
    return of_content.get(content, question.record)


def _put(answers: dict[str, Any], name: str, answer: str | None, number: int, entries: int) -> None:
    """Set an answer. One about entry `number` (from 1) goes into the list of entries' answers."""
    if number and isinstance(several := answers.setdefault(name, [None] * entries), list):
        several[number - 1] = answer
    else:
        answers[name] = answer

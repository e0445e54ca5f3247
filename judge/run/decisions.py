"""Writes people's answers about records that judges left open or failed into a run's lines.

A person's answer is a check of its own after those of the judges. The last check of each name
decides, so gates, `judge build` and `judge report` count the person's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.errors import UsageError, unwritable
from judge.questions.rubric import Rubric
from judge.reasons import reason_of
from judge.records import Record, read
from judge.records.answers import OWN_ANSWERS, spelt_as
from judge.records.base import RESERVED
from judge.records.kinds import RECORD
from judge.records.labels.items import LabelledItem
from judge.records.labels.matching import other_question
from judge.records.labels.own import OwnByFields, label_key
from judge.records.lines import MAX_OUTPUT_LINE, Line, written
from judge.run.output import Sink, replacing
from judge.verdict import PERSON, Answer, Check, Verdict, last_of_each, worst


class Decisions:
    """The labels in a file, by record.

    The file is a `--review` in which people wrote `labels`, or the output of `judge agreement -o`.
    Lines without a label, or with `unsure`, decide nothing. An answer that people took back, or
    that no more than half of them gave, is open again.

    `unmatched` are the keys of decided records that no line has matched so far.

    Raises:
        UsageError: the file has no labels, it or a label cannot be used, or there is no such check;
            with the line.
    """

    def __init__(self, path: Path, rubric_of: Callable[[str], Rubric]) -> None:
        self._rubric_of = rubric_of
        self._answers: dict[str, dict[str, dict[int, tuple[str, str | None]]]] = {}
        self._path = path
        items = list(read(path, max_line=MAX_OUTPUT_LINE))
        fields_of = {item.line: item.fields for item in items}
        lines = [fields for fields in fields_of.values() if fields]
        if lines and not any(fields.keys() & {"labels", RESERVED} for fields in lines):
            raise UsageError(
                f"--decisions {path}: no line has labels: give a --review in which people wrote "
                f"them, or what `judge agreement {path} --records RECORDS -o FILE` makes of answers"
            )
        self._shown: dict[str, dict[str, Any]] = {}
        self._asked: dict[str, set[str]] = {}
        for fields in fields_of.values():
            if isinstance(labels := fields.get("labels"), dict):
                people = {check for check, answers in labels.items() if isinstance(answers, dict)}
                self._asked.setdefault(_key(fields), set()).update(people)
        self._labelled: list[tuple[str, LabelledItem]] = []
        for item in OwnByFields(None, path.parent).read(items):
            if isinstance(item, Record):
                if item.problem is not None and item.problem.type != "unlabelled":
                    raise UsageError(
                        f"--decisions {path}, line {item.line}: {item.problem.message}"
                    )
                continue
            if item.reference is None:
                continue
            place = f"--decisions {path}, line {item.record.line}: {item.check}"
            rubric = rubric_of(item.check)
            answer = spelt_as(item.reference, rubric.answers)
            if answer is None and item.reference in OWN_ANSWERS:
                continue
            if answer is None:
                choices = ", ".join(rubric.answers)
                raise UsageError(f"{place} must be one of {choices}, not {item.reference!r}")
            fields = fields_of[item.record.line]
            line = Line.of(fields)
            if item.number and (why := _no_entry(rubric, item, line, fields)):
                raise UsageError(f"{place} {why}")
            self._shown[_key(fields)] = dict(fields if line is None else line.fields)
            given = self._answers.setdefault(_key(fields), {}).setdefault(item.check, {})
            if (earlier := given.get(item.number, (answer,))[0]) != answer:
                other = f"and on an earlier line about the same fields {earlier!r}"
                raise UsageError(f"{place} is {answer!r}, {other}")
            whys = [a.why for a in item.annotations if a.answer == item.reference and a.why]
            given[item.number] = answer, "; ".join(whys) or None
            self._labelled.append((_key(fields), item))
        self.unmatched = {*self._answers}

    def other_questions(self) -> Iterator[str]:
        """The notes that people were asked another question about a record that a line matched."""
        items = [item for key, item in self._labelled if key not in self.unmatched]
        for check in dict.fromkeys(item.check for item in items):
            labels = [item for item in items if item.check == check]
            if note := other_question(labels, self._rubric_of(check).question):
                yield note

    def notes(self, records: str) -> Iterator[str]:
        """Messages about answers to another question, and about those that decided nothing, once
        all lines were seen.

        Args:
            records: the noun for those lines in the message.
        """
        yield from (f"--decisions {self._path}: {note}" for note in self.other_questions())
        if not self._answers:
            yield f"--decisions {self._path}: holds no answer, and decides nothing"
        if count := len(self.unmatched):
            noun = "decided record is" if count == 1 else "decided records are"
            yield f"--decisions: {count} {noun} not among the {records}"

    def settled(self, line: Line, columns: Mapping[str, str]) -> Line:
        """The line with people's answers and the resulting verdict; the same line if nothing
        changes."""
        key = label_key(line.original_fields)
        answers = self._answers.get(key, {})
        asked = answers.keys() | self._asked.get(key, set())
        if line.fingerprint is None or line.error:
            return line
        self.unmatched.discard(key)
        # The record as it is now: with rewritten texts, and without dropped values.
        record = _record(line.fields, line.workflow, columns)
        judgement = line.judgement()
        checks = [c for c in judgement.checks if c.by != PERSON or c.name not in asked]
        judged = {check.name: check for check in checks}
        for name, given in answers.items():
            rubric = self._rubric_of(name)
            if not rubric.rule.equals_label or spelt_as(record.label, rubric.answers):
                shown = _record(self._shown[key], line.workflow, columns)
                checks += self._check(name, given, record, shown, judged.get(name))
        if checks == [*judgement.checks]:
            return line
        last = last_of_each(checks)
        changes: dict[str, Any] = {
            "checks": tuple(checks),
            "verdict": worst(check.verdict for check in last),
            "reason": reason_of(last),
        }
        return written(line.fields, judgement.model_copy(update=changes).as_json())

    def _check(
        self,
        name: str,
        answers: Mapping[int, tuple[str, str | None]],
        record: Record,
        shown: Record,
        judged: Check | None,
    ) -> Iterator[Check]:
        """People's answers, with their reasons, as a check; none if all are about entries that the
        record no longer has.

        A check on entries has an answer per entry; entries without a person's answer have that of
        the judges' check (`judged`). People answered about the record as they were `shown` it.
        """
        rubric = self._rubric_of(name)
        entries = record.entries(rubric.each) if rubric.each and 0 not in answers else ()
        values = dict(enumerate(shown.entries(rubric.each) if rubric.each else (), 1))
        given = tuple(
            Answer(
                value=values.get(number),
                verdict=rubric.rule.verdict(answer, record.label),
                answer=answer,
                reason=why,
            )
            for number, (answer, why) in sorted(answers.items())
            if not number or values.get(number) in entries
        )
        if not given:
            return
        answered = {answer.value for answer in given}
        left_open = [entry for entry in dict.fromkeys(entries) if entry not in answered]
        evidence = (*given, *_of_judges(judged, left_open))
        verdict = worst(answer.verdict for answer in evidence)
        alone = evidence[0].answer if len(evidence) == 1 else None
        labels = rubric.graded and not rubric.each
        why = f": {evidence[0].reason}" if evidence and evidence[0].reason else ""
        reason = f"a person says {alone}{why}" if alone else None
        if left_open:
            reason = f"a person answered {len(answered)} of {len({*entries})}"
        yield Check(
            name=name,
            by=PERSON,
            verdict=verdict,
            counted=rubric.answers if rubric.graded else (),
            evidence=evidence,
            answer=alone if labels else None,
            score=float(alone) if alone and rubric.scale and not rubric.each else None,
            reason=reason,
        )


def _record(
    fields: Mapping[str, Any],
    workflow: str | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Record:
    """The record as the workflow saw it: the user's own questions see any record as it is."""
    record = Record("", 0, dict(fields), columns=columns)
    return record.of_kind(RECORD if workflow == RECORD else None, default=RECORD)


def _key(fields: Mapping[str, Any]) -> str:
    line = Line.of(fields)
    return label_key(fields if line is None else line.original_fields)


def decide(out: Path, decisions: Decisions, columns: Mapping[str, str]) -> None:
    """Write people's answers into the lines of OUT, which is replaced in one step.

    Raises:
        UsageError: a run is writing to OUT.
        JudgeError: OUT cannot be written; it is unchanged.
    """
    sink = Sink(out)
    try:
        with out.open("rb") as old, replacing(out) as new:
            for text in old:
                line = Line.parse(text)
                new.write(text if line is None else decisions.settled(line, columns).text)
    except OSError as error:
        raise unwritable(f"{out} cannot be written", error) from error
    finally:
        sink.close()


def _of_judges(judged: Check | None, entries: Sequence[str]) -> Iterator[Answer]:
    """The evidence of the judges' check on these entries; a bare verdict if there is none."""
    if judged is None:
        yield from (Answer(value=entry, verdict=Verdict.ABSTAIN) for entry in entries)
        return
    verdicts, evidence = judged.verdicts(), judged.supporting_evidence()
    for entry in entries:
        verdict = verdicts.get(entry, judged.verdict)
        yield from [a for a in evidence if a.value == entry] or [
            Answer(value=entry, verdict=verdict)
        ]


def _no_entry(
    rubric: Rubric, item: LabelledItem, line: Line | None, fields: Mapping[str, Any]
) -> str | None:
    """Why there is no entry that the item can be about; None if there may be one."""
    if rubric.each is None:
        return "is not asked of entries: give one answer, not a list"
    count = len(_record(fields if line is None else line.fields).entries(rubric.each))
    return f"has {item.of} answers, and {rubric.each} {count}" if 0 < count < item.of else None

"""A person's session at the questions of a page: the next question, answers, undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judge.errors import UsageError
from judge.questions.answers import agree
from judge.questions.rubric import Rubric
from judge.records.answers import spelt_as
from judge.records.labels.items import Annotation, LabelledItem
from judge.records.labels.matching import other_question
from judge.records.labels.own import label_key
from judge.records.lines import Line
from judge.report.sheet import PersonQuestion
from judge.verdict import Verdict
from judge.web.answers import AnswerFile, Place

UNSURE = "unsure"
"""An answer that every question offers; it decides nothing."""


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """A judge's answer to a question: its verdict, its answer or score in words, and the reason."""

    verdict: Verdict
    said: str
    reason: str


@dataclass(frozen=True)
class PageQuestion:
    """A question on the page. `line` is the judge's line about the record, `weight` the number of
    records that it stands for, if records were drawn with different chances. `swapped`: whether two
    compared fields change places; None if people see their names."""

    question: PersonQuestion
    fields: Mapping[str, Any]
    line: Line | None = None
    weight: float | None = None
    swapped: bool | None = None

    @property
    def rubric(self) -> Rubric:
        return self.question.rubric

    @property
    def place(self) -> Place:
        return Place(label_key(self.fields), self.rubric.name, self.question.number)

    @property
    def called(self) -> str:
        """The record's name, and the entry that the question is about, if it is about one."""
        record = self.question.record
        entry = record.entry(self.rubric.each, self.question.number)
        return record.called if entry is None else f"{record.called}: {entry}"

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the record that a judge is shown, by title."""
        texts = self.question.record.texts
        shown = self.rubric.shown(texts, swap=self.rubric.compare if self.swapped else None)
        return {title: texts[name] for title, name in shown.items()}

    @property
    def answers(self) -> tuple[str, ...]:
        """The rubric's answers, in the order in which they are offered."""
        answers = self.rubric.answers
        return (answers[1], answers[0], *answers[2:]) if self.swapped else answers

    @property
    def words(self) -> dict[str, str]:
        """The text on each answer's button; for compared fields, which of the two shown it is."""
        hidden = self.rubric.comparing and self.swapped is not None
        pairs = zip(self.answers, self.rubric.words, strict=True)
        return {a: f"answer {word}" if hidden and word in "12" else a for a, word in pairs}

    @property
    def entries(self) -> int:
        return len(self.question.record.entries(self.rubric.each)) if self.rubric.each else 0

    @cached_property
    def judge(self) -> JudgeAnswer | None:
        """The judge's answer; None if it was not asked."""
        if self.line is None:
            return None
        made = self.line.judgement().by_judges
        check = next((check for check in made if check.name == self.rubric.name), None)
        if check is None:
            return None
        value = self.question.record.entry(self.rubric.each, self.question.number)
        reasons = (a.reason for a in check.supporting_evidence() if a.value == value and a.reason)
        return JudgeAnswer(*check.said(value), next(reasons, check.reason or ""))

    def agrees(self, answer: str) -> bool | None:
        """Whether the judge and a person agree; None if one of them is undecided."""
        judge, spelt = self.judge, spelt_as(answer, self.rubric.answers)
        if judge is None or spelt is None:
            return None
        label = self.question.record.label
        return agree(self.rubric, spelt, judge.verdict, judge.said, label)


@dataclass
class Session:
    """A person's session at the questions. `blind`: hide the judge's answer until the person has
    answered; `title`: the heading; `closing`: the commands shown at the end, each after its
    purpose; `notes`: messages for the top of the page.
    """

    questions: Sequence[PageQuestion]
    answers: AnswerFile
    title: str
    blind: bool = True
    closing: Callable[[], Sequence[tuple[str, str]]] = tuple
    notes: Sequence[str] = ()
    current: int | None = field(init=False)
    back: Annotation | None = None
    """The answer that was taken back, to the question that is shown again."""
    latest: int | None = None
    """The question that was answered last on this page."""

    def __post_init__(self) -> None:
        self.places = [question.place for question in self.questions]
        self.current = self._next()

    @property
    def answered(self) -> int:
        return sum(place in self.answers.own for place in self.places)

    def answer(self, number: int, choice: int, why: str) -> None:
        """Store the answer at place `choice` (-1: unsure) to question `number`, and go to the next.

        Raises:
            UsageError: there is no such question, or it has no such answer.
        """
        if not 0 <= number < len(self.questions):
            raise UsageError("there is no such question")
        answers = (*self.questions[number].answers, UNSURE)
        if not -1 <= choice < len(answers):
            raise UsageError("the question has no such answer")
        asked = self.questions[number].rubric.question
        answer = Annotation(self.answers.annotator, answers[choice], why=why.strip(), asked=asked)
        self._put(number, answer)
        self.latest, self.back = number, None
        self.current = self._next()

    def refresh(self) -> None:
        """Read what was appended to the file; a question may be open again."""
        self.answers.refresh()
        self.current = self._next() if self.current is None else self.current
        if self.latest is not None and self.places[self.latest] not in self.answers.own:
            self.latest = None

    def undo(self) -> None:
        """Take back the latest answer, if there is one, and ask its question again."""
        numbers = {place: number for number, place in enumerate(self.places)}
        last = next((place for place in reversed([*self.answers.own]) if place in numbers), None)
        if last is not None:
            self.back, self.latest = self.answers.own[last], None
            self.current = numbers[last]
            self._put(self.current, None)

    def _put(self, number: int, answer: Annotation | None) -> None:
        question = self.questions[number]
        self.answers.put(
            self.places[number], answer, question.fields, question.entries, question.weight
        )

    def _next(self) -> int | None:
        places = enumerate(self.places)
        return next((n for n, place in places if place not in self.answers.own), None)

    @property
    def all_notes(self) -> list[str]:
        """`notes`, and those that answers in the file were given to a question in other words."""
        rubrics, items = {q.rubric.name: q.rubric for q in self.questions}, self.items()
        notes = (
            other_question([item for item in items if item.check == name], rubric.question)
            for name, rubric in rubrics.items()
        )
        stop = ". For a new question stop here, and start the command with another --name or -o"
        more = stop if self.blind else ""
        return [*self.notes, *(f"{self.answers.path}: {note}{more}" for note in notes if note)]

    def items(self) -> list[LabelledItem]:
        """All annotators' answers to the questions, as labelled items."""
        return [
            LabelledItem(
                question.question.record,
                place.check,
                place.number,
                annotations=tuple(
                    given[place] for given in self.answers.given.values() if place in given
                ),
                weight=question.weight or 1.0,
            )
            for question, place in zip(self.questions, self.places, strict=True)
        ]

"""The panel of a rubric that is a test: one vote, by a function of the record, without a model."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Literal

from judge.judging.panel import Panel
from judge.questions.evidence import locate
from judge.records import Record
from judge.records.base import LabelError, clip, own_fields
from judge.records.names import entry_name
from judge.records.text import shown
from judge.verdict import SETTLED, Answer, Check, Verdict, Vote, worst


class FunctionPanel(Panel):
    """The panel, without judges, of a rubric with a test or a Python function; its vote has the
    method `test`."""

    async def check(self, record: Record, *, by: Literal["loop", "final"], round: int = 1) -> Check:
        """The check; `error` with the reason if the test cannot decide, or the function raises.
        Hostile text cannot sway a function, so the record is not screened."""
        vote = self._vote(record)
        return Check(
            name=self.rubric.name,
            by=by,
            verdict=vote.verdict,
            round=round,
            votes=(vote,),
            reason=None if vote.verdict in SETTLED else vote.reason,
            rubric=self.rubric.digest,
        )

    def _vote(self, record: Record) -> Vote:
        each, python, test = self.rubric.each, self.rubric.python, self.rubric.test
        name = f"test:{test.kind}" if test else f"python:{python.name}" if python else ""
        entries = record.entries(each) if each else ()
        answers: list[Answer] = []
        reason = None
        for number in range(1, len(entries) + 1) if each else (0,):
            value = record.entry(each, number)
            try:
                answer = self._answer(record, value)
            except (ValueError, LabelError) as error:
                answer, reason = Answer(verdict=Verdict.ERROR), reason or f"test: {error}"
            answers.append(answer.model_copy(update={"value": value}))
        verdict = worst(answer.verdict for answer in answers)
        return Vote(
            model=name, method="test", verdict=verdict, evidence=tuple(answers), reason=reason
        )

    def _answer(self, record: Record, entry: str | None) -> Answer:
        """The answer about the record, or about an entry of its list."""
        each = self.rubric.each
        if self.rubric.python is not None:
            fields = own_fields(record.visible)
            given = {} if entry is None or each is None else {entry_name(each): entry}
            answer = self.rubric.python.answer(deepcopy(fields) | given)
            return _with_quote_of(answer, [*given.values(), *fields.values()])
        assert self.rubric.test is not None
        content = record.texts.content(self.rubric.fields[0]) if entry is None else entry
        return self.rubric.test.answer(content, record.texts.content)


def _with_quote_of(answer: Answer, contents: Iterable[object]) -> Answer:
    """The answer, with its quote as one of these contents spells it; ValueError if none has it."""
    if not (answer.quote or "").strip():
        return answer.model_copy(update={"quote": None})
    for text in (shown(content).text for content in contents):
        if (span := locate(answer.quote or "", text)) is not None:
            return answer.model_copy(update={"quote": text[span.start : span.end]})
    raise ValueError(f"the quote {clip(answer.quote)} is in no field of the record")

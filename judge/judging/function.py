"""The panel of a rubric that is a test: one vote, by a function of the record, without a model."""

from __future__ import annotations

from copy import deepcopy
from typing import Literal

from judge.judging.panel import Panel
from judge.questions.evidence import locate
from judge.records import Record
from judge.records.base import LabelError, own_fields
from judge.records.names import entry_name
from judge.records.text import shown
from judge.verdict import SETTLED, Answer, Check, Verdict, Vote, worst

QUOTE_NOT_FOUND = "the function's quote is not in the record, and is left out"


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
        answers: list[Answer] = []
        reason = None
        for number in record.numbers(each):
            value = record.entry(each, number)
            try:
                answer = self._answer(record, value)
            except (ValueError, LabelError) as error:
                answer, reason = Answer(verdict=Verdict.ERROR), reason or f"test: {error}"
            if answer.quote and python:
                quote = _as_in(record, value, answer.quote)
                answer = answer.model_copy(update={"quote": quote})
                reason = reason or (None if quote else QUOTE_NOT_FOUND)
            answers.append(answer.model_copy(update={"value": value}))
        verdict = worst(answer.verdict for answer in answers)
        return Vote(
            model=name, method="test", verdict=verdict, evidence=tuple(answers), reason=reason
        )

    def _answer(self, record: Record, entry: str | None) -> Answer:
        """The answer about the record, or about an entry of its list."""
        each = self.rubric.each
        if self.rubric.python is not None:
            fields = deepcopy(own_fields(record.visible))
            return self.rubric.python.answer(
                fields if each is None else {**fields, entry_name(each): entry}
            )
        assert self.rubric.test is not None
        content = record.texts.content(self.rubric.fields[0]) if entry is None else entry
        return self.rubric.test.answer(content, record.texts.content)


def _as_in(record: Record, entry: str | None, quote: str) -> str | None:
    """The quote as a field of the record, or the entry, spells it; None if none has it."""
    texts = (entry or "", *(shown(content).text for content in own_fields(record.visible).values()))
    places = ((text, locate(quote, text)) for text in texts)
    return next((text[span.start : span.end] for text, span in places if span), None)

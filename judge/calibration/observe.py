"""What a judge is shown of labelled items, and its answers: with the first tokens and hidden states
to fit to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.digest import digest
from judge.errors import BackendError, Unread
from judge.judging.classifiers import Observation
from judge.judging.judge import NOTHING_READ, Judge, Sampling
from judge.judging.prompts import lack
from judge.questions.rubric import Rubric
from judge.records import Problem, Record
from judge.records.base import LabelError
from judge.records.kinds import RECORD, kind_named
from judge.records.labels import LabelledItem
from judge.records.names import entry_name
from judge.run.stream import run
from judge.verdict import AnswerOutcome, Verdict, Vote

# ---------------------------------------------------------------- what a judge is shown


def record_for(item: LabelledItem, rubric: Rubric) -> Record:
    """The item's record as the rubric's judges see it, or with why they cannot be asked about it.

    A rubric that passes what bears out the record's label is given the reference answer where the
    record has no label of its own, and any answer where there is no reference: its question is
    asked all the same, and the label is no part of it.
    """
    fields = item.record.visible
    needed = ((kind, kind_named(kind).needed) for kind in rubric.kinds)
    kinds = (kind for kind, names in needed if names and fields.get(names[-1]))
    # A rubric on fields of its own sees the whole record.
    record = item.record.of_kind(next(kinds, RECORD))
    if record.problem is not None:
        return record
    if rubric.rule.equals_label and record.label is None:
        usable = item.reference in rubric.answers
        record = record.with_typed(label=item.reference if usable else rubric.answers[0])
    reason = _misfit(item, record, rubric)
    return record if reason is None else replace(record, problem=Problem(reason))


def _misfit(item: LabelledItem, record: Record, rubric: Rubric) -> str | None:
    try:
        record.texts.refuse_ambiguous(rubric.fields)
    except LabelError as error:
        return str(error)
    if reason := lack(rubric, record):
        return reason
    if rubric.each and not item.number:
        return f"the label is about the record, the check about its {rubric.each}"
    if rubric.each and item.number > len(record.entries(rubric.each)):
        return f"the record has no {entry_name(rubric.each)} {item.number}"
    if not rubric.each and item.number:
        return "the label is about a value, the check about the record"
    return None


def texts_of(item: LabelledItem, rubric: Rubric) -> dict[str, str]:
    """The texts of the record that the rubric's judges see, by field; none where it cannot be put
    to them."""
    record = record_for(item, rubric)
    names = rubric.shown(record.texts).values() if record.problem is None else ()
    return {name: record.texts[name] for name in names if name in record.texts}


def key_of(item: LabelledItem, rubric: Rubric) -> str:
    """A key that identifies a labelled item by all that its judges see of it; "" for one that they
    cannot be asked about."""
    record = record_for(item, rubric)
    if record.problem is not None:
        return ""
    names = (*rubric.shown(record.texts).values(), *rubric.needs)
    texts = {name: record.texts[name] for name in names if name in record.texts}
    return digest({"texts": texts, "value": record.entry(rubric.each, item.number)})[:16]


# ---------------------------------------------------------------- answers

_LOST = {
    Verdict.UNREADABLE: AnswerOutcome.UNREADABLE,
    Verdict.ERROR: AnswerOutcome.ERROR,
    Verdict.ABSTAIN: AnswerOutcome.ABSTAINED,
}

_Votes = dict[tuple[int, tuple[int, ...]], Vote]
"""The votes on one record, by index and the values asked about."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """A judge's answer to a labelled item, or why there is none.

    `answer` is there exactly where `outcome` is `answered`; `probabilities` maps every answer of
    the check to its probability, for `logprobs` method only: where shares are open, those that have
    least for the answer. `quote` and `reason` are what the judge gave for it; without an answer
    `reason` says why. `record` is what it was shown, None where the item could not be put to it.
    `observation` is what was read of first tokens and hidden state, before anything is fitted; None
    of a structured judge.
    """

    item: LabelledItem
    outcome: AnswerOutcome
    answer: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    quote: str | None = None
    reason: str | None = None
    record: Record | None = None
    observation: Observation | None = None


async def observe(
    judge: Judge,
    items: Sequence[LabelledItem],
    *,
    at_once: int,
    votes: int = 1,
    sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
    tokens: bool = True,
    state: bool = False,
    progress: Callable[[int], None] = lambda count: None,
) -> list[LabelledAnswer]:
    """The judge's answer to each item, in their order.

    Args:
        at_once: records worked on at the same time; an engine evaluates the text of a record once
            for all items about it.
        votes: how often a structured judge is asked; more than half of the votes answer.
        sampling: how they are drawn.
        tokens: whether first tokens are read, where the judge reads; `state`, the hidden state.
        progress: called with the number of items that are done.

    Raises:
        BackendError: the model is out of reach, refuses the key, or the budget is used up.
    """
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.record.id, []).append(place)
    answers: dict[int, LabelledAnswer] = {}

    async def of_record(numbers: Sequence[int]) -> dict[int, LabelledAnswer]:
        cast: _Votes = {}
        if judge.probabilistic:
            # Side by side, so that an engine evaluates a passage once for all items about it.
            answers_read = await asyncio.gather(*(of_item(items[n], cast) for n in numbers))
            return dict(zip(numbers, answers_read, strict=True))
        return {n: await of_item(items[n], cast) for n in numbers}

    async def of_item(item: LabelledItem, cast: _Votes) -> LabelledAnswer:
        record = record_for(item, judge.rubric)
        if record.problem is not None:
            return LabelledAnswer(item, AnswerOutcome.SKIPPED, reason=record.problem.message)
        try:
            if judge.probabilistic:
                return await _read(judge, item, record, tokens=tokens, state=state)
            return await _ask(judge, item, record, votes, sampling, cast)
        except BackendError as error:
            if error.ends_run:
                raise
            unread = isinstance(error, Unread)
            outcome = AnswerOutcome.UNREADABLE if unread else AnswerOutcome.ERROR
            reason = f"{error.kind}: {error}"
            return LabelledAnswer(item, outcome, reason=reason, record=record)

    async def keep(new: Mapping[int, LabelledAnswer]) -> None:
        answers.update(new)
        progress(len(answers))

    await run(places.values(), of_record, keep, room=lambda: at_once)
    return [answers[place] for place in range(len(items))]


async def _read(
    judge: Judge, item: LabelledItem, record: Record, *, tokens: bool, state: bool
) -> LabelledAnswer:
    observer, call, observation = judge.observer, judge.call(record), Observation()
    if state:
        # First: llama.cpp evaluates a state's prompt anew, and the questions go on from there.
        observation = await observer.state(record, item.number, call)
    questions: Iterable[int] = range(len(observer.questions))
    if judge.reader.classifier is not None:
        questions = judge.reader.questions(judge.rubric)
    for question in questions if tokens else ():
        # One by one: a validation asks some of them only, which the others must not spoil.
        observation |= await observer.observe(record, item.number, call, (question,))
    outcome = AnswerOutcome.UNREADABLE
    return as_read(LabelledAnswer(item, outcome, record=record, observation=observation), judge)


def as_read(answer: LabelledAnswer, judge: Judge) -> LabelledAnswer:
    """The item answered by the judge's reader; unreadable where something that it goes by was not
    observed."""
    observation, reader = answer.observation or Observation(), judge.reader
    if not reader.complete(judge.rubric, observation):
        return replace(
            answer,
            outcome=AnswerOutcome.UNREADABLE,
            answer=None,
            probabilities={},
            reason=NOTHING_READ,
        )
    decision = reader.decide(judge.rubric, observation)
    shares = (decision.probabilities, *decision.ends)
    return replace(
        answer,
        outcome=AnswerOutcome.ANSWERED if decision.sure else AnswerOutcome.ABSTAINED,
        answer=decision.answer if decision.sure else None,
        probabilities=min(shares, key=lambda share: share.get(decision.answer, 0.0)),
        reason=None,
    )


async def _ask(
    judge: Judge,
    item: LabelledItem,
    record: Record,
    count: int,
    sampling: Sampling,
    cast: _Votes,
) -> LabelledAnswer:
    numbers: tuple[int, ...] = (item.number,)
    if judge.rubric.each and not judge.one_by_one:
        numbers = judge.numbers(record)
    value = record.entry(judge.rubric.each, item.number)
    for index in range(count):
        if (index, numbers) not in cast:
            vote = await judge.vote(record, vote=index, numbers=numbers, sampling=sampling)
            cast[index, numbers] = vote
    votes = [cast[index, numbers] for index in range(count)]
    evidence = [[entry for entry in vote.evidence if entry.value == value] for vote in votes]
    answers = [next((entry.answer for entry in part if entry.answer), None) for part in evidence]
    majority = next(
        (label for label in answers if label and 2 * answers.count(label) > count), None
    )
    verdicts = [vote.verdicts().get(value, vote.verdict) for vote in votes]
    outcome = next(
        (_LOST[verdict] for verdict in verdicts if verdict in _LOST), AnswerOutcome.ABSTAINED
    )
    given = (a for part in evidence for a in part if majority in (None, a.answer))
    telling = next((a for a in given if a.quote or a.reason), None)
    reasons = (vote.reason for vote in votes if vote.reason)
    return LabelledAnswer(
        item,
        AnswerOutcome.ANSWERED if majority else outcome,
        majority,
        quote=telling.quote if telling else None,
        reason=telling.reason if telling else next(reasons, None),
        record=record,
    )

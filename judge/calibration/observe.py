"""Asks a judge about labelled items: the records it is shown, its answers, and the first-token
probabilities and hidden states to fit to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.digest import digest
from judge.errors import BackendError, Unread
from judge.judging.answer_reader import AnswerReader, mean_of
from judge.judging.classifiers import Observation
from judge.judging.injection import injections
from judge.judging.judge import NOTHING_READ, Judge, Sampling, concurrently
from judge.judging.limits import Budget, room_within
from judge.judging.panel import mean_score
from judge.judging.prompts import lack
from judge.questions.answers import nearest_answer
from judge.questions.rubric import Rubric
from judge.records import Problem, Record
from judge.records.base import LabelError
from judge.records.kinds import RECORD, kind_named
from judge.records.labels import LabelledItem
from judge.records.names import entry_name
from judge.run.stream import run
from judge.verdict import SETTLED, AnswerOutcome, Usage, Verdict, Vote
from judge.voting import decide

# ---------------------------------------------------------------- records as shown


def record_for(item: LabelledItem, rubric: Rubric) -> Record:
    """The item's record as the rubric's judges see it, with a problem if they cannot be asked.

    If the rubric passes `= label` and the record has no label of its own, the label is the item's
    reference, or any answer if there is no usable one: the question can be asked all the same,
    because the label is not part of it.
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
        return "the label is about an entry of a list, the check about the record"
    return None


def texts_of(item: LabelledItem, rubric: Rubric) -> dict[str, str]:
    """The texts shown to the rubric's judges, by field; empty if they cannot be asked."""
    record = record_for(item, rubric)
    names = rubric.shown(record.texts).values() if record.problem is None else ()
    return {name: record.texts[name] for name in names if name in record.texts}


def shown_names(items: Sequence[LabelledItem], rubric: Rubric) -> tuple[str, ...]:
    """The fields shown to the rubric's judges, of all items; () if the rubric names them."""
    if rubric.fields:
        return ()
    return tuple(dict.fromkeys(name for item in items for name in texts_of(item, rubric)))


def key_of(item: LabelledItem, rubric: Rubric) -> str:
    """A key over everything that judges see of a labelled item; "" if they cannot be asked."""
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
}

_Votes = dict[tuple[str, int, tuple[int, ...]], Vote]
"""The votes on the records of one id, by the record's content, vote index and the numbers of the
entries asked about."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """A judge's answer to a labelled item, or why there is none.

    Args:
        answer: None unless `outcome` is `answered`.
        probabilities: the probability of every answer of the check, for probabilistic judges only.
            If probability is unassigned, the distribution in which `answer` has least.
        quote: the judge's quote for the answer.
        reason: the judge's reason; without an answer, why there is none.
        record: the record as shown; None if the judge could not be asked.
        observation: the first-token probabilities and hidden state, before any fit; None for a
            structured judge.
        score: the mean score that validation holds against the rubric's bound, if answers are
            scores; `answer` is then the nearest of them.
        verdict: the verdict of the votes where a run counts these by pass and fail: votes for
            several answers that all fail make a fail, and no answer.
    """

    item: LabelledItem
    outcome: AnswerOutcome
    answer: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    quote: str | None = None
    reason: str | None = None
    record: Record | None = None
    observation: Observation | None = None
    score: float | None = None
    verdict: Verdict | None = None


async def observe(
    judge: Judge,
    items: Sequence[LabelledItem],
    *,
    at_once: int,
    budget: Budget,
    votes: int = 1,
    sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
    tokens: bool = True,
    state: bool = False,
    screened: bool = True,
    progress: Callable[[int], None] = lambda count: None,
) -> list[LabelledAnswer]:
    """The judge's answer to each item, in order.

    Args:
        at_once: records judged concurrently. An engine evaluates a record's text once for all items
            about it.
        budget: the run's; near its end fewer are judged concurrently, as `room_within` says.
        votes: how often a structured judge is asked. Its answer needs more than half of the votes.
        sampling: temperature and seed of the votes.
        tokens: whether a probabilistic judge's first tokens are read.
        state: whether its hidden state is read.
        screened: whether nothing is asked about a text that looks like a message to the judge.
        progress: called with the number of finished items.

    Raises:
        BackendError: the model is unreachable, refuses the key, or the budget is used up.
    """
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.record.id, []).append(place)
    answers: dict[int, LabelledAnswer] = {}
    dearest = Usage()

    async def of_record(numbers: Sequence[int]) -> dict[int, LabelledAnswer]:
        nonlocal dearest
        cast: _Votes = {}
        if judge.probabilistic:
            # Concurrently, so that an engine evaluates a passage once for all items about it.
            batch = await concurrently(of_item(items[n], cast) for n in numbers)
        else:
            batch = [await of_item(items[n], cast) for n in numbers]
        usages = (answer.observation.usage for answer in batch if answer.observation is not None)
        used = sum((*usages, *(vote.usage for vote in cast.values())), Usage())
        cost = max(dearest.cost_usd or 0.0, used.cost_usd or 0.0)
        dearest = Usage(max(dearest.replies, used.replies), cost_usd=cost)
        return dict(zip(numbers, batch, strict=True))

    async def of_item(item: LabelledItem, cast: _Votes) -> LabelledAnswer:
        record = record_for(item, judge.rubric)
        if record.problem is not None:
            return LabelledAnswer(item, AnswerOutcome.SKIPPED, reason=record.problem.message)
        if screened and (found := injections(judge.rubric, record)):
            return LabelledAnswer(item, AnswerOutcome.SKIPPED, reason=found[0].why_not_asked)
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

    await run(places.values(), of_record, keep, room=lambda: room_within(budget, dearest, at_once))
    return [answers[place] for place in range(len(items))]


async def _read(
    judge: Judge, item: LabelledItem, record: Record, *, tokens: bool, state: bool
) -> LabelledAnswer:
    observer, call, observation = judge.observer, judge.call(record), Observation()
    if state:
        # First, because llama.cpp re-evaluates a state's prompt; the questions continue from it.
        observation = await observer.state(record, item.number, call)
    questions: Iterable[int] = range(len(observer.questions))
    if judge.reader.classifier is not None:
        questions = judge.reader.questions(judge.rubric)
    for question in questions if tokens else ():
        # One at a time: a validation asks only some of them, and the others must not affect these.
        observation |= await observer.observe(record, item.number, call, (question,))
    outcome = AnswerOutcome.UNREADABLE
    answer = LabelledAnswer(item, outcome, record=record, observation=observation)
    return as_read(answer, judge.rubric, judge.reader)


def as_read(answer: LabelledAnswer, rubric: Rubric, reader: AnswerReader) -> LabelledAnswer:
    """The item as answered by this reader; unreadable if a needed observation is missing."""
    observation = answer.observation or Observation()
    if not reader.complete(rubric, observation):
        return replace(
            answer,
            outcome=AnswerOutcome.UNREADABLE,
            answer=None,
            score=None,
            probabilities={},
            reason=NOTHING_READ,
        )
    decision = reader.decide(rubric, observation)
    shares = min(
        (decision.probabilities, *decision.ends),
        key=lambda share: share.get(decision.answer, 0.0),
    )
    score = None if decision.ends or rubric.each else mean_of(rubric, decision.probabilities)
    text = decision.answer if score is None else nearest_answer(rubric, score)
    sure = decision.sure
    if rubric.scale and answer.record is not None:
        # The open shares may leave no mean, or one on either side of the bound.
        sure = sure and decision.judged(rubric, answer.record.label, None).sure
    return replace(
        answer,
        outcome=AnswerOutcome.ANSWERED if sure else AnswerOutcome.ABSTAINED,
        answer=text if sure else None,
        score=score if sure else None,
        probabilities=shares,
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
    votes = []
    for index in range(count):
        # Two files' records, or a record's changed versions, may have one id.
        key = record.content_hash, index, numbers
        if key not in cast:
            cast[key] = await judge.vote(record, vote=index, numbers=numbers, sampling=sampling)
        votes.append(cast[key])
    evidence = [[entry for entry in vote.evidence if entry.value == value] for vote in votes]
    # As in a validation, an answer that abstains (its two orders disagree, its quote is not in the
    # text) is none.
    answers = [next((a.answer for a in part if a.answer and a.sure), None) for part in evidence]
    majority = next(
        (label for label in answers if label and 2 * answers.count(label) > count), None
    )
    score: float | None = None
    if judge.rubric.scale and not judge.rubric.each:
        verdict, score = mean_score(votes, judge.rubric.scale, judge.rubric.rule.bound)
        score = score if verdict in SETTLED else None
        majority = None if score is None else nearest_answer(judge.rubric, score)
    verdicts = [(vote.verdicts().get(value, vote.verdict), None) for vote in votes]
    counted = Verdict(decide(verdicts, count)[0])
    outcome = _LOST.get(counted, AnswerOutcome.ABSTAINED)
    by_answer = judge.rubric.graded or (judge.rubric.scale and not judge.rubric.each)
    given = [a for part in evidence for a in part if a.quote or a.reason]
    telling = next((a for a in given if majority in (None, a.answer)), None)
    why = next((vote.reason for vote in votes if vote.reason), None)
    return LabelledAnswer(
        item,
        AnswerOutcome.ANSWERED if majority else outcome,
        majority,
        score=score,
        quote=telling.quote if telling else None,
        reason=telling.reason if telling and (majority or not why) else why,
        record=record,
        verdict=None if by_answer else counted,
    )

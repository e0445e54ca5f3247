"""A judge's answers to labelled items, with the first tokens and hidden states to fit to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from judge.backends.base import State
from judge.calibration.labels import subject_of
from judge.errors import BackendError
from judge.judging.classifiers import Chances, Observation
from judge.judging.client import Unread
from judge.judging.judge import NOTHING_READ, Judge, Sampling
from judge.records.labels import LabelledItem
from judge.run.stream import run
from judge.subject import Subject
from judge.verdict import Verdict, Vote

Outcome = Literal["answered", "abstained", "unreadable", "error", "skipped"]

_LOST: dict[Verdict, Outcome] = {
    Verdict.UNREADABLE: "unreadable",
    Verdict.ERROR: "error",
    Verdict.ABSTAIN: "abstained",
}

_Asked = dict[tuple[int, tuple[int, ...]], Vote]
"""The votes on one record, by index and the values asked about."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's answer to a labelled item, or why there is none.

    `answer` is there exactly where `outcome` is `answered`; `probabilities` maps every answer of
    the check to its probability, for `logprobs` method only; `evidence` is what the judge quoted
    or gave as its reason. `subject` is what it was shown, None where the item could not be put to
    it. `chances` are those of the first-token questions that could be read, and `state` the hidden
    state, before anything is fitted; `open` the open shares (`Observation`) of these questions,
    with which the probabilities are those that have least for the answer.
    """

    item: LabelledItem
    outcome: Outcome
    answer: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    evidence: str | None = None
    subject: Subject | None = None
    chances: Mapping[int, Chances] | None = None
    state: State | None = None
    open: Mapping[int, float] = field(default_factory=dict)


async def observe(
    judge: Judge,
    items: Sequence[LabelledItem],
    *,
    at_once: int,
    votes: int = 1,
    sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
    tokens: bool = True,
    state: bool = False,
    told: Callable[[int], None] = lambda count: None,
) -> list[Judged]:
    """The judge's answer to each item, in their order.

    Args:
        at_once: records worked on at the same time; an engine evaluates the text of a record once
            for all items about it.
        votes: how often a structured judge is asked; more than half of the votes answer.
        sampling: how they are drawn.
        tokens: whether first tokens are read, where the judge reads; `state`, the hidden state.
        told: called with the number of items that are done.

    Raises:
        BackendError: the model is out of reach, refuses the key, or the budget is used up.
    """
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.record, []).append(place)
    found: dict[int, Judged] = {}

    async def one_record(wanted: Sequence[int]) -> dict[int, Judged]:
        asked: _Asked = {}
        if judge.probabilistic:
            # Side by side, so that an engine evaluates a passage once for all items about it.
            read = await asyncio.gather(*(one(items[n], asked) for n in wanted))
            return dict(zip(wanted, read, strict=True))
        return {n: await one(items[n], asked) for n in wanted}

    async def one(item: LabelledItem, asked: _Asked) -> Judged:
        subject = subject_of(item, judge.rubric)
        if isinstance(subject, str):
            return Judged(item, "skipped", evidence=subject)
        try:
            if judge.probabilistic:
                return await _read(judge, item, subject, tokens=tokens, state=state)
            return await _ask(judge, item, subject, votes, sampling, asked)
        except BackendError as error:
            if error.ends_run:
                raise
            lost: Outcome = "unreadable" if isinstance(error, Unread) else "error"
            return Judged(item, lost, evidence=f"{error.kind}: {error}", subject=subject)

    async def keep(seen: Mapping[int, Judged]) -> None:
        found.update(seen)
        told(len(found))

    await run(places.values(), one_record, keep, room=lambda: at_once)
    return [found[place] for place in range(len(items))]


async def _read(
    judge: Judge, item: LabelledItem, subject: Subject, *, tokens: bool, state: bool
) -> Judged:
    assert judge.rubric.methods.logprobs is not None
    # First, because llama.cpp evaluates a state's prompt anew, and the questions go on from there.
    found = (await judge.state(subject, item.number))[0] if state else None
    chances: dict[int, Chances] = {}
    shares: dict[int, float] = {}
    everything = range(len(judge.rubric.methods.logprobs.questions))
    fitted = judge.reader.combination is not None
    questions = judge.reader.wanted(judge.rubric) if fitted else everything
    for question in questions if tokens else ():
        # One by one: a validation asks some of them only, which the others must not spoil.
        one, _ = await judge.reading(subject, item.number, (question,))
        chances.update(one.chances if one else {})
        shares.update(one.open if one else {})
    read = Judged(item, "unreadable", subject=subject, chances=chances, state=found, open=shares)
    return as_read(read, judge)


def as_read(one: Judged, judge: Judge) -> Judged:
    """The item answered by the judge's reader; unreadable where the state, or the chances of a
    question that it asks, are missing."""
    chances, reader = one.chances or {}, judge.reader
    wanted = reader.wanted(judge.rubric)
    lost = reader.probe is not None and one.state is None
    if lost or not set(wanted) <= set(chances):
        return replace(
            one, outcome="unreadable", answer=None, probabilities={}, evidence=NOTHING_READ
        )
    shares = {place: share for place, share in one.open.items() if place in wanted}
    decided = reader.decide(judge.rubric, Observation(chances, one.state, open=shares))
    every = (decided.probabilities, *decided.ends)
    return replace(
        one,
        outcome="answered" if decided.sure else "abstained",
        answer=decided.answer if decided.sure else None,
        probabilities=min(every, key=lambda chances: chances.get(decided.answer, 0.0)),
        evidence=None,
    )


async def _ask(
    judge: Judge,
    item: LabelledItem,
    subject: Subject,
    count: int,
    sampling: Sampling,
    asked: _Asked,
) -> Judged:
    numbers: tuple[int, ...] = (item.number,)
    if judge.rubric.about == "values" and not judge.per_value:
        numbers = subject.numbers
    value = subject.about(item.number)
    for index in range(count):
        if (index, numbers) not in asked:
            vote = await judge.vote(subject, vote=index, numbers=numbers, sampling=sampling)
            asked[index, numbers] = vote
    votes = [asked[index, numbers] for index in range(count)]
    findings = [[one for one in vote.evidence if one.value == value] for vote in votes]
    answers = [next((one.answer for one in found if one.answer), None) for found in findings]
    settled = next((one for one in answers if one and 2 * answers.count(one) > count), None)
    verdicts = [vote.verdicts().get(value, vote.verdict) for vote in votes]
    lost: Outcome = next((_LOST[one] for one in verdicts if one in _LOST), "abstained")
    words = (
        text
        for vote, found in zip(votes, findings, strict=True)
        for text in (*(" — ".join(filter(None, (f.quote, f.reason))) for f in found), vote.reason)
    )
    return Judged(
        item,
        "answered" if settled else lost,
        settled,
        evidence=next(filter(None, words), None),
        subject=subject,
    )

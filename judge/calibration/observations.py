"""What a judge says of labelled items: its answers, and what its first tokens left to fit to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from judge.calibration.labels import subject_of
from judge.errors import BackendError
from judge.judging.judge import NOTHING_READ, Judge, Sampling
from judge.judging.reading import Chances, Reader
from judge.records.labels import LabelledItem
from judge.run.runner import run
from judge.subject import Subject
from judge.verdict import Finding, Verdict, Vote

Outcome = Literal["answered", "abstained", "unreadable", "error", "skipped"]

_LOST: dict[Verdict, Outcome] = {
    Verdict.UNREADABLE: "unreadable",
    Verdict.ERROR: "error",
    Verdict.ABSTAIN: "abstained",
}

_Asked = dict[tuple[int, bool, tuple[int, ...]], Vote]
"""The votes on one record: by index, whether in swapped order, and the values asked about."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's answer to a labelled item, or why there is none.

    `answer` is there exactly where `outcome` is `answered`; `probabilities` maps every answer of
    the check to its probability, for probability readings only; `evidence` is what the judge quoted
    or gave as its reason; `swapped` the answer with the order of the alternatives turned round, for
    checks that have an order.
    """

    item: LabelledItem
    outcome: Outcome
    answer: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    evidence: str | None = None
    swapped: str | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Items that a judge gave no answer to.

    `items` were put to it, `answered` of them brought an answer, `errors` no reply at all; `reason`
    is why the first one failed, or, where none did, why the first is without an answer.
    """

    items: int = 0
    answered: int = 0
    errors: int = 0
    reason: str | None = None

    @classmethod
    def of(cls, judged: Sequence[Judged]) -> Unanswered:
        """Counted over what a judge said of each item."""
        failed = [one for one in judged if one.outcome == "error"]
        lost = [*failed, *(one for one in judged if one.outcome != "answered")]
        return cls(
            len(judged),
            sum(one.outcome == "answered" for one in judged),
            len(failed),
            (lost[0].evidence or lost[0].outcome) if lost else None,
        )

    @property
    def silent(self) -> bool:
        """Whether no item brought an answer."""
        return not self.answered


@dataclass(frozen=True, slots=True)
class Observation:
    """What a judge said of one item, before anything is fitted.

    A probability reading leaves the `chances` of those questions of the rubric that could be read;
    a structured one leaves what it answered. `subject` is None where the item could not be put to
    the judge.
    """

    item: LabelledItem
    subject: Subject | None
    said: Judged
    chances: Mapping[int, Chances] | None = None


async def observe(
    judge: Judge,
    items: Sequence[LabelledItem],
    *,
    votes: int = 1,
    sampling: Sampling | None = None,
    at_once: int,
    told: Callable[[int], None] = lambda count: None,
) -> list[Observation]:
    """What the judge says of each item, in their order.

    Args:
        votes: how often a structured judge is asked; more than half of the votes answer.
        sampling: how they are drawn.
        at_once: records worked on at the same time; an engine evaluates the text of a record once
            for all items about it.
        told: called with the number of items that are done.

    Raises:
        BackendError: the model is out of reach, refuses the key, or the budget is used up.
    """
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.record, []).append(place)
    found: dict[int, Observation] = {}

    async def one_record(wanted: Sequence[int]) -> dict[int, Observation]:
        asked: _Asked = {}
        drawn = sampling or Sampling()
        return {n: await _one(judge, items[n], votes, drawn, asked) for n in wanted}

    def keep(seen: Mapping[int, Observation]) -> None:
        found.update(seen)
        told(len(found))

    await run(places.values(), one_record, keep, room=lambda: at_once, ordered=False)
    return [found[place] for place in range(len(items))]


async def _one(
    judge: Judge, item: LabelledItem, votes: int, sampling: Sampling, asked: _Asked
) -> Observation:
    subject = subject_of(item, judge.rubric)
    if isinstance(subject, str):
        return Observation(item, None, Judged(item, "skipped", evidence=subject))
    try:
        if judge.probabilistic:
            return await _read(judge, item, subject)
        return await _ask(judge, item, subject, votes, sampling, asked)
    except BackendError as error:
        if error.ends_run:
            raise
        said = Judged(item, "error", evidence=f"{error.kind}: {error}")
        return Observation(item, subject, said)


async def _read(judge: Judge, item: LabelledItem, subject: Subject) -> Observation:
    assert judge.rubric.readings.probability is not None
    chances: dict[int, Chances] = {}
    for question in range(len(judge.rubric.readings.probability.questions)):
        # One by one: a validation asks some of them only, which the others must not spoil.
        one, _ = await judge.chances(subject, item.number, (question,))
        chances.update(one or {})
    said = as_read(item, judge, chances, judge.reader)
    if judge.rubric.order is not None:
        turned = replace(judge, swapped=True)
        wanted = judge.reader.wanted(judge.rubric)
        read, _ = await turned.chances(subject, item.number, wanted)
        answer = as_read(item, judge, read or {}, judge.reader).answer
        said = replace(said, swapped=turned_round(answer) if answer else None)
    return Observation(item, subject, said, chances)


def as_read(
    item: LabelledItem, judge: Judge, chances: Mapping[int, Chances], reader: Reader
) -> Judged:
    """What a reader makes of the chances that were read off an item; unreadable where those of a
    question that it wants are missing."""
    if not set(reader.wanted(judge.rubric)) <= set(chances):
        return Judged(item, "unreadable", evidence=NOTHING_READ)
    decided = reader.decide(judge.rubric, chances)
    return Judged(
        item,
        "answered" if decided.sure else "abstained",
        decided.answer if decided.sure else None,
        decided.probabilities,
    )


async def _ask(
    judge: Judge,
    item: LabelledItem,
    subject: Subject,
    count: int,
    sampling: Sampling,
    asked: _Asked,
) -> Observation:
    numbers: tuple[int, ...] = (item.number,)
    if judge.rubric.about == "values" and not judge.apart:
        numbers = subject.numbers

    async def vote(index: int, *, swapped: bool = False) -> Vote:
        key = (index, swapped, numbers)
        if key not in asked:
            one = replace(judge, swapped=swapped)
            asked[key] = await one.vote(subject, vote=index, numbers=numbers, sampling=sampling)
        return asked[key]

    def answer(cast: Vote) -> str | None:
        return next((f.answer for f in _findings(cast, item, subject) if f.answer), None)

    votes = [await vote(index) for index in range(count)]
    settled = _most([answer(cast) for cast in votes])
    swapped = None
    if judge.rubric.order is not None:
        turned = answer(await vote(0, swapped=True))
        swapped = turned_round(turned) if turned else None
    value = subject.about(item.number)
    verdicts = [cast.verdicts().get(value, cast.verdict) for cast in votes]
    lost: Outcome = next((_LOST[one] for one in verdicts if one in _LOST), "abstained")
    said = Judged(
        item,
        "answered" if settled else lost,
        settled,
        evidence=_evidence(votes, item, subject),
        swapped=swapped,
    )
    return Observation(item, subject, said)


def turned_round(answer: str) -> str:
    """The answer about the alternatives as the record has them, given with their places swapped."""
    return {"1": "2", "2": "1"}.get(answer, answer)


def _findings(vote: Vote, item: LabelledItem, subject: Subject) -> list[Finding]:
    """What a vote found about the item: about its value, or about the record."""
    value = subject.about(item.number)
    return [finding for finding in vote.evidence if finding.value == value]


def _most(answers: Sequence[str | None]) -> str | None:
    """What more than half of the votes say."""
    for answer in dict.fromkeys(answers):
        if answer is not None and 2 * answers.count(answer) > len(answers):
            return answer
    return None


def _evidence(votes: Sequence[Vote], item: LabelledItem, subject: Subject) -> str | None:
    for vote in votes:
        for finding in _findings(vote, item, subject):
            if told := " — ".join(part for part in (finding.quote, finding.reason) if part):
                return told
        if vote.reason:
            return vote.reason
    return None

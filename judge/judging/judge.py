"""A judge: a rubric put to one model by one method.

`Judge.vote` makes the prompt, sends it through the client, and turns the result into answers: a
typed reply (`structured`), or the probabilities of the first token and the hidden state of the
prompt (`logprobs`, `probe`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from judge.backends.base import Call, Method, Origin
from judge.errors import BackendError, NotHere, Unread, after
from judge.judging.answer_reader import ORDERS_DISAGREE, AnswerReader, Decision, mean_of
from judge.judging.classifiers import Observation
from judge.judging.client import Client
from judge.judging.first_token import Observer
from judge.judging.prompts import DEFENDED, Framing, messages, shown_texts
from judge.questions.evidence import ReplyContext, locate
from judge.questions.parts import NONE, in_other_order
from judge.questions.replies import YES_NO, JudgingReply, Reply
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.names import entry_name
from judge.verdict import LOST, Answer, Usage, Verdict, Vote, worst

QUOTE_NOT_FOUND = "the judge's quote is not in the text, and is left out"
NOTHING_READ = "none of the likeliest first tokens answers the question"

Part = TypeVar("Part")


async def concurrently(coroutines: Iterable[Coroutine[Any, Any, Part]]) -> list[Part]:
    """The results of all, in order. If one raises, the others still end, because the replies to
    calls under way are paid for, and are to be kept; then it is raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How replies are drawn: temperature (0 and up), and a seed. Vote i is draw `first` + i, which
    is added to the seed."""

    temperature: float = 0.0
    seed: int = 0
    first: int = 0


@dataclass(frozen=True)
class Judge:
    """A rubric, the client that answers it, and the method.

    `reader` turns what the methods `logprobs` and `probe` observe into an answer. With `per_entry`
    the structured method makes one call for each entry instead of one for all. `framing` separates
    the record from the question.
    """

    rubric: Rubric
    client: Client
    method: Method
    role: str = "loop"
    reader: AnswerReader = field(default_factory=AnswerReader)
    per_entry: bool = False
    framing: Framing = DEFENDED

    @cached_property
    def one_by_one(self) -> bool:
        """Whether a structured vote consists of one reply per entry."""
        if self.probabilistic or self.rubric.each is None:
            return False
        return self.per_entry or not self.rubric.lists_entries

    @cached_property
    def probabilistic(self) -> bool:
        """Whether votes are read from log-probabilities or hidden states, without sampling."""
        return self.method != "structured" and bool(self.rubric.first_token)

    @cached_property
    def _side_by_side(self) -> bool:
        """Whether questions are asked about passages. Then the values are asked about concurrently,
        so that an engine evaluates a passage once for all of them."""
        if not self.probabilistic:
            return False
        questions = self.observer.questions
        return any(questions[n].passages for n in self.reader.questions(self.rubric))

    @cached_property
    def _reply_type(self) -> type[Reply]:
        return self.rubric.reply_type

    def numbers(self, record: Record) -> tuple[int, ...]:
        """What a vote is about: the numbers of the entries, or (0,) for the record."""
        return record.numbers(self.rubric.each)

    async def vote(
        self,
        record: Record,
        *,
        vote: int = 0,
        round: int = 1,
        numbers: Sequence[int] | None = None,
        sampling: Sampling = Sampling(),
    ) -> Vote:
        """One vote; an `error` vote if the model gives no reply.

        Args:
            vote: its index; above temperature 0 each index is another draw.
            round: the pass of the rewrite loop (from 1).
            numbers: the values to ask about (default: all of the record's).

        Raises:
            BackendError: unreachable, denied or out of budget, which ends the run; or the model is
                not on this machine (`NotHere`), which concerns the whole record.
        """
        call = self.call(record, vote, round, sampling)
        numbers = self.numbers(record) if numbers is None else tuple(numbers)
        groups = self._groups(numbers)
        if len(groups) == 1:
            part = await self._part(record, call, groups[0])
            if self.probabilistic or not self.rubric.comparing or part.verdict is Verdict.ERROR:
                return part
            return self._agreed(call, part, await self._part(record, call, groups[0], swapped=True))
        coroutines = [self._part(record, call, group) for group in groups]
        if self.client.backend.slots == 1 and not self._side_by_side:
            parts = [await coroutine for coroutine in coroutines]
        else:
            parts = await concurrently(coroutines)
        return self._vote(
            call,
            [answer for part in parts for answer in part.evidence],
            sum((part.usage for part in parts), Usage()),
            _reason(parts),
            parts[0].score,
        )

    def calls(
        self,
        record: Record,
        vote: int = 0,
        round: int = 1,
        sampling: Sampling = Sampling(),
    ) -> Iterator[Call]:
        """The calls of a vote on the record if every reply can be read; arguments as `vote`."""
        call, probe = self.call(record, vote, round, sampling), self.reader.probe
        for numbers in self._groups(self.numbers(record)):
            if not self.probabilistic:
                for swapped in (False, True) if self.rubric.comparing else (False,):
                    yield self._about(call, record, numbers, swapped)
                continue
            if probe is not None:
                yield self.observer.state_call(record, numbers[0], call, probe.layer)
            questions = self.reader.questions(self.rubric)
            yield from self.observer.calls(record, numbers[0], call, questions)

    def _groups(self, numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The numbers that each reply is about."""
        split = self.one_by_one or self.probabilistic
        return [(n,) for n in numbers] if split else [numbers]

    def _about(self, call: Call, record: Record, numbers: Sequence[int], swapped: bool) -> Call:
        """The call for a structured reply about these values, or about the record (0)."""
        values = tuple(n for n in numbers if n)
        rubric, framing = self.rubric, self.framing
        prompt = messages(rubric, record, swapped=swapped, numbers=values, framing=framing)
        return replace(call, messages=prompt, max_tokens=rubric.reply_limit(len(values)))

    async def _part(
        self, record: Record, call: Call, numbers: tuple[int, ...], *, swapped: bool = False
    ) -> Vote:
        """The vote on these values, or on the record (0), by one reply or reading; `swapped`: with
        the two compared fields in the other order."""
        try:
            if self.probabilistic:
                return await self._read(record, call, numbers[0])
            context = self._context(record, numbers, swapped)
            reply, usage = await self.client.ask(
                self._about(call, record, numbers, swapped),
                self._reply_type.sized(len(context.entries)),
                context,
            )
            return self._replied(call, numbers, context, reply, usage)
        except Unread as error:
            return self._lost(call, record, numbers, str(error), error.usage)
        except BackendError as error:
            if error.ends_run or isinstance(error, NotHere):
                raise
            reason, failed = f"{error.kind}: {error}", Verdict.ERROR
            return self._lost(call, record, numbers, reason, error.usage or Usage(), failed)

    def call(
        self,
        record: Record,
        vote: int = 0,
        round: int = 1,
        sampling: Sampling = Sampling(),
    ) -> Call:
        """The call of a vote without its messages."""
        name = self.rubric.name if self.probabilistic else self.rubric.file
        draw = sampling.first + vote
        return Call(
            messages=(),
            temperature=0.0 if self.probabilistic else sampling.temperature,
            seed=sampling.seed + draw if self.client.backend.seeded else None,
            max_tokens=self.rubric.max_tokens,
            vote=draw,
            role=self.role,
            origin=Origin(name, record.id, round, vote, record.as_mapping),
        )

    def _vote(
        self,
        call: Call,
        evidence: Sequence[Answer],
        usage: Usage,
        reason: str | None = None,
        score: float | None = None,
    ) -> Vote:
        call_sent = self.client.negotiation.sent(call)
        return Vote(
            model=self.client.spec,
            seed=call_sent.seed,
            temperature=call_sent.temperature,
            answered_by=usage.models,
            method=self.method if self.probabilistic else "structured",
            verdict=worst(answer.verdict for answer in evidence),
            evidence=tuple(evidence),
            reason=reason,
            score=score,
            usage=usage,
        )

    def _lost(
        self,
        call: Call,
        record: Record,
        numbers: Sequence[int],
        reason: str,
        usage: Usage,
        verdict: Verdict = Verdict.UNREADABLE,
    ) -> Vote:
        answers = [
            Answer(value=record.entry(self.rubric.each, n), verdict=verdict) for n in numbers
        ]
        return self._vote(call, answers, usage, reason)

    # ------------------------------------------------------------ structured

    def _replied(
        self, call: Call, numbers: Sequence[int], context: ReplyContext, reply: Reply, usage: Usage
    ) -> Vote:
        """The vote in a reply about these values, or about the record (0)."""
        rubric = self.rubric
        assert isinstance(reply, JudgingReply), "a judge's rubric has such a reply"
        part = reply.part(rubric.name)
        replied = [self._judged(part.answers(number, context)) for number in numbers]
        located = [_located(answers, context.texts.values()) for answers in replied]
        unlocated = any(map(_fewer_quotes, located, replied))
        answers = [answer for of_value in located for answer in of_value]
        score = float(str(answers[0].answer)) if rubric.scale and not rubric.each else None
        return self._vote(call, answers, usage, QUOTE_NOT_FOUND if unlocated else None, score)

    def _judged(self, answers: list[Answer]) -> list[Answer]:
        """The answers of a reply; one that says that none of the rubric's answers fits abstains."""
        if not self.rubric.none:
            return answers
        unsure = {"verdict": Verdict.ABSTAIN}
        return [a.model_copy(update=unsure) if a.answer == NONE else a for a in answers]

    def _context(self, record: Record, numbers: Sequence[int], swapped: bool) -> ReplyContext:
        """What a reply about these values, or the record (0), is validated against."""
        rubric, rule = self.rubric, self.rubric.quote
        answers = in_other_order(rubric.answers) if swapped else rubric.answers
        entries = {n: record.entry(rubric.each, n) or "" for n in numbers if n}
        texts, where = shown_texts(rubric, record), rule.field if rule else ""
        if rubric.each and not rubric.lists_entries:
            (texts[entry_name(rubric.each)],) = entries.values()
        if rubric.comparing:
            # A re-ask, which names the field to quote, must not tell the names of the two either.
            shown = rubric.shown(record.texts, swap=rubric.compare if swapped else None)
            titles = {name: title for title, name in shown.items()}
            where = titles.get(where, "")
            texts = {titles[name]: text for name, text in texts.items()}
        return ReplyContext(
            texts=texts,
            entries=entries,
            typed=record.typed,
            evidence=(where, rule.answers) if rule else None,
            passing=None if rubric.rule.counts else rubric.passing(record.label),
            names=dict(zip(rubric.words, answers, strict=True)) if rubric.comparing else {},
        )

    def _agreed(self, call: Call, first: Vote, second: Vote) -> Vote:
        """The votes on a comparison's two orders as one; it abstains if they disagree."""
        answers, usage = (*first.evidence, *second.evidence), first.usage + second.usage
        for order in (first, second):
            if any(answer.answer is None for answer in order.evidence):
                return self._vote(call, order.evidence, usage, order.reason)
        if len({answer.answer for answer in answers}) == 1:
            return self._vote(call, answers, usage, first.reason or second.reason)
        torn = [answer.model_copy(update={"verdict": Verdict.ABSTAIN}) for answer in answers]
        return self._vote(call, torn, usage, ORDERS_DISAGREE)

    # ------------------------------------------------------------ first tokens, hidden states

    @cached_property
    def observer(self) -> Observer:
        return Observer(self.rubric, self.client, self.framing)

    async def decide(
        self, record: Record, call: Call | None = None, number: int = 0
    ) -> tuple[Decision | None, Observation]:
        """The decision about the value with this number (0: the record), None if too little was
        read; and the observation. Every question of the reader is asked, so that P(pass) is always
        complete.

        Raises:
            BackendError: the model gives no reply.
        """
        rubric, reader, observation = self.rubric, self.reader, Observation()
        call = call or self.call(record)
        if (probe := reader.probe) is not None:
            # First: llama.cpp evaluates this prompt anew, and the questions then share it.
            width = len(probe.center)
            observation = await self.observer.state(record, number, call, probe.layer, width)
        with after(observation.usage):
            questions = reader.questions(rubric)
            observation |= await self.observer.observe(record, number, call, questions)
        complete = reader.complete(rubric, observation)
        return reader.decide(rubric, observation) if complete else None, observation

    async def _read(self, record: Record, call: Call, number: int) -> Vote:
        """The vote on one value, or on the record (0)."""
        rubric = self.rubric
        decision, observation = await self.decide(record, call, number)
        if decision is None:
            return self._lost(call, record, (number,), NOTHING_READ, observation.usage)
        answer = decision.judged(rubric, record.label, record.entry(rubric.each, number))
        reason = decision.reason(answer)
        if observation.quote is not None and decision.answer != YES_NO[1]:
            answer = answer.model_copy(update={"quote": observation.quote})
        score = None if decision.ends or rubric.each else mean_of(rubric, decision.probabilities)
        return self._vote(call, [answer], observation.usage, reason, score)


def _reason(parts: Sequence[Vote]) -> str | None:
    """The reason of the first lost part, or else of the first part that has one."""
    lost_first = sorted(parts, key=lambda part: part.verdict not in LOST)
    return next((part.reason for part in lost_first if part.reason), None)


def _located(answers: list[Answer], texts: Collection[str]) -> list[Answer]:
    """The answers about one value, with their quotes in the exact words of the texts. Answers whose
    quote is in no text are dropped; if none is left, the first is kept without its quote."""
    if not answers[0].quote:
        return answers
    located = []
    for answer in answers:
        spans = ((text, locate(answer.quote or "", text)) for text in texts)
        words = next((text[span.start : span.end] for text, span in spans if span), None)
        if words == answer.quote:
            located.append(answer)
        elif words is not None:
            located.append(answer.model_copy(update={"quote": words}))
    return located or [answers[0].model_copy(update={"quote": None, "character": None})]


def _fewer_quotes(answers: Sequence[Answer], replied: Sequence[Answer]) -> bool:
    return len([a for a in answers if a.quote]) < len([a for a in replied if a.quote])

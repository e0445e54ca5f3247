"""A judge: a rubric put to one model by one method. Its `vote` turns replies into a verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.backends.base import LAST_LAYER, Call, Method, Origin, Prompt, State
from judge.errors import BackendError, NotHere
from judge.evidence import ReplyContext, locate
from judge.judging.classifiers import Chances, Observation
from judge.judging.client import Client, Unread
from judge.judging.logprobs import TOP_TOKENS, AnswerReader, mean_of, open_share, word_chances
from judge.judging.overlap import overlap
from judge.judging.passages import passages
from judge.prompts import DEFENDED, Framing, messages
from judge.questions import Question
from judge.replies import REPLIES, YES_NO, Answer, JudgingReply, answers_together, one_answer
from judge.rubric import Rubric
from judge.subject import Subject
from judge.verdict import Finding, Usage, Verdict, Vote, worst

ORDERS_DISAGREE = "the two orders do not agree"
QUOTE_NOT_FOUND = "the judge's quote does not stand in the text, and is left out"
FAR = "far from the labelled records that the probe was fitted to"
NOT_LISTED = "the model lists too little of the first token's probability"
NOTHING_READ = "no word that answers the question is among the likeliest first tokens"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How replies are drawn: temperature (0 and up) and the seed of vote 0; vote i adds i to it."""

    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Judge:
    """A rubric, the client that it is put to, and the method.

    `reader` turns what the methods `logprobs` and `probe` read into an answer. With `per_value` the
    structured method makes one call for each value instead of one for all. `framing` separates the
    record from the question.
    """

    rubric: Rubric
    client: Client
    method: Method
    role: str = "loop"
    reader: AnswerReader = field(default_factory=AnswerReader)
    per_value: bool = False
    framing: Framing = DEFENDED

    @property
    def one_by_one(self) -> bool:
        """Whether a structured vote consists of one reply a value."""
        return self.per_value and not self.probabilistic and self.rubric.about == "values"

    @property
    def probabilistic(self) -> bool:
        """Whether votes are read from log-probabilities or hidden states, without sampling."""
        return self.method != "structured" and self.rubric.methods.logprobs is not None

    @property
    def _by_passage(self) -> bool:
        """Whether questions are put to each passage. An engine evaluates a passage once for all
        values where these are asked about side by side."""
        if not self.probabilistic:
            return False
        return any(self._questions[n].passages for n in self.reader.wanted(self.rubric))

    async def vote(
        self,
        subject: Subject,
        *,
        vote: int = 0,
        round: int = 1,
        numbers: Sequence[int] | None = None,
        sampling: Sampling | None = None,
    ) -> Vote:
        """One vote; an `error` vote if the model gives no reply.

        Args:
            vote: its index; above temperature 0 other indexes are other draws.
            round: the pass of the rewrite loop (from 1).
            numbers: the values to ask about (default: all of the record's).

        Raises:
            BackendError: unreachable, denied or out of budget, which ends the run; or the model is
                not here, which concerns the whole record.
        """
        drawn = sampling or Sampling()
        asked = self.subjects(subject) if numbers is None else tuple(numbers)
        split = self.one_by_one or self.probabilistic
        call = self._call(subject, vote, round, drawn)
        groups = [(n,) for n in asked] if split else [asked]
        coming = [self._part(subject, call, group) for group in groups]
        if len(coming) == 1 or (self.client.backend.slots == 1 and not self._by_passage):
            parts = [await one for one in coming]
        else:
            parts = await asyncio.gather(*coming)
        evidence = tuple(finding for part in parts for finding in part.evidence)
        sent = self.client.sent(call)
        return Vote(
            model=self.client.spec,
            seed=sent.seed,
            temperature=sent.temperature,
            method=self.method if self.probabilistic else "structured",
            verdict=worst(finding.verdict for finding in evidence),
            evidence=evidence,
            reason=next((part.reason for part in parts if part.reason), None),
            score=parts[0].score,
            usage=sum((part.usage for part in parts), Usage()),
        )

    async def _part(self, subject: Subject, call: Call, asked: tuple[int, ...]) -> Part:
        """One reply about these values, or about the record (0)."""
        try:
            if self.probabilistic:
                return await self._read(subject, call, asked[0])
            if not self.rubric.comparing:
                return await self._structured(subject, call, asked)
            orders = [await self._structured(subject, call, asked, way) for way in (False, True)]
            return _agreed(*orders)
        except BackendError as error:
            if error.ends_run or isinstance(error, NotHere):
                raise
            if isinstance(error, Unread):
                return _lost(subject, asked, Verdict.UNREADABLE, str(error), error.usage)
            return _lost(subject, asked, Verdict.ERROR, f"{error.kind}: {error}", Usage())

    def _call(self, subject: Subject, vote: int, round: int, drawn: Sampling) -> Call:
        """The call without its question."""
        name = self.rubric.name if self.probabilistic else self.rubric.file
        return Call(
            messages=(),
            temperature=0.0 if self.probabilistic else drawn.temperature,
            seed=drawn.seed + vote if self.client.backend.seeded else None,
            max_tokens=self.rubric.methods.structured.max_tokens,
            vote=vote,
            role=self.role,
            origin=Origin(name, subject.id, round, vote, subject.as_mapping),
        )

    def _question(
        self,
        subject: Subject,
        numbers: tuple[int, ...],
        step: int | None = None,
        swapped: bool = False,
    ) -> Prompt:
        return messages(
            self.rubric,
            subject,
            step=step,
            swapped=swapped,
            numbers=numbers,
            framing=self.framing,
        )

    def subjects(self, subject: Subject) -> tuple[int, ...]:
        """What a vote speaks about: the value numbers, or (0,) for the record."""
        return subject.numbers if self.rubric.about == "values" else (0,)

    # ------------------------------------------------------------ structured

    async def _structured(
        self, subject: Subject, call: Call, asked: tuple[int, ...], swapped: bool = False
    ) -> Part:
        rubric, evidence = self.rubric, self.rubric.evidence
        numbers = asked if rubric.about == "values" else ()
        record = ReplyContext(
            texts={name: subject.texts[name] for name in rubric.shown(subject.texts).values()},
            numbers=numbers,
            characters=subject.characters,
            evidence=(evidence.field, evidence.answers) if evidence else None,
            predicted=len(subject.predicted),
        )
        ask = replace(call, messages=self._question(subject, numbers, swapped=swapped))
        model = one_answer(rubric.words) if rubric.own else REPLIES[rubric.reply]
        if rubric.together:
            model = answers_together(tuple(rubric.together.items()))
        result = await self.client.ask(ask, model.sized(len(numbers)), record)
        if not isinstance(result.reply, JudgingReply):
            reason = f"{result.trouble}: {result.detail}"
            return _lost(subject, asked, Verdict.UNREADABLE, reason, result.usage)
        passing = rubric.passing(subject.label)
        answers = result.reply.about(rubric.name).answers()
        if rubric.comparing:
            names = rubric.answers[::-1] if swapped else rubric.answers
            said = dict(zip(rubric.words, names, strict=True))
            answers = {
                n: replace(one, answer=said.get(one.answer, one.answer))
                for n, one in answers.items()
            }
        given, answers = answers, {n: _quoted(answer, record) for n, answer in answers.items()}
        lost = any(len(answers[n].passages) < len(given[n].passages) for n in asked)
        found = [_findings(subject.about(n), answers[n], passing) for n in asked]
        score = float(answers[0].answer) if rubric.scale else None
        evidence_found = tuple(one for findings in found for one in findings)
        usage = Usage() if rubric.paid_elsewhere else result.usage
        return Part(evidence_found, usage, QUOTE_NOT_FOUND if lost else None, score)

    # ------------------------------------------------------------ log-probabilities, states

    async def _read(self, subject: Subject, call: Call, number: int) -> Part:
        """What is read of one value, or of the record (0).

        Every question that the reader wants is asked, so that P(pass) is always whole.
        """
        wanted, probe, state = self.reader.wanted(self.rubric), self.reader.probe, None
        usage = Usage()
        if probe is not None:
            # First: llama.cpp evaluates this prompt anew, and the questions then share it.
            width = len(probe.center)
            state, usage = await self.state(subject, number, probe.layer, call, width)
        read, paid = await self.reading(subject, number, wanted, call)
        usage += paid
        if read is None:
            return _lost(subject, (number,), Verdict.UNREADABLE, NOTHING_READ, usage)
        decided = self.reader.decide(self.rubric, replace(read, state=state))
        passing, bound = self.rubric.passing(subject.label), self.rubric.bound
        every = (decided.probabilities, *decided.ends)
        chances = [round(min(1.0, sum(one.get(a, 0.0) for a in passing)), 6) for one in every]
        low, high = min(chances), max(chances)
        scores = [mean_of(self.rubric, one) for one in every]
        passes = {decided.answer in passing}
        if bound:
            passes = {bound.holds(score) for score in scores if score is not None} or passes
        sure = decided.sure and len(passes) == 1
        finding = Finding(
            value=subject.about(number),
            verdict=_verdict(True in passes) if sure else Verdict.ABSTAIN,
            answer=decided.answer,
            quote=_closest(read.quotes) if decided.answer != YES_NO[1] else None,
            probability=None if decided.ends else low,
            probability_range=(low, high) if decided.ends else None,
        )
        reason = ORDERS_DISAGREE if decided.torn else FAR if decided.far else None
        if reason is None and decided.ends and not sure:
            reason = f"P(pass) is between {low:.2f} and {high:.2f}: {NOT_LISTED}"
        return Part((finding,), usage, reason, None if decided.ends else scores[0])

    def prompt(self, subject: Subject, number: int) -> Prompt:
        """The prompt of the first question for first tokens; `number` as for `reading`."""
        return self._question(subject, (number,) if number else (), 0)

    async def state(
        self,
        subject: Subject,
        number: int,
        layer: int = LAST_LAYER,
        call: Call | None = None,
        width: int | None = None,
    ) -> tuple[State, Usage]:
        """The hidden state of the first question's prompt; arguments as for `reading` and
        `Client.state`, raises as that."""
        call = call or self._call(subject, 0, 1, Sampling())
        ask = replace(call, messages=self.prompt(subject, number), max_tokens=1, layer=layer)
        return await self.client.state(ask, width)

    async def reading(
        self, subject: Subject, number: int, questions: Sequence[int], call: Call | None = None
    ) -> tuple[Observation | None, Usage]:
        """The chances of each question's words, by its number, and what was quoted for them; None
        if one could not be read.

        Args:
            number: the value asked about (from 1), or 0 for the record.
            questions: their numbers in the rubric.
            call: without its messages (None: as in the first vote).

        Raises:
            BackendError: the model gave no reply.
        """
        call, usage = call or self._call(subject, 0, 1, Sampling()), Usage()
        read: dict[int, _Answered] = {}
        for place in questions:
            answered, paid = await self._answered(subject, number, place, call)
            usage += paid
            if answered is None:
                return None, usage
            read[place] = answered
        chances = {place: one.chances for place, one in read.items()}
        quotes = {place: one.quote for place, one in read.items() if one.quote}
        shares = {place: one.open for place, one in read.items() if one.open}
        return Observation(chances, quotes=quotes, open=shares), usage

    async def _answered(
        self, subject: Subject, number: int, place: int, call: Call
    ) -> tuple[_Answered | None, Usage]:
        """The answer to one question; None where its words could not be read."""
        question, usage = self._questions[place], Usage()
        if question.overlap:
            texts = self._texts(subject).values()
            share, quote = overlap(subject.values[number - 1].statement, "\n".join(texts))
            return _Answered((share, 1 - share), quote=quote), usage
        if not question.passages:
            return await self._first_token(subject, number, place, call)
        ((field, text),) = self._texts(subject).items()
        low, high, likeliest, quote = 0.0, 0.0, 0.0, ""
        for passage in passages(text):
            part = subject.with_text(field, passage)
            answered, paid = await self._first_token(part, number, place, call)
            usage += paid
            if answered is None:
                return None, usage
            said = dict(zip(question.words, answered.chances, strict=True))
            sought = min(1.0, sum(said[word] for word in question.passages))
            least = sought * (1 - answered.open)
            low, high = max(low, least), max(high, least + answered.open)
            if sought > likeliest:
                likeliest, quote = sought, passage
        share = high - low
        chance = low / (1 - share) if share else low
        return _Answered((chance, 1 - chance), share, quote), usage

    async def _first_token(
        self, subject: Subject, number: int, place: int, call: Call
    ) -> tuple[_Answered | None, Usage]:
        prompt = self._question(subject, (number,) if number else (), place)
        ask = replace(call, messages=prompt, max_tokens=1, logprobs=TOP_TOKENS)
        words = self._questions[place].words
        tokens, usage = await self.client.first_token(
            ask, lambda found: word_chances(found, words) is not None
        )
        if (chances := word_chances(tokens, words)) is None:
            return None, usage
        return _Answered(chances, open_share(tokens, words)), usage

    @property
    def _questions(self) -> tuple[Question, ...]:
        assert self.rubric.methods.logprobs is not None
        return self.rubric.methods.logprobs.questions

    def _texts(self, subject: Subject) -> dict[str, str]:
        """The texts that the rubric shows, by the record's names for them."""
        shown = self.rubric.shown(subject.texts)
        return {name: subject.texts[name] for name in shown.values()}


@dataclass(frozen=True, slots=True)
class _Answered:
    """The chances of a question's words, their open share (`Observation`), and what of the text
    they go by, if anything."""

    chances: Chances
    open: float = 0.0
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one reply says: the whole vote, or its part about one value."""

    evidence: tuple[Finding, ...]
    usage: Usage
    reason: str | None = None
    score: float | None = None


def _closest(quotes: Mapping[int, str]) -> str | None:
    """The first question's quote, or the shortest of those that lie in it."""
    first = next(iter(quotes.values()), None)
    return min((one for one in quotes.values() if one in (first or "")), key=len, default=first)


def _lost(
    subject: Subject, asked: tuple[int, ...], verdict: Verdict, reason: str, usage: Usage
) -> Part:
    evidence = tuple(Finding(value=subject.about(n), verdict=verdict) for n in asked)
    return Part(evidence, usage, reason)


def _agreed(first: Part, second: Part) -> Part:
    """Two orders of a comparison as one part; an abstention if they disagree."""
    evidence, usage = (*first.evidence, *second.evidence), first.usage + second.usage
    for lost in (first, second):
        if any(finding.answer is None for finding in lost.evidence):
            return replace(lost, usage=usage)
    if len({finding.answer for finding in evidence}) == 1:
        return Part(evidence, usage, first.reason or second.reason)
    torn = (one.model_copy(update={"verdict": Verdict.ABSTAIN}) for one in evidence)
    return Part(tuple(torn), usage, ORDERS_DISAGREE)


def _verdict(passes: bool) -> Verdict:
    return Verdict.PASS if passes else Verdict.FAIL


def _quoted(answer: Answer, record: ReplyContext) -> Answer:
    """The answer with its quotes in the words of the texts shown, without those that are in none of
    them."""
    passages = []
    for character, quote in answer.passages:
        spans = ((text, locate(quote, text)) for text in record.texts.values())
        words = next((text[span.start : span.end] for text, span in spans if span), None)
        passages += [] if words is None else [(character, words)]
    return replace(answer, passages=tuple(passages))


def _findings(value: str | None, answer: Answer, passing: Sequence[str]) -> list[Finding]:
    """A finding for each passage that the answer quotes, else one without a quote."""
    quoted = bool(answer.passages)
    return [
        Finding(
            value=value,
            verdict=_verdict(answer.answer in passing),
            answer=answer.answer,
            character=character,
            quote=quote,
            predicted=() if quoted else answer.predicted,
            reason=answer.reason,
        )
        for character, quote in answer.passages or ((None, None),)
    ]

"""The measured model: from tasks to calls, and from replies to answers."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import mul
from typing import Annotated, Any, TypeVar

from pydantic import Field, create_model

from judge.backends.base import LAST_LAYER, Call, Method, Origin, Prompt
from judge.errors import Unread
from judge.judging.client import Client
from judge.judging.first_token import TOP_TOKENS, open_share, word_chances
from judge.judging.judge import Sampling
from judge.judging.panel import Panel
from judge.judging.prompts import LACKS
from judge.papers.tasks import Fields, NoAnswer, load_task, option_marks, task_messages
from judge.questions.evidence import ReplyContext
from judge.questions.replies import Reply, spelt_literal
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.base import clip
from judge.run.plan import CHARACTERS_PER_TOKEN, PlannedCalls
from judge.verdict import AnswerOutcome, Check, Usage
from judge.workflows import Context

MOST_ENTRIES = 20
"""Most entries of a list, so that constrained decoding ends."""

LONG_ENTRY = "a value in some words"
"""The text that a plan assumes for each entry."""


class Chosen(Reply):
    """One option, by its mark."""

    answer: str


class Percentage(Reply):
    """A number from 0 to 100."""

    answer: Annotated[float, Field(ge=0, le=100)]


class Selected(Reply):
    """Several options, by their marks, each at most once."""

    answers: list[str]

    def problems(self, record: ReplyContext) -> Iterator[str]:
        twice = sorted({mark for mark in self.answers if self.answers.count(mark) > 1})
        if twice:
            yield f"{', '.join(twice)} is named twice; name different options"


class Listed(Reply):
    """A list of short texts."""

    entries: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MOST_ENTRIES)]


R = TypeVar("R", bound=Reply)
T = TypeVar("T")

_WORDS = re.compile(r"\w+")


@dataclass(slots=True)
class MeasuredModel:
    """The measured model, asked about one item by tasks (rubrics/tasks/NAME.yaml, or a Rubric).

    A task's `texts` are the fields that it shows or names in its question; missing ones are not
    shown. With the `logprobs` method choices are read off the first token's log-probabilities;
    everything else is a typed reply, or free text. All questions raise NoAnswer if the model gives
    no answer, BackendError if it gives no reply.

    Args:
        panel: the run's judges on a rubric, for a benchmark of judges.
        tasks: the user's own tasks, which replace those of the same name.
        setting: the benchmark's setting.
        steps: intermediate results, for the output line.
        probabilities: those of the last choice, by answer; None if the model lists too few tokens.
        usage: the usage of the calls so far.
        note: a remark on the answer (a text was cut off).
    """

    client: Client
    method: Method
    sampling: Sampling
    fields: Fields
    panel: Callable[[str], Panel]
    tasks: Mapping[str, Rubric] = field(default_factory=dict)
    setting: str | None = None
    steps: dict[str, Any] = field(default_factory=dict)
    probabilities: dict[str, float] | None = None
    usage: Usage = field(default_factory=Usage)
    note: str | None = None

    async def choose(
        self,
        task: str | Rubric,
        texts: Mapping[str, str],
        options: Sequence[str],
        answers: Sequence[str] = (),
    ) -> str:
        """One of the options, or the one of `answers` in the same place."""
        question, prompt, marks = self._question(task, texts, options)
        if self.method == "logprobs":
            chances, lacking = await self._chances(question, prompt, marks)
            self.probabilities = None
            if not lacking:
                self.probabilities = dict(zip(answers or options, chances, strict=True))
            place = chances.index(max(chances))
        else:
            reply = await self._reply(
                question, prompt, _chosen_of(marks), planned=Chosen(answer=marks[0])
            )
            place = marks.index(reply.answer)
        return (answers or options)[place]

    async def say(
        self,
        task: str | Rubric,
        texts: Mapping[str, str],
        options: Sequence[str],
        answers: Sequence[str] = (),
        *,
        tokens: int | None = None,
    ) -> str:
        """Like `choose`, read off free text: the one option whose mark is among its words.

        With `tokens`, the most that a reply may have, the text must be the mark and nothing else.
        """
        question, prompt, marks = self._question(task, texts, options)
        call = self.call(question, prompt, **({} if tokens is None else {"max_tokens": tokens}))
        folded = [mark.casefold() for mark in marks]
        return (answers or options)[await self._said(call, folded, alone=tokens is not None)]

    async def _said(self, call: Call, marks: Sequence[str], *, alone: bool) -> int:
        """The place of the one mark in a free text; `alone`: the text has nothing else."""
        text = await self._text(call, planned=marks[0])
        words = {*_WORDS.findall(text.casefold())}
        named = words if alone else words.intersection(marks)
        if len(named) != 1 or not named.issubset(marks):
            raise NoAnswer(AnswerOutcome.UNREADABLE, f"{clip(text)} is not one of the options")
        self.note = None
        return marks.index(named.pop())

    async def similarities(self, text: str, others: Mapping[str, str]) -> dict[str, float]:
        """The cosine similarity of the embeddings of a text and of each other one, by name, in
        [-1, 1]; also kept as a step."""
        first, *vectors = [await self._embedding(one) for one in (text, *others.values())]
        norms = [math.hypot(*vector) or 1.0 for vector in (first, *vectors)]
        products = [sum(map(mul, first, vector)) for vector in vectors]
        cosines = [dot / norm / norms[0] for dot, norm in zip(products, norms[1:], strict=True)]
        self.steps["similarities"] = by_name = dict(zip(others, cosines, strict=True))
        return by_name

    async def _embedding(self, text: str) -> Sequence[float]:
        origin = Origin("embedding", str(self.fields.get("id", "")), 1, 0, lambda: self.fields)
        prompt = Prompt([{"role": "user", "content": text}])
        call = Call(prompt, max_tokens=1, role="measured", origin=origin, layer=LAST_LAYER)
        return await self._content(call, self.client.state, planned=(1.0,))

    async def select(
        self, task: str | Rubric, texts: Mapping[str, str], options: Sequence[str], count: int
    ) -> list[str]:
        """Exactly `count` different options."""
        question, prompt, marks = self._question(task, texts, options)
        planned = Selected(answers=[*marks[:count]])
        reply = await self._reply(question, prompt, _selected_of(marks, count), planned=planned)
        return [options[marks.index(answer)] for answer in reply.answers]

    async def percent(self, task: str | Rubric, texts: Mapping[str, str]) -> float:
        """A percentage that the model writes, as a share in [0, 1]."""
        question, prompt, _ = self._question(task, texts)
        reply = await self._reply(question, prompt, Percentage, planned=Percentage(answer=0))
        return reply.answer / 100

    async def list_texts(self, task: str | Rubric, texts: Mapping[str, str]) -> list[str]:
        """A list of short texts."""
        question, prompt, _ = self._question(task, texts)
        planned = Listed(entries=[LONG_ENTRY] * MOST_ENTRIES)
        return (await self._reply(question, prompt, Listed, planned=planned)).entries

    async def write(self, task: str | Rubric, texts: Mapping[str, str], *, draw: int = 0) -> str:
        """Free text; draw `draw` of the same question is another sample, with another seed."""
        question, prompt, _ = self._question(task, texts)
        return await self._text(self.call(question, prompt, draw))

    async def _text(self, call: Call, *, planned: str | None = None) -> str:
        """The text of a reply; a plan assumes `planned`, else one as long as allowed."""
        completion, usage = await self.client.write(call)
        self.usage += usage
        if completion.finish_reason == "refusal":
            raise NoAnswer(AnswerOutcome.REFUSED, completion.text[:200] or "no words were given")
        text = completion.text.strip()
        if not text:
            raise NoAnswer(AnswerOutcome.UNREADABLE, "the reply is empty")
        if completion.finish_reason == "length":
            self.note = f"cut off at {call.max_tokens} tokens"
        return text

    async def check(self, panel: Panel, record: Record) -> Check:
        """A panel's check of a record."""
        check = await panel.check(record, by="final")
        self.usage += check.usage
        return check

    def task(self, task: str | Rubric) -> Rubric:
        """The user's own task of this name, else the benchmark's one."""
        question = load_task(task)
        return self.tasks.get(question.name, question)

    def _question(
        self, task: str | Rubric, texts: Mapping[str, str], options: Sequence[str] = ()
    ) -> tuple[Rubric, Prompt, tuple[str, ...]]:
        """The task, its messages, and the mark of each option; raises NoAnswer if none of its
        fields has a text."""
        question = self.task(task)
        if question.fields and not any(texts.get(name, "").strip() for name in question.fields):
            lacking = f"{LACKS}text in {', '.join(question.fields)}"
            raise NoAnswer(AnswerOutcome.UNREADABLE, lacking)
        marks = option_marks(question, options)
        return question, task_messages(question, texts, options), marks

    async def _chances(
        self, task: Rubric, prompt: Prompt, marks: Sequence[str]
    ) -> tuple[tuple[float, ...], float]:
        """The probability of each mark, and the share left open because it is not listed."""
        words = tuple(mark.lower() for mark in marks)
        if not all(word.isascii() and word.isalnum() for word in words):
            raise ValueError(f"task {task.name}: {marks} cannot be told by one word; letter them")
        ask = partial(
            self.client.first_token, usable=lambda tokens: word_chances(tokens, words) is not None
        )
        call = self.call(task, prompt, max_tokens=1, logprobs=TOP_TOKENS)
        tokens = await self._content(call, ask, planned={words[0]: 0.0})
        chances = word_chances(tokens, words)
        if chances is None:
            raise NoAnswer(
                AnswerOutcome.UNREADABLE, "no option is among the likeliest first tokens"
            )
        return chances, open_share(tokens, words)

    async def _reply(self, task: Rubric, prompt: Prompt, reply: type[R], *, planned: R) -> R:
        ask = partial(self.client.ask, reply_model=reply, context=ReplyContext({}))
        return await self._content(self.call(task, prompt), ask, planned=planned)

    async def _content(
        self, call: Call, ask: Callable[[Call], Awaitable[tuple[T, Usage]]], *, planned: T
    ) -> T:
        """The content of a reply, its usage added; NoAnswer if the reply cannot be read. `planned`
        is the content that a plan assumes."""
        try:
            content, usage = await ask(call)
        except Unread as error:
            self.usage += error.usage
            refused = error.trouble == "refused"
            outcome = AnswerOutcome.REFUSED if refused else AnswerOutcome.UNREADABLE
            raise NoAnswer(outcome, error.detail) from error
        self.usage += usage
        return content

    def call(self, task: Rubric, prompt: Prompt, draw: int = 0, **options: Any) -> Call:
        return Call(
            messages=prompt,
            temperature=self.sampling.temperature,
            seed=self.sampling.seed + draw if self.client.backend.seeded else None,
            vote=draw,
            role="measured",
            origin=Origin(task.name, str(self.fields.get("id", "")), 1, draw, lambda: self.fields),
            **{"max_tokens": task.max_tokens, **options},
        )


@dataclass(slots=True)
class PlannedModel(MeasuredModel):
    """A measured model whose calls are counted instead of made. It answers with the first options;
    a plan of the most calls gets lists as long as possible, a plan of the least empty ones."""

    calls: PlannedCalls = field(default_factory=lambda: PlannedCalls(most=False))

    async def _content(
        self, call: Call, ask: Callable[[Call], Awaitable[tuple[T, Usage]]], *, planned: T
    ) -> T:
        self.calls.add(self.client, call)
        return planned

    async def list_texts(self, task: str | Rubric, texts: Mapping[str, str]) -> list[str]:
        entries = await MeasuredModel.list_texts(self, task, texts)
        return entries if self.calls.most else []

    async def _text(self, call: Call, *, planned: str | None = None) -> str:
        tokens = self.calls.add(self.client, call)
        return planned or "word " * round(tokens * CHARACTERS_PER_TOKEN / len("word "))

    async def check(self, panel: Panel, record: Record) -> Check:
        context = Context(loop_panels={}, final_panels={}, rewriters={}, selected=frozenset())
        return await self.calls.work(record, context).votes(panel, "final")


@lru_cache(maxsize=256)
def _chosen_of(marks: tuple[str, ...]) -> type[Chosen]:
    answer_type = spelt_literal(marks)
    return create_model("Chosen", __base__=Chosen, __module__=__name__, answer=(answer_type, ...))


@lru_cache(maxsize=256)
def _selected_of(marks: tuple[str, ...], count: int) -> type[Selected]:
    answer_type: Any = spelt_literal(marks)
    several: Any = Annotated[list[answer_type], Field(min_length=count, max_length=count)]
    return create_model("Selected", __base__=Selected, __module__=__name__, answers=(several, ...))

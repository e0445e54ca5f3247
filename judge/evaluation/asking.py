"""Asking the model that is measured: tasks to calls, replies to what was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.backends.base import Call, Origin, Prompt, Reading
from judge.evaluation.benchmark import Given, Trouble
from judge.evaluation.choosing import Chosen, Listed, Selected, chosen_of, selected_of
from judge.judging.client import Asked, Client
from judge.judging.judge import Sampling
from judge.judging.reading import TOP_TOKENS, word_chances
from judge.replies import About, Reply
from judge.task import Task, load_task
from judge.verdict import Usage

_TROUBLES: Mapping[str, Trouble] = {
    "refused": "refused",
    "truncated": "unreadable",
    "invalid": "unreadable",
}


@dataclass(frozen=True, slots=True)
class Examinee:
    """A model that is measured, asked about one item; fulfils `MeasuredModel`.

    With a `probability` reading choices are read off the first token's log-probabilities, and
    nothing is generated; everything else is a typed reply, or free text. `fields` are the item's.
    """

    client: Client
    reading: Reading
    sampling: Sampling
    fields: Mapping[str, Any] = field(default_factory=dict)

    def about(self, fields: Mapping[str, Any]) -> Examinee:
        """The same model, asked about this item."""
        return Examinee(self.client, self.reading, self.sampling, fields)

    async def choose(
        self, task: str, texts: Mapping[str, str], options: Sequence[str], *, draw: int = 0
    ) -> Given:
        """See `MeasuredModel`."""
        found = load_task(task)
        marks = found.marks(options)
        prompt = found.prompt(texts, options)
        if self.reading == "probability":
            return await self._likeliest(found, prompt, marks, draw)
        asked = await self._ask(found, prompt, chosen_of(marks), draw)
        if not isinstance(asked.reply, Chosen):
            return _withheld(asked)
        return Given(asked.usage, place=marks.index(asked.reply.answer))

    async def select(
        self,
        task: str,
        texts: Mapping[str, str],
        options: Sequence[str],
        count: int,
        *,
        draw: int = 0,
    ) -> Given:
        """See `MeasuredModel`."""
        found = load_task(task)
        marks = found.marks(options)
        prompt = found.prompt(texts, options)
        asked = await self._ask(found, prompt, selected_of(marks, count), draw)
        if not isinstance(asked.reply, Selected):
            return _withheld(asked)
        return Given(asked.usage, places=tuple(map(marks.index, asked.reply.answers)))

    async def lists(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """See `MeasuredModel`."""
        found = load_task(task)
        asked = await self._ask(found, found.prompt(texts), Listed, draw)
        if not isinstance(asked.reply, Listed):
            return _withheld(asked)
        return Given(asked.usage, entries=tuple(asked.reply.entries))

    async def writes(self, task: str, texts: Mapping[str, str], *, draw: int = 0) -> Given:
        """See `MeasuredModel`. A text that was cut off is given, with a `detail` that says so."""
        found = load_task(task)
        call = self._call(found, found.prompt(texts), draw)
        completion, usage = await self.client.write(call)
        if completion.finish_reason == "refusal":
            return Given(usage, "refused", completion.text[:200] or "no words were given")
        text = completion.text.strip()
        if not text:
            return Given(usage, "unreadable", "the reply is empty")
        cut = completion.finish_reason == "length"
        detail = f"cut off at {found.max_tokens} tokens" if cut else None
        return Given(usage, detail=detail, text=text)

    # ------------------------------------------------------------ one call

    async def _likeliest(
        self, task: Task, prompt: Prompt, marks: Sequence[str], draw: int
    ) -> Given:
        words = tuple(mark.lower() for mark in marks)
        if not all(word.isascii() and word.isalnum() for word in words):
            raise ValueError(f"task {task.name}: {marks} cannot be told by one word; letter them")
        call = self._call(task, prompt, draw, max_tokens=1, logprobs=TOP_TOKENS)
        tokens, usage = await self.client.first_token(call)
        if not tokens:
            return Given(usage, "refused", "no words were given")
        chances = word_chances(tokens, words)
        if chances is None:
            return Given(usage, "unreadable", "no option is among the likeliest first tokens")
        place = max(range(len(chances)), key=chances.__getitem__)
        return Given(usage, place=place, probabilities=chances)

    async def _ask(self, task: Task, prompt: Prompt, reply: type[Reply], draw: int) -> Asked:
        return await self.client.ask(self._call(task, prompt, draw), reply, About({}))

    def _call(self, task: Task, prompt: Prompt, draw: int, **more: Any) -> Call:
        return Call(
            messages=prompt,
            temperature=self.sampling.temperature,
            seed=self.sampling.seed + draw if self.client.backend.seeded else None,
            vote=draw,
            role="measured",
            origin=Origin(task.name, str(self.fields.get("id", "")), 1, draw, self._as_mapping),
            **{"max_tokens": task.max_tokens, **more},
        )

    def _as_mapping(self) -> Mapping[str, Any]:
        return self.fields


def _withheld(asked: Asked) -> Given:
    assert asked.trouble is not None
    return Given(asked.usage or Usage(), _TROUBLES[asked.trouble], asked.detail)

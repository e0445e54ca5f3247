"""What a run will ask, estimated without asking: the same run with stand-ins for its models.

Each record is taken through its workflow three times: every question passes; every question fails,
every vote is asked and a cascade's cheap judge is sure of nothing, without repair; and the same
with repair and with replies as long as they may be. What is likely lies between the first two. A
question that is put in identical words is counted once. Re-asking of invalid replies is left out.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from judge.backends import factory
from judge.backends.base import Backend, Call, Completion, Mode, parse_model
from judge.cache import ReplyCache
from judge.errors import UsageError
from judge.evidence import About
from judge.judging.client import Asked, Client
from judge.judging.combinations import Reading
from judge.judging.judge import Judge
from judge.judging.limits import Budget
from judge.judging.logprobs import Decision, Reader
from judge.judging.panel import Panel
from judge.records import Record
from judge.replies import Answer, Insertion, JudgingReply, Reply, Rewrite
from judge.rubric import Rubric
from judge.run.clients import backend_of, calls_at_once
from judge.run.job import Job, select
from judge.run.lines import Line
from judge.run.setup import Setup
from judge.run.summary import Summary
from judge.run.validate import Validation
from judge.settings import Settings
from judge.subject import Subject
from judge.verdict import Usage
from judge.workflow import Context

CHARACTERS_PER_TOKEN = 4.0
"""Rule of thumb for English under the tokenizers in use; estimates stand or fall with it."""

REPLY_SHARE = 0.25
"""Share of a question's `max_tokens` that a reply is taken to need at least."""

UNSURE = 0.2
"""Share of records that fail, or divide the votes, in a likely run; the others pass at once."""

_ELSEWHERE = ("langchain", "openai", "transformers", "vllm")
"""Providers whose models may need a key, a library or a card that this machine lacks."""

_log = logging.getLogger(__name__)

Asking = Mapping[str, Usage]
"""What was asked, by check or task."""


@dataclass(slots=True)
class Plan:
    """Estimates by check, and in total; `bad`: what cannot be asked about.

    `passing` and `unsure`: as if all records were, in a first pass with short replies.
    """

    records: int = 0
    bad: Summary = field(default_factory=Summary)
    least: Usage = field(default_factory=Usage)
    passing: Usage = field(default_factory=Usage)
    unsure: Usage = field(default_factory=Usage)
    most: Usage = field(default_factory=Usage)
    by_check: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, passing: Asking, unsure: Asking, thorough: Asking) -> None:
        """Add what a record asks that passes, one that is unsure, and one at its most thorough."""
        least, most = sorted((passing, thorough), key=lambda one: _sum(one).replies)
        self.least += _sum(least)
        self.most += _sum(most)
        self.passing += _sum(passing)
        self.unsure += _sum(unsure)
        for name in dict.fromkeys((*most, *least)):
            counts = self.by_check.setdefault(name, Counter())
            counts["least"] += least[name].replies if name in least else 0
            counts["most"] += most[name].replies if name in most else 0

    @property
    def likely(self) -> Usage:
        """What is asked if a share of `UNSURE` is unsure, and the others pass."""
        low, high = self.passing, self.unsure
        known = low.cost_usd is not None and high.cost_usd is not None

        def between(a: float | None, b: float | None) -> float:
            return (1 - UNSURE) * (a or 0.0) + UNSURE * (b or 0.0)

        return Usage(
            round(between(low.replies, high.replies)),
            round(between(low.input_tokens, high.input_tokens)),
            round(between(low.output_tokens, high.output_tokens)),
            between(low.cost_usd, high.cost_usd) if known else None,
        )


def _sum(asked: Asking) -> Usage:
    return sum(asked.values(), Usage())


def plan(job: Job, settings: Settings) -> Plan:
    """Read the records and add up what each would ask; raises UsageError."""
    rehearsal = Rehearsal()
    setup = Setup.of(planned(settings), build=rehearsal.client)

    async def ask(record: Record) -> None:
        subject, bound = Subject.of(record), setup.bound(record.kind)
        await bound.workflow.run(subject, rehearsal.context(bound.context, subject.label))

    task = Validation(setup, select(job))
    return rehearsal.plan(map(task.read, task.items()), ask)


def planned(settings: Settings) -> Settings:
    """The settings of a plan: without the cache, and without a limit on cost."""
    return settings.model_copy(update={"cache": False, "max_cost": None})


class Rehearsal:
    """What stand-ins answer now, and what they were asked since the last `begin`, by check or task.

    `thorough`: every question fails, every vote is asked, and the cheap judge is unsure; `long`:
    replies take as many tokens as they may.
    """

    def __init__(self) -> None:
        self.begin(thorough=False, long=False)

    def begin(self, *, thorough: bool, long: bool) -> None:
        self.thorough, self.long = thorough, long
        self.asked: dict[str, Usage] = {}
        self.answers: dict[str, str] = {}
        self._known: set[str] = set()

    def plan(self, items: Iterable[Any | Line], ask: Callable[[Any], Awaitable[None]]) -> Plan:
        """What `ask` asks about each item; a line stands for one that cannot be asked about.

        Each is asked about where all passes, in a first pass where nothing does, and with repair.
        """
        made = Plan()

        async def all_items() -> None:
            for item in items:
                if isinstance(item, Line):
                    made.bad.add(item.judgement)
                    continue
                made.records += 1
                runs = []
                for thorough, long in ((False, False), (True, False), (True, True)):
                    self.begin(thorough=thorough, long=long)
                    await ask(item)
                    runs.append(self.asked)
                made.add(*runs)

        asyncio.run(all_items())
        return made

    def client(
        self, spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget
    ) -> Client:
        """The stand-in for a model, also where its key, library or card is missing.

        Not with a profile, which is bound to models as they are set up; raises UsageError.
        """
        try:
            backend = backend_of(spec, settings)
        except UsageError as error:
            provider = parse_model(spec)[0]
            named = provider in settings.servers
            if not (named or provider in _ELSEWHERE) or settings.profile is not None:
                raise
            _log.warning("judge: planned with %s, which is not set up here: %s", spec, error)
            known = {
                "slots": None,
                "seeded": False,
                "method": factory("openai:it" if named else spec).method,
            }
            nowhere = SimpleNamespace(**known, modes=(Mode.JSON_SCHEMA,), identity=dict)
            backend = cast(Backend, nowhere)
        return _StandIn(self, spec, backend, settings)

    def context(self, context: Context, label: str | None) -> Context:
        """A workflow's context for a record with this label, until the next `begin`."""

        def panels(known: Mapping[str, Panel]) -> dict[str, Panel]:
            return {name: self._panel(panel, label) for name, panel in known.items()}

        loop, final = panels(context.loop_panels), panels(context.final_panels)
        rounds = 0 if self.thorough and not self.long else context.rounds
        return replace(context, loop_panels=loop, final_panels=final, rounds=rounds)

    def setup(self, setup: Setup, workflow: str) -> Setup:
        """The setup with this workflow bound to `context`, for records without a label."""
        bound = setup.bound(workflow)
        rehearsed = replace(bound, context=self.context(bound.context, None))
        return replace(setup, _bound={workflow: rehearsed})

    def _panel(self, panel: Panel, label: str | None) -> Panel:
        answer = self.answers[panel.rubric.name] = self._answer(panel.rubric, label)
        return replace(
            panel,
            judges=tuple(_read_as(judge, answer, sure=True) for judge in panel.judges),
            all_votes=panel.all_votes or self.thorough,
            cheap=_read_as(panel.cheap, answer, sure=not self.thorough),
        )

    def _answer(self, rubric: Rubric, label: str | None) -> str:
        assert rubric.verdict is not None
        if label is None and rubric.verdict.pass_equals:
            return rubric.answers[0]
        passing = rubric.passing(label)
        others = [answer for answer in rubric.answers if answer not in passing]
        return others[0] if self.thorough and others else passing[0]

    def count(self, client: Client, key: str, call: Call) -> int:
        """Note a call, and give the tokens of its reply; one in words already put costs nothing."""
        tokens = call.max_tokens
        if not self.long:
            tokens = max(1, int(tokens * REPLY_SHARE))
        if key not in self._known:
            self._known.add(key)
            length = sum(len(message["content"]) for message in call.messages)
            paid = client.estimate(round(length / CHARACTERS_PER_TOKEN), tokens)
            name = f"{call.origin.rubric} ({call.role})"
            name = {"rewriting": "rewriting", "measured": call.origin.rubric}.get(call.role, name)
            self.asked[name] = self.asked.get(name, Usage()) + paid
        return tokens


class _StandIn(Client):
    """Answers at once, as the rehearsal wants it, and asks no model."""

    def __init__(
        self, rehearsal: Rehearsal, spec: str, backend: Backend, settings: Settings
    ) -> None:
        limit, price = calls_at_once(settings, backend.slots), settings.prices.get(spec)
        super().__init__(spec, backend, cache=None, budget=Budget(), limit=limit, price=price)
        self._rehearsal = rehearsal

    async def ask(self, call: Call, reply_model: type[Reply], record: About) -> Asked:
        """A reply that holds against the record."""
        self._count(call)
        quote = " ".join(record.texts.get("story", "").split()[:8])
        if issubclass(reply_model, JudgingReply):
            known = {
                name: Answer(answer, ((None, quote),))
                for name, answer in self._rehearsal.answers.items()
            }
            same = _Same.model_construct(
                known=known, rubric=call.origin.rubric, numbers=record.numbers
            )
            return Asked(same, Usage(1))
        words = f"Other words, of round {call.vote}."
        fields: dict[str, Any] = {
            "insertions": [
                Insertion(value=n, after=quote, character="Ann", dialogue=words)
                for n in record.numbers
            ],
            "rewrites": [Rewrite(passage=n + 1, text=words) for n in range(record.passages)],
            "story": f"{record.texts.get('story', '')} {words}",
        }
        made = {
            name: fields[name] if name in fields else self._answered(told)
            for name, told in reply_model.model_json_schema()["properties"].items()
        }
        return Asked(reply_model.model_construct(**made), Usage(1))

    def _answered(self, told: Mapping[str, Any]) -> Any:
        """What a benchmark's field may hold: the first options, or as many entries as may be."""
        each = told.get("items", {})
        options = told.get("enum") or each.get("enum") or [told.get("const") or each.get("const")]
        if told["type"] == "string":
            return options[0]
        if told["type"] == "number":
            return told.get("minimum", 0)
        if "minItems" in told:
            return options[: told["minItems"]]
        return ["a value in some words"] * told["maxItems"] if self._rehearsal.thorough else []

    async def first_token(self, call: Call) -> tuple[dict[str, float], Usage]:
        """Every word of the prompt, all as likely."""
        self._count(call)
        words = re.findall(r"[a-z0-9]+", call.messages[-1]["content"].lower())
        return dict.fromkeys(words, math.log(0.5)), Usage(1)

    async def write(self, call: Call) -> tuple[Completion, Usage]:
        """As many words as fit."""
        length = round(self._count(call) * CHARACTERS_PER_TOKEN)
        return Completion("word " * (length // len("word "))), Usage(1)

    def _count(self, call: Call) -> int:
        return self._rehearsal.count(self, self.spec + self._key(call, Mode.JSON_SCHEMA), call)


class _Same(JudgingReply):
    """One answer to a rubric, about every value or about the record."""

    known: Any
    rubric: str
    numbers: tuple[int, ...]

    def about(self, rubric: str) -> JudgingReply:
        return self.model_copy(update={"rubric": rubric})

    def answers(self) -> dict[int, Answer]:
        return dict.fromkeys(self.numbers or (0,), self.known[self.rubric])


@dataclass(frozen=True, slots=True)
class _Settled(Reader):
    """Reads one answer out of whatever the first token says."""

    answer: str = ""
    sure: bool = True

    def decide(self, rubric: Rubric, read: Reading) -> Decision:
        return Decision(self.answer, self.sure, {self.answer: 0.5})


def _read_as(judge: Judge | None, answer: str, *, sure: bool) -> Any:
    if judge is None:
        return None
    reader = _Settled(combination=judge.reader.combination, answer=answer, sure=sure)
    return replace(judge, reader=reader)

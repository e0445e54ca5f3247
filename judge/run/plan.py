"""What a run will ask, estimated without asking: the same run with stand-ins for its models.

Each record goes through its workflow twice. At the least every question passes, and replies are
short. At the most every question fails, every vote is asked, a cascade's cheap judge is sure of
nothing, `--repair` takes every round, and replies are as long as they may be. A question that is
put in identical words is counted once. Re-asking of invalid replies is left out.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from judge.backends import factory
from judge.backends.base import Backend, Call, Completion, Mode, State, parse_model
from judge.cache import ReplyCache
from judge.errors import UsageError
from judge.evidence import ReplyContext
from judge.judging.answer_reader import AnswerReader, Decision
from judge.judging.classifiers import Observation
from judge.judging.client import Asked, Client
from judge.judging.judge import Judge
from judge.judging.limits import Budget
from judge.judging.panel import Panel
from judge.prompts import LACKS
from judge.records import Record
from judge.records.lines import Line
from judge.replies import JudgingReply, Reply, answers_of
from judge.rubric import Rubric
from judge.run.job import Job
from judge.run.models import backend_of, calls_at_once
from judge.run.panels import Resources
from judge.run.summary import Summary
from judge.run.validate import Validation
from judge.settings import Settings
from judge.verdict import Answer, Usage
from judge.workflow import Context

CHARACTERS_PER_TOKEN = 4.0
"""Rule of thumb for English under the tokenizers in use; estimates stand or fall with it."""

REPLY_SHARE = 0.25
"""Share of a question's `max_tokens` that a short reply takes."""

DEAREST = 0.2
"""Share of records that take the most in a likely run; the others take the least."""

_ELSEWHERE = ("langchain", "openai", "transformers", "vllm")
"""Providers whose models may need a key, a library or a GPU that this machine lacks."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plan:
    """Estimates in total and, as numbers of calls, by check; `bad` sums up unreadable records.

    `shown` says which fields are shown where a rubric names none; `unasked` counts the records that
    a check abstains on because there is nothing to show, by check and reason. Of `unpriced` models
    no price is known, so no cost is.
    """

    records: int = 0
    bad: Summary = field(default_factory=Summary)
    least: Usage = field(default_factory=Usage)
    most: Usage = field(default_factory=Usage)
    by_check: dict[str, Counter[str]] = field(default_factory=dict)
    shown: str | None = None
    unasked: Counter[tuple[str, str]] = field(default_factory=Counter)
    unpriced: tuple[str, ...] = ()

    def add(self, passing: Mapping[str, Usage], failing: Mapping[str, Usage]) -> None:
        """Add what one record asks, by check: where all questions pass, and where all fail."""

        def total(asked: Mapping[str, Usage]) -> Usage:
            return sum(asked.values(), Usage())

        # A record that fails at its first check may ask less than one that passes.
        least, most = sorted((passing, failing), key=lambda one: total(one).replies)
        self.records += 1
        self.least += total(least)
        self.most += total(most)
        for name in dict.fromkeys((*most, *least)):
            counts = self.by_check.setdefault(name, Counter())
            counts["least"] += least.get(name, Usage()).replies
            counts["most"] += most.get(name, Usage()).replies

    @staticmethod
    def assumptions(what: str) -> list[str]:
        """What the estimates rest on, in sentences; `what` are the items (records)."""
        return [
            f"Likely: one of {1 / DEAREST:g} {what} takes the most, the others the least. At the "
            "least, replies take a quarter of the tokens that they may; at the most, all of them.",
            f"Tokens at {CHARACTERS_PER_TOKEN:g} characters each; replies already in the cache and "
            "re-asked replies are not counted.",
        ]

    @property
    def likely(self) -> Usage:
        """What is asked if a share of `DEAREST` takes the most, and the others the least."""
        low, high = self.least, self.most

        def between(a: float, b: float) -> float:
            return a + DEAREST * (b - a)

        known = low.cost_usd is not None and high.cost_usd is not None
        return Usage(
            round(between(low.replies, high.replies)),
            round(between(low.input_tokens, high.input_tokens)),
            round(between(low.output_tokens, high.output_tokens)),
            between(low.cost_usd or 0.0, high.cost_usd or 0.0) if known else None,
        )


def plan(job: Job, settings: Settings) -> Plan:
    """Read the records and add up what each would ask; raises UsageError."""
    rehearsal = Rehearsal()
    resources = Resources.of(planned(settings), build=rehearsal.client, rubrics=job.rubrics)

    async def ask(record: Record) -> None:
        bound = resources.bound(record.kind)
        context = rehearsal.context(bound.context, record.label)
        for check in (await bound.workflow.run(record, context)).judgement.checks:
            if not rehearsal.failing and (check.reason or "").startswith(LACKS):
                unasked[check.name, check.reason or ""] += 1

    unasked: Counter[tuple[str, str]] = Counter()
    task = Validation(resources, job.items())
    task.look_ahead()
    made = rehearsal.plan(map(task.read, task.items()), ask)
    made.shown, made.unasked = task.shown, unasked
    made.unpriced = tuple(spec for spec, one in resources.models.clients.items() if not one.priced)
    return made


def planned(settings: Settings) -> Settings:
    """The settings of a plan: without the cache, and without a limit on cost."""
    return settings.model_copy(update={"cache": False, "max_cost": None})


class Rehearsal:
    """Stand-ins for a run's models, which answer so that a record passes, or `failing` fails.

    `asked` has what they were asked since `begin`, by check or task.
    """

    def __init__(self) -> None:
        self.begin(failing=False)

    def begin(self, *, failing: bool) -> None:
        self.failing = failing
        self.asked: dict[str, Usage] = {}
        self.answers: dict[str, str] = {}
        self._known: set[str] = set()

    def plan(self, items: Iterable[Any | Line], ask: Callable[[Any], Awaitable[None]]) -> Plan:
        """What `ask` asks about each item; a line stands for one that cannot be asked about."""
        made = Plan()

        async def all_items() -> None:
            for item in items:
                if isinstance(item, Line):
                    made.bad.add(item)
                    continue
                asked = []
                for failing in (False, True):
                    self.begin(failing=failing)
                    await ask(item)
                    asked.append(self.asked)
                made.add(*asked)

        asyncio.run(all_items())
        return made

    def client(
        self, spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget
    ) -> Client:
        """The stand-in for a model, also where its key, library or GPU is missing.

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
            method = factory("openai:it" if named else spec).method
            nowhere = SimpleNamespace(
                slots=None, seeded=False, method=method, modes=(Mode.JSON_SCHEMA,), identity=dict
            )
            backend = cast(Backend, nowhere)
        return _StandIn(self, spec, backend, settings)

    def context(self, context: Context, label: str | None) -> Context:
        """A workflow's context for a record with this label, until the next `begin`."""
        panels = (
            {name: self._panel(panel, label) for name, panel in known.items()}
            for known in (context.loop_panels, context.final_panels)
        )
        loop, final = panels
        return replace(context, loop_panels=loop, final_panels=final)

    def resources(self, resources: Resources, workflow: str) -> Resources:
        """The resources with this workflow bound to `context`, for records without a label."""
        bound = resources.bound(workflow)
        rehearsed = replace(bound, context=self.context(bound.context, None))
        other = copy(resources)
        other._bound = {workflow: rehearsed}
        return other

    def _panel(self, panel: Panel, label: str | None) -> Panel:
        answer = self.answers[panel.rubric.name] = self._answer(panel.rubric, label)
        cheap = panel.cheap and _reading(panel.cheap, answer, sure=not self.failing)
        return replace(
            panel,
            judges=tuple(_reading(judge, answer, sure=True) for judge in panel.judges),
            all_votes=panel.all_votes or self.failing,
            cheap=cheap,
        )

    def _answer(self, rubric: Rubric, label: str | None) -> str:
        if label is None and rubric.rule.equals_label:
            return rubric.answers[0]
        passing = rubric.passing(label)
        others = [answer for answer in rubric.answers if answer not in passing]
        return others[0] if self.failing and others else passing[0]

    def count(self, client: Client, key: str, call: Call) -> int:
        """Count a call and return the tokens of its reply; one in words already put is free."""
        tokens = client.most_tokens(call)
        if not self.failing:
            tokens = max(1, int(min(tokens, call.max_tokens) * REPLY_SHARE))
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
        most = settings.max_tokens
        super().__init__(
            spec, backend, cache=None, budget=Budget(), limit=limit, price=price, max_tokens=most
        )
        self._rehearsal = rehearsal

    async def ask(self, call: Call, reply_model: type[Reply], record: ReplyContext) -> Asked:
        """A reply that holds against the record."""
        self._count(call)
        story = record.texts.get("story", "")
        quote = " ".join(story.split()[:8])
        if issubclass(reply_model, JudgingReply):
            same = _Same.model_construct(
                known=self._rehearsal.answers, quote=quote, rubric=call.origin.rubric
            )
            return Asked(same, Usage(1))
        words = f"Other words, of round {call.vote}."
        fields: dict[str, Any] = {
            "insertions": [
                SimpleNamespace(value=n, after=quote, character="Ann", dialogue=words)
                for n in record.values
            ],
            "rewrites": [
                SimpleNamespace(passage=n + 1, text=words) for n in range(record.passages)
            ],
            "story": f"{story} {words}",
        }
        made = {
            name: fields[name] if name in fields else self._answered(schema)
            for name, schema in reply_model.model_json_schema()["properties"].items()
        }
        return Asked(reply_model.model_construct(**made), Usage(1))

    def _answered(self, schema: Mapping[str, Any]) -> Any:
        """What a benchmark's field may hold: the first options, or as many entries as may be."""
        one = schema.get("items", schema)
        options = one.get("enum") or [one.get("const")]
        if schema["type"] == "string":
            return options[0]
        if schema["type"] == "number":
            return schema.get("minimum", 0)
        if "minItems" in schema:
            return options[: schema["minItems"]]
        return ["a value in some words"] * schema["maxItems"] if self._rehearsal.failing else []

    async def first_token(
        self, call: Call, usable: object = None
    ) -> tuple[dict[str, float], Usage]:
        """Every word of the prompt, all as likely."""
        self._count(call)
        words = re.findall(r"[a-z0-9]+", call.messages[-1]["content"].lower())
        return dict.fromkeys(words, math.log(0.5)), Usage(1)

    async def state(self, call: Call, width: int | None = None) -> tuple[State, Usage]:
        """No number at all: the reader looks at none."""
        self._count(call)
        return (), Usage(1)

    async def write(self, call: Call) -> tuple[Completion, Usage]:
        """As many words as fit."""
        length = round(self._count(call) * CHARACTERS_PER_TOKEN)
        return Completion("word " * (length // len("word "))), Usage(1)

    def _count(self, call: Call) -> int:
        return self._rehearsal.count(self, self.spec + self._key(call, Mode.JSON_SCHEMA), call)


class _Same(JudgingReply):
    """One answer to a rubric, about every value or about the record."""

    known: Any
    quote: str
    rubric: str

    def part(self, rubric: str) -> JudgingReply:
        return self.model_copy(update={"rubric": rubric})

    def answers(self, number: int, context: ReplyContext) -> list[Answer]:
        return answers_of(context, number, self.known[self.rubric], [(None, self.quote)])


@dataclass(frozen=True, slots=True)
class _Settled(AnswerReader):
    """Reads one answer out of whatever the first token says."""

    answer: str = ""
    sure: bool = True

    def decide(self, rubric: Rubric, seen: Observation) -> Decision:
        return Decision(self.answer, self.sure, {self.answer: 0.5})


def _reading(judge: Judge, answer: str, *, sure: bool) -> Judge:
    reader = _Settled(combination=judge.reader.combination, answer=answer, sure=sure)
    return replace(judge, reader=reader)

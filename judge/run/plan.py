"""Estimates a run's calls without making them: its workflows yield the calls they would make.

Each record goes through its workflow three times: every question passes, and every one fails, each
by as few votes as possible; and at the most, every question fails, every vote is asked, a cascade's
cheap judge is never sure, `--repair` takes every round, and replies are as long as allowed; checks
that a failure skips are added. The cheaper of the first two is the least. A question in identical
words is counted once. Re-asking after invalid replies, and the small question to each server, are
left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from judge.backends import factory
from judge.backends.base import Backend, Call, Completion, Mode, parse_model
from judge.backends.reading import byte_count
from judge.cache import ReplyCache
from judge.configuration import user_file
from judge.errors import UsageError
from judge.judging.client import Client
from judge.judging.limits import Budget
from judge.judging.panel import Panel
from judge.judging.prompts import LACKS, lack
from judge.model_tables import Price
from judge.questions.replies import NewFields
from judge.records import Record
from judge.records.lines import bad_input
from judge.run.job import Job
from judge.run.models import Models, backend_of, client_of
from judge.run.panels import Resources
from judge.run.profiles import NO_PROFILE
from judge.run.summary import Summary
from judge.run.validate import Validation
from judge.settings import Settings
from judge.verdict import Answer, Check, Usage, Verdict
from judge.workflows import By, Context, Work

CHARACTERS_PER_TOKEN = 4.0
"""A common figure for English with current tokenizers, for the likely and most estimates; of
other scripts so many bytes (`byte_count`)."""

MOST_CHARACTERS = 8.0
"""Upper bound on characters per token over a whole prompt, for the least estimate."""

_MAX_SEEN = 1_000_000
"""Maximum number of calls remembered to find repeats in other records; further calls are counted
for each record."""

REPLY_SHARE = 0.25
"""Share of a question's `max_tokens` that a short reply takes."""

DEAREST = 0.2
"""Share of records assumed to take the most in a likely run; the others take the usual."""

_ELSEWHERE = ("decisions", "langchain", "openai", "systemone", "transformers", "vllm")
"""Providers whose models may need a key, a library or a GPU that this machine lacks."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plan:
    """Estimates in total and, as numbers of calls, by check; `bad` counts unreadable records.

    `least` is a lower bound; `usual` is the usage if answers are short and the first votes decide.
    `shown` says which fields are shown if a rubric names none; `unasked` counts, by check and
    reason, the records that a check abstains on because there is nothing to show. `unpriced` models
    have no known price, so the cost is unknown; `prices` are those of the others.
    """

    records: int = 0
    bad: Summary = field(default_factory=Summary)
    least: Usage = field(default_factory=Usage)
    usual: Usage = field(default_factory=Usage)
    most: Usage = field(default_factory=Usage)
    by_check: dict[str, Counter[str]] = field(default_factory=dict)
    shown: str | None = None
    unasked: Counter[tuple[str, str]] = field(default_factory=Counter)
    unpriced: tuple[str, ...] = ()
    prices: dict[str, Price] = field(default_factory=dict)

    def add(self, passing: PlannedCalls, failing: PlannedCalls, most: PlannedCalls) -> None:
        """Add one record's calls: if all questions pass, if all fail, and at the most."""
        # A record that fails at its first check may ask less than one that passes.
        low, _, high = sorted((passing, failing, most), key=lambda walk: _total(walk.usage).replies)
        first, second = _total(passing.bound), _total(failing.bound)
        costs = [usage.cost_usd for usage in (first, second) if usage.cost_usd is not None]
        self.records += 1
        self.usual += _total(low.usage)
        self.most += _total(high.usage)
        self.least += Usage(
            min(first.replies, second.replies),
            min(first.input_tokens, second.input_tokens),
            min(first.output_tokens, second.output_tokens),
            min(costs) if len(costs) == 2 else None,
        )
        for name in dict.fromkeys((*high.usage, *low.bound)):
            counts = self.by_check.setdefault(name, Counter())
            counts["least"] += low.bound.get(name, Usage()).replies
            counts["most"] += high.usage.get(name, Usage()).replies

    def price(self, models: Models) -> None:
        """Note the prices of the models that may be asked, and the models without one."""
        idle = {models.rewriter} - {*models.names}
        clients = {spec: c for spec, c in models.clients.items() if spec not in idle}
        self.unpriced = tuple(spec for spec, client in clients.items() if client.price is None)
        self.prices = {spec: client.price for spec, client in clients.items() if client.price}

    def __str__(self) -> str:
        """What `judge plan` prints, in 80 columns."""
        folded = (wrap(line, 80, subsequent_indent="  ") for line in self.lines())
        return "\n".join(part for parts in folded for part in parts)

    def lines(self, by: str = "check", noun: str = "records") -> Iterator[str]:
        """The estimate in words: a table of calls, their totals, and the assumptions.

        Args:
            by: heading of the column that calls are counted by (check, task).
            noun: what is judged or asked (records, items).
        """
        bad = f", {self.bad.records} that cannot be asked about" if self.bad.records else ""
        if not self.records:
            yield f"0 {noun}{bad}"
            return
        counts = ((n, str(c["least"]), str(c["most"])) for n, c in self.by_check.items())
        rows = ((by, "least calls", "most calls"), *counts)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for number, (name, *cells) in enumerate(rows):
            numbers = zip(cells, widths[1:], strict=True)
            yield "  ".join((name.ljust(widths[0]), *(cell.rjust(size) for cell, size in numbers)))
            if number == 0:
                yield "─" * (sum(widths) + 4)
        yield f"{self.records} {noun if self.records > 1 else noun.removesuffix('s')}{bad}"
        yield f"least:  {_effort(self.least)}"
        yield f"likely: {_effort(self.likely)}"
        yield f"most:   {_effort(self.most)}"
        for spec, price in self.prices.items():
            if date := getattr(price, "date", None):
                yield (
                    f"Price of {spec}: {price.input:g} and {price.output:g} USD for a million "
                    f"tokens, of a list of {date}; [prices] in judge.toml overrides."
                )
        for spec in self.unpriced:
            yield f'No price known for {spec}: put [prices."{spec}"] into {user_file()}.'
        yield (
            f"Least: {MOST_CHARACTERS:g} characters a token, one token a reply; less only where "
            "replies are in the cache already."
        )
        yield (
            f"Likely: one of {1 / DEAREST:g} {noun} takes the most calls and tokens; the others "
            "are decided at the first votes, in replies of a quarter of the tokens allowed."
        )
        yield (
            f"Most: every call, in replies as long as allowed. {CHARACTERS_PER_TOKEN:g} bytes (as "
            "many English letters) a token. Not counted: replies that are asked for again, and the "
            "small question to each model on a server before the first record."
        )

    @property
    def likely(self) -> Usage:
        """The usage if a share `DEAREST` of records takes the most, the others the usual."""
        low, high = self.usual, self.most

        def between(a: float, b: float) -> float:
            return a + DEAREST * (b - a)

        priced = low.cost_usd is not None and high.cost_usd is not None
        return Usage(
            round(between(low.replies, high.replies)),
            round(between(low.input_tokens, high.input_tokens)),
            round(between(low.output_tokens, high.output_tokens)),
            between(low.cost_usd or 0.0, high.cost_usd or 0.0) if priced else None,
        )


def _effort(usage: Usage) -> str:
    calls = f"{usage.replies} call{'s' * (usage.replies != 1)}"
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    return f"{calls}, {usage.input_tokens} tokens read, {usage.output_tokens} written, {cost}"


def _total(usages: Mapping[str, Usage]) -> Usage:
    return sum(usages.values(), Usage())


def plan(job: Job, settings: Settings) -> Plan:
    """Read the records and add up the calls for each; raises UsageError."""
    resources = Resources.of(planned(settings), build=planned_client, rubrics=job.rubrics)

    async def calls_of(record: Record, calls: PlannedCalls) -> None:
        bound = resources.bound(record.kind)
        outcome = await bound.workflow.run(record, bound.context, calls.work)
        for check in outcome.judgement.checks:
            if not (calls.most or calls.fails) and (check.reason or "").startswith(LACKS):
                without_text[check.name, check.reason or ""] += 1

    without_text: Counter[tuple[str, str]] = Counter()
    task = Validation(resources, job)
    task.look_ahead()
    estimate = plan_items(task.items(), calls_of, resources.models)
    estimate.shown, estimate.unasked = task.ahead.shown, without_text
    return estimate


def planned(settings: Settings) -> Settings:
    """The settings of a plan: it makes no calls, so it needs no cache and no limit on cost."""
    return settings.model_copy(update={"cache": False, "max_cost": None, "max_calls": 0})


def plan_items(
    items: Iterable[Record],
    calls_of: Callable[[Record, PlannedCalls], Awaitable[None]],
    models: Models,
) -> Plan:
    """The plan for these records, with the models' prices; a record with a problem counts as bad.

    Args:
        calls_of: adds the calls for one record. An equal call for another record is counted once,
            because a run asks once, also without a cache.
    """
    estimate, certain, possible = Plan(), set[int](), set[int]()

    async def add_all() -> None:
        for item in items:
            if item.problem is not None:
                estimate.bad.add(bad_input(item))
                continue
            passing = PlannedCalls(most=False, seen=certain)
            failing = PlannedCalls(most=False, fails=True, seen=certain)
            most = PlannedCalls(most=True, seen=possible)
            for calls in (passing, failing, most):
                await calls_of(item, calls)
            if passing.usage.keys() - most.usage.keys():
                # A failure ended the checks early: those behind it are asked if it passes late.
                behind = PlannedCalls(most=True, fails=False, seen=possible)
                await calls_of(item, behind)
                most.usage = {**behind.usage, **most.usage}
            estimate.add(passing, failing, most)
            if len(possible) < _MAX_SEEN:
                certain.update(passing.keys & failing.keys)
                possible.update(most.keys)

    asyncio.run(add_all())
    estimate.price(models)
    return estimate


class PlannedCalls:
    """The calls for one record, by check or task: `most` if every answer leads to more calls,
    `fails` if all questions fail (by default with `most`).

    `bound` is their least usage. Calls in `seen`, which an earlier record made, are not counted.
    """

    def __init__(
        self, *, most: bool, fails: bool | None = None, seen: Collection[int] = frozenset()
    ) -> None:
        self.most, self.fails = most, most if fails is None else fails
        self.usage: dict[str, Usage] = {}
        self.bound: dict[str, Usage] = {}
        self.keys: set[int] = set()
        self._seen = seen

    def add(self, client: Client, call: Call) -> int:
        """Count a call, unless an equal one was counted; returns the tokens of its reply."""
        # A hidden state is no text.
        tokens = client.most_tokens(call) if call.layer is None else 0
        if tokens and not self.most:
            tokens = max(1, int(min(tokens, call.max_tokens) * REPLY_SHARE))
        draw = None if call.steady else (call.temperature, call.seed, call.vote)
        extra = client.backend.key_parts(call)
        key = hash(repr((client.spec, call.prompt.digest, call.logprobs, call.layer, draw, extra)))
        if key not in self.keys:
            self.keys.add(key)
            # Servers of decision models put a question into a frame of their own.
            texts, least_texts = (call.sent(decides=decides) for decides in (False, client.decides))
            name = f"{call.origin.rubric} ({call.role})"
            name = {"rewriting": "rewriting", "measured": call.origin.rubric}.get(call.role, name)
            usage = self.usage.setdefault(name, Usage())
            if key not in self._seen:
                likely = round(sum(map(byte_count, texts)) / CHARACTERS_PER_TOKEN)
                self.usage[name] = usage + client.estimate(likely, tokens)
                length = sum(map(len, least_texts))
                least = client.estimate(int(length / MOST_CHARACTERS), min(1, tokens))
                self.bound[name] = self.bound.get(name, Usage()) + least
        return tokens

    def work(self, record: Record, context: Context) -> PlannedWork:
        """The work on a record, which adds its calls here."""
        return PlannedWork(record, context, self)


class PlannedWork(Work):
    """Work that counts the calls for a record instead of making them: all checks pass or all fail,
    as `calls` says, and the record is rewritten in every round allowed."""

    def __init__(self, record: Record, context: Context, calls: PlannedCalls) -> None:
        super().__init__(record, context)
        self._calls = calls

    async def test(self) -> str | None:
        failed = await super().test()
        # A test that no made-up text passes would hide the questions behind it.
        return None if self.written else failed

    async def votes(self, panel: Panel, by: By) -> Check:
        record, rubric = self.record, panel.rubric
        check = Check(name=rubric.name, by=by, verdict=Verdict.ABSTAIN, round=self.round)
        if rubric.tested:  # It costs nothing, and decides whether the others are asked.
            self._calls.usage.setdefault(f"{rubric.name} (test)", Usage())
            if self.written:  # The text is made up: no test can tell.
                verdict = Verdict.FAIL if self._calls.fails else Verdict.PASS
                return check.model_copy(update={"verdict": verdict})
            return await super().votes(panel, by)
        if (reason := panel.why_not_asked(record)) is not None:
            return check.model_copy(update=reason)
        for client, call in panel.calls(record, round=self.round, most=self._calls.most):
            self._calls.add(client, call)
        passing = rubric.passing(record.label)
        failing = [answer for answer in rubric.answers if answer not in passing]
        answer = failing[0] if failing and self._calls.fails else passing[0]
        verdict = rubric.rule.verdict(answer, record.label)
        field = rubric.form.shown if rubric.form else None
        quote = " ".join(record.texts.get(field or "", "").split()[:8]) or None
        evidence = tuple(
            Answer(value=record.entry(rubric.each, n), verdict=verdict, answer=answer, quote=quote)
            for n in panel.judges[0].numbers(record)
        )
        outcome = {"verdict": verdict, "counted": panel.counted, "evidence": evidence}
        return check.model_copy(update=outcome)

    async def ask_rewriter(self, rubric: str, reply: Any, **material: Sequence[Any]) -> Any:
        """Count the call, and continue with a made-up text of the record's own, if the rewriter
        can be asked."""
        rewriter = self.context.rewriters[rubric]
        if reason := lack(rewriter.rubric, self.record):
            self.give_up(rubric, reason)
            return None
        call = rewriter.call(self.record, self.round, **material)
        tokens = self._calls.add(rewriter.client, call)
        if issubclass(reply, NewFields):
            names = reply.model_fields
            count = round(tokens * CHARACTERS_PER_TOKEN / len("word ") / len(names))
            words = f"{self.record.id} {self.round} {'word ' * count}?"
            return reply.model_construct(**{name: f"{name} {words}" for name in names})
        words = f"Other words for {self.record.id}, of round {self.round}."
        edit = self.edit(rubric, rubric)(before="", after=words)
        self.rewrite(reply.shown, f"{self.record.texts[reply.shown]} {words}", [edit])
        return None


class AbsentBackend(Backend):
    """Stands in for a model that is not set up here; it is never asked."""

    seeded = False

    def __init__(self, kind: type[Backend], identity: Mapping[str, str]) -> None:
        self.method, self.decides, self.gives_states = kind.method, kind.decides, kind.gives_states
        self.in_process, self._identity = kind.in_process, identity

    def identity(self) -> Mapping[str, str]:
        return self._identity

    async def complete(self, call: Call, mode: Mode) -> Completion:
        raise NotImplementedError


def planned_client(
    spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget
) -> Client:
    """The client of a model, even if its key, library or GPU is missing.

    With a profile, which is bound to models as they are set up, that raises UsageError.
    """
    try:
        backend = backend_of(spec, settings)
    except UsageError as error:
        provider, name = parse_model(spec)
        server = settings.servers.get(provider)
        kind = factory("openai:it" if server else spec, (*settings.servers,))
        identity = {"server": server.url} if server and server.url else kind.identity_of(name)
        plannable = server or provider in _ELSEWHERE or identity is not None
        if not plannable or settings.profile not in (None, NO_PROFILE):
            raise
        _log.warning("judge: planned with %s, which is not set up here: %s", spec, error)
        backend = AbsentBackend(kind, identity or {})
    return client_of(spec, backend, settings, cache, budget)

"""What a run will ask, estimated without asking: calls, tokens, cost.

Least is a run in which every record is fine at once and votes agree; with `--fail-fast`, in which
every record fails at the first check that decides; with a cheap model, in which that one is sure of
everything. Most is a run in which every loop goes to its end, every vote is needed and the cheap
model is sure of nothing. Re-asking of invalid replies is left out.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from judge.backends import factory
from judge.backends.base import Message, parse_model
from judge.backends.unasked import ELSEWHERE, Unasked
from judge.cache import ReplyCache
from judge.errors import UsageError
from judge.judging.client import Client
from judge.judging.judge import Judge
from judge.judging.limits import Budget
from judge.prompts import messages
from judge.records import Problem, Record, SeenIds, build
from judge.run.clients import build_client, calls_at_once, price_of
from judge.run.job import Job, select
from judge.run.lines import bad_input
from judge.run.setup import Bound, Setup
from judge.run.summary import SpeechStatistics, Summary
from judge.run.workflows import load_workflow
from judge.settings import Settings
from judge.subject import Subject
from judge.verdict import Usage
from judge.voting import needed

CHARACTERS_PER_TOKEN = 4.0
"""Rule of thumb for English under the tokenizers in use; estimates stand or fall with it."""

REPLY_SHARE = 0.25
"""Share of a question's `max_tokens` that a reply is taken to need at least."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plan:
    """Estimates by check, and in total as (least, most); `bad`: what cannot be asked about."""

    records: int = 0
    bad: Summary = field(default_factory=lambda: Summary(SpeechStatistics(None)))
    least: Usage = field(default_factory=Usage)
    most: Usage = field(default_factory=Usage)
    by_check: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, name: str, least: Usage, most: Usage) -> None:
        self.least += least
        self.most += most
        counts = self.by_check.setdefault(name, Counter())
        counts["least"] += least.replies
        counts["most"] += most.replies


def unasked_client(
    spec: str, settings: Settings, cache: ReplyCache | None, budget: Budget
) -> Client:
    """The client of one model, which stands even where its key, library or card is missing.

    A profile is bound to models as they are set up, so with one nothing may be missing.

    Raises:
        UsageError: the model cannot be used as named.
    """
    try:
        return build_client(spec, settings, cache, budget)
    except UsageError as error:
        if parse_model(spec)[0] not in ELSEWHERE or settings.profile is not None:
            raise
        _log.warning("judge: planned with %s, which is not set up here: %s", spec, error)
    backend = Unasked(spec, factory(spec).reading)
    limit = calls_at_once(settings, backend.slots)
    return Client(
        spec, backend, cache=cache, budget=budget, limit=limit, price=price_of(spec, settings)
    )


def plan(job: Job, setup: Setup) -> Plan:
    """Read the records and add up what each would ask."""
    made = Plan()
    chosen = setup.settings.workflow
    kind = load_workflow(chosen).kind if chosen else None
    with SeenIds() as ids:
        for item in select(job):
            record = build(item, kind, ids)
            if isinstance(record, Record) and (misfit := setup.misfit(record.kind)) is not None:
                record = Problem(misfit)
            if isinstance(record, Problem):
                made.bad.add(bad_input(item, record).judgement)
                continue
            made.records += 1
            for name, least, most in costs(Subject.of(record), setup.bound(record.kind)):
                made.add(name, least, most)
    return made


def costs(subject: Subject, bound: Bound) -> Iterator[tuple[str, Usage, Usage]]:
    """(check, least, most) of one record, for each check and each rewriting."""
    context, workflow = bound.context, bound.workflow
    for (name, by), (least, most) in workflow.calls(subject, context).items():
        panel = context.panel(name, by)
        ballots = [judge for judge, _ in panel.ballots]
        few = len(ballots) if panel.all_votes else needed([], len(ballots), panel.rule)
        per_judge = [_vote(judge, subject) for judge in ballots]
        low = sum((cost for cost, _ in per_judge[:few]), Usage())
        high = sum((cost for _, cost in per_judge), Usage())
        if panel.screen is not None:
            low, screened = _vote(panel.screen, subject)
            high += screened
        yield f"{name} ({by})", _times(low, least), _times(high, most)
    if context.rounds:
        for name in workflow.rewrites:
            rewriter = context.rewriters[name]
            tokens = rewriter.rubric.readings.structured.max_tokens
            length = sum(map(len, subject.texts.values())) + 1500
            cost = _usage(rewriter.client, length, tokens)
            yield f"{name} (rewriting)", Usage(), _times(cost, context.rounds)


def prompt_usage(client: Client, prompt: Sequence[Message], output_tokens: int) -> Usage:
    """What one reply to this prompt takes, its tokens taken to be `CHARACTERS_PER_TOKEN` long."""
    return _usage(client, _length(prompt), output_tokens)


def _vote(judge: Judge, subject: Subject) -> tuple[Usage, Usage]:
    """(least, most) of one vote."""
    numbers = subject.numbers if judge.rubric.about == "values" else ()
    if judge.probabilistic:
        total = Usage()
        for length in _questions(judge, subject, numbers):
            total += _usage(judge.client, length, 1)
        return total, total
    least, most, tokens = Usage(), Usage(), judge.rubric.readings.structured.max_tokens
    for asked in [(n,) for n in numbers] if judge.one_by_one else [numbers]:
        length = _length(messages(judge.rubric, subject, numbers=asked))
        least += _usage(judge.client, length, int(tokens * REPLY_SHARE))
        most += _usage(judge.client, length, tokens)
    return least, most


def _questions(judge: Judge, subject: Subject, numbers: tuple[int, ...]) -> Iterator[int]:
    assert judge.rubric.readings.probability is not None
    for step in judge.reader.wanted(judge.rubric):
        for number in numbers or (0,):
            asked = (number,) if number else ()
            yield _length(messages(judge.rubric, subject, step=step, numbers=asked))


def _length(prompt: Sequence[Message]) -> int:
    return sum(len(message["content"]) for message in prompt)


def _usage(client: Client, characters: int, output_tokens: int) -> Usage:
    return client.estimate(round(characters / CHARACTERS_PER_TOKEN), output_tokens)


def _times(usage: Usage, count: int) -> Usage:
    cost = None if usage.cost_usd is None else usage.cost_usd * count
    tokens = (usage.input_tokens * count, usage.output_tokens * count)
    return Usage(usage.replies * count, *tokens, cost if count else 0.0)

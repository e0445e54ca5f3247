"""What a run will ask, estimated without asking: the same run with judges that only count.

Each record is taken through its workflow three times: every judge passes everything, every judge
fails everything, and, as it takes longest, every judge fails everything, every vote is asked and a
cascade's cheap judge is sure of nothing. The run with the fewest calls is the least (with
`--fail-fast` a failing one), that with the most calls the most. A question that is put in identical
words is counted once. Re-asking of invalid replies is left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from judge.backends import factory
from judge.backends.base import Call, Prompt, parse_model
from judge.backends.unasked import ELSEWHERE, Unasked
from judge.cache import ReplyCache
from judge.errors import UsageError
from judge.judging.client import Asked, Client
from judge.judging.judge import Judge, Part
from judge.judging.limits import Budget
from judge.judging.panel import Panel
from judge.judging.rewriter import Rewriter
from judge.prompts import messages
from judge.records import Record, SeenIds
from judge.replies import Insertion, Insertions, Regeneration, Rewrite, Rewrites
from judge.run.clients import build_client, calls_at_once, price_of
from judge.run.job import Job, select
from judge.run.setup import Bound, Setup
from judge.run.summary import Summary
from judge.run.validate import Validation
from judge.settings import Settings
from judge.subject import Subject
from judge.verdict import Finding, Usage, Verdict
from judge.workflow import Context

CHARACTERS_PER_TOKEN = 4.0
"""Rule of thumb for English under the tokenizers in use; estimates stand or fall with it."""

REPLY_SHARE = 0.25
"""Share of a question's `max_tokens` that a reply is taken to need at least."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plan:
    """Estimates by check, and in total as (least, most); `bad`: what cannot be asked about."""

    records: int = 0
    bad: Summary = field(default_factory=Summary)
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

    async def all_records() -> None:
        with SeenIds() as ids:
            task = Validation(setup, ids, select(job), lambda line: None)
            for item in task.items():
                record = task.read(item)
                if not isinstance(record, Record):
                    made.bad.add(record.judgement)
                    continue
                made.records += 1
                found = await costs(Subject.of(record), setup.bound(record.kind))
                for name, (least, most) in found.items():
                    made.add(name, least, most)

    asyncio.run(all_records())
    return made


async def costs(subject: Subject, bound: Bound) -> dict[str, tuple[Usage, Usage]]:
    """(least, most) of one record, by check and for all rewriting."""
    ways = ((Verdict.PASS, False), (Verdict.FAIL, False), (Verdict.FAIL, True))
    runs = [await _run(subject, bound, _Count(*way)) for way in ways]
    least, _, most = sorted(runs, key=lambda run: sum(usage.replies for usage in run.values()))
    names = dict.fromkeys((*most, *least))
    return {name: (least.get(name, Usage()), most.get(name, Usage())) for name in names}


async def _run(subject: Subject, bound: Bound, count: _Count) -> dict[str, Usage]:
    """What one run of a record asks, by check, the rewriting last."""
    outcome = await bound.workflow.run(subject, count.context(bound.context))
    found: dict[str, Usage] = {}
    for check in outcome.judgement.checks:
        if check.votes:
            name = f"{check.name} ({check.by})"
            found[name] = found.get(name, Usage()) + check.usage
    if count.rewriting.replies:
        found["rewriting"] = count.rewriting
    return found


def prompt_usage(client: Client, prompt: Sequence[Mapping[str, Any]], output_tokens: int) -> Usage:
    """What one reply to this prompt takes, its tokens taken to be `CHARACTERS_PER_TOKEN` long."""
    length = sum(len(message["content"]) for message in prompt)
    return client.estimate(round(length / CHARACTERS_PER_TOKEN), output_tokens)


@dataclass(slots=True)
class _Count:
    """One run of a record: what its judges say, and what they were asked already.

    `thorough`: every vote is asked, the cheap judge is unsure, and replies are as long as they may.
    """

    verdict: Verdict
    thorough: bool
    rewriting: Usage = field(default_factory=Usage)
    _asked: set[object] = field(default_factory=set)

    def context(self, context: Context) -> Context:
        """The workflow's context with judges and rewriters that only count."""
        return replace(
            context,
            steering={name: self._panel(one) for name, one in context.steering.items()},
            accepting={name: self._panel(one) for name, one in context.accepting.items()},
            rewriters={
                name: _CountingRewriter(**_parts(one, Rewriter), count=self)
                for name, one in context.rewriters.items()
            },
        )

    def _panel(self, panel: Panel) -> Panel:
        cheap = Verdict.ABSTAIN if self.thorough else self.verdict
        return replace(
            panel,
            judges=tuple(self._judge(judge, self.verdict) for judge in panel.judges),
            all_votes=panel.all_votes or self.thorough,
            screen=self._judge(panel.screen, cheap) if panel.screen else None,
            locator=self._judge(panel.locator, self.verdict) if panel.locator else None,
        )

    def _judge(self, judge: Judge, verdict: Verdict) -> Judge:
        return _CountingJudge(**_parts(judge, Judge), count=self, verdict=verdict)

    def price(self, client: Client, call: Call, most_tokens: int) -> Usage:
        """What a call takes; nothing if it was put in these words already."""
        steady = call.temperature == 0 or call.logprobs is not None
        key = (client.spec, Prompt(call.messages).digest, None if steady else call.vote)
        if key in self._asked:
            return Usage()
        self._asked.add(key)
        least = max(1, int(most_tokens * REPLY_SHARE))
        return prompt_usage(client, call.messages, most_tokens if self.thorough else least)


def _parts(one: Judge | Rewriter, kind: type[Any]) -> dict[str, Any]:
    return {part.name: getattr(one, part.name) for part in fields(kind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountingJudge(Judge):
    """Gives one verdict on everything, with the first words of the text as its evidence."""

    count: _Count
    verdict: Verdict

    async def _part(self, subject: Subject, call: Call, asked: tuple[int, ...]) -> Part:
        numbers = asked if self.rubric.about == "values" else ()
        usage, most = Usage(), self.rubric.readings.structured.max_tokens
        if not self.probabilistic:
            put = replace(call, messages=self._question(subject, numbers=numbers))
            usage += self.count.price(self.client, put, most)
        else:
            for step in self.reader.wanted(self.rubric):
                prompt = self._question(subject, step=step, numbers=numbers)
                put = replace(call, messages=prompt, logprobs=1)
                usage += self.count.price(self.client, put, 1)
        return Part(tuple(self._finding(subject, n) for n in asked), usage)

    def _finding(self, subject: Subject, number: int) -> Finding:
        assert self.rubric.verdict is not None
        answer = self.rubric.verdict.expected(subject.label)
        if self.verdict is not Verdict.PASS:
            answer = next((one for one in self.rubric.answers if one != answer), answer)
        return Finding(
            value=subject.about(number),
            verdict=self.verdict,
            answer=answer,
            quote=_quote(subject),
            probability=0.5 if self.probabilistic else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountingRewriter(Rewriter):
    """Writes words that change nothing about the verdicts."""

    count: _Count

    async def ask(
        self,
        subject: Subject,
        *,
        round: int,
        numbers: Sequence[int] = (),
        passages: Sequence[str] = (),
        findings: Sequence[str] = (),
    ) -> Asked:
        prompt = messages(
            self.rubric, subject, numbers=numbers, passages=passages, findings=findings
        )
        call = Call(prompt, temperature=self.sampling.temperature, vote=round)
        most = self.rubric.readings.structured.max_tokens
        usage = self.count.price(self.client, call, most)
        self.count.rewriting += usage
        words = f"Other words, of round {round}."
        replies = {
            "Insertions": Insertions.model_construct(
                insertions=[
                    Insertion(value=n, after=_quote(subject), character="Ann", dialogue=words)
                    for n in numbers
                ]
            ),
            "Rewrites": Rewrites.model_construct(
                rewrites=[Rewrite(passage=n, text=words) for n in range(1, len(passages) + 1)]
            ),
            "Regeneration": Regeneration.model_construct(
                story=f"{subject.texts.get('story', '')} {words}"
            ),
        }
        return Asked(replies[self.rubric.reply], usage)


def _quote(subject: Subject) -> str:
    return " ".join(subject.texts.get("story", "").split()[:8])

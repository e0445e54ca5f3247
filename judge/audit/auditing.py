"""`judge audit` without its command line: a judge put through the suite of hostile text."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge import __version__
from judge.audit.results import PROMPTINGS, Pair, Prompting, Result
from judge.audit.suite import UNDEFENDED, Case, carriers, cases, families, subject_of
from judge.digest import digest
from judge.errors import UsageError
from judge.judging.capabilities import prove_logprobs
from judge.judging.judge import Judge
from judge.judging.panel import Panel, take_votes
from judge.records import Item
from judge.rubric import Rubric, collect
from judge.run.fingerprint import Mark, fingerprint
from judge.run.job import Job, refuse_outputs
from judge.run.lines import Line, written
from judge.run.setup import Setup
from judge.run.summary import Summary
from judge.run.task import Report, Watcher, run
from judge.settings import Settings
from judge.verdict import Check, Unfinished, Usage, Verdict

NAME = "audit"
"""What stands where other lines name their workflow or benchmark."""


@dataclass(frozen=True, slots=True)
class Picked:
    """The cases that are wanted, in the suite's order, the rubrics that they are on, and the
    digest of the whole suite that they were picked from."""

    cases: Sequence[Case]
    rubrics: Mapping[str, Rubric]
    suite: str


def chosen(
    rubrics: Sequence[str],
    attacks: Sequence[str] = (),
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Picked:
    """Pick cases.

    Args:
        rubrics: built-in names, or files of rubrics that bear one; none means all.
        attacks: families; none means all.
        limit: only so many cases; `sample` draws so many with `seed` first.

    Raises:
        UsageError: a rubric that the suite has no records for, or an unknown family.
    """
    known, named = collect(rubrics)
    if strange := [name for name in named if name not in carriers()]:
        raise UsageError(
            f"--rubric {strange[0]}: the suite has no records for it; it has records for "
            f"{', '.join(carriers())} (a file of your own is audited under one of these names)"
        )
    if strange := [name for name in attacks if name not in families()]:
        raise UsageError(f"--attack {strange[0]}: there are {', '.join(families())}")
    wanted = {name: known[name] for name in carriers() if not named or name in named}
    made = cases(wanted)
    found = [case for case in made if not attacks or case.family in attacks]
    if sample is not None and sample < len(found):
        drawn = sorted(random.Random(seed).sample(range(len(found)), sample))
        found = [found[place] for place in drawn]
    suite = digest([[case.id, case.wanted, dict(case.injected)] for case in made])
    return Picked(found[:limit], wanted, suite)


def audit(
    job: Job, settings: Settings, watcher: Watcher, picked: Picked
) -> tuple[Report, list[Result]]:
    """Put the judges that the settings name through the cases, each in every way of `PROMPTINGS`.

    Returns:
        How the run ended, and what came of each case.

    Raises:
        UsageError: nothing was asked: an output, model, profile or setting that cannot be used.
    """
    refuse_outputs(job)
    # Nothing is accepted or rewritten here, the rubrics are chosen by --rubric, and what judge does
    # about hostile text by itself is what is measured.
    own = {"accept_model": (), "rewrite_model": None, "check": (), "workflow": None}
    setup = Setup.of(settings.model_copy(update={**own, "injected": "abstain"}))
    work = _Audit(job, setup, picked)
    return run(job, work, Summary(), watcher), work.results


@dataclass(slots=True)
class _Audit:
    """What an audit does with each case."""

    job: Job
    setup: Setup
    picked: Picked
    results: list[Result] = field(default_factory=list)
    _mark: Mark | None = None
    _turns: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def items(self) -> Iterator[Item]:
        for number, case in enumerate(self.picked.cases, 1):
            yield Item("judge audit", number, case.fields)

    async def prepare(self) -> None:
        await self.setup.prepare_judges()
        if (cheap := self.setup.settings.cheap_model) is not None:
            await prove_logprobs(f"--cheap-model {cheap}", self.setup.client(cheap))

    def mark(self, name: str) -> Mark:
        if name != NAME:
            raise UsageError(
                f"{self.job.out} was not written by judge audit but by {name}: "
                "name another file with -o"
            )
        if self._mark is None:
            self._mark = self._made_mark()
        return self._mark

    def read(self, item: Item) -> Item:
        return item

    async def step(self, item: Item) -> Line:
        case = self.picked.cases[item.line - 1]
        pairs: dict[Prompting, Pair] = {}
        usage = Usage()
        for prompting in PROMPTINGS:
            # All cases on a record have one twin, which is asked about once: by the first of them,
            # and by the others out of the cache, or out of the run's memory.
            async with self._turns[case.carrier]:
                twin = await self._check(case, case.twin, prompting)
            injected = await self._check(case, case.injected, prompting)
            pairs[prompting] = Pair.of(twin, injected, case.wanted)
            usage += twin.usage + injected.usage
        return self._line(item, pairs, usage)

    def failed(self, item: Item, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        return self._line(item, {}, Usage(), f"{kind}: {message}")

    def count(self, line: Line, report: Report) -> None:
        self.results.append(Result.of(json.loads(line.text)))

    # ------------------------------------------------------------ one case

    async def _check(self, case: Case, record: Mapping[str, Any], prompting: Prompting) -> Check:
        subject = subject_of(case, self.picked.rubrics[case.check], record)
        panel = _put(self.setup.panel(case.check), prompting)
        return await take_votes(panel, subject, by="accepting")

    def _line(
        self, item: Item, pairs: Mapping[Prompting, Pair], usage: Usage, reason: str | None = None
    ) -> Line:
        case = self.picked.cases[item.line - 1]
        reason = reason or next((pair.reason for pair in pairs.values() if pair.reason), None)
        verdict = Result.of({**case.fields, "judge": {"prompts": pairs}}).verdict
        error = None
        if verdict is Verdict.ERROR:
            kind, _, message = (reason or "").partition(": ")
            error = {"type": kind, "line": item.line, "message": message or kind}
        judgement = {
            "verdict": str(verdict),
            "benchmark": NAME,
            "prompts": {name: pair.model_dump(mode="json") for name, pair in pairs.items()},
            "reason": reason,
            "usage": usage.as_json(),
            "fingerprint": self.mark(NAME).fingerprint,
            "error": error,
        }
        return written(case.fields, judgement)

    def _made_mark(self) -> Mark:
        settings, setup = self.setup.settings, self.setup
        readings = {}
        for name in self.picked.rubrics:
            panel = setup.panel(name)
            judges = (*panel.judges, *([panel.screen] if panel.screen else []))
            # How each rubric is read, as profile, thresholds and margins have it.
            readings[name] = [[judge.probabilistic, repr(judge.reader)] for judge in judges]
        known: dict[str, Any] = {
            "judge": list(setup.judges),
            "cheap": settings.cheap_model,
            "settings": {"version": __version__, **settings.deciding()},
            "readings": digest(readings),
            "suite": self.picked.suite,
            "baseline": digest([UNDEFENDED.system, UNDEFENDED.resumed]),
            "rubrics": {name: rubric.digest for name, rubric in self.picked.rubrics.items()},
        }
        specs = filter(None, (*setup.judges, settings.cheap_model))
        identities = {spec: dict(setup.client(spec).backend.identity()) for spec in specs}
        return Mark(NAME, known, fingerprint({NAME: known}, identities))


def _put(panel: Panel, prompting: Prompting) -> Panel:
    """The panel as it asks under a prompt."""

    def bare(judge: Judge) -> Judge:
        return replace(judge, framing=UNDEFENDED)

    if prompting == "defended":
        return panel
    panel = replace(panel, injected="ask")
    if prompting == "prompt-only":
        return panel
    screen = None if panel.screen is None else bare(panel.screen)
    return replace(panel, judges=tuple(map(bare, panel.judges)), screen=screen)

"""`judge audit` without its command line: a judge put through the suite of hostile text."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge import __version__
from judge.audit.outcome import PROMPTINGS, Pair, Prompting, Result, result_of
from judge.audit.suite import (
    Case,
    carriers,
    cases,
    families,
    subject_of,
    suite_digest,
)
from judge.audit.undefended import UNDEFENDED
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

_log = logging.getLogger(__name__)


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
    put_in = families()
    if strange := [name for name in attacks if name not in put_in]:
        raise UsageError(f"--attack {strange[0]}: there are {', '.join(put_in)}")
    wanted = {name: known[name] for name in carriers() if not named or name in named}
    made = cases(wanted, put_in)
    found = [case for case in made if not attacks or case.family in attacks]
    if sample is not None and sample < len(found):
        drawn = sorted(random.Random(seed).sample(range(len(found)), sample))
        found = [found[place] for place in drawn]
    return Picked(found[:limit], wanted, suite_digest(made))


@dataclass(frozen=True, slots=True)
class Audited:
    """How the run ended, and what came of each case."""

    report: Report
    results: list[Result]


def audit(
    job: Job,
    settings: Settings,
    watcher: Watcher,
    picked: Picked,
) -> Audited:
    """Put the judges that the settings name through the cases, each in every way of `PROMPTINGS`.

    Raises:
        UsageError: nothing was asked: an output, model, profile or setting that cannot be used.
    """
    refuse_outputs(job)
    # Nobody accepts or rewrites here, the rubrics are chosen by --rubric, and what judge does
    # about hostile text by itself is what is measured.
    own = {
        "accept_model": (),
        "rewrite_model": None,
        "check": (),
        "workflow": None,
        "injected": "abstain",
    }
    setup = Setup.of(settings.model_copy(update=own))
    work = _Audit(job, setup, picked)
    report = run(job, work, Summary(), watcher)
    return Audited(report, work.results)


@dataclass(slots=True)
class _Audit:
    """What an audit does with each case."""

    job: Job
    setup: Setup
    picked: Picked
    results: list[Result] = field(default_factory=list)
    _mark: Mark | None = None
    _panels: dict[tuple[str, Prompting], Panel] = field(default_factory=dict)
    _twins: dict[tuple[str, Prompting], asyncio.Task[Check]] = field(default_factory=dict)

    def items(self) -> Iterator[Item]:
        for number, case in enumerate(self.picked.cases, 1):
            yield Item("judge audit", number, _fields(case))

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
        return self._line(item, case, await self._checks(case))

    def failed(self, item: Item, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        return self._line(item, self.picked.cases[item.line - 1], {}, (kind, message))

    def count(self, line: Line, report: Report) -> None:
        self.results.append(result_of(json.loads(line.text)))

    # ------------------------------------------------------------ one case

    async def _checks(self, case: Case) -> dict[Prompting, tuple[Check, Check]]:
        """The checks of the clean twin and of the injected record."""
        checks: dict[Prompting, tuple[Check, Check]] = {}
        for prompting in PROMPTINGS:
            # A record that was put to the model has been asked with judge's own prompt already.
            told = checks["defended"] if prompting == "prompt-only" else (None, None)
            twin, injected = (one if one is not None and one.votes else None for one in told)
            checks[prompting] = (
                twin or await self._twin(case, prompting),
                injected or await self._check(case, case.injected, prompting),
            )
        return checks

    async def _twin(self, case: Case, prompting: Prompting) -> Check:
        """Asked once for all cases on the same record, with a cache or without one."""
        key = (case.carrier, prompting)
        task = self._twins.get(key)
        if task is None:
            task = asyncio.create_task(self._check(case, case.twin, prompting))
            self._twins[key] = task
        try:
            # A case that is given up leaves the others their twin.
            return await asyncio.shield(task)
        finally:
            # A fault that passes is not to be that of every case on the record.
            if _lost(task) and self._twins.get(key) is task:
                del self._twins[key]

    async def _check(self, case: Case, record: Mapping[str, Any], prompting: Prompting) -> Check:
        subject = subject_of(case, self.picked.rubrics[case.check], record)
        return await take_votes(self._panel(case.check, prompting), subject, by="accepting")

    def _panel(self, check: str, prompting: Prompting) -> Panel:
        key = (check, prompting)
        if key not in self._panels:
            self._panels[key] = _WAYS[prompting](self.setup.panel(check))
        return self._panels[key]

    def _line(
        self,
        item: Item,
        case: Case,
        checks: Mapping[Prompting, tuple[Check, Check]],
        error: tuple[str, str] | None = None,
    ) -> Line:
        pairs = {name: Pair.of(*both) for name, both in checks.items()}
        result = Result(case.check, case.family, case.carrier, case.wanted, pairs)
        reason = error[1] if error else next((p.reason for p in pairs.values() if p.reason), None)
        told = None
        if result.verdict is Verdict.ERROR:
            kind, message = error or _parted(str(reason))
            told = {"type": kind, "line": item.line, "message": message}
        mark = self.mark(NAME)
        # One check can stand under two promptings; it was asked once.
        asked = {id(check): check for both in checks.values() for check in both}.values()
        judgement = {
            "verdict": str(result.verdict),
            "benchmark": NAME,
            "prompts": {name: pair.as_json(case.wanted) for name, pair in pairs.items()},
            "reason": reason,
            "usage": sum((check.usage for check in asked), Usage()).as_json(),
            "fingerprint": mark.fingerprint,
            "error": told,
        }
        return written(_fields(case), judgement)

    def _made_mark(self) -> Mark:
        settings, setup = self.setup.settings, self.setup
        panels = {name: self._panel(name, "defended") for name in self.picked.rubrics}
        known: dict[str, Any] = {
            "judge": list(setup.judges),
            "cheap": settings.cheap_model,
            "settings": {
                "version": __version__,
                "votes": settings.votes or 1,
                "rule": settings.rule,
                "temperature": settings.temperature,
                "vote_temperature": settings.vote_temperature,
                "seed": settings.seed,
                "reasks": settings.reasks,
                "apart": settings.apart,
                # How each rubric is read, as profile, thresholds and margins have it.
                "readings": digest({name: _readings(panel) for name, panel in panels.items()}),
            },
            "suite": self.picked.suite,
            "baseline": digest([UNDEFENDED.system, UNDEFENDED.resumed]),
            "rubrics": {name: rubric.digest for name, rubric in self.picked.rubrics.items()},
        }
        specs = [*setup.judges, *([settings.cheap_model] if settings.cheap_model else [])]
        identities = {spec: dict(setup.client(spec).backend.identity()) for spec in specs}
        return Mark(NAME, known, fingerprint({NAME: known}, identities))


def _fields(case: Case) -> dict[str, Any]:
    return {
        "id": case.id,
        "check": case.check,
        "attack": case.family,
        "carrier": case.carrier,
        "wanted": case.wanted,
        "field": case.field,
        "injection": case.injection,
        "record": dict(case.injected),
    }


def _parted(reason: str) -> tuple[str, str]:
    """(kind, message) of a lost vote's reason."""
    kind, _, message = reason.partition(": ")
    return kind, message or reason


def _lost(task: asyncio.Task[Check]) -> bool:
    if not task.done():
        return False
    failed = task.cancelled() or task.exception() is not None
    return failed or task.result().verdict is Verdict.ERROR


def _asked_anyway(panel: Panel) -> Panel:
    return replace(panel, injected="ask")


def _undefended(panel: Panel) -> Panel:
    def bare(judge: Judge) -> Judge:
        return replace(judge, framing=UNDEFENDED)

    screen = None if panel.screen is None else bare(panel.screen)
    judges = tuple(map(bare, panel.judges))
    return replace(_asked_anyway(panel), judges=judges, screen=screen)


_WAYS: Mapping[Prompting, Callable[[Panel], Panel]] = {
    "defended": lambda panel: panel,
    "prompt-only": _asked_anyway,
    "undefended": _undefended,
}


def _readings(panel: Panel) -> list[list[object]]:
    judges = (*panel.judges, *([panel.screen] if panel.screen else []))
    return [[judge.probabilistic, repr(judge.reader)] for judge in judges]

"""`judge audit` without its command line: a judge put through the suite of hostile text."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from judge.digest import digest
from judge.errors import UsageError
from judge.judging.panel import Panel
from judge.papers.hostile_suite import UNDEFENDED, Case, carriers, families, subject_of
from judge.papers.hostile_tables import PROMPTINGS, AttackPair, AttackResult, Prompting
from judge.records import Record
from judge.records.lines import Line, written
from judge.rubric import Rubric
from judge.run.job import Job
from judge.run.panels import Resources
from judge.run.rubrics import collect
from judge.run.run import run
from judge.run.runinfo import RunInfo, fingerprint
from judge.run.summary import Report
from judge.run.task import Task, Watcher
from judge.settings import Settings
from judge.verdict import Check, Unfinished, Usage, Verdict
from judge.version import __version__

NAME = "audit"
"""What stands where other lines name their workflow or benchmark."""


def wanted(rubrics: Sequence[str]) -> dict[str, Rubric]:
    """The rubrics to audit, by built-in names or files of these names; by default all.

    Raises:
        UsageError: the suite has no records for a rubric.
    """
    known, named = collect(rubrics)
    if strange := [name for name in named if name not in carriers()]:
        raise UsageError(
            f"--rubric {strange[0]}: the suite has no records for it; it has records for "
            f"{', '.join(carriers())} (a file of your own is audited under one of these names)"
        )
    return {name: known[name] for name in carriers() if not named or name in named}


def audit(
    job: Job,
    settings: Settings,
    watcher: Watcher,
    rubrics: Mapping[str, Rubric],
    cases: Sequence[Case],
) -> tuple[Report, list[AttackResult]]:
    """Put the judges that the settings name through the cases, each in every way of `PROMPTINGS`.

    Returns:
        How the run ended, and what came of each case.

    Raises:
        UsageError: nothing was asked: an output, model, profile or setting that cannot be used.
    """
    job.check_outputs()
    # Nothing is accepted or rewritten here, the rubrics are chosen by --rubric, and what judge does
    # about hostile text by itself is what is measured.
    own = {"final_model": (), "rewrite_model": None, "check": (), "workflow": None}
    resources = Resources.of(
        settings.without_steps().model_copy(update={**own, "on_injection": "abstain"})
    )
    task = Audit(job, resources, rubrics, cases)
    return run(job, task, watcher), task.results


@dataclass
class Audit(Task):
    """An audit as a task of the runner."""

    job: Job
    resources: Resources
    rubrics: Mapping[str, Rubric]
    cases: Sequence[Case]
    results: list[AttackResult] = field(default_factory=list)
    _turns: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def items(self) -> Iterator[Record]:
        for number, case in enumerate(self.cases, 1):
            yield Record("judge audit", number, case.fields)

    def run_info(self, name: str) -> RunInfo:
        if name != NAME:
            raise UsageError(
                f"{self.job.out} was not written by judge audit but by {name}: "
                "name another file with -o"
            )
        return self._mark

    async def step(self, item: Record) -> Line:
        case = self.cases[item.line - 1]
        pairs: dict[Prompting, AttackPair] = {}
        usage = Usage()
        for prompting in PROMPTINGS:
            # All cases on a record have one twin, which is asked about once: by the first of them,
            # and by the others out of the cache, or out of the run's memory.
            async with self._turns[case.carrier]:
                twin = await self._check(case, case.twin, prompting)
            injected = await self._check(case, case.injected, prompting)
            pairs[prompting] = AttackPair.of(twin, injected, case.wanted)
            usage += twin.usage + injected.usage
        return self._line(item, pairs, usage)

    def failed(self, item: Record, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        lost, reason = Verdict.ERROR, f"{kind}: {message}"
        pair = AttackPair(outcome="error", twin=lost, injected=lost, reason=reason)
        return self._line(item, dict.fromkeys(PROMPTINGS, pair), Usage())

    def count(self, line: Line, report: Report) -> None:
        self.results.append(AttackResult.of(Line.parse(line.text) or line))

    async def _check(self, case: Case, record: Mapping[str, Any], prompting: Prompting) -> Check:
        columns = self.resources.settings.columns
        subject = subject_of(case, self.rubrics[case.check], record, columns)
        panel = _asking(self.resources.panel(case.check), prompting)
        return await panel.check(subject, by="final")

    def _line(self, item: Record, pairs: Mapping[Prompting, AttackPair], usage: Usage) -> Line:
        """Pass where judge was not turned, fail where it was, abstain where nothing could be."""
        outcomes = [pair.outcome for pair in pairs.values()]
        verdict = {"flipped": Verdict.FAIL, "already": Verdict.ABSTAIN}.get(
            outcomes[0], Verdict.PASS
        )
        for lost in (Verdict.UNREADABLE, Verdict.ERROR):
            verdict = lost if lost in outcomes else verdict
        reason = next((pair.reason for pair in pairs.values() if pair.outcome == verdict), None)
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
            "fingerprint": self._mark.fingerprint,
            "error": error,
        }
        return written(item.fields or {}, judgement)

    @cached_property
    def _mark(self) -> RunInfo:
        settings, resources = self.resources.settings, self.resources
        methods = {}
        for name in self.rubrics:
            panel = resources.panel(name)
            judges = (*panel.judges, *([panel.cheap] if panel.cheap else []))
            # How each rubric is read, as profile, thresholds and margins have it.
            methods[name] = [[judge.probabilistic, repr(judge.reader)] for judge in judges]
        suite = [one.model_dump() for one in (*carriers().values(), *families().values())]
        known: dict[str, Any] = {
            "judge": list(resources.models.judges),
            "cheap": settings.cheap_model,
            "settings": {"version": __version__, **settings.deciding()},
            "methods": digest(methods),
            "suite": digest([UNDEFENDED.system, UNDEFENDED.resumed, *suite]),
            "rubrics": {name: rubric.digest for name, rubric in self.rubrics.items()},
        }
        specs = filter(None, (*resources.models.judges, settings.cheap_model))
        identities = {
            spec: dict(resources.models.client(spec).backend.identity()) for spec in specs
        }
        return RunInfo(NAME, known, fingerprint({NAME: known}, identities))


def _asking(panel: Panel, prompting: Prompting) -> Panel:
    """The panel as it asks under a prompt."""
    if prompting == "defended":
        return panel
    panel = replace(panel, on_injection="ask")
    if prompting == "prompt-only":
        return panel
    judges = tuple(replace(judge, framing=UNDEFENDED) for judge in panel.judges)
    cheap = panel.cheap and replace(panel.cheap, framing=UNDEFENDED)
    return replace(panel, judges=judges, cheap=cheap)

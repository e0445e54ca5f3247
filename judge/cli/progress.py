"""Progress on standard error: bars on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from judge.cli.printing import counted, tell
from judge.run.clients import left_at_provider
from judge.run.task import Watcher

if TYPE_CHECKING:
    from judge.run.job import Job
    from judge.run.setup import Setup
    from judge.run.summary import Summary
    from judge.settings import Settings

_LOG_SECONDS = 10.0
_SAME_SECONDS = 300.0
"""Between two progress lines where standard error is no terminal; between two that say the same."""


class Told(Protocol):
    """Is told a label, how many are done, of how many if that is known, and a detail; `begun`: how
    much of what is not done yet has been, in the same unit, by which the time is estimated."""

    def __call__(
        self, label: str, done: float, of: float | None, detail: str, begun: float = 0.0, /
    ) -> None: ...


@contextmanager
def steps(unit: str, *, quiet: bool = False, lines: bool = False) -> Iterator[Told]:
    """Show how far each label is: a bar on a terminal, else lines; nothing when quiet.

    Args:
        unit: what is counted.
        lines: lines on a terminal, too.
    """
    if quiet:
        yield lambda *_: None
        return
    if lines or not sys.stderr.isatty():
        yield _Lines(unit)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    def whole(**more: Any) -> Column:
        return Column(no_wrap=True, overflow="ellipsis", **more)

    # At 60 columns the detail gives way, and then the label, but not the bar.
    columns = (
        TextColumn("{task.description}", markup=False, table_column=whole(max_width=18)),
        BarColumn(bar_width=16, table_column=whole(min_width=16)),
        TextColumn("{task.fields[count]}", markup=False, table_column=whole()),
        TimeRemainingColumn(table_column=whole()),
        TextColumn("{task.fields[detail]}", markup=False, table_column=whole(ratio=1)),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as progress:
        tasks: dict[str, Any] = {}

        def told(
            label: str, done: float, of: float | None, detail: str, begun: float = 0.0, /
        ) -> None:
            count = _of(done, of)
            if label not in tasks:
                tasks[label] = progress.add_task(label, total=of, count=count, detail="")
            at = tasks[label]
            progress.update(at, completed=done + begun, total=of, count=count, detail=detail)

        yield told


class _Lines:
    """A line every few seconds, or minutes where nothing changes."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._began: dict[str, tuple[float, float]] = {}
        self._last: dict[str, tuple[float, str]] = {}

    def __call__(
        self, label: str, done: float, of: float | None, detail: str, begun: float = 0.0, /
    ) -> None:
        now = time.monotonic()
        known = f"{done} {of} {detail}"
        began, first = self._began.setdefault(label, (now, done))
        last, before = self._last.setdefault(label, (now, ""))
        if now - last < (_SAME_SECONDS if known == before else _LOG_SECONDS):
            return
        self._last[label] = now, known
        pace = f"{(done - first) / (now - began):.2f}/s"
        tell(f"{label}: {_of(done, of)} {self._unit}, {pace}{detail and f' | {detail}'}")


def _of(done: float, of: float | None) -> str:
    return f"{done:,.0f}" + ("" if of is None else f"/{of:,.0f}")


class _Watching(Watcher):
    """Shows a run's progress, and its warnings also when quiet."""

    def __init__(
        self, told: Told, total: int | None, planned: Callable[[], Future[int]] | None
    ) -> None:
        self._told, self._total, self._planned = told, total, planned
        self._calls: Future[int] | None = None

    def wrote(self, summary: Summary, setup: Setup) -> None:
        begun = 0.0
        if not summary.records and self._planned is not None:
            self._calls = self._calls or self._planned()
            if self._calls.done() and self._calls.exception() is None:
                counters = [client.counters for client in setup.clients.values()]
                made = sum(c.calls + c.cache_hits for c in counters)
                begun = min(made / (self._calls.result() or 1), self._total or 0)
        self._told("judging", summary.records, self._total, _detail(summary, setup), begun)

    def say(self, message: str) -> None:
        tell(message, apart=True)


@contextmanager
def watcher(
    job: Job, settings: Settings | None = None, *, quiet: bool, items: bool = False
) -> Iterator[Watcher]:
    """Progress of a run; `items`: what is counted are items that records are made into.

    `settings` of a validation: by the calls that its first record will take, time can be estimated
    before that record is done.
    """
    # Lines of data on the same terminal would tear the bar to pieces.
    beside_data = job.out is None and sys.stdout is not None and sys.stdout.isatty()
    # A bar stands for a terminal that says of itself that it is none.
    shown = not quiet and sys.stderr.isatty()
    with steps("items" if items else "records", quiet=quiet, lines=beside_data) as told:
        total = None if items or quiet else _total(job)
        with ThreadPoolExecutor(1) as aside:
            planned = None
            if settings and total and shown and Path(job.inputs[0]).is_file():
                planned = partial(aside.submit, _calls_of_first, job, settings)
            yield _Watching(told, total, planned)


def _calls_of_first(job: Job, settings: Settings) -> int:
    """How many calls the first record takes if all is well."""
    from judge.run.plan import plan

    first = replace(job, inputs=job.inputs[:1], sample=None, limit=1)
    return plan(first, settings).least.replies


def _total(job: Job) -> int | None:
    """How many records there are, where that is known without reading them as records."""
    paths = [Path(source) for source in job.inputs]
    known = [count for count in (job.sample, job.limit) if count is not None]
    if not known and all(p.suffix in (".jsonl", ".ndjson") and p.is_file() for p in paths):
        return sum(sum(1 for _ in path.open("rb")) for path in paths)
    return min(known, default=None)


def _detail(summary: Summary, setup: Setup) -> str:
    verdicts = " ".join(f"{name} {n}" for name, n in sorted(summary.verdicts.items()))
    counters = [client.counters for client in setup.clients.values()]
    calls = sum(c.calls for c in counters)
    hits = sum(c.cache_hits for c in counters)
    cost = f", {setup.budget.cost:.4f} USD" if setup.budget.cost else ""
    batches = left_at_provider(setup.clients.values())
    more = f" | {counted(batches, 'batch', 'batches')} at the provider" if batches else ""
    return f"{verdicts or 'nothing yet'} | {calls} calls, {hits} from cache{cost}{more}"

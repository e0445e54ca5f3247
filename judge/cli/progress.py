"""Progress on standard error: bars on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.cli.printing import counted, tell
from judge.run.clients import left_at_provider
from judge.run.task import Watcher

if TYPE_CHECKING:
    from judge.run.job import Job
    from judge.run.setup import Setup
    from judge.run.summary import Summary

_LOG_SECONDS = 10.0
_SAME_SECONDS = 300.0
"""Between two progress lines where standard error is no terminal; between two that say the same."""

Told = Callable[[str, float, float | None, str], None]
"""Is told a label, how many are done, of how many if that is known, and a detail."""


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
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[detail]}", markup=False, table_column=rest),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as progress:
        tasks: dict[str, Any] = {}

        def told(label: str, done: float, of: float | None, detail: str) -> None:
            if label not in tasks:
                tasks[label] = progress.add_task(label, total=of, detail="")
            progress.update(tasks[label], completed=done, total=of, detail=detail)

        yield told


class _Lines:
    """A line every few seconds, or minutes where nothing changes."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._began: dict[str, tuple[float, float]] = {}
        self._last: dict[str, tuple[float, str]] = {}

    def __call__(self, label: str, done: float, of: float | None, detail: str) -> None:
        now = time.monotonic()
        known = f"{done} {of} {detail}"
        began, first = self._began.setdefault(label, (now, done))
        last, before = self._last.setdefault(label, (now, ""))
        if now - last < (_SAME_SECONDS if known == before else _LOG_SECONDS):
            return
        self._last[label] = now, known
        total = "" if of is None else f"/{of:,.0f}"
        pace = f"{(done - first) / (now - began):.2f}/s"
        tell(f"{label}: {done:,.0f}{total} {self._unit}, {pace}{detail and f' | {detail}'}")


class _Watching(Watcher):
    """Shows a run's progress, and its warnings also when quiet."""

    def __init__(self, told: Told, total: int | None) -> None:
        self._told, self._total = told, total

    def wrote(self, summary: Summary, setup: Setup) -> None:
        self._told("judging", summary.records, self._total, _detail(summary, setup))

    def say(self, message: str) -> None:
        tell(message, apart=True)


@contextmanager
def watcher(job: Job, *, quiet: bool, items: bool = False) -> Iterator[Watcher]:
    """Progress of a run; `items`: what is counted are items that records are made into."""
    # Lines of data on the same terminal would tear the bar to pieces.
    beside_data = job.out is None and sys.stdout is not None and sys.stdout.isatty()
    with steps("items" if items else "records", quiet=quiet, lines=beside_data) as told:
        yield _Watching(told, None if items or quiet else _total(job))


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

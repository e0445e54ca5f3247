"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from judge import api
from judge.cli.printing import counted, print_message

if TYPE_CHECKING:
    from judge.api import Job, Progress
    from judge.settings import Settings

_LOG_SECONDS = 10.0
_SAME_SECONDS = 300.0
"""Seconds between two progress lines where standard error is no terminal: different, and equal."""


class Steps(Protocol):
    """Shows under a label how many are done (`count`), of how many if known (`of`), and a detail.

    `begun` is the work done on unfinished ones, in the same unit; it helps to estimate the time.
    """

    def __call__(
        self, label: str, count: float, of: float | None, detail: str, begun: float = 0.0, /
    ) -> None: ...


@contextmanager
def steps(unit: str, *, quiet: bool = False, lines: bool = False) -> Iterator[Steps]:
    """Show the progress of each label; nothing when quiet.

    Args:
        unit: what is counted.
        lines: print lines even on a terminal.
    """
    if quiet:
        yield lambda *_: None
    elif lines or not sys.stderr.isatty():
        yield _PlainSteps(unit)
    else:
        with _bars() as show:
            yield show


@contextmanager
def _bars() -> Iterator[Steps]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    def whole(**options: Any) -> Column:
        return Column(no_wrap=True, overflow="ellipsis", **options)

    # In 60 columns the detail is cut first, then the label, but not the bar.
    columns = (
        TextColumn("{task.description}", markup=False, table_column=whole(max_width=18)),
        BarColumn(bar_width=16, table_column=whole(min_width=16)),
        TextColumn("{task.fields[count]}", markup=False, table_column=whole()),
        TimeRemainingColumn(table_column=whole()),
        TextColumn("{task.fields[detail]}", markup=False, table_column=whole(ratio=1)),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as progress:
        tasks: dict[str, Any] = {}

        def show(
            label: str, count: float, of: float | None, detail: str, begun: float = 0.0, /
        ) -> None:
            if label not in tasks:
                tasks[label] = progress.add_task(label, count="", detail="")
            task, share = tasks[label], _of(count, of)
            progress.update(task, completed=count + begun, total=of, count=share, detail=detail)

        yield show


class _PlainSteps:
    """Prints a line every few seconds, or minutes where nothing changes."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._began: dict[str, tuple[float, float]] = {}
        self._last: dict[str, tuple[float, str]] = {}

    def __call__(
        self, label: str, count: float, of: float | None, detail: str, begun: float = 0.0, /
    ) -> None:
        now = time.monotonic()
        line = f"{label}: {_of(count, of)} {self._unit}"
        content = f"{line} {detail}"
        began, first = self._began.setdefault(label, (now, count))
        last, before = self._last.setdefault(label, (now, ""))
        if now - last >= (_SAME_SECONDS if content == before else _LOG_SECONDS):
            self._last[label] = now, content
            pace = (count - first) / (now - began)
            print_message(f"{line}, {pace:.2f}/s{detail and f' | {detail}'}")


def _of(count: float, of: float | None) -> str:
    return f"{count:,.0f}" + ("" if of is None else f"/{of:,.0f}")


class _Watching(api.Watcher):
    """Shows a run's progress; warnings even when quiet.

    `calls` is the number of calls that the first record takes, from which time is estimated before
    that record is done.
    """

    def __init__(
        self, show: Steps, total: int | None, calls: Future[int] | None, quiet: bool
    ) -> None:
        self._show, self._total, self._calls, self._quiet = show, total, calls, quiet

    def wrote(self, progress: Progress) -> None:
        if self._quiet:
            return
        summary, begun, calls = progress.summary, 0.0, self._calls
        fresh, hits = progress.calls, progress.cache_hits
        if not summary.records and calls and calls.done() and calls.exception() is None:
            begun = min((fresh + hits) / (calls.result() or 1), self._total or 0)
        verdicts = " ".join(f"{name} {n}" for name, n in sorted(summary.verdicts.items()))
        detail = f"{verdicts or 'nothing yet'} | {counted(fresh, 'call')}, {hits} reused"
        if progress.cost:
            detail += f", {progress.cost:.4f} USD"
        if batches := progress.batches:
            detail += f" | {counted(batches, 'batch', 'batches')} at the provider"
        self._show("judging", summary.records, self._total, detail, begun)

    def say(self, message: str) -> None:
        print_message(message, new_line=True)

    def note(self, message: str) -> None:
        if not self._quiet:
            self.say(message)


@contextmanager
def watcher(
    job: Job, settings: Settings | None = None, *, quiet: bool, items: bool = False
) -> Iterator[api.Watcher]:
    """Progress of a run.

    Args:
        settings: settings of a validation; its first record is planned to estimate the time.
        items: count the items that records are made into, not the records.
    """
    # Lines of data on the same terminal would break up the bar.
    to_stdout = job.out is None and not job.silent
    beside_data = to_stdout and sys.stdout is not None and sys.stdout.isatty()
    bar = not quiet and sys.stderr.isatty() and not beside_data
    total = None if items or quiet else _total(job)
    unit = "items" if items else "records"
    with steps(unit, quiet=quiet, lines=beside_data) as show, ThreadPoolExecutor(1) as aside:
        calls = None
        if settings and total and bar and Path(job.inputs[0]).is_file():
            calls = aside.submit(_calls_of_first, job, settings)
        yield _Watching(show, total, calls, quiet)


def _calls_of_first(job: Job, settings: Settings) -> int:
    """The least number of calls that the first record takes."""
    first = replace(job, inputs=job.inputs[:1], sample=None, limit=1)
    return api.plan_job(first, settings).least.replies


def _total(job: Job) -> int | None:
    """The number of records, if it is known without parsing them; else None."""
    paths = [Path(source) for source in job.inputs]
    content = [count for count in (job.sample, job.limit) if count is not None]
    if not content and all(p.suffix in (".jsonl", ".ndjson") and p.is_file() for p in paths):
        return sum(sum(1 for _ in path.open("rb")) for path in paths)
    return min(content, default=None)

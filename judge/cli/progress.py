"""Progress on standard error: bars on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from judge.cli.printing import counted, tell
from judge.run.clients import left_at_provider
from judge.run.resume import unmatched_file
from judge.run.task import Watcher

if TYPE_CHECKING:
    from judge.run.job import Job
    from judge.run.setup import Setup
    from judge.run.summary import Summary

LOG_SECONDS = 10.0
"""Between two progress lines where standard error is no terminal."""

SAME_SECONDS = 300.0
"""Between two that say the same."""

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
        yield Lines(unit)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn(
            "{task.fields[detail]}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as progress:
        tasks: dict[str, TaskID] = {}

        def told(label: str, done: float, of: float | None, detail: str) -> None:
            if label not in tasks:
                tasks[label] = progress.add_task(label, total=of, detail="")
            progress.update(tasks[label], completed=done, total=of, detail=detail)

        yield told


class Lines:
    """A line every `LOG_SECONDS`, or `SAME_SECONDS` where nothing changes."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._began: dict[str, tuple[float, float]] = {}
        self._last: dict[str, tuple[float, str]] = {}

    def __call__(self, label: str, done: float, of: float | None, detail: str) -> None:
        now = time.monotonic()
        known = f"{done} {of} {detail}"
        began, first = self._began.setdefault(label, (now, done))
        last, before = self._last.setdefault(label, (now, ""))
        if now - last < (SAME_SECONDS if known == before else LOG_SECONDS):
            return
        self._last[label] = now, known
        total = "" if of is None else f"/{of:,.0f}"
        pace = f"{(done - first) / (now - began):.2f}/s"
        tell(f"{label}: {done:,.0f}{total} {self._unit}, {pace}{detail and f' | {detail}'}")


@contextmanager
def counting(*, quiet: bool) -> Iterator[Callable[[str, str, int, int], None]]:
    """`steps` for items put to models: told a check, a model, how many are done, of how many."""
    with steps("items", quiet=quiet) as told:
        yield lambda check, model, done, of: told(f"{check}, {model}", done, of, "")


class Watching(Watcher):
    """Shows a run's progress, and its warnings also when quiet."""

    def __init__(self, told: Told, total: int | None) -> None:
        self._told, self._total = told, total

    def began(self, setup: Setup) -> None:
        self._told("judging", 0, self._total, "")

    def wrote(self, summary: Summary, setup: Setup) -> None:
        self._told("judging", summary.records, self._total, _detail(summary, setup))

    tick = wrote

    def left_out(self, count: int) -> None:
        tell(f"left out of OUT, as torn or not written by judge: {counted(count, 'line')}")

    def unmatched(self, count: int, out: Path) -> None:
        tell(
            f"{counted(count, 'finished line')} of {out} for which this input has no record: put "
            f"into {unmatched_file(out)}"
        )

    def stopping(self, now: bool) -> None:
        if sys.stderr.isatty():
            # The terminal shows ^C where it was typed.
            typer.echo(err=True)
        how = "stopping now" if now else "finishing what is under way; Ctrl-C again stops at once"
        tell(how)


@contextmanager
def watcher(
    job: Job, *, quiet: bool, items: bool = False, of: int | None = None
) -> Iterator[Watching]:
    """Progress of a run.

    Args:
        items: what is counted are items that the inputs' records are made into, and not records:
            `of` how many, None where that is not known.
    """
    # Lines of data on the same terminal would tear the bar to pieces.
    beside_data = job.out is None and sys.stdout is not None and sys.stdout.isatty()
    with steps("items" if items else "records", quiet=quiet, lines=beside_data) as told:
        yield Watching(told, of if items or quiet else _total(job))


def _total(job: Job) -> int | None:
    """How many records there are, where that is known without reading them as records."""
    counts = [_lines_in(Path(source)) for source in job.inputs]
    known = [job.sample] if job.sample is not None else []
    if not known and None not in counts:
        known = [sum(filter(None, counts))]
    return min((limit for limit in (*known, job.limit) if limit is not None), default=None)


def _lines_in(path: Path) -> int | None:
    if path.suffix not in (".jsonl", ".ndjson") or not path.is_file():
        return None
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")


def _detail(summary: Summary, setup: Setup) -> str:
    verdicts = " ".join(f"{name} {n}" for name, n in sorted(summary.verdicts.items()))
    counters = [client.counters for client in setup.clients.values()]
    calls = sum(c.calls for c in counters)
    hits = sum(c.cache_hits for c in counters)
    cost = f", {setup.budget.cost:.4f} USD" if setup.budget.cost else ""
    batches = left_at_provider(setup.settings, setup.clients.values())
    more = f" | {counted(batches, 'batch', 'batches')} at the provider" if batches else ""
    return f"{verdicts or 'nothing yet'} | {calls} calls, {hits} from cache{cost}{more}"

"""Progress on standard error: bars on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

BATCH_SECONDS = 600.0
"""Between two that say the same while batches are waited for."""


class Watching(Watcher):
    """Says nothing but warnings."""

    def left_out(self, count: int) -> None:
        typer.echo(
            f"judge: left out of OUT, as torn or not written by judge: {counted(count, 'line')}",
            err=True,
        )

    def unmatched(self, count: int, out: Path) -> None:
        tell(
            f"{counted(count, 'finished line')} of {out} for which this input has no record: put "
            f"into {unmatched_file(out)}"
        )

    def stopping(self, now: bool) -> None:
        if sys.stderr.isatty():
            # The terminal shows ^C where it was typed.
            typer.echo(err=True)
        tell(_stopping(now))


def _stopping(now: bool) -> str:
    if now:
        return "stopping now"
    return "finishing what is under way; Ctrl-C again stops at once"


@contextmanager
def watcher(
    job: Job, *, quiet: bool, items: bool = False, of: int | None = None
) -> Iterator[Watching]:
    """Bars on a terminal, a line every few seconds elsewhere, nothing when quiet.

    Args:
        items: what is counted are items that the inputs' records are made into, and not records:
            `of` how many, None where that is not known.
    """
    if quiet:
        yield Watching()
        return
    total = of if items else _total(job)
    # Lines of data on the same terminal would tear the bar to pieces.
    beside_data = job.out is None and sys.stdout.isatty()
    if beside_data or not sys.stderr.isatty():
        yield LogLines(total, "items" if items else "records")
        return
    bars = Bars(total)
    with bars.progress:
        yield bars


def _total(job: Job) -> int | None:
    """How many records there are, where that is known without reading them as records."""
    if job.sample is not None:
        return job.sample if job.limit is None else min(job.sample, job.limit)
    counts = [_lines_in(Path(source)) for source in job.inputs]
    if any(count is None for count in counts):
        return job.limit
    total = sum(count for count in counts if count is not None)
    return total if job.limit is None else min(total, job.limit)


def _lines_in(path: Path) -> int | None:
    if path.suffix not in (".jsonl", ".ndjson") or not path.is_file():
        return None
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")


def _told(summary: Summary, setup: Setup) -> str:
    verdicts = " ".join(f"{name} {n}" for name, n in sorted(summary.verdicts.items()))
    counters = [client.counters for client in setup.clients.values()]
    calls = sum(c.calls for c in counters)
    hits = sum(c.cache_hits for c in counters)
    cost = f", {setup.budget.cost:.4f} USD" if setup.budget.cost else ""
    batches = left_at_provider(setup.settings, setup.clients.values())
    more = f" | {counted(batches, 'batch', 'batches')} at the provider" if batches else ""
    return f"{verdicts or 'nothing yet'} | {calls} calls, {hits} from cache{cost}{more}"


class LogLines(Watching):
    """A plain line every `LOG_SECONDS`: how many of what are done, of how many if that is known."""

    def __init__(self, total: int | None, what: str = "records") -> None:
        self._total, self._what = total, what
        self._began = self._last = time.monotonic()
        self._known = ""

    def wrote(self, summary: Summary, setup: Setup) -> None:
        self.tick(summary, setup)

    def tick(self, summary: Summary, setup: Setup) -> None:
        now = time.monotonic()
        if now - self._last < LOG_SECONDS:
            return
        known = _told(summary, setup)
        waits = setup.settings.engine == "batch" and known == self._known
        if waits and now - self._last < BATCH_SECONDS:
            return
        self._last, self._known = now, known
        of = f"/{self._total}" if self._total is not None else ""
        pace = (summary.records - summary.kept) / max(now - self._began, 1e-9)
        told = f"{summary.records}{of} {self._what}, {pace:.2f}/s | {known}"
        tell(told)


class Bars(Watching):
    """A Rich progress bar with pace, verdicts, cache hits, cost and time to go."""

    def __init__(self, total: int | None) -> None:
        from rich.console import Console, RenderableType
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class TwoLines(Progress):
            """The bar, and below it what has come of the run: both fit a narrow terminal."""

            def get_renderables(self) -> Iterator[RenderableType]:
                yield from super().get_renderables()
                for task in self.tasks:
                    yield Text(task.fields["told"], overflow="ellipsis", no_wrap=True)

        self.progress = TwoLines(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("to go"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            expand=True,
        )
        self._task: Any = self.progress.add_task("loading", total=total, told="")

    def began(self, setup: Setup) -> None:
        self.progress.update(self._task, description="judging")

    def wrote(self, summary: Summary, setup: Setup) -> None:
        self.progress.update(self._task, completed=summary.records, told=_told(summary, setup))

    def tick(self, summary: Summary, setup: Setup) -> None:
        self.progress.update(self._task, told=_told(summary, setup))

    def stopping(self, now: bool) -> None:
        self.progress.update(self._task, description="stopping")
        tell(_stopping(now))


# ---------------------------------------------------------------- steps of known number

Told = Callable[[str, str, int, int], None]
"""Is told what is worked on, by which model, how many items are done, and of how many."""


@contextmanager
def counting(*, quiet: bool) -> Iterator[Told]:
    """`steps` for items put to models; nothing is shown when quiet."""
    if quiet:
        yield lambda *_: None
        return
    with steps("items") as told:
        yield lambda check, model, done, of: told(f"{check}, {model}", done, of, "")


@contextmanager
def steps(unit: str) -> Iterator[Callable[[str, float, float, str], None]]:
    """A bar for each label on a terminal, a line every few seconds elsewhere.

    The function that it gives is told a label, how many are done, of how many, and a detail.
    """
    if not sys.stderr.isatty():
        yield _step_lines(unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} " + unit),
        TextColumn("{task.fields[detail]}"),
    )
    with Progress(*columns, console=Console(stderr=True), expand=True) as progress:
        tasks: dict[str, TaskID] = {}

        def told(label: str, done: float, of: float, detail: str) -> None:
            if label not in tasks:
                tasks[label] = progress.add_task(label, total=of, detail="")
            progress.update(tasks[label], completed=done, total=of, detail=detail)

        yield told


def _step_lines(unit: str) -> Callable[[str, float, float, str], None]:
    last: dict[str, float] = {}

    def told(label: str, done: float, of: float, detail: str) -> None:
        now = time.monotonic()
        if done >= of or label not in last or now - last[label] >= LOG_SECONDS:
            last[label] = now
            tell(f"{label}: {done:,.0f} of {of:,.0f} {unit}{detail and ', ' + detail}")

    return told

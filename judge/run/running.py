"""A run: its stream of items, its brake, its output, and how it is stopped and gone on with.

What is done with an item is the `Work`'s: validation (judge/run/validate.py) or another.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from judge.cache import CacheError
from judge.errors import BackendError, Exit, JudgeError, UsageError
from judge.records import Item, content_hash
from judge.run import lines
from judge.run.batching import left_at_provider
from judge.run.corrected import Corrections
from judge.run.fingerprint import Mark
from judge.run.interrupts import Interrupts
from judge.run.job import Job
from judge.run.lines import Line
from judge.run.outfiles import OutFiles
from judge.run.pipeline import Brake, Pipeline, feed
from judge.run.resume import Resumption
from judge.run.setup import Setup
from judge.run.shelf import LineShelf
from judge.run.summary import Summary
from judge.verdict import Verdict

FOR_PEOPLE = frozenset((Verdict.ABSTAIN, Verdict.UNREADABLE))
"""Verdicts that leave a record to people (`--review`)."""

TICK_SECONDS = 1.0
"""Between two signs of life to whoever watches, also while one record takes minutes."""


@dataclass(slots=True)
class Report:
    """How a run ended: its exit code so far (the gate is the caller's), sums, and the reason.

    `batches` go on at a provider without it. Where OUT was not `begun`, it is as it was before;
    `set_aside` finished lines of it found no record in the input, and lie beside it.
    """

    summary: Summary
    seconds: float = 0.0
    interrupted: bool = False
    fatal: JudgeError | None = None
    broken_pipe: bool = False
    batches: int = 0
    begun: bool = False
    set_aside: int = 0
    traffic: dict[str, dict[str, Any]] = field(default_factory=dict)
    cost: float = 0.0
    corrections: Corrections = field(default_factory=Corrections)

    @property
    def finished(self) -> bool:
        """Whether every input line has its output line."""
        return not (self.interrupted or self.fatal or self.broken_pipe)

    @property
    def exit_code(self) -> int:
        if self.broken_pipe:
            return int(Exit.READER_GONE)
        if self.fatal is not None:
            return int(self.fatal.exit_code)
        if self.interrupted:
            return int(Exit.INTERRUPTED)
        return int(Exit.INCOMPLETE if self.summary.incomplete else Exit.OK)

    def as_json(self) -> dict[str, Any]:
        return {
            **self.summary.as_json(),
            "finished": self.finished,
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 3),
            "cost_usd": round(self.cost, 6),
            "set_aside": self.set_aside,
            "corrected_pass_rates": [rate.as_json() for rate in self.corrections.rates()],
            "models": self.traffic,
        }


class Watcher:
    """Told what happens in a run; the base class does nothing with it."""

    def began(self, setup: Setup) -> None:
        """The models are ready."""

    def wrote(self, summary: Summary, setup: Setup) -> None:
        """One more line is out."""

    def tick(self, summary: Summary, setup: Setup) -> None:
        """Another second has passed, perhaps with nothing written."""

    def stopping(self, now: bool) -> None:
        """The user asked to stop."""

    def left_out(self, count: int) -> None:
        """So many lines of OUT were not written by judge, and `--resume` drops them."""

    def set_aside(self, count: int, out: Path, aside: Path) -> None:
        """So many finished lines of OUT found no record in the input, and lie beside it now."""


class Work(Protocol):
    """What a run does with its items."""

    setup: Setup

    def items(self) -> Iterator[Item]:
        """The input, as far as it is wanted."""
        ...

    async def prepare(self) -> None:
        """Reach every model before the first item; raises BackendError or UsageError."""
        ...

    def mark(self, name: str) -> Mark:
        """Of a workflow or benchmark: what its finished lines must have been made with."""
        ...

    def readable(self, item: Item) -> bool:
        """Whether the item is one that gets more than an error; asked in the items' order."""
        ...

    async def line(self, item: Item, kept: Callable[[Item], Line | None]) -> Line:
        """The output line for one item; `kept` gives the one of an earlier run, once.

        Raises:
            BackendError: a model is out of reach or denied, or the budget is used up.
        """
        ...

    def count(self, line: Line, report: Report) -> None:
        """One more line is out, or stands from an earlier run."""
        ...


def run(job: Job, work: Work, summary: Summary, watcher: Watcher) -> Report:
    """Take a job's items through `work`, to the end or to where it was stopped.

    Raises:
        UsageError: nothing was asked: an output, or a model, that cannot be used.
    """
    running = _Run(job, work, summary, watcher)
    with Interrupts(running.interrupt), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(running.go())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop, which makes calls cheaper; Python's own where there is none."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


class _Run:
    """One run: its stream, its brake, and what it does with each record."""

    def __init__(self, job: Job, work: Work, summary: Summary, watcher: Watcher) -> None:
        self.job, self.work, self.watcher = job, work, watcher
        self.report = Report(summary)
        self.brake = Brake()
        self.files = OutFiles(job)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streaming = False

    @property
    def setup(self) -> Setup:
        return self.work.setup

    async def go(self) -> Report:
        self._loop = asyncio.get_running_loop()
        began = time.monotonic()
        try:
            items = self._items()
            self.files.open()
            if await self._prepared():
                # What is there now stays; the collector, off until here, need not look at it.
                gc.freeze()
                gc.enable()
                self.watcher.began(self.setup)
                if self.setup.cache is not None:
                    self.setup.cache.on_fault = self._stop_for
                await self._stream(items)
                if self.report.finished:
                    self._settle()
        finally:
            self.report.begun = self.files.begun
            self.files.close()
            await self._close(began)
            # At exit some libraries (nanobind's) tell of all that was never collected.
            gc.unfreeze()
        return self.report

    async def _prepared(self) -> bool:
        """Whether every model is ready; until then nothing is under way that could be finished."""
        preparing = asyncio.ensure_future(self.work.prepare())
        self.brake.tasks.add(preparing)
        preparing.add_done_callback(self.brake.tasks.discard)
        try:
            await preparing
        except asyncio.CancelledError:
            return False
        except BackendError as error:
            self.report.fatal = _fatal(error)
            return False
        return not self.brake.pulled

    async def _stream(self, items: Iterator[Item]) -> None:
        self._streaming = True
        shelf = None if self.job.unordered else LineShelf(self.files.aside)
        pipeline = Pipeline(self._line, slots=self.setup.slots, brake=self.brake, shelf=shelf)
        ticking = asyncio.create_task(self._tick())
        try:
            await pipeline.run(feed(items, self.brake), self._emit)
            if self.report.finished:
                self.files.begin()
        except BrokenPipeError:
            self.report.broken_pipe = True
        except BackendError as error:
            self.report.fatal = _fatal(error)
        except CacheError as error:
            self._stop_for(error)
        except JudgeError as error:
            if isinstance(error, UsageError) and not self.files.begun:
                raise
            self.report.fatal = error
        finally:
            ticking.cancel()
            if shelf is not None:
                shelf.close()
        for opened in self.files.opened:
            opened.look()
        self._see()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.watcher.tick(self.report.summary, self.setup)

    # ------------------------------------------------------------ stopping

    def interrupt(self, again: bool) -> None:
        """Stop reading and finish what is under way; `again`: stop now. From any thread.

        What is under way in batches may take a day, and goes on at the provider without us.
        """
        again = again or self.setup.settings.engine == "batch"
        self.report.interrupted = True
        if self._loop is None:
            self.brake.pulled = True
        else:
            self._loop.call_soon_threadsafe(self._interrupted, again or not self._streaming)

    def _interrupted(self, now: bool) -> None:
        self.watcher.stopping(now)
        if now:
            self.brake.stop_now()
        else:
            self.brake.stop_reading()

    def _stop_for(self, error: CacheError) -> None:
        """Read no further, because replies can no longer be stored, or found."""
        if self.report.fatal is None:
            self.report.fatal = JudgeError(str(error))
            self.report.fatal.exit_code = Exit.UNAVAILABLE
        self.brake.stop_reading()

    def _see(self) -> None:
        """Read no further if OUT, or the review, is not what it was."""
        for opened in self.files.opened:
            if opened.fault is not None:
                self.report.fatal = self.report.fatal or opened.fault
                self.brake.stop_reading()

    # ------------------------------------------------------------ one item

    async def _line(self, item: Item) -> Line:
        line = await self.work.line(item, self._kept)
        self.files.begin()
        return line

    def _kept(self, item: Item) -> Line | None:
        if self.files.resumption is None or item.fields is None:
            return None
        text = self.files.resumption.kept.take(content_hash(item.fields))
        found = lines.earlier(text) if text is not None else None
        return Line(text, found.judgement, kept=True) if text and found else None

    def _emit(self, line: Line) -> None:
        self.files.sink.write(line.text)
        self._count(line)
        self._see()
        self.watcher.wrote(self.report.summary, self.setup)

    def _count(self, line: Line) -> None:
        self.report.summary.add(line.judgement, kept=line.kept)
        if self.files.review is not None and line.judgement["verdict"] in FOR_PEOPLE:
            self.files.review.write(line.text)
        self.work.count(line, self.report)

    # ------------------------------------------------------------ files

    def _items(self) -> Iterator[Item]:
        items, resumption = self.work.items(), self.files.resumption
        if resumption is None:
            return items
        if foreign := resumption.check(self.work.mark):
            self.watcher.left_out(foreign)
        return self._resumed(items, resumption)

    def _settle(self) -> None:
        self.report.set_aside = self.files.settle()
        if self.report.set_aside and self.job.out is not None and self.files.aside is not None:
            self.watcher.set_aside(self.report.set_aside, self.job.out, self.files.aside)

    def _resumed(self, items: Iterator[Item], resumption: Resumption) -> Iterator[Item]:
        """The items that are still to do, after those whose lines already stand in OUT.

        Runs where the input is read, and is done with OUT before it gives the first item.
        """
        size, ahead = 0, list[Item]()
        for text, found in resumption.prefix():
            item = next(items, None)
            if item is None:
                break
            if not self._stands(item, found.key):
                ahead.append(item)
                break
            self.files.begin_review()
            self._count(Line(text, found.judgement, kept=True))
            size += len(text)
        resumption.keep(size)
        yield from chain(ahead, items)

    def _stands(self, item: Item, key: str) -> bool:
        same = item.fields is not None and content_hash(item.fields) == key
        return same and self.work.readable(item)

    async def _close(self, began: float) -> None:
        """Sum up and free everything."""
        self.report.seconds = time.monotonic() - began
        self.report.cost = self.setup.budget.cost
        for spec, client in self.setup.clients.items():
            self.report.traffic[spec] = asdict(client.counters)
        self.report.batches = left_at_provider(self.setup.settings, self.setup.clients.values())
        await self.setup.aclose()


def _fatal(error: BackendError) -> JudgeError:
    """The error that ended a run, with its exit code: 4 unless the call itself was bad."""
    told = JudgeError(f"the model cannot be used: {error}")
    bad_call = error.kind in ("bad-request", "context-exceeded", "budget")
    told.exit_code = Exit.USAGE if bad_call else Exit.UNAVAILABLE
    return told

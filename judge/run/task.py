"""A run of a command: its items through its step into its files, and how it ended.

What is asked about an item is the `Task`'s: validation, evaluation and audit are tasks.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from judge.cache import CacheError
from judge.errors import BackendError, Exit, JudgeError, UsageError
from judge.judging.limits import Budget, record_turn
from judge.records import Item, content_hash
from judge.redact import redacted
from judge.run import lines
from judge.run.clients import left_at_provider
from judge.run.corrected import Corrections
from judge.run.fingerprint import Mark
from judge.run.job import Job
from judge.run.lines import Line
from judge.run.output import (
    FileSink,
    NoSink,
    Sink,
    StreamSink,
    read_description,
    write_description,
)
from judge.run.resume import Resumption
from judge.run.runner import Interrupts, Stop
from judge.run.runner import run as run_stream
from judge.run.setup import Setup
from judge.run.summary import Summary
from judge.verdict import Unfinished, Usage, Verdict

FOR_PEOPLE = frozenset((Verdict.ABSTAIN, Verdict.UNREADABLE))
"""Verdicts that leave a record to people (`--review`)."""

TICK_SECONDS = 1.0
"""Between two signs of life to a watcher, and two looks at OUT."""

SYNC_SECONDS = 5.0
"""Between two times that OUT is brought to the disk."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """How a run ended: its exit code so far (the gate is the caller's), sums, and the reason.

    `batches` go on at a provider without it. Where OUT was not `begun`, it is as it was before;
    `unmatched` finished lines of it found no record in the input, and lie beside it. `runs` says
    what lines were made with, by fingerprint.
    """

    summary: Summary
    seconds: float = 0.0
    interrupted: bool = False
    fatal: JudgeError | None = None
    broken_pipe: bool = False
    batches: int = 0
    begun: bool = False
    unmatched: int = 0
    traffic: dict[str, dict[str, Any]] = field(default_factory=dict)
    cost: float = 0.0
    corrections: Corrections = field(default_factory=Corrections)
    runs: dict[str, Any] = field(default_factory=dict)

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
            "unmatched": self.unmatched,
            "corrected_pass_rates": [rate.as_json() for rate in self.corrections.rates()],
            "models": self.traffic,
            "runs": self.runs,
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

    def unmatched(self, count: int, out: Path) -> None:
        """So many finished lines of OUT found no record in the input, and lie beside it now."""


class Task(Protocol):
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

    def read(self, item: Item) -> Any | Line:
        """What `step` takes for the item, or the line of one that cannot be judged.

        Called once for each item, in their order, on the thread that reads them.
        """
        ...

    async def step(self, subject: Any) -> Line:
        """The output line of what `read` gave.

        Raises:
            BackendError: the model gave no reply.
        """
        ...

    def failed(self, subject: Any, kind: str, message: str, unfinished: Unfinished | None) -> Line:
        """The line of an item that got no verdict; `unfinished`: what was asked until then."""
        ...

    def count(self, line: Line, report: Report) -> None:
        """One more line is out, or stands from an earlier run."""
        ...


async def line_of(task: Task, subject: Any) -> Line:
    """The output line of what `task` read from an item.

    Raises:
        JudgeError: what ends the run: a model out of reach, a refused key, a budget that is spent.
    """
    try:
        return await task.step(subject)
    except BackendError as error:
        if error.ends_run:
            raise
        return task.failed(subject, error.kind, str(error), error.unfinished)
    except JudgeError:
        raise
    except Exception as error:  # noqa: BLE001
        # A fault of judge, or of a rubric, workflow or benchmark that was added: one record must
        # not keep all others from being judged, now and again on every resume.
        _log.exception("%s was not judged", _named(subject))
        told = redacted(f"{type(error).__name__}: {error}")
        return task.failed(subject, "internal", told, None)


def run(job: Job, task: Task, summary: Summary, watcher: Watcher) -> Report:
    """Take a job's items through a task, to the end or to where it was stopped.

    Raises:
        UsageError: nothing was asked: an output, or a model, that cannot be used.
    """
    running = _Run(job, task, summary, watcher)
    with Interrupts(running.interrupt), asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(running.go())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop, which makes calls cheaper; Python's own where there is none."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


def room_within(budget: Budget, dearest: Usage, slots: int) -> int:
    """How many records may be under way, so that a small budget finishes some of them.

    Without a limit `slots`; else one until a record is finished, then as many as what is left of
    the budget finishes, should each take what the `dearest` record so far took.
    """
    room = slots
    if budget.max_calls is not None:
        left = budget.max_calls - budget.calls
        room = min(room, left // dearest.replies if dearest.replies else 1)
    if budget.max_cost is not None:
        money, cost = budget.max_cost - budget.cost, dearest.cost_usd
        room = min(room, int(money / cost) if cost else slots if dearest.replies else 1)
    return max(1, room)


class _Run:
    """One run: its stream, its files, and how it is stopped."""

    def __init__(self, job: Job, task: Task, summary: Summary, watcher: Watcher) -> None:
        self.job, self.task, self.watcher = job, task, watcher
        self.report = Report(summary)
        self.stop = Stop()
        self.sink: Sink = NoSink()
        self.review: FileSink | None = None
        self.resumption: Resumption | None = None
        self._reviewed = False
        self._dearest = Usage()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streaming = False

    @property
    def setup(self) -> Setup:
        return self.task.setup

    async def go(self) -> Report:
        self._loop = asyncio.get_running_loop()
        began = time.monotonic()
        try:
            self._open()
            if await self._prepared():
                # What is there now stays; the collector, off until here, need not look at it.
                gc.freeze()
                gc.enable()
                self.watcher.began(self.setup)
                if self.setup.cache is not None:
                    self.setup.cache.on_fault = self._stop_for
                await self._stream()
                self._settle()
        finally:
            self._close_files()
            await self._close(began)
            # At exit some libraries (nanobind's) tell of all that was never collected.
            gc.unfreeze()
        return self.report

    async def _prepared(self) -> bool:
        """Whether every model is ready; until then nothing is under way that could be finished."""
        preparing = asyncio.ensure_future(self.task.prepare())
        self.stop.tasks.add(preparing)
        preparing.add_done_callback(self.stop.tasks.discard)
        try:
            await preparing
        except asyncio.CancelledError:
            return False
        except BackendError as error:
            self.report.fatal = _fatal(error)
            return False
        return not self.stop.asked

    async def _stream(self) -> None:
        self._streaming = True
        slots = self.setup.slots
        ticking = asyncio.create_task(self._tick())
        try:
            await run_stream(
                self._items(),
                self._line,
                self._emit,
                room=lambda: room_within(self.setup.budget, self._dearest, slots),
                stop=self.stop,
                ordered=not self.job.unordered,
                waiting=max(1_000, 2 * slots),
            )
            if self.report.finished:
                self._begin()
        except BrokenPipeError:
            self.report.broken_pipe = True
        except BackendError as error:
            self.report.fatal = _fatal(error)
        except CacheError as error:
            self._stop_for(error)
        except JudgeError as error:
            if isinstance(error, UsageError) and not self.report.begun:
                raise
            self.report.fatal = error
        finally:
            ticking.cancel()
        self._look()

    async def _tick(self) -> None:
        synced = time.monotonic()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.watcher.tick(self.report.summary, self.setup)
            self._look()
            if time.monotonic() - synced >= SYNC_SECONDS:
                await asyncio.to_thread(self.sink.sync)
                synced = time.monotonic()

    # ------------------------------------------------------------ stopping

    def interrupt(self, again: bool) -> None:
        """Stop reading and finish what is under way; `again`: stop now. From any thread.

        What is under way in batches may take a day, and goes on at the provider without us.
        """
        again = again or self.setup.settings.engine == "batch"
        self.report.interrupted = True
        if self._loop is None:
            self.stop.asked = True
        else:
            self._loop.call_soon_threadsafe(self._interrupted, again or not self._streaming)

    def _interrupted(self, now: bool) -> None:
        self.watcher.stopping(now)
        if now:
            self.stop.now()
        else:
            self.stop.gently()

    def _stop_for(self, error: CacheError) -> None:
        """Read no further, because replies can no longer be stored, or found."""
        if self.report.fatal is None:
            self.report.fatal = JudgeError(str(error))
            self.report.fatal.exit_code = Exit.UNAVAILABLE
        self.stop.gently()

    def _look(self) -> None:
        """Read no further if OUT, or the review, is not what it was."""
        for opened in self._opened:
            opened.look()
            if opened.fault is not None:
                self.report.fatal = self.report.fatal or opened.fault
                self.stop.gently()

    # ------------------------------------------------------------ one item

    def _items(self) -> Iterator[tuple[Item, Any]]:
        """The items that are still to do, as the task reads them; runs where the input is read."""
        items = self.task.items()
        if self.resumption is not None:
            yield from self._behind_prefix(items, self.resumption)
        for item in items:
            yield item, self.task.read(item)

    def _behind_prefix(
        self, items: Iterator[Item], resumption: Resumption
    ) -> Iterator[tuple[Item, Any]]:
        """The items whose lines stand at the top of OUT, with them, and the first without."""
        size, ahead = 0, list[tuple[Item, Any]]()
        for text, found in resumption.prefix():
            item = next(items, None)
            if item is None:
                break
            subject = self.task.read(item)
            if isinstance(subject, Line):
                same = subject.text == text
            else:
                same = resumption.stands(found) and _key(item) == found.key
            if not same:
                ahead.append((item, subject))
                break
            size += len(text)
            yield item, Line(text, found.judgement, kept=True)
        resumption.index(size)
        yield from ahead

    async def _line(self, read: tuple[Item, Any]) -> tuple[int, Line]:
        item, subject = read
        line = subject if isinstance(subject, Line) else self._kept(item)
        if line is None:
            line = await line_of(self.task, subject)
        return record_turn.get(), line

    def _kept(self, item: Item) -> Line | None:
        if self.resumption is None or item.fields is None:
            return None
        text = self.resumption.take(record_turn.get(), content_hash(item.fields))
        found = lines.earlier(text) if text is not None else None
        return Line(text, found.judgement, kept=True) if text and found else None

    def _emit(self, result: tuple[int, Line]) -> None:
        place, line = result
        if not line.kept:
            self._begin()
            self._describe(line)
            if self.resumption is not None and isinstance(self.sink, FileSink):
                self.resumption.wrote(place, self.sink.size)
            self.sink.write(line.text)
        self._count(line)
        self.watcher.wrote(self.report.summary, self.setup)

    def _count(self, line: Line) -> None:
        self.report.summary.add(line.judgement, kept=line.kept)
        if usage := line.judgement.get("usage"):
            self._dearest = _larger(self._dearest, usage)
        if self.review is not None and line.judgement["verdict"] in FOR_PEOPLE:
            self._begin_review()
            self.review.write(line.text)
        self.task.count(line, self.report)

    def _describe(self, line: Line) -> None:
        """Write down what a line was made with, before the first line with its fingerprint."""
        found = line.judgement.get("fingerprint")
        if found is None or found in self.report.runs:
            return
        self.report.runs[found] = self.task.mark(lines.made_by(line.judgement)).described
        if isinstance(self.sink, FileSink) and self.sink.regular:
            write_description(self.sink.path, self.report.runs)

    # ------------------------------------------------------------ files

    @property
    def _opened(self) -> list[Sink]:
        return [self.sink, *([self.review] if self.review is not None else [])]

    def _open(self) -> None:
        """Open all files, and change none.

        Raises:
            UsageError: one cannot be written, or another run writes to it.
        """
        job, fresh = self.job, not (self.job.resume or self.job.overwrite)
        if job.out is not None:
            cache = self.setup.cache
            if cache is not None and job.out.resolve().parent == cache.folder.resolve():
                raise UsageError(f"-o {job.out} is in the cache folder in use: name another file")
            self.sink = FileSink(job.out, fresh=fresh)
        elif not job.silent:
            self.sink = StreamSink()
        if job.review is not None:
            self.review = FileSink(job.review, fresh=fresh, flag="--review")
        if job.resume and job.out is not None:
            self.resumption = Resumption(job.out, job.redo)
            if foreign := self.resumption.check(self.task.mark):
                self.watcher.left_out(foreign)
            self.report.runs = read_description(job.out)

    def _begin(self) -> None:
        """Make room for the first new line, once.

        Raises:
            JudgeError: OUT cannot be shortened.
        """
        if self.report.begun:
            return
        if self.resumption is None:
            self.sink.empty()
        elif isinstance(self.sink, FileSink):
            self.resumption.begin(self.sink)
        self._begin_review()
        self.report.begun = True

    def _begin_review(self) -> None:
        if self.review is not None and not self._reviewed:
            self._reviewed = True
            self.review.empty()

    def _settle(self) -> None:
        """Put a resumed OUT into the order of the input, also where the run was stopped."""
        if self.resumption is None or not self.report.begun or self.sink.fault is not None:
            return
        try:
            self.report.unmatched = self.resumption.settle(finished=self.report.finished)
        except JudgeError as error:
            self.report.fatal = self.report.fatal or error
        if self.report.unmatched and self.job.out is not None:
            self.watcher.unmatched(self.report.unmatched, self.job.out)

    def _close_files(self) -> None:
        for opened in self._opened:
            try:
                if self.report.begun:
                    opened.sync()
                else:
                    opened.withdraw()
            finally:
                opened.close()
        if self.resumption is not None:
            self.resumption.close()

    async def _close(self, began: float) -> None:
        """Sum up and free everything."""
        self.report.seconds = time.monotonic() - began
        self.report.cost = self.setup.budget.cost
        for spec, client in self.setup.clients.items():
            self.report.traffic[spec] = asdict(client.counters)
        self.report.batches = left_at_provider(self.setup.settings, self.setup.clients.values())
        await self.setup.aclose()


def _named(subject: Any) -> str:
    """The record, as a log line names it."""
    item: Item = getattr(subject, "item", subject)
    return f"record {getattr(subject, 'id', '')} (line {item.line} of {item.source})"


def _larger(usage: Usage, other: Mapping[str, Any]) -> Usage:
    return Usage(
        replies=max(usage.replies, other.get("replies") or 0),
        cost_usd=max(usage.cost_usd or 0.0, other.get("cost_usd") or 0.0),
    )


def _key(item: Item) -> str | None:
    return None if item.fields is None else content_hash(item.fields)


def _fatal(error: BackendError) -> JudgeError:
    """The error that ended a run, with its exit code: 4 unless the call itself was bad."""
    prefix = "" if error.kind == "budget" else "the model cannot be used: "
    told = JudgeError(f"{prefix}{error}")
    bad_call = error.kind in ("bad-request", "context-exceeded")
    told.exit_code = Exit.USAGE if bad_call else Exit.UNAVAILABLE
    return told

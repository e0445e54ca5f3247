"""`judge validate` without its command line: from inputs to output lines and a summary."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from judge.errors import BackendError, Exit, JudgeError, UsageError
from judge.records import Item, Kind, Problem, SeenIds, build, content_hash, read
from judge.run import lines
from judge.run.interrupts import Interrupts
from judge.run.lines import Line
from judge.run.output import FileSink, Sink, StreamSink, refuse_existing, refuse_input
from judge.run.pipeline import Brake, Pipeline, feed
from judge.run.replay import Replays
from judge.run.resume import Resumption, side_file
from judge.run.setup import Setup, load_workflow
from judge.run.shelf import LineShelf
from judge.run.summary import SpeechStatistics, Summary
from judge.settings import Settings
from judge.subject import Subject

BROKEN_PIPE = 141
"""128 + SIGPIPE, what a shell reports for a program whose reader has gone away."""

TICK_SECONDS = 1.0
"""Between two signs of life to whoever watches, also while one record takes minutes."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """What to read and where to write.

    `limit` takes the first records, `sample` that many at random (seeded) in input order; `out`
    None writes standard output.
    """

    inputs: Sequence[str]
    out: Path | None = None
    resume: bool = False
    overwrite: bool = False
    unordered: bool = False
    format: str | None = None
    limit: int | None = None
    sample: int | None = None
    sample_seed: int = 0


@dataclass(slots=True)
class Report:
    """How a run ended: its exit code so far (the gate is the caller's), sums, and the reason."""

    summary: Summary
    seconds: float = 0.0
    interrupted: bool = False
    fatal: JudgeError | None = None
    broken_pipe: bool = False
    traffic: dict[str, dict[str, Any]] = field(default_factory=dict)
    cost: float = 0.0
    replayed: int = 0

    @property
    def finished(self) -> bool:
        """Whether every input line has its output line."""
        return not (self.interrupted or self.fatal or self.broken_pipe)

    @property
    def exit_code(self) -> int:
        if self.broken_pipe:
            return BROKEN_PIPE
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
            "replayed": self.replayed,
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


def select(job: Job) -> Iterator[Item]:
    """The items of all inputs, cut down to the limit or the sample."""
    items: Iterator[Item] = chain.from_iterable(
        _opened(source, job.format) for source in job.inputs
    )
    if job.sample is not None:
        items = _sampled(items, job.sample, job.sample_seed)
    return islice(items, job.limit)


def _opened(source: str, format: str | None) -> Iterator[Item]:
    if source != "-":
        return read(source, format=format)
    if sys.stdin is None:
        raise UsageError("standard input is closed: name a file, or pipe records in")
    # Not through Python's own buffer: a thread that waits for input holds that buffer's lock, and
    # an interpreter that finds it held at its exit aborts.
    return read("-", stdin=io.FileIO(sys.stdin.fileno(), closefd=False), format=format)


def _sampled(items: Iterator[Item], count: int, seed: int) -> Iterator[Item]:
    """`count` items, each set of them equally likely (reservoir sampling), in input order."""
    chance = random.Random(seed)
    kept: list[tuple[int, Item]] = []
    for place, item in enumerate(items):
        if len(kept) < count:
            kept.append((place, item))
        elif (drawn := chance.randrange(place + 1)) < count:
            kept[drawn] = (place, item)
    yield from (item for _, item in sorted(kept, key=lambda pair: pair[0]))


def validate(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """Run a job to its end, or to where it was stopped.

    Raises:
        UsageError: nothing was judged: an input, output, model or setting that cannot be used.
    """
    refuse_unusable(job)
    setup = Setup.of(settings)
    summary = Summary(SpeechStatistics(_encoder()))
    with SeenIds() as ids:
        run = _Run(job, setup, summary, watcher, ids)
        with Interrupts(run.interrupt), asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(run.go())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop, which makes a call a third cheaper; Python's where there is none."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


def refuse_unusable(job: Job) -> None:
    """See that inputs can be read and OUT may be written, before anything is fetched or paid for.

    Raises:
        UsageError: naming the file, and what to do.
    """
    if job.resume and job.out is None:
        raise UsageError("--resume needs the file to go on with: name it with -o")
    for source in job.inputs:
        # What a named pipe holds can be read only once, so it is not opened to see how it looks.
        path = Path(source)
        if source != "-" and (path.is_file() or path.is_dir() or not path.exists()):
            read(source, format=job.format)
        if job.out is not None:
            refuse_input(job.out, source)
    if job.out is not None and not (job.resume or job.overwrite):
        refuse_existing(job.out)


def _encoder() -> Any:
    from judge.stats.similarity import SentenceEncoder

    return SentenceEncoder() if SentenceEncoder.available() else None


class _Run:
    """One run: its stream, its brake, and what it does with each record."""

    def __init__(
        self, job: Job, setup: Setup, summary: Summary, watcher: Watcher, ids: SeenIds
    ) -> None:
        self.job, self.setup, self.watcher, self.ids = job, setup, watcher, ids
        self.report = Report(summary)
        self.brake = Brake()
        self.replays = Replays(setup.cache, setup.prices) if setup.cache else None
        self.resumption: Resumption | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streaming = False
        chosen = setup.settings.workflow
        self.kind: Kind | None = load_workflow(chosen).kind if chosen else None

    async def go(self) -> Report:
        self._loop = asyncio.get_running_loop()
        began = time.monotonic()
        sink: Sink | None = None
        try:
            items = self._items()
            sink = self._sink()
            if await self._prepared():
                if isinstance(sink, FileSink) and not self.job.resume:
                    self._start_anew(sink)
                # What is there now stays; the collector, off until here, need not look at it.
                gc.freeze()
                gc.enable()
                self.watcher.began(self.setup)
                await self._stream(items, sink)
                if self.report.finished and self._aside is not None:
                    self._aside.unlink(missing_ok=True)
        finally:
            if sink is not None:
                sink.close()
            await self._close(began)
        return self.report

    async def _prepared(self) -> bool:
        """Whether every model is ready; until then nothing is under way that could be finished."""
        preparing = asyncio.ensure_future(self.setup.prepare())
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

    async def _stream(self, items: Iterator[Item], sink: Sink) -> None:
        self._streaming = True
        shelf = None if self.job.unordered else LineShelf(self._aside)
        pipeline = Pipeline(self.work, slots=self.setup.slots, brake=self.brake, shelf=shelf)
        ticking = asyncio.create_task(self._tick())
        try:
            await pipeline.run(feed(items, self.brake), lambda line: self._emit(line, sink))
        except BrokenPipeError:
            self.report.broken_pipe = True
        except BackendError as error:
            self.report.fatal = _fatal(error)
        except JudgeError as error:
            self.report.fatal = error
        finally:
            ticking.cancel()
            if shelf is not None:
                shelf.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.watcher.tick(self.report.summary, self.setup)

    # ------------------------------------------------------------ stopping

    def interrupt(self, again: bool) -> None:
        """Stop reading and finish what is under way; `again`: stop now. From any thread."""
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

    # ------------------------------------------------------------ one record

    async def work(self, item: Item) -> Line:
        """The output line for one item."""
        if item.problem is not None:
            return lines.bad_input(item, item.problem)
        record = build(item, self.kind, self.ids)
        if isinstance(record, Problem):
            return lines.bad_input(item, record)
        if (line := self._kept(item)) is not None:
            return line
        bound = self.setup.bound(record.kind)
        if self.replays is not None and (line := self.replays.find(record, bound)) is not None:
            return line
        try:
            outcome = await bound.workflow.run(Subject.of(record), bound.context)
        except BackendError as error:
            if error.kind in ("unreachable", "denied"):
                raise
            return lines.failed(record, error.kind, str(error), bound)
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001
            # A fault of ours, or of somebody's rubric or workflow: one record must not keep all
            # others from being judged, now and again on every resume.
            _log.exception("record %s (line %d) was not judged", record.id, item.line)
            return lines.failed(record, "internal", f"{type(error).__name__}: {error}", bound)
        line = lines.judged(record, outcome, bound)
        if self.replays is not None:
            await self.replays.keep(record, line, bound)
        return line

    def _kept(self, item: Item) -> Line | None:
        if self.resumption is None or item.fields is None:
            return None
        text = self.resumption.kept.take(content_hash(item.fields))
        found = lines.earlier(text) if text is not None else None
        return Line(text, found.judgement, kept=True) if text and found else None

    def _emit(self, line: Line, sink: Sink) -> None:
        sink.write(line.text)
        self.report.summary.add(line.judgement, kept=line.kept)
        self.watcher.wrote(self.report.summary, self.setup)

    # ------------------------------------------------------------ files

    @property
    def _aside(self) -> Path | None:
        return None if self.job.out is None else side_file(self.job.out)

    def _items(self) -> Iterator[Item]:
        items = select(self.job)
        if not self.job.resume or self.job.out is None:
            return items
        self.resumption = Resumption(self.job.out)
        if foreign := self.resumption.check(self.setup.bound):
            self.watcher.left_out(foreign)
        return self._resumed(items, self.resumption)

    def _sink(self) -> Sink:
        return StreamSink() if self.job.out is None else FileSink(self.job.out)

    def _start_anew(self, sink: FileSink) -> None:
        sink.empty()
        if self._aside is not None:
            self._aside.unlink(missing_ok=True)

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
            self.report.summary.add(found.judgement, kept=True)
            size += len(text)
        resumption.keep(size)
        yield from chain(ahead, items)

    def _stands(self, item: Item, key: str) -> bool:
        if item.fields is None or content_hash(item.fields) != key:
            return False
        return not isinstance(build(item, self.kind, self.ids), Problem)

    async def _close(self, began: float) -> None:
        if self.resumption is not None:
            self.resumption.kept.close()
        self.report.seconds = time.monotonic() - began
        self.report.cost = self.setup.budget.cost
        self.report.replayed = self.replays.count if self.replays else 0
        for spec, client in self.setup.clients.items():
            self.report.traffic[spec] = asdict(client.counters)
        await self.setup.aclose()


def _fatal(error: BackendError) -> JudgeError:
    """The error that ended a run, with its exit code: 4 unless the call itself was bad."""
    told = JudgeError(f"the model cannot be used: {error}")
    bad_call = error.kind in ("bad-request", "context-exceeded", "budget")
    told.exit_code = Exit.USAGE if bad_call else Exit.UNAVAILABLE
    return told

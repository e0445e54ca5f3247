"""A run: takes the records of a task through its step, and writes the output files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge import traces
from judge.cache import CacheError
from judge.errors import BackendError, JudgeError, Unavailable, UsageError
from judge.judging.limits import Interrupted, record_turn, room_within
from judge.records import Record
from judge.records.lines import Line, bad_input, renamed
from judge.run.description import UNFINISHED, read_description, write_description
from judge.run.job import Job
from judge.run.output import Sink, real, sort_review
from judge.run.report import Report
from judge.run.stream import MAX_BUFFERED, Stop, aside, interrupts
from judge.run.stream import run as run_stream
from judge.run.task import Engine, Progress, Task, Watcher, line_of
from judge.verdict import Usage

if TYPE_CHECKING:
    from judge.run.resume import Resumption

TICK_SECONDS = 1.0
"""Seconds between two updates of the watcher and checks of OUT."""

SYNC_SECONDS = 5.0
"""Seconds between two flushes of OUT to disk."""


def _new_loop() -> asyncio.AbstractEventLoop:
    """A uvloop, if installed, which makes calls cheaper; else asyncio's own loop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.new_event_loop()
    return new_event_loop()


class TaskRun:
    """Takes a job's items through a task: its stream, its files, and its stopping.

    The task's steps run on `engine`; by default in this process. `outputs` are OUT and the file of
    discarded lines; `resumptions` are their lines from an earlier run, if this run continues it.
    """

    def __init__(
        self, job: Job, task: Task, watcher: Watcher, engine: Engine | None = None
    ) -> None:
        self.job, self.task, self.watcher, self.engine = job, task, watcher, engine or task
        task.watcher = watcher
        self.resources = task.resources
        summary = task.resources.rubrics.summary(job.by)
        self.report = Report(summary, task.gates)
        # Without any, those of an earlier run stay in the description.
        self._gates = {"gates": [gate.as_json() for gate in task.gates]} if task.gates else {}
        self.progress = Progress(summary, task.resources.models)
        self.stop = Stop()
        self.outputs: list[Sink] = []
        self.resumptions: list[Resumption] = []
        self.review: Sink | None = None
        self._files = ExitStack()
        self._dearest = Usage()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streaming = self._asks = False
        self._items: Iterable[Record] = ()

    def run(self) -> Report:
        """Run until the items end, or until a signal or `interrupt` stops the run.

        Raises:
            UsageError: an output or a model cannot be used; nothing was asked.
        """
        with (
            traces.traced(self.resources.settings),
            interrupts(self.interrupt),
            asyncio.Runner(loop_factory=_new_loop) as runner,
        ):
            return runner.run(self._go())

    async def _go(self) -> Report:
        self._loop = asyncio.get_running_loop()
        began = time.monotonic()
        try:
            self._open()
            if await self._prepared():
                self.watcher.wrote(self.progress)
                if self.resources.models.cache is not None:
                    self.resources.models.cache.on_fault = self._stop_for
                await self._stream()
                self._sort()
                self._conclude()
                for message in self.report.summary.idle_models():
                    self.watcher.say(message)
        finally:
            self._files.close()
            self.report.seconds = time.monotonic() - began
            clients = self.resources.models.clients
            called = [client for client in clients.values() if client.counters.calls]
            self.report.unpriced = tuple(c.spec for c in called if c.price is None)
            self.report.cost = None if self.report.unpriced else self.resources.models.budget.cost
            self.report.traffic = {spec: asdict(c.counters) for spec, c in clients.items()}
            self.report.batches = self.resources.models.batches
            await self.engine.aclose()
        return self.report

    async def _prepared(self) -> bool:
        """Look at the first records and prepare every model; False if the run is stopped first."""
        preparing = asyncio.ensure_future(self._prepare())
        self.stop.tasks.add(preparing)
        preparing.add_done_callback(self.stop.tasks.discard)
        try:
            await preparing
        except asyncio.CancelledError:
            return False
        except BackendError as error:
            self._stop_for(error)
        return not self.stop.asked

    async def _prepare(self) -> None:
        """Read up to the first record that can be asked about; the models are reached only then,
        since each may take a call."""
        await self.task.look()
        items, first = self.task.items(), list[Record]()

        def read() -> None:
            for item in islice(items, MAX_BUFFERED):
                first.append(item)
                if item.problem is None:
                    return

        await aside(read)
        self._items = chain(first, items)
        self._asks = len(first) == MAX_BUFFERED or any(item.problem is None for item in first)
        if self._asks:
            await self.engine.prepare()

    async def _stream(self) -> None:
        self._streaming = True
        slots = self.engine.slots if self._asks else 1
        ticking = asyncio.create_task(self._tick())
        try:
            await run_stream(
                self._items,
                self._line,
                self._emit,
                room=lambda: room_within(self.resources.models.budget, self._dearest, slots),
                stop=self.stop,
                max_buffered=max(MAX_BUFFERED, 2 * slots),
            )
            if self.report.finished and not self.report.begun:
                self._begin()
        except BrokenPipeError:
            self.report.broken_pipe = True
        except Interrupted:
            pass  # Records whose calls were to be tried again have no line.
        except JudgeError as error:
            unusable = isinstance(error, UsageError) and not isinstance(error, CacheError)
            if unusable and not self.report.begun:
                raise
            self._stop_for(error)
        finally:
            ticking.cancel()
        self._look()

    async def _tick(self) -> None:
        synced = time.monotonic()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.watcher.wrote(self.progress)
            self._look()
            if time.monotonic() - synced >= SYNC_SECONDS:
                for sink in self.outputs:
                    await asyncio.to_thread(sink.sync)
                synced = time.monotonic()

    # ------------------------------------------------------------ stopping

    def interrupt(self, again: bool) -> None:
        """Stop reading and finish what is under way, but for calls that wait for another try; if
        `again`, stop now. Works from any thread.

        With `--engine batch`, always stop now: a batch may take a day, and continues at the
        provider.
        """
        again = again or self.resources.settings.engine == "batch"
        self.report.interrupted = True
        if self._loop is None:
            self.stop.asked = True
        else:
            self._loop.call_soon_threadsafe(self._interrupted, again or not self._streaming)

    def _interrupted(self, now: bool) -> None:
        if now:
            self.watcher.say("stopping now")
            self.stop.now()
        else:
            self.watcher.say("finishing the records under way; Ctrl-C again stops at once")
            self.resources.models.budget.pauses.end()
            self.stop.gently()

    def _stop_for(self, error: JudgeError) -> None:
        """Stop reading, because a model, the cache or OUT can no longer be used."""
        self.report.fatal = self.report.fatal or _fatal(error)
        self.stop.gently()

    def _look(self) -> None:
        """Stop reading if another program changed OUT or the review."""
        for sink in (*self.outputs, self.review):
            if sink is not None and (fault := sink.fault()):
                self._stop_for(fault)

    # ------------------------------------------------------------ one record

    async def _line(self, record: Record) -> tuple[int, Line]:
        place = record_turn.get()
        bad = bad_input(record) if record.problem is not None else None
        if self.resumptions and (kept := self._kept(place, record, bad)) is not None:
            return place, kept
        if bad is not None:
            return place, bad
        with traces.of_record(record) as span:
            return place, span.ends(await line_of(self.task, record, self.engine))

    def _kept(self, place: int, record: Record, bad: Line | None) -> Line | None:
        """The line that stands for a record, which may be `bad` input, in the files that this run
        continues; None if it is judged again."""
        key, kept = record.content_hash if bad is None else bad.key, None
        for resumption in self.resumptions:
            text = resumption.take(place, key)
            if kept is None and text is not None:
                kept = Line.parse(text)
            elif text is not None:
                # A kill left the record's line in both files.
                resumption.left(place)
        if kept is None:
            return None
        if bad is None and (line := renamed(kept, record)) is not None:
            for resumption in self.resumptions:
                resumption.left(place)
            return line
        return replace(kept, kept=True)

    async def _emit(self, result: tuple[int, Line]) -> None:
        place, line = result
        line = self.task.settled(line)
        if line.new_name or not line.kept:
            # First, so that OUT stays unchanged if the run cannot be described.
            self._describe(line)
            if not self.report.begun:
                self._begin()
            target = int(self.task.discards(line))
            if target < len(self.resumptions):
                self.resumptions[target].wrote(place, self.outputs[target].size)
            if target < len(self.outputs):
                await self.outputs[target].put(line.text)
            # Last, so that the record has a line in a file if this one cannot be written.
            for number, resumption in enumerate(self.resumptions):
                if number != target:
                    resumption.left(place)
        self._count(line)
        self.watcher.wrote(self.progress)

    def _count(self, line: Line) -> None:
        self.report.summary.add(line)
        usage, most = line.usage, self._dearest
        cost = max(most.cost_usd or 0.0, usage.cost_usd or 0.0)
        self._dearest = Usage(max(most.replies, usage.replies), cost_usd=cost)
        if self.review is not None and self.task.for_people(line):
            self.review.start()
            self.review.write(line.text)
            self.report.reviewed += 1
        self.task.count(line, self.report)

    def _describe(self, line: Line) -> None:
        """Describe models, settings and servers beside OUT, before the line is written."""
        mark, runs = line.fingerprint, self.report.runs
        if mark is None:
            return
        before = runs.get(mark) or self.task.run_info(line.made_by).described
        now = {**before, **self._seen(before), **self._gates, UNFINISHED: True}
        if mark in runs and now == before:
            return
        runs[mark] = now
        self._write_description()

    def _write_description(self) -> None:
        if self.job.out is not None and self.outputs[0].regular:
            write_description(self.job.out, self.report.runs)

    def _seen(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """How requests were adapted to each model's server, and which models answered."""
        clients = self.resources.models.clients
        adapted = {spec: client.negotiation.adaptations for spec, client in clients.items()}
        names = {
            spec: {
                "models": sorted(client.counters.answered_by),
                "system_fingerprints": sorted(client.counters.system_fingerprints),
            }
            for spec, client in clients.items()
            if client.counters.answered_by or client.counters.system_fingerprints
        }
        observations = {
            "adaptations": {spec: changes for spec, changes in adapted.items() if changes},
            "answered_by": {**before.get("answered_by", {}), **names},
        }
        return {name: entry for name, entry in observations.items() if entry}

    def _recall(self) -> None:
        """Tell the clients which models answered for OUT, so that they notice a change."""
        for run in self.report.runs.values():
            for spec, names in run.get("answered_by", {}).items():
                if spec in self.resources.models.clients:
                    client = self.resources.models.clients[spec]
                    client.served.answered_before(names["models"], names["system_fingerprints"])

    # ------------------------------------------------------------ files

    def _open(self) -> None:
        """Open all files without changing any.

        Raises:
            UsageError: a file cannot be written, or another run writes to it.
        """
        job, cache = self.job, self.resources.models.cache
        for flag, path in job.outputs:
            if cache is not None and real(cache.folder) in real(path).parents:
                raise UsageError(f"{flag} {path} is in the cache folder in use: name another file")
        fresh = not (job.resume or job.overwrite)
        paths = [job.out] if job.out is not None or not job.silent else []
        for path in (*paths, *([job.discarded] if job.discarded else ())):
            self.outputs.append(self._files.enter_context(closing(Sink(path, fresh=fresh))))
        if job.review is not None:
            review = Sink(job.review, fresh=fresh, flag="--review")
            self.review = self._files.enter_context(closing(review))
        if job.resume and job.out is not None:
            from judge.run.resume import Resumption

            for sink in self.outputs:
                assert sink.path is not None, "what is resumed is a file"
                info_of = self.task.run_info
                resumption = Resumption(sink.path, info_of, job.rejudge, described_by=job.out)
                self.resumptions.append(self._files.enter_context(closing(resumption)))
                for message in resumption.about_decided(sink.path):
                    self.watcher.say(message)
            self.report.runs = read_description(job.out)
            self._recall()

    def _begin(self) -> None:
        """Prepare OUT and the review for the first new line.

        Raises:
            JudgeError: OUT cannot be described (it is unchanged), or cannot be shortened.
        """
        out, runs = self.job.out, self.report.runs
        for run in runs.values():  # The gates are of all lines, also of kept ones.
            run.update(self._gates)
        if not (out and read_description(out) == runs != {}):
            self._write_description()
        ends = [resumption.end for resumption in self.resumptions] or [0] * len(self.outputs)
        for sink, end in zip(self.outputs, ends, strict=True):
            sink.start(end)
        if self.review is not None:
            self.review.start()
        self.report.begun = True

    def _sort(self) -> None:
        """Put a resumed OUT into input order, also if the run was stopped, and the review's most
        informative lines first."""
        report, review = self.report, self.review
        try:
            for sink, resumption in zip(self.outputs, self.resumptions, strict=False):
                if report.begun and not sink.fault():
                    self._settle(sink.path, resumption)
            # A review that was not started holds another run's lines.
            if review and review.started and review.path and review.regular and not review.fault():
                sort_review(review.path)
        except JudgeError as error:
            report.fatal = report.fatal or error

    def _conclude(self) -> None:
        """Note in the description of OUT that the run reached the end of its input."""
        marked = [run for run in self.report.runs.values() if run.get(UNFINISHED)]
        if not (self.report.finished and marked):
            return
        for run in marked:
            del run[UNFINISHED]
        try:
            self._write_description()
        except JudgeError as error:
            self.report.fatal = error

    def _settle(self, path: Path | None, resumption: Resumption) -> None:
        whole = self.report.finished and not self.job.may_be_cut(self.report.summary.records)
        if count := resumption.settle(whole=whole):
            self.report.unmatched += count
            lines, match = ("lines", "match") if count > 1 else ("line", "matches")
            message = f"{count} {lines} in {path} {match} no input record; moved to "
            self.watcher.say(f"{message}{resumption.unmatched}")


def _fatal(error: JudgeError) -> JudgeError:
    """The error that ended a run, with its exit code: 4 unless the call itself was bad."""
    if isinstance(error, CacheError):
        return Unavailable(str(error))
    if not isinstance(error, BackendError):
        return error
    prefix = "" if error.kind == "budget" else "the model cannot be used: "
    bad_call = error.kind in ("bad-request", "context-exceeded")
    return (JudgeError if bad_call else Unavailable)(f"{prefix}{error}")

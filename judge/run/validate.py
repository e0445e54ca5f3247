"""`judge validate` without its command line: from inputs to output lines and a summary."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from judge.errors import BackendError, Exit, JudgeError, UsageError
from judge.records import Item, Kind, Problem, SeenIds, build, content_hash, dump, read
from judge.run import lines
from judge.run.output import FileSink, Resumption, Sink, StreamSink, refuse_existing
from judge.run.pipeline import Brake, Pipeline, feed
from judge.run.setup import Setup, load_workflow
from judge.run.summary import SpeechStatistics, Summary
from judge.settings import Settings
from judge.subject import Subject

BROKEN_PIPE = 141
"""128 + SIGPIPE, what a shell reports for a program whose reader has gone away."""


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
            "finished": not (self.interrupted or self.fatal or self.broken_pipe),
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 3),
            "cost_usd": round(self.cost, 6),
            "models": self.traffic,
        }


class Watcher:
    """Told what happens in a run; the base class does nothing with it."""

    def began(self, setup: Setup) -> None:
        """The models are ready."""

    def wrote(self, summary: Summary, setup: Setup) -> None:
        """One more line is out."""

    def stopping(self, now: bool) -> None:
        """The user asked to stop."""


def select(job: Job) -> Iterator[Item]:
    """The items of all inputs, cut down to the limit or the sample."""
    items = chain.from_iterable(read(source, format=job.format) for source in job.inputs)
    if job.sample is not None:
        items = iter(_sampled(items, job.sample, job.sample_seed))
    return islice(items, job.limit)


def _sampled(items: Iterator[Item], count: int, seed: int) -> list[Item]:
    """`count` items, each set of them equally likely (reservoir sampling), in input order."""
    chance = random.Random(seed)
    kept: list[tuple[int, Item]] = []
    for place, item in enumerate(items):
        if len(kept) < count:
            kept.append((place, item))
        elif (drawn := chance.randrange(place + 1)) < count:
            kept[drawn] = (place, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]


def validate(job: Job, settings: Settings, watcher: Watcher) -> Report:
    """Run a job to its end, or to where it was stopped.

    Raises:
        UsageError: nothing was judged: an input, output, model or setting that cannot be used.
    """
    _refuse_unreadable(job)
    if job.out is not None and not (job.resume or job.overwrite):
        refuse_existing(job.out)
    if job.resume and job.out is None:
        raise UsageError("--resume needs the file to go on with: name it with -o")
    setup = Setup.of(settings)
    encoder = _encoder()
    summary = Summary(SpeechStatistics(encoder))
    with ExitStack() as stack:
        run = _Run(job, setup, summary, watcher, stack)
        return asyncio.run(run.go())


def _refuse_unreadable(job: Job) -> None:
    for source in job.inputs:
        if source != "-":
            read(source, format=job.format)


def _encoder() -> Any:
    from judge.stats.similarity import SentenceEncoder

    return SentenceEncoder() if SentenceEncoder.available() else None


class _Run:
    """One run: its stream, its brake, and what it does with each record."""

    def __init__(
        self, job: Job, setup: Setup, summary: Summary, watcher: Watcher, stack: ExitStack
    ) -> None:
        self.job, self.setup, self.watcher = job, setup, watcher
        self.report = Report(summary)
        self.brake = Brake()
        self.ids = stack.enter_context(SeenIds())
        self.resumption: Resumption | None = None
        chosen = setup.settings.workflow
        self.kind: Kind | None = load_workflow(chosen).kind if chosen else None

    async def go(self) -> Report:
        began = time.monotonic()
        items = select(self.job)
        if self.job.resume and self.job.out is not None:
            items = self._resumed(items, self.job.out)
        try:
            await self.setup.prepare()
        except BackendError as error:
            self.report.fatal = _fatal(error)
            return self.report
        sink = self._sink()
        self.watcher.began(self.setup)
        try:
            with _Signals(self.brake, self.watcher, self.report):
                await self._stream(items, sink)
        finally:
            sink.close()
            await self._close(began)
        return self.report

    async def _stream(self, items: Iterator[Item], sink: Sink) -> None:
        slots = self.setup.slots
        pipeline: Pipeline[Item, dict[str, Any] | bytes] = Pipeline(
            self.work,
            slots=slots,
            window=8 * slots + 64,
            ordered=not self.job.unordered,
            brake=self.brake,
        )
        try:
            await pipeline.run(feed(items, self.brake), lambda line: self._emit(line, sink))
        except BrokenPipeError:
            self.report.broken_pipe = True
        except BackendError as error:
            self.report.fatal = _fatal(error)
        except JudgeError as error:
            self.report.fatal = error

    # ------------------------------------------------------------ one record

    async def work(self, item: Item) -> dict[str, Any] | bytes:
        """The output line for one item; bytes where it stands from an earlier run."""
        if self.resumption is not None and item.fields is not None:
            kept = self.resumption.kept.take(content_hash(item.fields))
            if kept is not None:
                build(item, self.kind, self.ids)
                return kept
        if item.problem is not None:
            return lines.bad_input(item, item.problem)
        record = build(item, self.kind, self.ids)
        if isinstance(record, Problem):
            return lines.bad_input(item, record)
        bound = self.setup.bound(record.kind)
        try:
            outcome = await bound.workflow.run(Subject.of(record), bound.context)
        except BackendError as error:
            if error.kind in ("unreachable", "denied"):
                raise
            return lines.failed(record, error, bound)
        return lines.judged(record, outcome, bound)

    def _emit(self, line: dict[str, Any] | bytes, sink: Sink) -> None:
        kept = isinstance(line, bytes)
        found = lines.earlier(line) if isinstance(line, bytes) else None
        judgement = found.judgement if found else line["judge"]  # type: ignore[index,call-overload]
        try:
            sink.write(line if isinstance(line, bytes) else dump(line))
        except BrokenPipeError:
            self.brake.stop_now()
            raise
        self.report.summary.add(judgement, kept=kept)
        self.watcher.wrote(self.report.summary, self.setup)

    # ------------------------------------------------------------ files

    def _sink(self) -> Sink:
        if self.job.out is None:
            return StreamSink()
        return FileSink(self.job.out, append=self.job.resume)

    def _resumed(self, items: Iterator[Item], out: Path) -> Iterator[Item]:
        """The items that are still to do, after those whose lines already stand in OUT."""
        self.resumption = Resumption(out)
        self._compare_fingerprints(self.resumption)
        size, ahead = 0, iter(())
        for text, found in self.resumption.prefix():
            item = next(items, None)
            if item is None:
                break
            if item.fields is None or content_hash(item.fields) != found.key:
                ahead = iter((item,))
                break
            build(item, self.kind, self.ids)
            self.report.summary.add(found.judgement, kept=True)
            size += len(text)
        self.resumption.keep(size)
        return chain(ahead, items)

    def _compare_fingerprints(self, resumption: Resumption) -> None:
        seen: set[str] = set()
        for judgement in resumption.judgements():
            mark, name = judgement.get("fingerprint"), judgement.get("workflow")
            if not isinstance(mark, str) or mark in seen or not isinstance(name, str):
                continue
            seen.add(mark)
            bound = self.setup.bound(name)
            if mark != bound.fingerprint:
                differs = _differences(judgement.get("models") or {}, bound.models)
                raise UsageError(
                    f"{resumption.out} was made under another fingerprint ({mark}, now "
                    f"{bound.fingerprint}). What differs: {differs}. Use the same settings, "
                    "or --overwrite"
                )

    async def _close(self, began: float) -> None:
        finished = not (self.report.interrupted or self.report.fatal or self.report.broken_pipe)
        if self.resumption is not None:
            self.resumption.kept.close(remove=finished)
        self.report.seconds = time.monotonic() - began
        self.report.cost = self.setup.budget.cost
        for spec, client in self.setup.clients.items():
            self.report.traffic[spec] = asdict(client.counters)
        await self.setup.aclose()


def _fatal(error: BackendError) -> JudgeError:
    """The error that ended a run, with the exit code it deserves: 4 unless the call itself was bad."""
    told = JudgeError(f"the model cannot be used: {error}")
    bad_call = error.kind in ("bad-request", "context-exceeded", "budget")
    told.exit_code = Exit.USAGE if bad_call else Exit.UNAVAILABLE
    return told


def _differences(old: dict[str, Any], new: Any) -> str:
    def flat(tree: Any, path: str = "") -> dict[str, Any]:
        if not isinstance(tree, dict):
            return {path: tree}
        found: dict[str, Any] = {}
        for key, value in tree.items():
            found |= flat(value, f"{path}.{key}" if path else str(key))
        return found

    before, after = flat(old), flat(dict(new))
    names = sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    told = [f"{name} was {before.get(name)!r}, is {after.get(name)!r}" for name in names[:6]]
    return "; ".join(told) or "the model behind the name (server, weights or script)"


class _Signals:
    """Ctrl-C once: finish what is under way; twice: stop now."""

    def __init__(self, brake: Brake, watcher: Watcher, report: Report) -> None:
        self._brake, self._watcher, self._report = brake, watcher, report

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._pulled)

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    def _pulled(self) -> None:
        again = self._report.interrupted
        self._report.interrupted = True
        self._watcher.stopping(again)
        if again:
            self._brake.stop_now()
        else:
            self._brake.stop_reading()

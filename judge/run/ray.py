"""`--engine ray`: records are read and written here, and judged by Ray Data's pool of workers.

The run is the local one: its input, order, output, resume and interrupts. Chunks of records go
through a `Feed` actor on this machine into a Ray Data stream, whose actor pool judges them; Ray
restarts workers that die. A chunk whose worker died is missing from the stream, which keeps its
order: it is put in again, at its last attempt record by record. A record whose worker died each of
`ATTEMPTS` times becomes an error line.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from judge.errors import Exit, JudgeError, UsageError
from judge.judging.calls import Counters
from judge.judging.limits import Budget
from judge.records import RESERVED, Item, Record, SeenIds
from judge.run import lines
from judge.run.lines import Line
from judge.run.ray_cluster import joined, no_stdout, signals_kept, workers_for
from judge.run.ray_worker import Chunk, Feed, Worker
from judge.run.setup import Setup
from judge.run.validate import Validation
from judge.settings import Settings
from judge.verdict import Usage

ATTEMPTS = 3
"""Workers that may die of one chunk before its records are given up."""

CHUNK = 8
"""Most records of a chunk: so many are judged again when their worker dies."""

GATHER_SECONDS = 0.01
"""How long a chunk waits for further records."""

AGAIN_SECONDS = 0.5
"""Until a chunk whose worker died is put in again."""

MARK_SECONDS = 2.0
"""Between two empty chunks."""

ON_GPUS = ("vllm", "transformers")
"""Providers whose models run on the worker's own GPUs."""


class RaySetup(Setup):
    """A run's setup where its workers have their own: its clients count, and are never asked."""

    stream: Stream | None = None

    @property
    def slots(self) -> int:
        own = self.own_slots + 2 * CHUNK
        return own * self.stream.workers if self.stream is not None else own

    async def aclose(self) -> None:
        await super().aclose()
        if self.stream is not None:
            await self.stream.aclose()


class RayValidation(Validation):
    """Validation whose records are judged by Ray workers."""

    setup: RaySetup
    _given: Settings

    @classmethod
    def of(
        cls, settings: Settings, ids: SeenIds, items: Iterator[Item], seen: Callable[[Line], None]
    ) -> Self:
        # Each worker has a cache; one here would never be looked into.
        task = cls(RaySetup.of(settings.model_copy(update={"cache": False})), ids, items, seen)
        task._given = settings
        return task

    async def prepare(self) -> None:
        """Join or start Ray.

        Raises:
            UsageError: no Ray, or no room in it.
        """
        self.setup.stream = await asyncio.to_thread(Stream, self._given, self.setup, self._counted)

    async def step(self, record: Record) -> Line:
        if self.setup.stream is None:
            raise RuntimeError("records are judged after prepare")
        bound = self.setup.bound(record.kind)
        text = await self.setup.stream.judged(record.item)
        if text is None:
            told = f"the worker died each of the {ATTEMPTS} times it judged this record"
            return lines.failed(record, "worker-died", told, bound)
        line = Line(text, json.loads(text)[RESERVED])
        mark = line.judgement.get("fingerprint")
        if mark != bound.fingerprint:
            raise UsageError(
                "a worker judges by other files, models or software than this machine has "
                f"(fingerprint {mark}, here {bound.fingerprint}): "
                "install the same judge on every node, and give all of them the same rubrics, "
                "weights and variables (OPENAI_BASE_URL and others)"
            )
        return line

    def _counted(self, counters: dict[str, Counters], cost: float) -> None:
        self.setup.budget.spent(Usage(cost_usd=cost))
        for spec, counted in counters.items():
            mine = self.setup.client(spec).counters
            for name, number in asdict(counted).items():
                setattr(mine, name, getattr(mine, name) + number)


class Stream:
    """A Ray Data stream of chunks through an actor pool.

    Raises:
        UsageError: Ray is not installed, cannot be reached, or holds no such workers.
    """

    def __init__(
        self,
        settings: Settings,
        setup: Setup,
        counted: Callable[[dict[str, Counters], float], None],
    ) -> None:
        budget = setup.budget
        self._at_once = setup.own_slots // CHUNK + 2
        self._quiet = ExitStack()
        # Ray tells of lost nodes and workers there, which is for data.
        self._quiet.enter_context(no_stdout())
        self._home = joined(settings)
        import ray

        self._ray, self._counted = ray, counted
        resources = ray.cluster_resources()
        hosted = any(spec.partition(":")[0] in ON_GPUS for spec in setup.models)
        self._gpus = settings.worker_gpus if hosted and resources.get("GPU") else 0
        try:
            self.workers = workers_for(settings.workers, self._gpus, resources)
        except UsageError:
            self._shut()
            raise
        limited = not (budget.max_calls is None and budget.max_cost is None)
        here = _here()
        self._feed = (
            ray.remote(Feed)
            .options(num_cpus=0, scheduling_strategy=here)
            .remote(Budget(budget.max_calls, budget.max_cost))
        )
        folder = settings.cache_dir
        own = {"cache_dir": None if folder is None else folder.absolute(), "engine": "local"}
        arguments = (settings.model_copy(update=own), str(Path.cwd()))
        self._arguments = (*arguments, self._feed, limited)
        self._waiting: dict[int, asyncio.Future[bytes | None]] = {}
        self._gathered: list[tuple[int, Item]] = []
        self._chunks: deque[tuple[Chunk, int]] = deque()
        self._again: set[asyncio.Task[None]] = set()
        self._first = self._numbered = 0
        self._thread: threading.Thread | None = None
        self._marking: asyncio.Task[None] | None = None
        self._suspects = asyncio.Lock()

    async def judged(self, item: Item) -> bytes | None:
        """The item's output line; None where its workers died.

        Raises:
            JudgeError: what ends the run.
        """
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._consume, args=(loop,), daemon=True)
            self._thread.start()
            self._marking = loop.create_task(self._mark())
        future: asyncio.Future[bytes | None] = loop.create_future()
        number, self._numbered = self._numbered, self._numbered + 1
        self._waiting[number] = future
        self._gathered.append((number, item))
        if len(self._gathered) == CHUNK:
            await self._flush()
        elif len(self._gathered) == 1:
            loop.call_later(GATHER_SECONDS, lambda: loop.create_task(self._flush()))
        return await future

    async def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered:
            await self._put(gathered, 1)

    async def _put(self, chunk: Chunk, attempt: int) -> None:
        self._chunks.append((chunk, attempt))
        place = self._first + len(self._chunks) - 1
        await self._feed.put.remote(place, pickle.dumps(chunk), self._first)

    async def _mark(self) -> None:
        """Put in empty chunks: one that comes out shows which chunk before it is missing."""
        while True:
            await asyncio.sleep(MARK_SECONDS)
            if self._waiting:
                await self._put([], ATTEMPTS)

    async def _put_again(self, place: int, chunk: Chunk, attempt: int) -> None:
        # A chunk that was only on its way to a dead worker says nothing about its records.
        attempt += await self._feed.begun.remote(place)
        if attempt > ATTEMPTS:
            self._settle([(number, None) for number, _ in chunk])
            return
        await asyncio.sleep(AGAIN_SECONDS)
        if attempt < ATTEMPTS:
            await self._put(chunk, attempt)
            return
        for pair in chunk:
            # One after the other, so that none is blamed for a death beside it.
            async with self._suspects:
                await self._put([pair], attempt)
                await asyncio.wait([self._waiting[pair[0]]])

    async def aclose(self) -> None:
        """End the stream, and leave the user's cluster or end judge's own."""
        if self._marking is not None:
            self._marking.cancel()
        with suppress(self._ray.exceptions.RayError):
            await self._feed.close.remote(0)
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        with signals_kept():
            self._ray.shutdown()
        self._quiet.close()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def _dataset(self) -> Any:
        from ray.data import ActorPoolStrategy, DataContext, read_datasource

        context = DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = context.print_on_execution_start = False
        # Each chunk goes on at once, and one whose worker died is left out.
        context.target_max_block_size, context.max_errored_blocks = 1, -1
        source = _source(self._feed)
        pinned = {"num_cpus": 0, "scheduling_strategy": _here()}
        return read_datasource(
            source, concurrency=1, override_num_blocks=1, ray_remote_args=pinned
        ).map_batches(
            Worker,
            fn_constructor_args=self._arguments,
            compute=ActorPoolStrategy(
                size=self.workers, max_tasks_in_flight_per_actor=self._at_once
            ),
            batch_size=None,
            batch_format="numpy",
            num_cpus=1,
            num_gpus=self._gpus,
            max_concurrency=self._at_once,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )

    def _consume(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give each chunk's lines to those who wait for them; runs in a thread of its own."""
        failure: JudgeError = JudgeError("the Ray stream ended before the run did")
        try:
            for batch in self._dataset().iter_batches(
                batch_size=None, batch_format="numpy", prefetch_batches=0
            ):
                told = (int(batch["number"][0]), *pickle.loads(batch["done"][0]))
                loop.call_soon_threadsafe(self._took, *told)
        except Exception as error:  # noqa: BLE001 - whatever Ray raises ends the run, with its words
            failure = JudgeError(f"the Ray stream failed: {' '.join(str(error).split())[:300]}")
        failure.exit_code = Exit.UNAVAILABLE
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._ended, failure)

    def _took(
        self,
        place: int,
        done: Sequence[tuple[int, bytes | JudgeError]],
        counters: dict[str, Counters],
        cost: float,
    ) -> None:
        self._counted(counters, cost)
        while self._first < place:
            lost = self._put_again(self._first, *self._chunks.popleft())
            self._first += 1
            again = asyncio.get_running_loop().create_task(lost)
            self._again.add(again)
            again.add_done_callback(self._again.discard)
        self._settle(done)
        self._chunks.popleft()
        self._first += 1

    def _settle(self, done: Iterable[tuple[int, bytes | JudgeError | None]]) -> None:
        for number, outcome in done:
            future = self._waiting.pop(number)
            if future.done():
                continue
            if isinstance(outcome, JudgeError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _ended(self, failure: JudgeError) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(failure)


def _source(feed: Any) -> Any:
    """Ray Data's view of the feed: one task that reads chunk after chunk."""
    import pyarrow as pa
    import ray
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    def read() -> Iterator[Any]:
        number = 0
        while (chunk := ray.get(feed.get.remote(number))) is not None:
            yield pa.table({"number": [number], "chunk": [chunk]})
            number += 1

    class FeedSource(Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, **_: Any) -> list[ReadTask]:
            return [ReadTask(read, BlockMetadata(None, None, None, None))]

    return FeedSource()


def _here() -> Any:
    """Have Ray run something on this machine: while the run goes on, so does that."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)

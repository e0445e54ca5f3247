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
import logging
import os
import pickle
import shutil
import signal
import socket
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from judge.errors import Exit, JudgeError, UsageError, missing_extra
from judge.judging.calls import Counters
from judge.judging.limits import Budget
from judge.records import RESERVED, Item, Problem, Record, SeenIds, build
from judge.redact import guard_process
from judge.run import lines
from judge.run.lines import Line
from judge.run.setup import Setup
from judge.run.task import line_of
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

JOIN_SECONDS = 10.0
"""How long an address may take to answer at all."""

STORE_BYTES = 256 * 1024 * 1024
"""Shared memory of a Ray that judge starts itself."""

ON_GPUS = ("vllm", "transformers")
"""Providers whose models run on the worker's own GPUs."""

Chunk = Sequence[tuple[int, Item]]
"""Records, each with its number in the run."""


class Feed:
    """The actor between a run and its workers: chunks by number, and the run's budget.

    A chunk is kept until the run has its lines, because Ray may read it again after a death.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._chunks: dict[int, bytes] = {}
        self._begun: set[int] = set()
        self._end: int | None = None
        self._changed = asyncio.Condition()

    async def put(self, number: int, chunk: bytes, done: int) -> None:
        """Add a chunk; those before `done` are needed no more."""
        async with self._changed:
            self._chunks[number] = chunk
            for old in [old for old in self._chunks if old < done]:
                del self._chunks[old]
            self._changed.notify_all()

    async def begin(self, number: int) -> None:
        """A worker has a chunk in hand."""
        self._begun.add(number)

    async def begun(self, number: int) -> bool:
        """Whether a worker had a chunk in hand; asked once."""
        begun = number in self._begun
        self._begun.discard(number)
        return begun

    async def close(self, end: int) -> None:
        """There are so many chunks in all."""
        async with self._changed:
            self._end = end
            self._changed.notify_all()

    async def get(self, number: int) -> bytes | None:
        """A chunk, empty where it is needed no more; None behind the last."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._end is not None or number <= max(self._chunks, default=-1)
            )
            if self._end is not None and number >= self._end:
                return None
            return self._chunks.get(number, b"")

    def take(self, cost: float, free: bool) -> JudgeError | None:
        """Count one call; `cost` (USD) was spent since a worker asked last."""
        self._budget.cost += cost
        try:
            self._budget.take(free=free)
        except JudgeError as reached:
            return reached
        return None


class SharedBudget(Budget):
    """A worker's view of the run's budget: each call is asked for."""

    def __init__(self, feed: Any) -> None:
        super().__init__()
        self._feed, self._told = feed, 0.0

    def take(self, *, free: bool = False) -> None:
        import ray

        new, self._told = self.cost - self._told, self.cost
        refused: JudgeError | None = ray.get(self._feed.take.remote(new, free))
        if refused is not None:
            raise refused
        self.calls += 1


class Worker:
    """Judges chunks as a local run would, from the run's settings alone. Ray makes actors of it.

    Args:
        folder: the run's working folder, which files that the user named are relative to.
        feed: where the chunks, and the budget if there is one (`limited`), are.
    """

    def __init__(self, settings: Settings, folder: str, feed: Any, limited: bool) -> None:
        guard_process()
        if Path(folder).is_dir():
            os.chdir(folder)
        self._settings, self._feed, self._limited = settings, feed, limited
        self._task: Validation | None = None
        self._starting = asyncio.Lock()
        self._slots = asyncio.Semaphore(1)
        self._told: dict[str, Counters] = {}
        self._cost = 0.0

    async def __call__(self, batch: dict[str, Any]) -> Any:
        """One chunk's lines, and what was counted since the last: a row of pickled bytes."""
        chunk = batch["chunk"][0]
        await self._feed.begin.remote(int(batch["number"][0]))
        done = await self._done(pickle.loads(chunk) if chunk else ())
        yield {"number": batch["number"], "done": [pickle.dumps((done, *self._new()))]}

    async def _done(self, chunk: Chunk) -> list[tuple[int, bytes | JudgeError]]:
        try:
            task = await self._begun()
        except JudgeError as error:
            return [(number, _sendable(error)) for number, _ in chunk]
        return await asyncio.gather(*(self._judged(task, *pair) for pair in chunk))

    async def _begun(self) -> Validation:
        async with self._starting:
            if self._task is None:
                budget = SharedBudget(self._feed) if self._limited else None
                setup = Setup.of(self._settings, budget=budget)
                await setup.prepare()
                self._slots = asyncio.Semaphore(setup.slots)
                self._task = Validation(setup, SeenIds(), iter(()), lambda line: None)
        return self._task

    async def _judged(
        self, task: Validation, number: int, item: Item
    ) -> tuple[int, bytes | JudgeError]:
        async with self._slots:
            record = build(item, task.kind)
            if isinstance(record, Problem):
                return number, lines.bad_input(item, record).text
            try:
                return number, (await line_of(task, record)).text
            except JudgeError as error:
                return number, _sendable(error)

    def _new(self) -> tuple[dict[str, Counters], float]:
        """Counters by model and cost (USD), since they were last told."""
        if self._task is None:
            return {}, 0.0
        clients = self._task.setup.clients.items()
        now = {spec: Counters(**asdict(client.counters)) for spec, client in clients}
        new = {spec: _less(found, self._told.get(spec)) for spec, found in now.items()}
        cost = self._task.setup.budget.cost
        spent, self._told, self._cost = cost - self._cost, now, cost
        return new, spent


def _less(counters: Counters, before: Counters | None) -> Counters:
    earlier = asdict(before or Counters())
    return Counters(**{name: n - earlier[name] for name, n in asdict(counters).items()})


def _sendable(error: JudgeError) -> JudgeError:
    """The error in a form that another process can read: itself, or its message and exit code."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever an error class of a plug-in raises
        plain = JudgeError(str(error))
        plain.exit_code = error.exit_code
        return plain
    return error


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
        self._quiet.enter_context(_no_stdout())
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
        with _signals_kept():
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


def workers_for(wanted: int | None, gpus: int, resources: dict[str, float]) -> int:
    """How many workers a run gets: those wanted, else one for each core, or GPU share.

    Args:
        resources: what the cluster has, by Ray's names (CPU, GPU).

    Raises:
        UsageError: the cluster has no room for so many.
    """
    needs = {"CPU": 1, **({"GPU": gpus} if gpus else {})}
    most = int(min(resources.get(name, 0.0) // need for name, need in needs.items()))
    if (wanted or 1) <= most:
        return wanted or most
    has = ", ".join(f"{resources.get(name, 0.0):g} {name}" for name in needs)
    each = ", ".join(f"{need} {name}" for name, need in needs.items())
    raise UsageError(
        f"the Ray cluster has {has} and a worker takes {each}: it holds {most} workers, not "
        f"{wanted or 1}; start more nodes, or ask for fewer with --workers"
    )


def joined(settings: Settings) -> Path | None:
    """Join the cluster at --address, or start a Ray here; gives the folder of one started here.

    Raises:
        UsageError: Ray is not installed, is in use in this process already, or cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise missing_extra(f"--engine ray needs Ray Data ({error})", "ray") from error
    if ray.is_initialized():
        raise UsageError("this process uses a Ray already; --engine ray needs one of its own")
    address, home, more = settings.address or "local", None, {}
    if address == "local":
        # Ray's sockets lie in there, and their paths must be short.
        short = "/tmp" if Path("/tmp").is_dir() else None
        home = Path(tempfile.mkdtemp(prefix="judge-ray-", dir=short))
        cores = max(os.cpu_count() or 1, settings.workers or 1)
        more = {"num_cpus": cores, "include_dashboard": False, "_temp_dir": str(home)}
        more["object_store_memory"] = STORE_BYTES
    else:
        refuse_unreachable(address)
    try:
        with _signals_kept():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **more)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = "Ray could not be started" if home else f"--address {address}"
        raise UsageError(f"{where}: {error}") from error
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=__name__)
    return home


def refuse_unreachable(address: str) -> None:
    """See that something answers at HOST:PORT, because Ray itself would try for minutes.

    Raises:
        UsageError: the address has no form that can be joined, or nothing answers.
    """
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if "//" in address or not colon or not host or not port.isdigit():
        raise UsageError(
            f"--address {address}: name the cluster as HOST:PORT (what `ray start --head` prints), "
            "or as auto on one of its machines"
        )
    try:
        socket.create_connection((host, int(port)), JOIN_SECONDS).close()
    except OSError as error:
        raise UsageError(
            f"--address {address}: nothing answers there ({error}); "
            "`ray start --head` starts a cluster and prints its address"
        ) from error


@contextmanager
def _no_stdout() -> Iterator[None]:
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        yield


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; the run goes on with what it had."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""`--engine ray`: records are read and written here, and judged by Ray Data's pool of workers.

The run is the local one: its input, order, output, resume and interrupts. Chunks of records go
through a `Feed` actor on this machine into a Ray Data stream, whose actor pool judges them. Ray
restarts workers that die and gives them their chunks again (judge/run/ray_worker.py).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import shutil
import socket
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from judge.errors import Exit, JudgeError, UsageError, missing_extra
from judge.judging.calls import Counters
from judge.records import RESERVED, Item, Record, SeenIds
from judge.run import lines
from judge.run.clients import records_at_once
from judge.run.lines import Line
from judge.run.ray_worker import ATTEMPTS, Done, Feed, Worker
from judge.run.setup import Setup
from judge.run.validate import Validation
from judge.settings import Settings
from judge.verdict import Usage

CHUNK, GATHER_SECONDS = 8, 0.01
"""Most records of a chunk, and how long it waits for them; they are judged again after a death."""

JOIN_SECONDS, END_SECONDS = 10.0, 2.0
"""How long a cluster is tried to be reached, and a stream that was told to end is waited for; the
latter well below what a second interrupt leaves (`LAST_SECONDS`)."""

STORE_BYTES = 256 * 1024 * 1024

CORES = 0.5
"""Of a worker. One is started for each core, so half of each is left for the workers of a machine
that dies; a worker that found no room would keep its chunks waiting."""

ON_GPUS = ("vllm", "transformers")
"""Providers whose models run on the worker's own GPUs."""


class RaySetup(Setup):
    """The setup of a run whose workers have their own: its clients count, and are never asked."""

    stream: Stream | None = None

    @property
    def slots(self) -> int:
        own = super().slots + 2 * CHUNK
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
    def of(cls, settings: Settings, ids: SeenIds, items: Iterator[Item]) -> Self:
        # Each worker has a cache; one here would never be looked into.
        task = cls(RaySetup.of(settings.model_copy(update={"cache": False})), ids, items)
        task._given = settings
        return task

    async def prepare(self) -> None:
        """Join or start Ray; raises UsageError where there is none, or no room in it."""
        self.setup.stream = await asyncio.to_thread(Stream, self._given, self.setup, self._counted)

    async def step(self, record: Record) -> Line:
        assert self.setup.stream is not None, "records are judged after prepare"
        self.setup.budget.refuse()
        bound = self.setup.bound(record.kind)
        text = await self.setup.stream.judged(record.item)
        if text is None:
            told = f"the worker died each of the {ATTEMPTS} times it judged this record"
            return lines.failed(record, "worker-died", told, bound)
        line = Line(text, json.loads(text)[RESERVED])
        if line.judgement.get("fingerprint") != bound.fingerprint:
            raise UsageError(
                "a worker judges by other files, models or software than this machine has: "
                "install the same judge on every node, and give all of them the same rubrics, "
                "weights and variables (OPENAI_BASE_URL and others)"
            )
        return line

    def _counted(self, counters: dict[str, Counters], cost: float) -> None:
        self.setup.budget.spent(Usage(cost_usd=cost))
        for spec, counted in counters.items():
            self.setup.budget.calls += counted.calls
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
        self._at_once = records_at_once(setup.settings, setup.clients.values()) // CHUNK + 2
        self._quiet = ExitStack()
        # Ray tells of lost nodes and workers on standard output, which is for data.
        nowhere = self._quiet.enter_context(Path(os.devnull).open("w"))  # noqa: SIM115
        self._quiet.enter_context(redirect_stdout(nowhere))
        self._home = _joined(settings)
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._counted = ray, counted
        resources = ray.cluster_resources()
        hosted = any(spec.partition(":")[0] in ON_GPUS for spec in setup.models)
        self._gpus = settings.worker_gpus if hosted and resources.get("GPU") else 0
        try:
            self.workers = workers_for(settings.workers, self._gpus, resources)
        except UsageError:
            self._shut()
            raise
        # The feed and its reader run on this machine: while the run goes on, so do they.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._pinned = {"num_cpus": 0, "scheduling_strategy": here}
        self._feed = ray.remote(Feed).options(**self._pinned).remote()
        folder = settings.cache_dir
        own = {"cache_dir": None if folder is None else folder.absolute(), "engine": "local"}
        self._arguments = (settings.model_copy(update=own), str(Path.cwd()), self._feed)
        self._waiting: dict[int, list[asyncio.Future[bytes | None]]] = {}
        self._gathered: list[tuple[Item, asyncio.Future[bytes | None]]] = []
        self._next = 0
        self._thread: threading.Thread | None = None

    async def judged(self, item: Item) -> bytes | None:
        """The item's output line; None where its workers died.

        Raises:
            JudgeError: what ends the run.
        """
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._consume, args=(loop,), daemon=True)
            self._thread.start()
        future: asyncio.Future[bytes | None] = loop.create_future()
        self._gathered.append((item, future))
        if len(self._gathered) == CHUNK:
            await self._put()
        elif len(self._gathered) == 1:
            loop.call_later(GATHER_SECONDS, lambda: loop.create_task(self._put()))
        return await future

    async def _put(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered:
            number, self._next = self._next, self._next + 1
            self._waiting[number] = [future for _, future in gathered]
            chunk = pickle.dumps([item for item, _ in gathered])
            await self._feed.put.remote(number, chunk, min(self._waiting))

    async def aclose(self) -> None:
        """End the stream, and leave the user's cluster or end judge's own."""
        with suppress(self._ray.exceptions.RayError):
            await self._feed.close.remote()
        if self._thread is not None:
            # Ray ends the whole process, with code 1, if a thread calls it while it shuts down.
            await asyncio.to_thread(self._thread.join, END_SECONDS)
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._ray.shutdown()
        self._quiet.close()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def _dataset(self) -> Any:
        from ray.data import ActorPoolStrategy, DataContext, read_datasource

        context = DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        # Each chunk goes on at once.
        context.target_max_block_size = 1
        pinned = {"concurrency": 1, "override_num_blocks": 1, "ray_remote_args": self._pinned}
        return read_datasource(_source(self._feed), **pinned).map_batches(
            Worker,
            fn_constructor_args=self._arguments,
            compute=ActorPoolStrategy(
                size=self.workers, max_tasks_in_flight_per_actor=self._at_once
            ),
            batch_size=None,
            batch_format="numpy",
            num_cpus=CORES,
            num_gpus=self._gpus,
            max_concurrency=self._at_once,
            max_restarts=-1,
            max_task_retries=-1,
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
        self, number: int, done: Sequence[Done], counters: dict[str, Counters], cost: float
    ) -> None:
        self._counted(counters, cost)
        for future, outcome in zip(self._waiting.pop(number, ()), done, strict=False):
            if future.done():
                continue
            if isinstance(outcome, JudgeError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _ended(self, failure: JudgeError) -> None:
        for number in list(self._waiting):
            self._took(number, [failure] * CHUNK, {}, 0.0)


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


def workers_for(wanted: int | None, gpus: int, resources: dict[str, float]) -> int:
    """How many workers a run gets: those wanted, else one for each core, or its share of GPUs.

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


def _joined(settings: Settings) -> Path | None:
    """Join the cluster at --address, or start a Ray here; gives the folder of one started here.

    Raises:
        UsageError: Ray is not installed, is in use in this process already, or cannot be reached.
    """
    for name in ("USAGE_STATS_ENABLED", "ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "ENABLE_AUTO_CONNECT"):
        # The last: a thread that still reads the stream after the end would start another Ray.
        os.environ.setdefault(f"RAY_{name}", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
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
    elif address != "auto":
        # Ray itself would try for minutes.
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), JOIN_SECONDS).close()
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--address {address}: nothing answers there ({error}). Name the cluster as "
                "HOST:PORT, which `ray start --head` prints, or as auto on one of its machines"
            ) from error
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **more)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = "Ray could not be started" if home else f"--address {address}"
        raise UsageError(f"{where}: {error}") from error
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=__name__)
    return home

"""`--engine ray`: this process reads and writes records; Ray Data's worker pool judges them.

Input, order, output, resume and interrupts are those of a local run. Chunks of records go through a
`Feed` actor on this machine into a Ray Data stream, whose actor pool judges them. Ray restarts
workers that die and gives them their chunks again (judge/cluster/worker.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout, suppress
from functools import cached_property
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any

from judge.backends.proxies import environment
from judge.cluster.worker import ATTEMPTS, Done, Feed, Traffic, Worker
from judge.errors import JudgeError, Unavailable, UsageError, missing_extra
from judge.records import Record
from judge.records.lines import Line
from judge.run.panels import Resources
from judge.run.task import OfWorker, Task
from judge.settings import Settings

CHUNK, GATHER_SECONDS = 8, 0.01
"""Most records of a chunk, and how long a chunk waits for them. With one record per chunk a run on
two cores is half as fast."""

MAX_CHUNKS = 1_000_000
"""Most chunks under way at once."""

JOIN_SECONDS = 10.0
"""Seconds to wait for the cluster to answer."""

STORE_BYTES = 256 * 1024 * 1024

RELEASES = ("2.60.",)
"""Releases of Ray whose ports and authentication were tested (tests/cluster/test_command.py). Ray
2.50 to 2.58 run code of anyone who reaches their ports."""

CORES = 0.5
"""Cores that Ray reserves for a worker. There is one worker per core, so half of each core is free
for the workers of a machine that dies: without room to restart, their chunks would wait."""

ON_GPUS = ("vllm", "transformers")
"""Providers whose models run on the worker's own GPUs."""


class RayEngine:
    """Runs a task's steps on Ray workers; the task's own clients only count.

    `of_worker` makes the same task in a worker, from the settings.
    """

    stream: ChunkStream

    def __init__(self, task: Task, settings: Settings, of_worker: OfWorker) -> None:
        self._task, self._models = task, task.resources.models
        self._settings, self._of_worker = settings, of_worker
        self._fingerprints: dict[str, str | None] = {}

    @property
    def slots(self) -> int:
        return (self._models.slots + 2 * CHUNK) * self.stream.workers

    async def prepare(self) -> None:
        """Join or start Ray; raises UsageError if there is none, or it has no room."""
        arguments = self._settings, self._of_worker, self._task.resources, self._count
        self.stream = await asyncio.to_thread(ChunkStream, *arguments)

    async def aclose(self) -> None:
        await self._task.aclose()
        if hasattr(self, "stream"):
            await self.stream.aclose()

    async def step(self, record: Record) -> Line:
        self._models.budget.refuse()
        text = await self.stream.judged(record)
        if text is None:
            message = f"the worker died each of the {ATTEMPTS} times it judged this record"
            return self._task.failed(record, "worker-died", message, None)
        line = Line.parse(text)
        if record.kind not in self._fingerprints:
            wanted = self._task.failed(record, "internal", "", None).fingerprint
            self._fingerprints[record.kind] = wanted
        if line is None or line.fingerprint != self._fingerprints[record.kind]:
            raise UsageError(
                "a worker judges by other files, models or software than this machine has: "
                "install the same judge on every node, and give all of them the same rubrics, "
                "weights and variables (OPENAI_BASE_URL and others)"
            )
        return line

    def _count(self, traffic: dict[str, Traffic], cost: float) -> None:
        self._models.budget.cost += cost
        for spec, (counters, adaptations) in traffic.items():
            self._models.budget.calls += counters.calls
            self._models.client(spec).add(counters, adaptations)


class ChunkStream:
    """A Ray Data stream of chunks through an actor pool, in a Ray task on this machine.

    `count` is called with the workers' traffic by model, and its cost (USD).

    Raises:
        UsageError: Ray is not installed, cannot be reached, or has no room for the workers.
    """

    def __init__(
        self,
        settings: Settings,
        of_worker: OfWorker,
        resources: Resources,
        count: Callable[[dict[str, Traffic], float], None],
    ) -> None:
        self._count = count
        with ExitStack() as opened:
            # Ray reports lost nodes and workers on standard output, which is for data.
            nowhere = opened.enter_context(Path(os.devnull).open("w"))
            opened.enter_context(redirect_stdout(nowhere))
            _join(settings, opened)
            import ray
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            capacity = ray.cluster_resources()
            hosted = any(spec.partition(":")[0] in ON_GPUS for spec in resources.models.names)
            gpus = settings.worker_gpus if hosted and capacity.get("GPU") else 0
            self.workers = workers_for(settings.workers, gpus, capacity)
            self._opened = opened.pop_all()
        # On this machine, feed and stream live as long as the run does.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        pinned = {"num_cpus": 0, "scheduling_strategy": here}
        self._feed = ray.remote(Feed).options(**pinned, max_concurrency=MAX_CHUNKS).remote()
        folder = settings.cache_dir
        changes = {"cache_dir": None if folder is None else folder.absolute(), "engine": "local"}
        arguments = (settings.model_copy(update=changes), str(Path.cwd()), self._feed, of_worker)
        at_once = resources.models.slots // CHUNK + 2
        running = ray.remote(_judge_all).options(**pinned, max_retries=0)
        self._running = running.remote(arguments, self.workers, at_once, gpus, pinned)
        self._chunk: list[Record] = []
        self._full = asyncio.Event()
        self._full.set()

    async def judged(self, item: Record) -> bytes | None:
        """The item's output line; None if its workers died.

        Raises:
            JudgeError: an error that ends the run.
        """
        if self._full.is_set():
            self._chunk, self._full = [], asyncio.Event()
            self._asking = asyncio.create_task(self._ask(self._chunk, self._full))
            # After a second interrupt the task is not awaited, and fails because Ray has ended.
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        answer, place = self._asking, len(self._chunk)
        self._chunk.append(item)
        if len(self._chunk) == CHUNK:
            self._full.set()
        outcome = (await asyncio.shield(answer))[place]
        if isinstance(outcome, JudgeError):
            raise outcome
        return outcome

    async def _ask(self, chunk: list[Record], full: asyncio.Event) -> list[Done]:
        """Send a chunk once it is full or has waited long enough; returns its outcomes.

        Raises:
            Unavailable: the stream has ended.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(full.wait(), GATHER_SECONDS)
        full.set()
        request = asyncio.ensure_future(self._feed.judged.remote(pickle.dumps(chunk)))
        try:
            await asyncio.wait((request, self._ended), return_when=asyncio.FIRST_COMPLETED)
            reply = request.result() if request.done() else self._ended.result()
        except Exception as error:
            # Any error of Ray's ends the run, with its message.
            words = " ".join(str(getattr(error, "cause", error)).split())
            raise Unavailable(f"the Ray stream failed: {words[:300]}") from error
        finally:
            request.cancel()
        outcomes: list[Done]
        outcomes, traffic, cost = pickle.loads(reply)
        self._count(traffic, cost)
        return outcomes

    @cached_property
    def _ended(self) -> asyncio.Future[Any]:
        end: asyncio.Future[Any] = asyncio.ensure_future(self._running)
        # After a second interrupt the future is not awaited, and fails because Ray has ended.
        end.add_done_callback(lambda task: task.cancelled() or task.exception())
        return end

    async def aclose(self) -> None:
        """Drop chunks under way, and leave the user's cluster or stop judge's own."""
        await asyncio.to_thread(self._opened.close)


def _judge_all(
    arguments: tuple[Any, ...], workers: int, at_once: int, gpus: int, pinned: Any
) -> None:
    """Send the feed's chunks through a pool of workers until the run ends; runs in Ray.

    Args:
        arguments: those of each `Worker`; the third is the feed.
    """
    import pyarrow as pa
    import ray
    from ray.data import ActorPoolStrategy, DataContext, read_datasource
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    feed = arguments[2]

    def read() -> Iterator[Any]:
        for number in count():
            yield pa.table({"number": [number], "chunk": [ray.get(feed.get.remote(number))]})

    class FeedSource(Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, **_: Any) -> list[ReadTask]:
            return [ReadTask(read, BlockMetadata(None, None, None, None))]

    context = DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    # Each chunk is passed on immediately.
    context.target_max_block_size = 1
    source = {"concurrency": 1, "override_num_blocks": 1, "ray_remote_args": pinned}
    chunks = read_datasource(FeedSource(), **source).map_batches(
        Worker,
        fn_constructor_args=arguments,
        compute=ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=at_once),
        batch_size=None,
        batch_format="numpy",
        num_cpus=CORES,
        num_gpus=gpus,
        max_concurrency=at_once,
        max_restarts=-1,
        max_task_retries=-1,
        scheduling_strategy="SPREAD",
    )
    for _ in chunks.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
        pass


def workers_for(number: int | None, gpus: int, resources: dict[str, float]) -> int:
    """How many workers a run gets: `number`, else as many as the cluster's cores and GPUs allow.

    Args:
        gpus: GPUs of each worker.
        resources: those of the cluster, by Ray's names (CPU, GPU).

    Raises:
        UsageError: the cluster has no room for this many workers.
    """
    needs = {"CPU": 1, **({"GPU": gpus} if gpus else {})}
    most = int(min(resources.get(name, 0.0) // need for name, need in needs.items()))
    if (number or 1) <= most:
        return number or most
    has = ", ".join(f"{resources.get(name, 0.0):g} {name}" for name in needs)
    share = ", ".join(f"{need} {name}" for name, need in needs.items())
    raise UsageError(
        f"the Ray cluster has {has} and a worker takes {share}: it holds {most} workers, not "
        f"{number or 1}; start more nodes, or ask for fewer with --workers"
    )


def _join(settings: Settings, stack: ExitStack) -> None:
    """Join the cluster at --address, or start Ray here; `stack` leaves or stops it.

    A Ray started here listens on loopback only, requires a token that is new for each run, and
    keeps its files in a folder of this user's.

    Raises:
        UsageError: Ray is not installed, of an untested release, already in use in this process, or
            cannot be reached.
    """
    for name in ("USAGE_STATS_ENABLED", "ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        os.environ.setdefault(f"RAY_{name}", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    address, options = settings.address or "local", {}
    if address == "local":
        # With the token, a client of its ports can run code as this user.
        private = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)}
        # Ray's own switch for the address 127.0.0.1, read when Ray is imported.
        private["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        stack.enter_context(environment(private))
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise missing_extra(f"--engine ray needs Ray Data ({error})", "ray") from error
    if not ray.__version__.startswith(RELEASES):
        releases = " or ".join(f"{release}x" for release in RELEASES)
        raise UsageError(f"--engine ray needs Ray {releases}; Ray {ray.__version__} is installed")
    if ray.is_initialized():
        raise UsageError("Ray runs in this process already; --engine ray must start its own")
    if address == "local":
        # Ray's sockets are in this folder, and their paths must be short.
        short = "/tmp" if Path("/tmp").is_dir() else None
        home = tempfile.TemporaryDirectory("", "judge-ray-", short, ignore_cleanup_errors=True)
        cores = max(os.cpu_count() or 1, settings.workers or 1)
        options = {
            "num_cpus": cores,
            "include_dashboard": False,
            # Ray opens its folder to all users; the one around it stays private.
            "_temp_dir": str(Path(stack.enter_context(home)) / "r"),
        }
        options["object_store_memory"] = STORE_BYTES
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
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:
        # Ray raises a plain Exception if a node does not start in time.
        where = f"--address {address}" if settings.address else "Ray could not be started"
        raise UsageError(f"{where}: {error}") from error
    stack.callback(ray.shutdown)
    if address == "local" and not ip_address(ray.util.get_node_ip_address()).is_loopback:
        raise UsageError(
            "Ray would listen beyond this machine, because it was imported before judge set it up: "
            "run judge with --engine ray as a command"
        )

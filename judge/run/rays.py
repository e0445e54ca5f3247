"""Ray: joined or started, what a worker asks of it, and a worker as the driver sees it.

All that is said to Ray is said here. Nothing of it reaches standard output, which is for data.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from judge.errors import JudgeError, UsageError, missing_extra
from judge.records import Item
from judge.run.crew import WorkerDied
from judge.run.worker import Done, Leased, Purse, Worker
from judge.settings import Settings

ON_GPUS = ("vllm", "transformers")
"""Providers whose models run on the worker's own cards."""

JOIN_SECONDS = 10.0
"""How long an address may take to answer at all."""

WORKERS_A_CORE = 4
"""Most workers for each core of a Ray of our own."""

STORE_BYTES = 256 * 1024 * 1024
"""Shared memory of a Ray of our own: messages of more than 100 kB pass through it."""

_HEARS_AT_ONCE = 8
"""Calls a worker may have under way; the driver makes three."""


def gpus_each(settings: Settings, models: Sequence[str], cluster_gpus: float) -> int:
    """GPUs that each worker asks for: none without models of `ON_GPUS`, or without any card."""
    hosted = any(spec.partition(":")[0] in ON_GPUS for spec in models)
    return settings.worker_gpus if hosted and cluster_gpus else 0


def workers_for(
    wanted: int | None, gpus: int, all_of_it: dict[str, float], free: dict[str, float]
) -> int:
    """How many workers a run gets: those wanted, else what the free cores and cards hold.

    Args:
        all_of_it: what the cluster has, by Ray's names (CPU, GPU), `free` what of it is free now.

    Raises:
        UsageError: the cluster has no room for so many, free or not.
    """
    needs = {"CPU": 1, **({"GPU": gpus} if gpus else {})}

    def fitting(has: dict[str, float]) -> int:
        return int(min(has.get(name, 0.0) // need for name, need in needs.items()))

    most = fitting(all_of_it)
    if (wanted or 1) > most:
        has = ", ".join(f"{all_of_it.get(name, 0.0):g} {name}" for name in needs)
        each = ", ".join(f"{need} {name}" for name, need in needs.items())
        advice = "start more nodes, or ask for fewer with --workers"
        if gpus:
            advice += "; JUDGE_WORKER_GPUS sets the GPUs of each"
        told = f"the Ray cluster has {has} and a worker takes {each}: it holds {most} workers"
        raise UsageError(f"{told}, not {wanted or 1}; {advice}")
    return wanted or max(1, fitting(free))


def own_cores(wanted: int | None, cores: int) -> int:
    """The cores that a Ray of our own claims to have, so that the workers wanted find room.

    Raises:
        UsageError: so many workers would only keep one another waiting.
    """
    most = cores * WORKERS_A_CORE
    if (wanted or 1) > most:
        raise UsageError(
            f"--workers {wanted}: a worker is a process, and this machine's {cores} cores take "
            f"{most} of them at most; --concurrency has more calls under way at once"
        )
    return max(cores, wanted or 1)


class Ray:
    """The Ray that a run's workers live in: the user's, which is left as it was, or one of our own.

    Raises:
        UsageError: Ray is not installed, cannot be reached, or holds no such workers.
    """

    def __init__(self, settings: Settings, models: Sequence[str]) -> None:
        try:
            _quieten()
            import ray
        except ImportError as error:
            raise missing_extra(f"--engine ray needs the library ray ({error})", "ray") from error
        self._ray: Any = ray
        self._home: Path | None = None
        self._hushed = ExitStack()
        self._settings = settings
        self._purse: Any = None
        if ray.is_initialized():
            raise UsageError("this process uses a Ray already; --engine ray needs one of its own")
        try:
            # Ray writes there, whatever it is told, when a node or a worker is lost.
            self._hushed.enter_context(_hushed())
            self._join(settings)
            resources = ray.cluster_resources()
            self._gpus = gpus_each(settings, models, resources.get("GPU", 0.0))
            free = ray.available_resources()
            self.workers = workers_for(settings.workers, self._gpus, resources, free)
            if not (settings.max_calls is None and settings.max_cost is None):
                self._purse = self._make_purse()
        except BaseException:
            self.close()
            raise

    def hire(self) -> RayWorker:
        """A worker, which Ray starts wherever there is room, as soon as there is."""
        made = self._ray.remote(Worker).options(
            num_cpus=1,
            num_gpus=self._gpus,
            # A worker that died is replaced by the driver, which knows what lay with it.
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_HEARS_AT_ONCE,
            scheduling_strategy="SPREAD",
        )
        lease = None if self._purse is None else RemoteLease(self._purse)
        return RayWorker(self._ray, made.remote(self._settings, str(Path.cwd()), lease))

    def room(self) -> str:
        """What there is and what a worker takes, in words."""
        has = self._ray.cluster_resources()
        cores, cards = has.get("CPU", 0.0), has.get("GPU", 0.0)
        told = f"the Ray cluster has {cores:g} CPU and {cards:g} GPU left"
        return f"{told}, and a worker takes 1 CPU and {self._gpus} GPU"

    def close(self) -> None:
        """Leave the user's cluster, or end our own; both without our workers."""
        with _signals_kept():
            self._ray.shutdown()
        self._hushed.close()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def _join(self, settings: Settings) -> None:
        address = settings.address or "local"
        own = address == "local"
        if not own:
            refuse_unreachable(address)
        more: dict[str, Any] = {}
        if own:
            # Ray's sockets lie in there, and their paths must be short.
            short = "/tmp" if Path("/tmp").is_dir() else None
            self._home = Path(tempfile.mkdtemp(prefix="judge-ray-", dir=short))
            cores = own_cores(settings.workers, os.cpu_count() or 1)
            more = {"num_cpus": cores, "include_dashboard": False, "_temp_dir": str(self._home)}
            more["object_store_memory"] = STORE_BYTES
        try:
            with _signals_kept():
                self._ray.init(
                    address=address, log_to_driver=False, logging_level=logging.ERROR, **more
                )
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            where = "Ray could not be started" if own else f"--address {address}"
            raise UsageError(f"{where}: {error}") from error

    def _make_purse(self) -> Any:
        """The budget, on the driver's own machine: while the run goes on, so does that."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = self._ray.get_runtime_context().get_node_id()
        made = self._ray.remote(Purse).options(
            num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False)
        )
        return made.remote(self._settings.max_calls, self._settings.max_cost, self.workers)


class RayWorker:
    """A worker in a process of Ray's."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    async def where(self) -> int:
        return int(await self._asked(self._actor.where.remote()))

    async def begin(self) -> JudgeError | None:
        trouble: JudgeError | None = await self._asked(self._actor.begin.remote())
        return trouble

    async def give(self, items: Sequence[tuple[int, Item]]) -> None:
        await self._asked(self._actor.give.remote(items))

    async def take(self) -> Done:
        done: Done = await self._asked(self._actor.take.remote())
        return done

    async def end(self) -> None:
        await self._asked(self._actor.end.remote())

    def kill(self) -> None:
        self._ray.kill(self._actor, no_restart=True)

    async def _asked(self, answer: Any) -> Any:
        try:
            return await answer
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            raise WorkerDied(" ".join(str(error).split())[:300]) from error


class RemoteLease:
    """How a worker asks for calls of the run's budget."""

    def __init__(self, purse: Any) -> None:
        self._purse = purse

    def __call__(self, cost: float) -> Leased:
        # The worker waits for the answer, which a call to a model needs before it begins.
        import ray

        try:
            leased: Leased = ray.get(self._purse.lease.remote(cost))
        except ray.exceptions.RayError as error:
            raise JudgeError(f"the run's budget cannot be asked any more: {error}") from error
        return leased


def refuse_unreachable(address: str) -> None:
    """See that something answers at HOST:PORT, because Ray itself would try for minutes.

    Raises:
        UsageError: the address is of no form that can be joined, or nothing answers.
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


def _quieten() -> None:
    """Ray's messages are not about the records, and it is to report to nobody."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")


@contextmanager
def _hushed() -> Iterator[None]:
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        yield


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; the run goes on with what it had."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

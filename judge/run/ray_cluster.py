"""The Ray cluster that a run's workers live in: the user's, or one that judge starts."""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from judge.errors import UsageError, missing_extra
from judge.settings import Settings

JOIN_SECONDS = 10.0
"""How long an address may take to answer at all."""

STORE_BYTES = 256 * 1024 * 1024
"""Shared memory of a Ray that judge starts itself."""


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
    else:
        refuse_unreachable(address)
    try:
        with signals_kept():
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
def no_stdout() -> Iterator[None]:
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        yield


@contextmanager
def signals_kept() -> Iterator[None]:
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

"""What happens to a run in a fork of `warm.py`, at a model call that a test names."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LOCKED = 1.0
"""Seconds that a cache is waited for here (60 else)."""

_kept: list[Any] = []


def rigged(rig: Mapping[str, Any]) -> Callable[[], None]:
    """Prepare this process; what comes back is called at the beginning of each model call.

    Args:
        rig: `limits`: resource limits by name; `closed`: standard streams that are closed;
            `streams`: files that they lead to; `pages`: how large the cache's database may grow;
            `ignored`: a signal; `at`: what happens at which call (a function here, or a signal).
    """
    from judge import cache
    from judge.run import task

    task.TICK_SECONDS = 0.0
    cache.LOCKED_SECONDS = LOCKED
    for name, most in rig.get("limits", {}).items():
        resource.setrlimit(getattr(resource, name), (most, most))
    for number, name in rig.get("streams", {}).items():
        os.dup2(_gone() if name == "gone" else os.open(name, os.O_WRONLY), int(number))
    for number in rig.get("closed", ()):
        os.close(number)
        name = ("stdin", "stdout", "stderr")[number]
        setattr(sys, name, None)
        setattr(sys, f"__{name}__", None)
    if pages := rig.get("pages"):
        _bound_cache(pages)
    if ignored := rig.get("ignored"):
        signal.signal(getattr(signal, ignored), signal.SIG_IGN)
    happens = {int(call): name for call, name in rig.get("at", {}).items()}
    count = 0

    def begun() -> None:
        nonlocal count
        count += 1
        if name := happens.get(count):
            globals()[name]() if name in globals() else _signal(name)

    return begun


def _signal(name: str) -> None:
    os.kill(os.getpid(), getattr(signal, name))


def _gone() -> int:
    """A pipe whose reader has gone away."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def _bound_cache(pages: int) -> None:
    import diskcache

    connected = diskcache.Cache._con.fget

    def bound(cache: Any) -> Any:
        connection = connected(cache)
        connection.execute(f"PRAGMA max_page_count={pages}").fetchall()
        return connection

    diskcache.Cache._con = property(bound)


def delete_out() -> None:
    Path("out").unlink()


def move_out() -> None:
    Path("out").rename("moved")


def replace_out() -> None:
    Path("other").write_text("somebody's text\n")
    Path("other").replace("out")


def shorten_out() -> None:
    os.truncate("out", 100)


def append_to_out() -> None:
    with Path("out").open("a") as file:
        file.write("somebody's line\n")


def delete_input() -> None:
    Path("norms.jsonl").unlink()


def shorten_input() -> None:
    os.truncate("long.jsonl", 100)


def remove_cache() -> None:
    shutil.rmtree("cache")


def lock_cache() -> None:
    other = sqlite3.connect("cache/cache.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    _kept.append(other)


def lock_cache_shortly() -> None:
    from judge import cache

    # However late the timer comes.
    cache.LOCKED_SECONDS = 60.0
    lock_cache()
    threading.Timer(LOCKED / 2, lambda: _kept[0].execute("ROLLBACK")).start()


_real_time = time.time


def clock_forward() -> None:
    time.time = lambda: _real_time() + 3600


def clock_back() -> None:
    time.time = lambda: _real_time() - 3600

"""`judge`, forked from a process that has everything imported, and killed where a test says.

Run as a script: each line of standard input is a job, each line of standard output what came of
it (`forks.py` is the other side). In the child every write, cut, rename and removal of a file,
every statement to the cache's database, and the beginning and end of every model call is a point
at which it can die, by a SIGKILL to itself; a write may get half-way first.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import resource
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

DELAYS = (0.0, 0.0, 0.001, 0.003, 0.008)
"""Seconds that a call takes, so that records end in another order than they began."""

SLOW = 0.2
"""Seconds that each call of a record takes that a rig names as `slow`."""

LAZY = (
    *("aiohttp", "certifi", "judge.backends.batch", "judge.backends.openai"),
    *("judge.judging.reask", "judge.calibration.calibrate", "judge.papers.evaluating"),
    *("judge.papers.normad", "judge.report.calibrated", "numpy", "scipy.stats"),
)
"""What judge imports where it is used, and each fork would import again."""

real_write = os.write


class Points:
    """Counts points, and dies at the one that it was given (None: at none)."""

    def __init__(self, die_at: int | None) -> None:
        self.die_at, self.passed = die_at, 0

    def point(self) -> None:
        self.passed += 1
        if self.passed == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """With a point before and one behind."""

        def wrapped(*args: Any, **more: Any) -> Any:
            self.point()
            result = call(*args, **more)
            self.point()
            return result

        return wrapped

    def writing(self, write: Callable[..., int]) -> Callable[..., int]:
        """A point before, one with half of it written, one behind."""

        def wrapped(*args: Any) -> int:
            self.point()
            if self.passed + 1 == self.die_at:
                write(*args[:-1], bytes(args[-1])[: len(args[-1]) // 2])
            self.point()
            count = write(*args)
            self.point()
            return count

        return wrapped


def prepare(points: Points, job: dict[str, Any], log: int) -> None:
    """Put the points into judge, note what is asked and what is stored, and let calls take time.

    Args:
        log: an open file, to which `asked RECORD`, `paid KEY` and `stored KEY` go.
    """
    import diskcache

    from judge.cache import ReplyCache
    from judge.judging.client import Client

    chance = random.Random(job["seed"])
    begun = rigged(job["rig"]) if job["rig"] else lambda: None
    slow = (job["rig"] or {}).get("slow")

    def delay(record: str) -> float:
        if job["rig"] is None:
            return chance.choice(DELAYS)
        return SLOW if record == slow else 0.0

    for name in ("fsync", "truncate", "ftruncate", "replace", "unlink", "open"):
        setattr(os, name, points.around(getattr(os, name)))
    os.write = points.writing(real_write)

    diskcache.Cache._sql = property(lambda cache: points.around(cache._con.execute))
    build, store = Client.__init__, ReplyCache.store

    def built(self: Any, *args: Any, **more: Any) -> None:
        build(self, *args, **more)
        complete, completions = self.backend.complete, self._completions
        send = completions._transport.send

        async def completed(call: Any, mode: Any) -> Any:
            begun()
            real_write(log, f"asked {call.origin.record}\n".encode())
            points.point()
            await asyncio.sleep(delay(call.origin.record))
            completion = await complete(call, mode)
            points.point()
            return completion

        async def paid(call: Any, mode: Any, *more: Any, **named: Any) -> Any:
            real_write(log, f"paid {completions._key(call, mode)}\n".encode())
            return await send(call, mode, *more, **named)

        self.backend.complete, completions._transport.send = completed, paid

    async def stored(self: Any, entries: dict[str, str]) -> None:
        await store(self, entries)
        for key in entries:
            real_write(log, f"stored {key}\n".encode())

    Client.__init__ = built  # type: ignore[method-assign]
    ReplyCache.store = stored  # type: ignore[method-assign]


# ---------------------------------------------------------------- mishaps that a test names

LOCKED = 1.0
"""Seconds that a cache is waited for here (30 else)."""

_kept: list[Any] = []


def rigged(rig: Mapping[str, Any]) -> Callable[[], None]:
    """Prepare this process; what comes back is called at the beginning of each model call.

    Args:
        rig: `limits`: resource limits by name; `closed`: standard streams that are closed;
            `streams`: files that they lead to; `pages`: how large the cache's database may grow;
            `ignored`: a signal; `at`: what happens at which call (a function here, or a signal).
    """
    from judge import cache
    from judge.run import run

    run.TICK_SECONDS = 0.0
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
    # Whoever runs the tests may have started them under `nohup`.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
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
    method, writing = os.pipe()
    os.close(method)
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


def replace_out() -> None:
    Path("other").write_text("somebody's text\n")
    Path("other").replace("out")


def append_to_out() -> None:
    with Path("out").open("a") as file:
        file.write("somebody's line\n")


def delete_input() -> None:
    Path("norms.jsonl").unlink()


def lock_cache() -> None:
    other = sqlite3.connect("cache/cache.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    _kept.append(other)


def lock_cache_shortly() -> None:
    lock_cache()
    threading.Timer(LOCKED / 2, lambda: _kept[0].execute("ROLLBACK")).start()


# ---------------------------------------------------------------- forks


def child(job: dict[str, Any], tell: int) -> None:
    """Be `judge` with the job's words; never returns."""
    from judge.cli import main

    os.chdir(job["folder"])
    os.environ |= {**job["env"], "JUDGE_CACHE_DIR": job["cache"]}
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, name in ((1, "stdout.log"), (2, "stderr.log")):
        os.dup2(os.open(name, flags), number)
    points = Points(job["die_at"])
    prepare(points, job, os.open("calls.log", flags))
    sys.argv = ["judge", *job["words"]]
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        real_write(tell, str(points.passed).encode())
        os._exit(code)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Fork a child for the job; its exit code (negative: the signal), points, and seconds."""
    method, writing = os.pipe()
    began = time.monotonic()
    if (number := os.fork()) == 0:
        os.close(method)
        child(job, writing)
    os.close(writing)
    if job["kill_after"] is not None:
        time.sleep(job["kill_after"])
        os.kill(number, signal.SIGKILL)
    _, status = os.waitpid(number, 0)
    points = os.read(method, 100)
    os.close(method)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "points": int(points) if points else None,
        "seconds": time.monotonic() - began,
    }


def warm(folder: Path) -> None:
    """Do once what each run would do again: imports, the command's parser, the script, a rubric."""
    import typer

    from judge import cli
    from judge.backends import scripted
    from judge.cli import main

    os.chdir(folder)
    cli.app = typer.main.get_command(cli.app)  # type: ignore[assignment]
    scripted.read_plain = lru_cache(scripted.read_plain)
    for name in ("norms.jsonl", "stories.jsonl"):
        sys.argv = ["judge", "validate", name, "-m", "scripted:judge.yaml", "--limit", "2"]
        sys.argv += ["--cache-dir", "warmed", "-q", "-o", os.devnull]
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, ended.code

    for name in LAZY:
        importlib.import_module(name)

    # The last run's reader may still be ending; a fork has no other threads than its own.
    for thread in set(threading.enumerate()) - {threading.main_thread()}:
        thread.join(60)
    assert threading.active_count() == 1, threading.enumerate()


if __name__ == "__main__":
    warm(Path(sys.argv[1]))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()

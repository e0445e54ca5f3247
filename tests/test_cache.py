"""Replies on disk: text only, shared between processes; planted content is never run."""

from __future__ import annotations

import asyncio
import errno
import json
import multiprocessing
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judge.cache import CacheError, ReplyCache, _clear_settings, cache_dir
from judge.configuration import resolve
from judge.digest import digest
from judge.errors import Exit, UsageError

KEY = digest({"a": 1})


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    made = ReplyCache(tmp_path / "replies")
    yield made
    made.close()


def rows(cache: ReplyCache, sql: str, *values: object) -> list[Any]:
    with sqlite3.connect(cache.folder / "cache.db") as database:
        return database.execute(sql, values).fetchall()


def plant(cache: ReplyCache, mode: int, value: object, filename: str | None = None) -> None:
    """Overwrite the value of KEY the way somebody with access to the folder could."""
    cache.set(KEY, {"good": True})
    sql = "UPDATE Cache SET mode = ?, value = ?, filename = ? WHERE key = ?"
    rows(cache, sql, mode, value, filename, KEY)


def test_large_replies_and_half_surrogates(cache: ReplyCache) -> None:
    value = {"text": "é\ud83d" + "語" * 200_000}
    cache.set(KEY, value)
    assert cache.get(KEY) == value
    assert not list(cache.folder.rglob("*.val")), "entries stay in the database"


def test_a_run_that_opens_the_folder_leaves_the_counts_that_another_reads(
    cache: ReplyCache,
) -> None:
    _clear_settings(cache.folder / "cache.db")
    assert cache._cache.reset("count") == 0


async def test_a_disk_that_fills_up_is_not_the_commands_fault(cache: ReplyCache) -> None:
    cache._cache._sql("PRAGMA max_page_count = 16").fetchall()
    with pytest.raises(CacheError, match="make room") as full:
        for number in range(100):
            await cache.store({f"{number:064x}": json.dumps({"text": "long " * 1000})})
    assert full.value.exit_code == Exit.UNAVAILABLE


# ---------------------------------------------------------------- keys


def test_the_key_never_changes_by_itself() -> None:
    key = digest({"b": [1, 2.5, None], "a": "é"})
    assert key == "5f987f66d5922a951cecb72ffe94831d1f6126e7"


# ---------------------------------------------------------------- what others put there


@pytest.mark.parametrize(
    "value",
    ["", "{", "[1]", '"text"', "null", "[" * 100_000, b'{"a": 1}', b"\xff", 5, 2.5, None],
    ids=lambda value: repr(value)[:12],
)
def test_a_corrupt_entry_is_absent_and_can_be_replaced(cache: ReplyCache, value: object) -> None:
    plant(cache, 1, value)
    assert cache.get(KEY) is None
    cache.set(KEY, {"a": 2})
    assert cache.get(KEY) == {"a": 2}


def test_an_entry_that_was_changed_or_moved_is_absent(cache: ReplyCache) -> None:
    other = digest({"b": 1})
    cache.set(KEY, {"answer": "no"})
    cache.set(other, {"answer": "yes"})
    rows(cache, "UPDATE Cache SET value = replace(value, 'no', 'yes') WHERE key = ?", KEY)
    assert cache.get(KEY) is None
    moved = "UPDATE Cache SET value = (SELECT value FROM Cache WHERE key = ?) WHERE key = ?"
    rows(cache, moved, other, KEY)
    assert cache.get(KEY) is None and cache.get(other) == {"answer": "yes"}


def test_a_damaged_database_gives_what_was_stored_or_nothing(tmp_path: Path) -> None:
    values = {digest({"n": n}): {"answer": "yes" if n % 3 else "no", "n": n} for n in range(60)}
    whole = ReplyCache(tmp_path / "whole")
    for key, value in values.items():
        whole.set(key, value)
    whole.close()
    body, lost, refused = (tmp_path / "whole" / "cache.db").read_bytes(), 0, 0
    for seed in range(40):
        drawn = random.Random(seed)
        damaged = bytearray(body)
        for _ in range(1 + seed % 20):
            damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "cache.db").write_bytes(damaged)
        try:
            cache = ReplyCache(folder)
            found = [(cache.get(key), value) for key, value in values.items()]
            cache.close()
        except CacheError:
            refused += 1
            continue
        assert all(got in (None, value) for got, value in found), seed
        missing = sum(got is None for got, _ in found)
        lost += bool(missing)
    assert lost > 8 and refused < 24


# ---------------------------------------------------------------- looking after it


def test_prunes_what_is_old(cache: ReplyCache) -> None:
    for number in range(5):
        cache.set(digest({"n": number}), {"n": number})
    old = [digest({"n": number}) for number in range(3)]
    for key in old:
        rows(cache, "UPDATE Cache SET store_time = ? WHERE key = ?", time.time() - 3600, key)
    stats = cache.stats()
    assert stats.entries == 5 and stats.oldest_seconds == pytest.approx(3600, abs=60)
    assert (cache.prune(7200), cache.prune(1800)) == (0, 3)
    assert [cache.get(digest({"n": n})) for n in range(5)] == [None] * 3 + [{"n": 3}, {"n": 4}]


def _fill(folder: str, worker: int, count: int) -> None:
    cache = ReplyCache(Path(folder))
    for number in range(count):
        cache.set(digest({"worker": worker, "number": number}), {"value": number})
        cache.set(digest({"number": number}), {"value": number})
        assert cache.get(digest({"number": number})) == {"value": number}
    cache.close()


def test_processes_share_a_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(str(tmp_path), n, 50)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    cache = ReplyCache(tmp_path)
    assert cache.stats().entries == 150
    assert cache.get(digest({"worker": 1, "number": 49})) == {"value": 49}
    cache.close()


LOCKED = """
import asyncio, sys
from pathlib import Path
from judge.cache import ReplyCache
from judge.run.stream import interrupts

async def run():
    cache = ReplyCache(Path(sys.argv[1]))
    print("opened", flush=True)
    sys.stdin.readline()
    task = asyncio.ensure_future(cache.store({"a": "{}"}))
    with interrupts(lambda again: again and task.cancel()):
        await task

asyncio.run(run())
"""


def test_a_second_interrupt_ends_a_run_whose_cache_is_locked(cache: ReplyCache) -> None:
    """SQLite waits in C, where Python handles no signal."""
    words, pipe = (sys.executable, "-c", LOCKED, str(cache.folder)), subprocess.PIPE
    with (
        closing(sqlite3.connect(cache.folder / "cache.db", isolation_level=None)) as other,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process,
    ):
        assert process.stdin and process.stdout
        process.stdout.readline()
        other.execute("BEGIN EXCLUSIVE")
        process.stdin.write(b"\n")
        process.stdin.flush()
        for _ in range(2):
            time.sleep(0.5)
            assert process.poll() is None, "it waits for the lock"
            process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert b"CancelledError" in process.communicate(timeout=60)[1]
        assert time.monotonic() - begun < 20, "the lock is waited for 30 s"


async def test_a_lock_that_goes_away_is_waited_for_and_one_that_stays_is_told(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(cache.folder / "cache.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        storing = asyncio.ensure_future(cache.store({KEY: '{"a": 1}'}))
        await asyncio.sleep(0.5)
        assert not storing.done()
        other.execute("ROLLBACK")
        await storing
        assert cache.get(KEY) == {"a": 1}
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr("judge.cache.LOCKED_SECONDS", 0.3)
        with pytest.raises(CacheError, match="another process has held its lock") as told:
            await cache.store({KEY: "{}"})
        assert told.value.exit_code == Exit.UNAVAILABLE
        with pytest.raises(CacheError, match="end that process"):
            cache.set(KEY, {})


# ---------------------------------------------------------------- folders


@pytest.mark.parametrize(("name", "why"), [("f", "it is not a folder"), ("f/c", "Not a directory")])
def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "f").write_text("mine")
    with pytest.raises(CacheError, match=f"{name}: the cache folder cannot be used: {why}; name"):
        ReplyCache(tmp_path / name)
    assert (tmp_path / "f").read_text() == "mine"


@pytest.mark.parametrize("name", ["cache.db", "cache.db-wal"])
def test_no_link_is_followed_out_of_the_folder(tmp_path: Path, name: str) -> None:
    ReplyCache(tmp_path / "c").close()
    (tmp_path / "c" / name).unlink(missing_ok=True)
    (tmp_path / "precious").write_bytes(b"")
    (tmp_path / "c" / name).symlink_to(tmp_path / "precious")
    with pytest.raises(CacheError, match=f"{name} is a link"):
        ReplyCache(tmp_path / "c")
    assert (tmp_path / "precious").read_bytes() == b""


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"file.*--cache-dir"):
        ReplyCache(tmp_path / "file")


def test_a_database_that_breaks_later(cache: ReplyCache) -> None:
    rows(cache, "DROP TABLE Cache")
    for use in (
        lambda: cache.get(KEY),
        lambda: cache.set(KEY, {}),
        cache.stats,
        cache.clear,
        lambda: cache.prune(1),
    ):
        with pytest.raises(UsageError, match="cannot be used"):
            use()


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JUDGE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir(resolve({}).cache_dir).parts[-2:] == ("judge", "replies")
    monkeypatch.setenv("JUDGE_CACHE_DIR", str(tmp_path / "named"))
    assert cache_dir(resolve({}).cache_dir) == tmp_path / "named"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "make room, name another"),
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied; name another"),
        (sqlite3.OperationalError("unable to open"), "unable to open; name another"),
    ],
)
def test_the_remedy_is_that_of_the_fault(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch, error: Exception, remedy: str
) -> None:
    def fault(*args: object, **more: object) -> None:
        raise error

    monkeypatch.setattr(cache._cache, "set", fault)
    with pytest.raises(CacheError, match=remedy) as told:
        cache.set(KEY, {})
    assert str(told.value).endswith("with --cache-dir, or go without with --no-cache")
    assert not told.value.locked


@pytest.mark.parametrize("mode", range(6))
def test_a_row_is_its_text_whatever_its_mode_and_file(cache: ReplyCache, mode: int) -> None:
    """No file that a row names is read, and no value is unpickled."""
    cache.set(KEY, {"answer": "yes"})
    ((text,),) = rows(cache, "SELECT value FROM Cache WHERE key = ?", KEY)
    rows(cache, "UPDATE Cache SET mode = ?, filename = ? WHERE key = ?", mode, "x.val", KEY)
    (cache.folder / "x.val").write_text(text.replace("yes", "no"))
    assert cache.get(KEY) == {"answer": "yes"}
    plant(cache, mode, None, "x.val")
    assert cache.get(KEY) is None

"""Replies on disk: text only, shared between processes, and nothing planted is ever run."""

from __future__ import annotations

import json
import multiprocessing
import random
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from judge.cache import CacheCheck, CacheError, ReplyCache, cache_dir
from judge.digest import digest
from judge.errors import Exit, UsageError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplyCache]:
    made = ReplyCache(tmp_path_factory.mktemp("shared"))
    yield made
    made.close()


def test_large_replies_and_half_surrogates(cache: ReplyCache) -> None:
    value = {"text": "é\ud83d" + "語" * 200_000}
    cache.set(KEY, value, tag="reply")
    assert cache.get(KEY) == value
    assert not list(cache.folder.rglob("*.val")), "entries stay in the database"


async def test_a_disk_that_fills_up_is_not_the_commands_fault(cache: ReplyCache) -> None:
    cache._cache._sql("PRAGMA max_page_count = 16").fetchall()
    with pytest.raises(CacheError, match="make room") as full:
        for number in range(100):
            await cache.store((f"{number:064x}", json.dumps({"text": "long " * 1000}), "reply"))
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
    assert cache.verify() == CacheCheck(2, 0, None)
    rows(cache, "UPDATE Cache SET value = replace(value, 'no', 'yes') WHERE key = ?", KEY)
    assert cache.get(KEY) is None and cache.verify() == CacheCheck(2, 1, None)
    moved = "UPDATE Cache SET value = (SELECT value FROM Cache WHERE key = ?) WHERE key = ?"
    rows(cache, moved, other, KEY)
    assert cache.get(KEY) is None and cache.get(other) == {"answer": "yes"}
    cache.set(KEY, {"answer": "no"})
    assert cache.verify() == CacheCheck(2, 0, None)


def test_a_damaged_database_gives_what_was_stored_or_nothing(tmp_path: Path) -> None:
    values = {digest({"n": n}): {"answer": "yes" if n % 3 else "no", "n": n} for n in range(60)}
    whole = ReplyCache(tmp_path / "whole")
    for key, value in values.items():
        whole.set(key, value)
    whole.close()
    body, lost, refused = (tmp_path / "whole" / "cache.db").read_bytes(), 0, 0
    for seed in range(100):
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
            told = cache.verify()
            cache.close()
        except CacheError:
            refused += 1
            continue
        assert all(got in (None, value) for got, value in found), seed
        missing = sum(got is None for got, _ in found)
        assert not missing or told != CacheCheck(len(values), 0, None), seed
        lost += bool(missing)
    assert lost > 20 and refused < 60


# ---------------------------------------------------------------- looking after it


def test_prunes_what_is_old(cache: ReplyCache) -> None:
    for number in range(5):
        cache.set(digest({"n": number}), {"n": number})
    old = [digest({"n": number}) for number in range(3)]
    began = time.time()
    for key in old:
        rows(cache, "UPDATE Cache SET store_time = ? WHERE key = ?", began - 3600, key)
    stats = cache.stats()
    took = time.time() - began
    assert stats.entries == 5 and stats.oldest_seconds is not None
    assert 3599.9 < stats.oldest_seconds < 3600.1 + took
    assert cache.prune(7200) == 0
    assert cache.prune(1800) == 3
    assert cache.stats().entries == 2
    assert [cache.get(digest({"n": n})) for n in range(5)] == [None] * 3 + [
        {"n": 3},
        {"n": 4},
    ]


def test_never_evicts(cache: ReplyCache) -> None:
    settings_of = dict(rows(cache, "SELECT key, value FROM Settings"))
    assert settings_of["eviction_policy"] == "none"
    assert settings_of["size_limit"] >= 1 << 40


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


# ---------------------------------------------------------------- folders


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
    assert cache_dir().parts[-2:] == ("judge", "replies")
    monkeypatch.setenv("JUDGE_CACHE_DIR", str(tmp_path / "named"))
    assert cache_dir() == tmp_path / "named"
    assert cache_dir(tmp_path / "chosen") == tmp_path / "chosen"

"""Replies on disk.

Entries are text only: JSON under the hash of the canonical request. diskcache would pickle other
objects, and unpickle whatever lies in a folder that somebody else may write to; `TextDisk` refuses
both (docs/decisions/0004-text-only-cache.md). Several processes may share one folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import diskcache
import platformdirs
from diskcache.core import DEFAULT_SETTINGS, METADATA, MODE_RAW, UNKNOWN

from judge.errors import UsageError

_NO_LIMIT = 1 << 50
_OWN_SETTINGS: Mapping[str, Any] = {
    "disk_min_file_size": _NO_LIMIT,
    "size_limit": _NO_LIMIT,
    "eviction_policy": "none",
    # Nothing here expires, and looking for what has takes longer than storing.
    "cull_limit": 0,
    # The file's pages stay out of our memory; the system keeps the warm ones.
    "sqlite_mmap_size": 0,
    "sqlite_cache_size": 2048,
}


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """A diskcache store that writes and reads text and nothing else."""

    def store(self, value: Any, read: bool, key: Any = UNKNOWN) -> Any:
        if not isinstance(value, str) or read:
            raise TypeError("the cache stores text only")
        return super().store(value, read, key)

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        return value if mode == MODE_RAW and not read else ""

    def get(self, key: Any, raw: bool) -> Any:
        return super().get(key, raw) if raw else ""

    def remove(self, file_path: str) -> None:
        """Never needed for our own entries; somebody else's row must not name a file to delete."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What lies in the cache: entries, bytes on disk, and the age of the oldest in seconds."""

    folder: str
    entries: int
    size_bytes: int
    oldest_seconds: float | None


def cache_dir(chosen: Path | None = None) -> Path:
    """`chosen`, else $JUDGE_CACHE_DIR, else `judge/replies` in the user's cache folder."""
    if chosen is not None:
        return chosen
    if named := os.environ.get("JUDGE_CACHE_DIR"):
        return Path(named)
    return platformdirs.user_cache_path("judge") / "replies"


class ReplyCache:
    """A folder of replies; a value that is no JSON object counts as absent.

    Raises:
        UsageError: the folder cannot be used, now or later (it is no folder, or the disk is full).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: list[tuple[str, str, str | None]] = []
        self._commit: asyncio.Future[None] | None = None
        with self._usable():
            _drop_strange_settings(folder / "cache.db")
            # Every setting is given, so that none of the folder's own counts.
            self._cache = diskcache.Cache(
                str(folder), disk=TextDisk, timeout=60, **{**DEFAULT_SETTINGS, **_OWN_SETTINGS}
            )

    def get(self, key: str) -> dict[str, Any] | None:
        try:
            text = self._cache.get(key, default=None, retry=True)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        if not isinstance(text, str) or not text:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def set(self, key: str, value: Mapping[str, Any], *, tag: str | None = None) -> None:
        # ASCII, because a reply may hold half of a surrogate pair, which no UTF-8 text can.
        with self._usable():
            self._cache.set(key, json.dumps(value), tag=tag, retry=True)

    async def store(self, key: str, text: str, *, tag: str | None = None) -> None:
        """`set` for the text of a JSON object, together with all that this turn of the loop stores.

        The busier the loop, the more entries share a transaction, which is what costs time.
        """
        loop = asyncio.get_running_loop()
        if self._commit is None:
            self._commit = loop.create_future()
            loop.call_soon(self._flush)
        self._waiting.append((key, text, tag))
        await asyncio.shield(self._commit)

    def _flush(self) -> None:
        commit, self._commit = self._commit, None
        entries, self._waiting = self._waiting, []
        failure: UsageError | None = None
        try:
            with self._usable(), self._cache.transact(retry=True):
                for key, text, tag in entries:
                    self._cache.set(key, text, tag=tag, retry=True)
        except UsageError as error:
            failure = error
        if commit is None or commit.done() or commit.get_loop().is_closed():
            return
        if failure is None:
            commit.set_result(None)
        else:
            commit.set_exception(failure)
            commit.exception()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> UsageError:
        return UsageError(
            f"{self.folder}: the cache folder cannot be used: {error}; "
            "name another with --cache-dir, or go without with --no-cache"
        )

    def stats(self) -> CacheStats:
        with self._usable():
            rows = self._cache._sql("SELECT COUNT(*), MIN(store_time) FROM Cache").fetchall()
            size = int(self._cache.volume())
        count, oldest = rows[0]
        age = None if oldest is None else max(0.0, time.time() - oldest)
        return CacheStats(str(self.folder), int(count), size, age)

    def clear(self) -> int:
        """Remove everything; returns how many entries that were."""
        with self._usable():
            return cast(int, self._cache.clear(retry=True))

    def prune(self, older_than_seconds: float) -> int:
        """Remove entries stored longer ago than this; returns how many."""
        cutoff = time.time() - older_than_seconds
        select = "SELECT key FROM Cache WHERE store_time < ?"
        with self._usable():
            keys = [row[0] for row in self._cache._sql(select, (cutoff,)).fetchall()]
            return sum(bool(self._cache.delete(key, retry=True)) for key in keys)

    def close(self) -> None:
        if self._waiting:
            self._flush()
        self._cache.close()


def _drop_strange_settings(database: Path) -> None:
    """Take out what diskcache never writes: each row would become an attribute or a pragma."""
    if not database.is_file():
        return
    with closing(sqlite3.connect(database, timeout=60)) as opened:
        if not opened.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'").fetchall():
            return
        known = {**DEFAULT_SETTINGS, **METADATA}
        rows = opened.execute("SELECT rowid, key, value FROM Settings").fetchall()
        strange = [
            (row,)
            for row, key, value in rows
            if key not in known or (key in METADATA and not isinstance(value, int))
        ]
        if strange:
            opened.executemany("DELETE FROM Settings WHERE rowid = ?", strange)
            opened.commit()

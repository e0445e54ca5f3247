"""Replies on disk.

Entries of an SQLite database are text only: a checksum and JSON, under the hash of the request
(docs/decisions/0004-text-only-cache.md). Several processes may share one folder.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from judge.errors import Exit, UsageError

LOCKED_SECONDS = 30.0
"""How long a lock that another process holds on the database is waited for."""

_STEP = 0.2
"""Seconds of one try. SQLite waits for a lock in C, where no signal is handled, so not for long."""

T = TypeVar("T")

_CHECKSUM = 16
"""Hex digits before an entry's text."""

_REMEMBERED = 2048
FILE = "cache.db"
"""The database in the folder."""

_OPENING = """
PRAGMA trusted_schema = OFF;
PRAGMA auto_vacuum = FULL;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS Cache (key TEXT PRIMARY KEY, store_time REAL, value TEXT);
"""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What lies in the cache; the age of the oldest entry is in seconds."""

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


class CacheError(UsageError):
    """The cache folder cannot be used; says why, and what to do."""

    locked = False
    """Whether another process holds its lock."""


class MemoryCache:
    """The latest entries of a run without a cache, which asks no question twice either."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        text = self._entries.get(key)
        return None if text is None else json.loads(text)

    def set(self, key: str, value: Mapping[str, Any]) -> None:
        self._entries[key] = json.dumps(value)

    async def store(self, entries: Mapping[str, str]) -> None:
        self._entries |= entries
        while len(self._entries) > _REMEMBERED:
            del self._entries[next(iter(self._entries))]


class ReplyCache:
    """A folder of replies; a value that is no JSON object counts as absent.

    `on_fault` is told if replies can no longer be stored, once; whoever sets it brings the run to
    its end, and replies are used without being stored until then. Without it `store` raises.

    Raises:
        CacheError: the folder cannot be used, now or later (it is no folder, the disk is full, the
            database is damaged or stays locked).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.on_fault: Callable[[CacheError], None] | None = None
        self.storing = True
        self._turn = asyncio.Lock()
        self._waiting: dict[str, str] = {}
        self._database = self._insist(self._opened)

    def _opened(self) -> sqlite3.Connection:
        self.folder.mkdir(parents=True, exist_ok=True)
        opened = sqlite3.connect(
            self.folder / FILE, timeout=_STEP, isolation_level=None, check_same_thread=False
        )
        opened.executescript(_OPENING)
        return opened

    def _sql(self, text: str, *values: object) -> sqlite3.Cursor:
        return self._insist(lambda: self._database.execute(text, values))

    def get(self, key: str) -> dict[str, Any] | None:
        """The object stored under `key`; None where there is none, or a damaged one."""
        found = self._sql("SELECT CAST(value AS BLOB) FROM Cache WHERE key = ?", key).fetchone()
        return None if found is None else _opened_entry(key, found[0])

    def set(self, key: str, value: Mapping[str, Any]) -> None:
        # ASCII, because a reply may hold half of a surrogate pair, which no UTF-8 text can.
        self._insist(lambda: self._write({key: json.dumps(value)}))

    async def store(self, entries: Mapping[str, str]) -> None:
        """Store JSON texts by key; while the database is locked other tasks go on.

        All that tasks store in one turn of the loop is one transaction, because that is what costs.
        """
        self._waiting |= entries
        async with self._turn:
            await asyncio.sleep(0)
            until = time.monotonic() + LOCKED_SECONDS
            while self._waiting and self.storing:
                together = dict(self._waiting)
                try:
                    with self._usable():
                        self._write(together)
                    for key in together:
                        del self._waiting[key]
                except CacheError as fault:
                    if fault.locked and time.monotonic() < until:
                        await asyncio.sleep(_STEP)
                        continue
                    # It could be used when it was opened, so the command was not at fault.
                    fault.exit_code = Exit.UNAVAILABLE
                    if self.on_fault is None:
                        raise
                    self.storing = False
                    self.on_fault(fault)

    def _write(self, entries: Mapping[str, str]) -> None:
        if not (self.folder / FILE).exists():
            # Somebody has removed it: what went on into the open file would be gone with it.
            self._database.close()
            self._database = self._opened()
        now, keys = time.time(), [(key,) for key in entries]
        rows = [(key, now, _checksum(key, text.encode()) + text) for key, text in entries.items()]
        self._database.execute("BEGIN IMMEDIATE")
        with self._database:
            # First out: in a database that diskcache made, a key may stand twice.
            self._database.executemany("DELETE FROM Cache WHERE key = ?", keys)
            insert = "INSERT INTO Cache (key, store_time, value) VALUES (?, ?, ?)"
            self._database.executemany(insert, rows)

    def _insist(self, use: Callable[[], T]) -> T:
        """What `use` gives, tried again while another process holds the lock."""
        until = time.monotonic() + LOCKED_SECONDS
        while True:
            try:
                with self._usable():
                    return use()
            except CacheError as error:
                if not error.locked or time.monotonic() >= until:
                    raise

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: BaseException) -> CacheError:
        code, told, remedy = getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error), ""
        if locked := code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            told = f"another process has held its lock for {LOCKED_SECONDS:.0f} s"
            remedy = "end that process, "
        elif code == sqlite3.SQLITE_FULL or getattr(error, "errno", None) == errno.ENOSPC:
            remedy = "make room, "
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            remedy = "move it away, for it is damaged, "
        unusable = CacheError(
            f"{self.folder}: the cache folder cannot be used: {told}; "
            f"{remedy}name another with --cache-dir, or go without with --no-cache"
        )
        unusable.locked = locked
        return unusable

    def stats(self) -> CacheStats:
        select = "SELECT COUNT(*), MIN(store_time), page_count * page_size FROM Cache"
        of = "pragma_page_count, pragma_page_size"
        count, oldest, size = self._sql(f"{select}, {of}").fetchone()
        age = None if oldest is None else max(0.0, time.time() - oldest)
        return CacheStats(str(self.folder), count, size, age)

    def clear(self) -> int:
        """Remove everything; returns how many entries that were."""
        return self._sql("DELETE FROM Cache").rowcount

    def prune(self, older_than_seconds: float) -> int:
        """Remove entries stored longer ago than this; returns how many."""
        cutoff = time.time() - older_than_seconds
        return self._sql("DELETE FROM Cache WHERE store_time < ?", cutoff).rowcount

    def close(self) -> None:
        self._database.close()


def _opened_entry(key: str, stored: bytes | None) -> dict[str, Any] | None:
    """An entry without its checksum, which tells of damage and of entries that were moved."""
    if stored is None or _checksum(key, stored[_CHECKSUM:]).encode() != stored[:_CHECKSUM]:
        return None
    try:
        value = json.loads(stored[_CHECKSUM:])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _checksum(key: str, text: bytes) -> str:
    return hashlib.blake2b(key.encode() + text, digest_size=_CHECKSUM // 2).hexdigest()

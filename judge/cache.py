"""Replies on disk.

Entries are text only: a checksum and JSON, under the hash of the request. diskcache would pickle
other objects, and unpickle anything in a folder that others may write to; `TextDisk` refuses both
(docs/decisions/0004-text-only-cache.md). Several processes may share one folder.
"""

from __future__ import annotations

import asyncio
import errno
import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import diskcache
import platformdirs
from diskcache.core import DEFAULT_SETTINGS, METADATA, UNKNOWN

from judge.digest import digest
from judge.errors import Exit, UsageError

LOCKED_SECONDS = 30.0
"""How long to wait for a lock that another process holds on the database."""

_STEP = 0.2
"""Seconds of one attempt; short, because SQLite waits in C, where Python handles no signal."""

T = TypeVar("T")

_CHECKSUM = 16
"""Hex digits before an entry's text."""

_REMEMBERED = 2048
_NO_LIMIT = 1 << 50
_SETTINGS: Mapping[str, Any] = {
    # Every setting is given, so that none stored in the folder applies.
    **DEFAULT_SETTINGS,
    "disk_min_file_size": _NO_LIMIT,
    "size_limit": _NO_LIMIT,
    "eviction_policy": "none",
    # Nothing here expires, and looking for expired entries takes longer than storing.
    "cull_limit": 0,
    # Keep the file's pages out of the process's memory; the system caches the warm ones.
    "sqlite_mmap_size": 0,
    "sqlite_cache_size": 2048,
}


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """A diskcache store that writes and reads only text."""

    def store(self, value: Any, read: bool, key: Any = UNKNOWN) -> Any:
        if not isinstance(value, str) or read:
            raise TypeError("the cache stores text only")
        return super().store(value, read, key)

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        """The row's own value, whatever its mode says: never reads a file or a pickle."""
        return value

    def get(self, key: Any, raw: bool) -> Any:
        return super().get(key, raw) if raw else ""

    def remove(self, file_path: str) -> None:
        """Does nothing: entries have no files, and a planted row must not name one to delete."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The size of the cache; the age of the oldest entry is in seconds."""

    folder: str
    entries: int
    size_bytes: int
    oldest_seconds: float | None


def cache_dir(folder: Path | None = None) -> Path:
    """`folder`, else `judge/replies` in the user's cache folder."""
    return folder or platformdirs.user_cache_path("judge") / "replies"


class CacheError(UsageError):
    """The cache folder cannot be used; says why, and what to do."""

    locked = False
    """Whether another process holds the folder's lock."""


class MemoryCache:
    """The latest entries, for a run without a cache, so that it does not repeat questions
    either."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        text = self._entries.get(key)
        return None if text is None else json.loads(text)

    def set(self, key: str, value: Mapping[str, Any]) -> None:
        self._entries[key] = json.dumps(value)

    async def store(self, entries: Mapping[str, str | None]) -> None:
        self._entries |= {key: text for key, text in entries.items() if text is not None}
        for key in [key for key, text in entries.items() if text is None]:
            self._entries.pop(key, None)
        while len(self._entries) > _REMEMBERED:
            del self._entries[next(iter(self._entries))]


class ReplyCache:
    """A folder of replies; a damaged entry counts as absent.

    `on_fault` is called once, when replies can no longer be stored, and must end the run; until
    then replies are used without being stored. Without it `store` raises.

    Raises:
        CacheError: the folder cannot be used, now or later (it is not a folder, the disk is full,
            the database is damaged or stays locked).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.on_fault: Callable[[CacheError], None] | None = None
        self.storing = True
        self._turn = asyncio.Lock()
        self._waiting: dict[str, str | None] = {}
        self._cache = self._insist(self._opened)

    def _opened(self) -> Any:
        for name in ("cache.db", "cache.db-wal", "cache.db-shm"):
            # Others who may write to the folder could redirect writes to another of the user's
            # files.
            if (self.folder / name).is_symlink():
                message = f"{self.folder / name} is a link; name another folder with --cache-dir"
                raise CacheError(message)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it is not a folder")
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        _clear_settings(self.folder / "cache.db")
        return diskcache.Cache(str(self.folder), disk=TextDisk, timeout=_STEP, **_SETTINGS)

    def get(self, key: str) -> dict[str, Any] | None:
        """The object stored under `key`, or None."""
        try:
            return _opened_entry(key, self._insist(lambda: self._cache.get(key, default=None)))
        except CacheError as error:
            # SQLite's own errors have a code; without one, the module found text that is not UTF-8.
            if type(cause := error.__cause__) is sqlite3.OperationalError and not _code(cause):
                return None
            raise

    def set(self, key: str, value: Mapping[str, Any]) -> None:
        # ASCII, because a reply may hold a lone surrogate, which UTF-8 cannot encode.
        self._insist(lambda: self._write({key: json.dumps(value)}))

    async def store(self, entries: Mapping[str, str | None]) -> None:
        """Store JSON texts by key, or remove an entry (None).

        While the database is locked, other tasks go on. All entries stored in one turn of the loop
        share a transaction, because transactions are what costs.
        """
        self._waiting |= entries
        async with self._turn:
            await asyncio.sleep(0)
            until = time.monotonic() + LOCKED_SECONDS
            while self._waiting and self.storing:
                try:
                    self._tried(lambda: self._write(self._waiting))
                    self._waiting = {}
                except CacheError as fault:
                    if fault.locked and time.monotonic() < until:
                        await asyncio.sleep(_STEP)
                        continue
                    # The folder could be used when it was opened, so the command is not at fault.
                    fault.exit_code = Exit.UNAVAILABLE
                    if self.on_fault is None:
                        raise
                    self.storing = False
                    self.on_fault(fault)

    def _write(self, entries: Mapping[str, str | None]) -> None:
        if not (self.folder / "cache.db").exists():
            # The database was removed: writes into the open file would be lost.
            self._cache.close()
            self._cache = self._opened()
        with self._cache.transact():
            for key, text in entries.items():
                if text is None:
                    self._cache.delete(key)
                else:
                    self._cache.set(key, f"{_checksum(key, text)}{text}")

    def _insist(self, use: Callable[[], T]) -> T:
        """The result of `use`, retried while another process holds the lock."""
        until = time.monotonic() + LOCKED_SECONDS
        while True:
            try:
                return self._tried(use)
            except CacheError as error:
                if not error.locked or time.monotonic() >= until:
                    raise

    def _tried(self, use: Callable[[], T]) -> T:
        try:
            return use()
        except diskcache.Timeout as error:
            # diskcache reports any failure to begin a transaction as a timeout.
            raise self._unusable(error.__context__ or error) from error
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: BaseException) -> CacheError:
        code, message, remedy = _code(error), getattr(error, "strerror", None) or str(error), ""
        if locked := code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            message = f"another process has held its lock for {LOCKED_SECONDS:.0f} s"
            remedy = "end that process, "
        elif code == sqlite3.SQLITE_FULL or getattr(error, "errno", None) == errno.ENOSPC:
            remedy = "make room, "
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            remedy = "move it away, for it is damaged, "
        unusable = CacheError(
            f"{self.folder}: the cache folder cannot be used: {message}; "
            f"{remedy}name another with --cache-dir, or go without with --no-cache"
        )
        unusable.locked = locked
        return unusable

    def stats(self) -> CacheStats:
        select = "SELECT COUNT(*), MIN(store_time) FROM Cache"
        ((count, oldest),) = self._insist(lambda: self._cache._sql(select).fetchall())
        size = int(self._insist(self._cache.volume))
        age = None if oldest is None else max(0.0, time.time() - oldest)
        return CacheStats(str(self.folder), int(count), size, age)

    def clear(self) -> int:
        """Remove all entries; returns their number."""
        return cast(int, self._insist(self._cache.clear))

    def prune(self, older_than_seconds: float) -> int:
        """Remove entries stored longer ago than this; returns how many."""
        cutoff = time.time() - older_than_seconds
        delete = "DELETE FROM Cache WHERE store_time < ?"
        return cast(int, self._insist(lambda: self._cache._sql(delete, (cutoff,)).rowcount))

    def close(self) -> None:
        self._cache.close()


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _opened_entry(key: str, stored: object) -> dict[str, Any] | None:
    """An entry without its checksum; None if that shows a damaged or moved entry."""
    if not isinstance(stored, str) or _checksum(key, stored[_CHECKSUM:]) != stored[:_CHECKSUM]:
        return None
    try:
        value = json.loads(stored[_CHECKSUM:])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _checksum(key: str, text: str) -> str:
    return digest(f"{key}{text}".encode("utf-8", "surrogatepass"), _CHECKSUM // 2)


def _clear_settings(database: Path) -> None:
    """Empty the folder's own settings, which diskcache would apply as attributes and pragmas; not
    its counts, which another run that opens the folder at this moment may be reading."""
    if not database.is_file():
        return
    with closing(sqlite3.connect(database, timeout=_STEP)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'").fetchone():
            names = ", ".join("?" * len(METADATA))
            connection.execute(f"DELETE FROM Settings WHERE key NOT IN ({names})", [*METADATA])
            connection.commit()

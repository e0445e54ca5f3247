"""Replies on disk.

Entries are text only: a checksum and JSON, under the hash of the request. diskcache would pickle
other objects, and unpickle whatever lies in a folder that somebody else may write to; `TextDisk`
refuses both (docs/decisions/0004-text-only-cache.md). Several processes may share one folder.
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
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import diskcache
import platformdirs
from diskcache.core import DEFAULT_SETTINGS, METADATA, MODE_RAW, UNKNOWN

from judge.errors import Exit, UsageError

LOCKED_SECONDS = 60.0
"""How long a lock that another process holds on the database is waited for."""

_CHECKSUM = 16
"""Hex digits before an entry's text."""

_REMEMBERED = 2048
_NO_LIMIT = 1 << 50
_PAUSE = 0.05
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

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class CacheCheck:
    """What `ReplyCache.verify` found; damaged entries are asked anew when they are needed.

    `database` is SQLite's complaint about the file as a whole (None: it has none).
    """

    entries: int
    damaged: int
    database: str | None


def cache_dir(chosen: Path | None = None) -> Path:
    """`chosen`, else $JUDGE_CACHE_DIR, else `judge/replies` in the user's cache folder."""
    if chosen is not None:
        return chosen
    if named := os.environ.get("JUDGE_CACHE_DIR"):
        return Path(named)
    return platformdirs.user_cache_path("judge") / "replies"


class CacheError(UsageError):
    """The cache folder cannot be used; says why, and what to do."""


class _BusyError(Exception):
    """Another process holds the lock; it may be gone soon."""


class MemoryCache:
    """The latest entries of a run without a cache, which asks no question twice either."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        text = self._entries.get(key)
        return None if text is None else json.loads(text)

    def set(self, key: str, value: Mapping[str, Any], *, tag: str | None = None) -> None:
        self._entries[key] = json.dumps(value)

    async def store(self, *entries: tuple[str, str, str]) -> None:
        for key, text, _ in entries:
            self._entries[key] = text
        while len(self._entries) > _REMEMBERED:
            del self._entries[next(iter(self._entries))]

    def remove(self, key: str) -> bool:
        return self._entries.pop(key, None) is not None


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
        self._waiting: list[tuple[str, str, str]] = []
        self._commit: asyncio.Future[None] | None = None
        self._patient_until = 0.0
        self._faulty = False
        self._cache = self._patiently(self._opened)

    def _opened(self) -> Any:
        _drop_strange_settings(self.folder / "cache.db")
        return diskcache.Cache(
            str(self.folder),
            disk=TextDisk,
            # We wait ourselves: SQLite's own wait would hold up the whole loop.
            timeout=_PAUSE,
            # Every setting is given, so that none of the folder's own counts.
            **{**DEFAULT_SETTINGS, **_OWN_SETTINGS},
        )

    def get(self, key: str) -> dict[str, Any] | None:
        """The object stored under `key`; None where there is none, or a damaged one."""
        return _opened_entry(key, self._patiently(lambda: self._text(key)))

    def _text(self, key: str) -> object:
        try:
            return self._cache.get(key, default=None)
        except sqlite3.OperationalError as error:
            # Not SQLite's, which has a code, but the module's: the text is no UTF-8.
            if hasattr(error, "sqlite_errorcode"):
                raise
            return None

    def set(self, key: str, value: Mapping[str, Any], *, tag: str | None = None) -> None:
        # ASCII, because a reply may hold half of a surrogate pair, which no UTF-8 text can.
        text = _entry(key, json.dumps(value))
        self._patiently(lambda: self._cache.set(key, text, tag=tag))

    def remove(self, key: str) -> bool:
        """Whether there was an entry; it is gone."""
        return self._patiently(lambda: bool(self._cache.delete(key)))

    async def store(self, *entries: tuple[str, str, str]) -> None:
        """`set` for entries of (key, text of a JSON object, tag), in one transaction with all that
        this turn of the loop stores, for transactions are what costs time.

        While another process holds the lock, the loop goes on.
        """
        if self._faulty:
            return
        loop = asyncio.get_running_loop()
        if self._commit is None:
            self._commit = loop.create_future()
            self._patient_until = time.monotonic() + LOCKED_SECONDS
            loop.call_soon(self._flush, loop)
        self._waiting += [(key, _entry(key, text), tag) for key, text, tag in entries]
        await asyncio.shield(self._commit)

    @property
    def storing(self) -> bool:
        """Whether what is given to `store` still gets into the folder."""
        return not self._faulty

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._commit is None:
            return
        fault: CacheError | None = None
        try:
            self._store_waiting()
        except _BusyError as error:
            if time.monotonic() < self._patient_until:
                loop.call_later(_PAUSE, self._flush, loop)
                return
            fault = self._unusable(error)
        except CacheError as error:
            fault = error
        self._waiting = []
        commit, self._commit = self._commit, None
        if fault is not None:
            # It could be used when it was opened, so the command was not at fault.
            fault.exit_code = Exit.UNAVAILABLE
        if fault is not None and self.on_fault is not None:
            self._faulty = True
            self.on_fault(fault)
            fault = None
        if commit.done():
            return
        if fault is None:
            commit.set_result(None)
        else:
            commit.set_exception(fault)
            commit.exception()

    def _store_waiting(self) -> None:
        """One transaction; raises _BusyError or CacheError."""
        if not (self.folder / "cache.db").exists():
            # Somebody has removed it: what went on into the open file would be gone with it.
            with self._usable():
                self._cache.close()
                self._cache = self._opened()
        with self._usable(), self._cache.transact():
            for key, text, tag in self._waiting:
                self._cache.set(key, text, tag=tag)

    def _patiently(self, use: Callable[[], T]) -> T:
        """What `use` gives, once no other process holds the lock."""
        until = time.monotonic() + LOCKED_SECONDS
        while True:
            try:
                with self._usable():
                    return use()
            except _BusyError as error:
                if time.monotonic() >= until:
                    raise self._unusable(error) from error
            time.sleep(_PAUSE)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except diskcache.Timeout as error:
            # diskcache says "timeout" whatever kept a transaction from being begun.
            self._sort_out(error.__context__ or error)
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            self._sort_out(error)

    def _sort_out(self, error: BaseException) -> NoReturn:
        if _code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise _BusyError from error
        raise self._unusable(error) from error

    def _unusable(self, error: BaseException) -> CacheError:
        code, told, remedy = _code_of(error), str(error), ""
        if isinstance(error, _BusyError):
            told = f"another process has held its lock for {LOCKED_SECONDS:.0f} s"
            remedy = "end that process, "
        elif code == sqlite3.SQLITE_FULL or getattr(error, "errno", None) == errno.ENOSPC:
            remedy = "make room, "
        elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            remedy = "move it away, for it is damaged, "
        return CacheError(
            f"{self.folder}: the cache folder cannot be used: {told}; "
            f"{remedy}name another with --cache-dir, or go without with --no-cache"
        )

    def stats(self) -> CacheStats:
        select = "SELECT COUNT(*), MIN(store_time) FROM Cache"
        count, oldest = self._patiently(lambda: self._cache._sql(select).fetchall()[0])
        size = self._patiently(lambda: int(self._cache.volume()))
        age = None if oldest is None else max(0.0, time.time() - oldest)
        return CacheStats(str(self.folder), int(count), size, age)

    def clear(self) -> int:
        """Remove everything; returns how many entries that were."""
        return self._patiently(lambda: cast(int, self._cache.clear()))

    def prune(self, older_than_seconds: float) -> int:
        """Remove entries stored longer ago than this; returns how many."""
        cutoff = time.time() - older_than_seconds
        select = "SELECT key FROM Cache WHERE store_time < ?"
        found = self._patiently(lambda: self._cache._sql(select, (cutoff,)).fetchall())
        return sum(self.remove(row[0]) for row in found)

    def verify(self) -> CacheCheck:
        """Read every entry and the database's own structure; nothing is changed."""
        entries = sound = 0
        with closing(sqlite3.connect(self.folder / "cache.db", timeout=LOCKED_SECONDS)) as opened:
            opened.text_factory = _lenient
            with self._usable():
                (told,) = opened.execute("PRAGMA integrity_check(1)").fetchone()
                for key, mode, value in opened.execute("SELECT key, mode, value FROM Cache"):
                    entries += 1
                    whole = mode == MODE_RAW and isinstance(key, str)
                    sound += whole and _opened_entry(key, value) is not None
        return CacheCheck(entries, entries - sound, None if told == "ok" else str(told))

    def close(self) -> None:
        """Store what still waits, and close the database."""
        if self._waiting:
            try:
                self._patiently(self._store_waiting)
            except CacheError as error:
                if self.on_fault is None:
                    raise
                self.on_fault(error)
            self._waiting, self._commit = [], None
        self._cache.close()


def _entry(key: str, text: str) -> str:
    """The text with a checksum over it and its key: damage, or an entry moved, is noticed."""
    return f"{_checksum(key, text)}{text}"


def _opened_entry(key: str, stored: object) -> dict[str, Any] | None:
    if not isinstance(stored, str) or _checksum(key, stored[_CHECKSUM:]) != stored[:_CHECKSUM]:
        return None
    try:
        value = json.loads(stored[_CHECKSUM:])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _checksum(key: str, text: str) -> str:
    hashed = hashlib.blake2b(key.encode(), digest_size=_CHECKSUM // 2)
    hashed.update(text.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def _lenient(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _drop_strange_settings(database: Path) -> None:
    """Take out what diskcache never writes: each row would become an attribute or a pragma."""
    if not database.is_file():
        return
    with closing(sqlite3.connect(database, timeout=_PAUSE)) as opened:
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


def _code_of(error: BaseException) -> int | None:
    """SQLite's primary result code, where it has spoken."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF

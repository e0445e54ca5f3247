"""Which ids were seen already, in memory that does not grow with their number."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from types import TracebackType
from typing import Self

from judge.errors import unwritable
from judge.records.base import Item


class SeenIds:
    """Remembers ids and the file and line where each came first. Use as a context manager.

    For one thread at a time. The ids lie in a temporary database that SQLite keeps in memory up
    to a few megabytes, then on disk, and deletes itself.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute("PRAGMA journal_mode=OFF")
        self._db.execute("PRAGMA cache_size=-16000")
        self._db.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, line, source) WITHOUT ROWID")
        self._db.execute("BEGIN")
        self._sources: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget everything."""
        self._db.close()

    def already(self, id: str, item: Item) -> str | None:
        """Where an item's `id` was seen before: `line 3`, or `line 3 of FILE` if in another file,
        or in an earlier reading of the same one; None, and remembered, when it is new.

        Raises:
            JudgeError: there is no room to remember it.
        """
        found = self._first(id, item)
        if found is None:
            return None
        line, source = found
        here = source == item.source and line < item.line
        return f"line {line}" if here else f"line {line} of {source}"

    def _first(self, id: str, item: Item) -> tuple[int, str] | None:
        # The digest bounds what one id can take, and takes the lone surrogates that SQLite's
        # text does not.
        key = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        number = self._sources.setdefault(item.source, len(self._sources))
        insert = "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)"
        select = "SELECT line, source FROM seen WHERE id = ?"
        try:
            if self._db.execute(insert, (key, item.line, number)).rowcount:
                return None
            row = self._db.execute(select, (key,)).fetchone()
        except sqlite3.Error as error:
            what = f"the ids of the records cannot be remembered in {tempfile.gettempdir()}"
            raise unwritable(what, error) from error
        # In the order in which they came.
        return int(row[0]), list(self._sources)[int(row[1])]

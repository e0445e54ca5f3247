"""Which ids were seen already, in memory that does not grow with their number."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
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
        for setting in ("synchronous=OFF", "journal_mode=OFF", "cache_size=-16000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, line, source) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
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
        # The digest bounds what one id can take, and takes the lone surrogates that SQLite's
        # text does not.
        key = hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        insert = "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)"
        source = item.source.encode("utf-8", "surrogateescape")
        try:
            if self._db.execute(insert, (key, item.line, source)).rowcount:
                return None
            row = self._db.execute("SELECT line, source FROM seen WHERE id = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            what = f"the ids of the records cannot be remembered in {tempfile.gettempdir()}"
            raise unwritable(what, error) from error
        line, first = int(row[0]), row[1].decode("utf-8", "surrogateescape")
        here = first == item.source and line < item.line
        return f"line {line}" if here else f"line {line} of {first}"

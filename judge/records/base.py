"""What the readers give: items, or why one cannot be read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RESERVED = "judge"
"""The key under which a verdict is written, and an earlier one is found."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an item cannot be judged: a message that names what and where, and the field at fault."""

    message: str
    field: str | None = None
    type: str = "bad-input"


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of input, readable or not.

    `source` is the file's name or `<stdin>`; `line` counts from 1 (for Parquet it is the row).
    Exactly one of `fields` (the record as it stands) and `problem` is there. `raw` is the source
    text: of a record in JSON the object, on one line; of an unreadable item the text that could
    not be read, bytes that are no UTF-8 written as `\\xNN`, of one over the size limit only the
    beginning, with its full size. `among` says that it is one of several sources'.
    """

    source: str
    line: int
    fields: dict[str, Any] | None
    raw: str | None = None
    problem: Problem | None = None
    among: bool = False

    @property
    def found_at(self) -> dict[str, Any]:
        """Where to look for it, as output lines say: the line, of several sources the file, too."""
        where: dict[str, Any] = {"line": self.line}
        return {"file": self.source, **where} if self.among else where


def content_hash(fields: Mapping[str, Any]) -> str:
    """32 hex digits over a record's fields, the same in whatever order they stand.

    An earlier verdict (key `judge`) is no part of it.
    """
    own = {key: content for key, content in fields.items() if key != RESERVED}
    # Escaped to ASCII, because a lone surrogate has no UTF-8 form.
    text = json.dumps(own, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()

"""Items as the readers give them; columns renamed for judging (`--map`); ids that came before."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from judge.digest import digest
from judge.errors import unwritable
from judge.verdict import Judgement, Verdict

RESERVED = "judge"
"""The key under which a verdict is written, and an earlier one is found."""

_TYPES = {str: "a text", bool: "a truth value", int: "a number", float: "a number"}
_TYPES |= {list: "a list", dict: "an object", type(None): "null"}
_IGNORED = str.maketrans("", "", " \t\n\r-_")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an item cannot be judged, and the field at fault."""

    message: str
    field: str | None = None
    type: str = "bad-input"


class LabelError(ValueError):
    """A record or a label cannot be used; `problem` says why."""

    def __init__(self, message: str, field: str | None = None, type: str = "bad-input") -> None:
        super().__init__(message)
        self.problem = Problem(message, field, type)


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of input, readable or not: either `fields` (the record) or `problem` is there.

    `source` is the file's name or `<stdin>`; `line` counts from 1 (in Parquet, rows). `raw` is the
    source text: of a record in JSON the object, on one line; of an unreadable item what could not
    be read, with bytes that are not UTF-8 written as `\\xNN`, cut over the size limit. `among` says
    that there are several sources. `columns` maps the names that judges see to fields of the
    record, or paths into its objects; the record stays as it is. `kept` is the name that the
    record's own field `judge` has here ("": it has none).
    """

    source: str
    line: int
    fields: dict[str, Any] | None
    raw: str | None = None
    problem: Problem | None = None
    among: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    kept: str = ""

    @property
    def found_at(self) -> dict[str, Any]:
        """The line, and the file where there are several, as output lines have them."""
        where: dict[str, Any] = {"line": self.line}
        return {"file": self.source, **where} if self.among else where

    @property
    def shown(self) -> dict[str, Any]:
        """The fields as judges see them: those of `columns` under their new names.

        A field of the record itself is renamed where it stands; one within an object comes last,
        and stays in the object, too. Raises KeyError where the record lacks a column.
        """
        own = self.fields or {}
        names = {path: name for name, path in self.columns.items()}
        shown = {names.get(key, key): content for key, content in own.items()}
        return shown | {name: at(own, path) for name, path in self.columns.items()}


def kind_of(content: object) -> str:
    """The type of a parsed JSON value, in words."""
    return _TYPES.get(type(content), type(content).__name__)


def clip(text: object, limit: int = 80) -> str:
    """`text` quoted for a message, cut where it is long."""
    shown = repr(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def content_hash(fields: Mapping[str, Any]) -> str:
    """32 hex digits over a record's fields, the same in whatever order they stand.

    An earlier verdict (key `judge`) is no part of it.
    """
    return hashed_json(fields)[1]


def own_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without an earlier verdict."""
    return {key: content for key, content in fields.items() if key != RESERVED}


def judgement_in(fields: Mapping[str, Any]) -> Any:
    """What stands in the field `judge`: an earlier verdict, or the input's own."""
    return fields.get(RESERVED)


def hashed_json(fields: Mapping[str, Any]) -> tuple[str, str]:
    """A record's own fields as JSON in ASCII, and their `content_hash`."""
    # Escaped to ASCII, because a lone surrogate has no UTF-8 form.
    text = json.dumps(own_fields(fields), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text, digest(text.encode("ascii"), 16)


@lru_cache(maxsize=1024)
def normalise(key: str) -> str:
    """`key` without case, spaces, hyphens and underscores."""
    return key.translate(_IGNORED).casefold()


def keys_of(names: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, str]:
    """The record's own key for each of these names, which are given by their normalised forms;
    LabelError where two keys for one differ."""
    keys: dict[str, str] = {}
    for key, content in fields.items():
        if (name := names.get(normalise(key))) is not None:
            other = keys.setdefault(name, key)
            if other != key and fields[other] != content:
                told = f"fields {other!r} and {key!r} both stand for {name} and differ"
                raise LabelError(told, key)
    return keys


def at(fields: Any, path: str) -> Any:
    """The content of a field, or at a path: `a.b` is the field b of the object a, `a.0` the first
    entry of the list a, `a.-1` the last.

    Raises:
        KeyError: there is nothing.
        LabelError: two fields have that path, or names that differ in case, blanks, - and _ alone.
    """
    head, _, rest = path.partition(".")
    if isinstance(fields, list):
        try:
            entry = fields[int(head)]
        except (ValueError, IndexError):
            raise KeyError(path) from None
        return at(entry, rest) if rest else entry
    if not isinstance(fields, dict):
        raise KeyError(path)
    nested = bool(rest) and isinstance(fields.get(head), dict | list)
    key = path if path in fields or not nested else head
    if key not in fields:
        raise KeyError(path)
    if (other := next((k for k in fields if k != key and _alike(k, key)), None)) is not None:
        raise LabelError(f"fields {key!r} and {other!r} have one name: rename one", path)
    if key != path:
        return at(fields[head], rest)
    if nested:
        with suppress(KeyError):
            at(fields[head], rest)
            told = f"field {path!r}, and field {rest!r} of {head!r}, have one path: rename one"
            raise LabelError(told, path)
    return fields[path]


def _alike(one: str, other: str) -> bool:
    return normalise(one) == normalise(other)


def mapped(items: Iterable[Item], columns: Mapping[str, str]) -> Iterator[Item]:
    """The items with their columns; a problem where a record lacks one, or has the new name.

    A field `judge` of the record's own, which is no earlier verdict, is kept under another name.
    """
    for item in map(_kept, items):
        if not columns:
            yield item
            continue
        own = {name: item.kept if path == RESERVED else path for name, path in columns.items()}
        named = own if item.kept else columns
        problem = item.problem if item.fields is None else _misfit(item.fields, named)
        yield replace(item, columns=named, problem=problem)


def _kept(item: Item) -> Item:
    if item.fields is None or RESERVED not in item.fields or is_verdict(judgement_in(item.fields)):
        return item
    name = f"input_{RESERVED}"
    while name in item.fields:
        name = f"input_{name}"
    fields = {name if key == RESERVED else key: one for key, one in item.fields.items()}
    return replace(item, fields=fields, raw=None, kept=name)


def is_verdict(content: object) -> bool:
    """Whether this, in the field `judge`, is a verdict of an earlier run, and not the input's own.

    A line of ours has one of the verdicts, and a fingerprint or an error; where it has neither, all
    its keys are of the output line.
    """
    if not isinstance(content, dict) or content.get("verdict") not in [*Verdict]:
        return False
    known = content.keys() <= Judgement.model_fields.keys()
    return known or isinstance(content.get("fingerprint") or content.get("error"), str | dict)


def renamed(items: Iterable[Item], columns: Mapping[str, str]) -> Iterator[Item]:
    """As `mapped`, with the fields that judges see in place of the record's own."""
    for item in mapped(items, columns):
        if item.problem is not None:
            yield replace(item, fields=None)
        else:
            yield replace(item, fields=item.shown, columns={})


def _misfit(fields: Mapping[str, object], columns: Mapping[str, str]) -> Problem | None:
    for name, column in columns.items():
        told = f"--map {name}={column}: the record"
        try:
            at(fields, column)
        except LabelError as error:
            return replace(error.problem, message=f"--map {name}={column}: {error}")
        except KeyError:
            there = clip([key for key in fields if key != RESERVED], 300)
            return Problem(f"{told} has no field {column!r}, its fields are {there}", column)
        if name in fields and name not in columns.values():
            return Problem(f"{told} has a field {name!r} already: choose another name", name)
    return None


class SeenIds:
    """Remembers ids and where each came first.

    They lie in a temporary database that SQLite keeps in memory up to 16 MB, then on disk, and
    deletes when this object goes. It is never closed before: SQLite would crash under a thread
    that still reads.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for setting in ("synchronous=OFF", "journal_mode=OFF", "cache_size=-16000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, place BLOB) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def already(self, id: str, item: Item) -> str | None:
        """Where an item's `id` was seen before, as `line 3 of FILE`; None, and remembered, when it
        is new. Raises JudgeError where there is no room to remember it."""
        # Bytes, because ids may hold lone surrogates, which SQLite's text cannot.
        place = f"line {item.line} of {item.source}"
        row = [text.encode("utf-8", "surrogatepass") for text in (id, place)]
        try:
            if self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", row).rowcount:
                return None
            found = self._db.execute("SELECT place FROM seen WHERE id = ?", row[:1]).fetchone()
        except sqlite3.Error as error:
            what = f"the ids of the records cannot be remembered in {tempfile.gettempdir()}"
            raise unwritable(what, error) from error
        return bytes(found[0]).decode("utf-8", "surrogatepass")

"""Field names and paths, record hashes, problems, and the ids seen in a run."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar
from unicodedata import normalize

from judge.digest import digest
from judge.errors import UsageError, nearest, unwritable
from judge.judgement import Judgement
from judge.records.text import chat_in
from judge.records.words import caseless
from judge.verdict import Verdict

RESERVED = "judge"
"""The key of the verdict, in output and in input that was judged before."""

LINEAGE = "lineage"
"""The key under which `judge generate` records a record's sources. It is not shown to judges."""

_TYPES = {str: "a text", bool: "a truth value", int: "a number", float: "a number"}
_TYPES |= {list: "a list", dict: "an object", type(None): "null"}
_IGNORED = str.maketrans("", "", " \t\n\r-_")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a record cannot be judged, and the field at fault."""

    message: str
    field: str | None = None
    type: str = "bad-input"


class LabelError(ValueError):
    """A record or a label cannot be used; `problem` says why."""

    def __init__(self, message: str, field: str | None = None, type: str = "bad-input") -> None:
        super().__init__(message)
        self.problem = Problem(message, field, type)


def kind_of(content: object) -> str:
    """The type of a parsed JSON value, in words."""
    return _TYPES.get(type(content), type(content).__name__)


def clip(text: object, limit: int = 80) -> str:
    """`text` quoted for a message, cut to `limit` characters."""
    text_repr = repr(text)
    return text_repr if len(text_repr) <= limit else f"{text_repr[: limit - 1]}…"


def content_hash(fields: Mapping[str, Any]) -> str:
    """32 hex digits over a record's fields, in any order.

    An earlier verdict (key `judge`) is not hashed.
    """
    return digest(own_json(fields).encode("ascii"), 16)


def own_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without an earlier verdict."""
    return {key: content for key, content in fields.items() if key != RESERVED}


def own_id(fields: Mapping[str, Any]) -> str | None:
    """The id in a record's own fields, as text (`spelt_id`); None if there is none."""
    for name, content in fields.items():
        is_id = normalise(name) == "id" and isinstance(content, str | int | float)
        if is_id and (text := spelt_id(content)):
            return text
    return None


def spelt_id(content: str | float) -> str:
    """An id as text: composed (NFC), without blanks around it, and 1 for the number 1.0, which
    pandas makes of it."""
    whole = isinstance(content, float) and content.is_integer()
    return normalize("NFC", str(int(content) if whole else content)).strip()


def judgement_in(fields: Mapping[str, Any], default: object = None) -> Any:
    """The field `judge`: an earlier verdict, or the input's own field; else `default`."""
    return fields.get(RESERVED, default)


def own_json(fields: Mapping[str, Any]) -> str:
    """A record's own fields, sorted, as JSON in ASCII: a lone surrogate has no UTF-8 form."""
    return json.dumps(own_fields(fields), sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=1024)
def normalise(key: str) -> str:
    """`key` without case, spaces, hyphens and underscores, composed (NFC)."""
    return caseless(normalize("NFC", key.translate(_IGNORED)))


def key_for(fields: Collection[str], name: str) -> str:
    """The key of the field `name`: an é of two characters is the é of one; `name` if there is
    none."""
    if name in fields or name.isascii():
        return name
    composed = normalize("NFC", name)
    return next((key for key in fields if normalize("NFC", key) == composed), name)


def keys_of(names: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, str]:
    """Maps each name to the record's own key for it; `names` is keyed by normalised form.

    Raises:
        LabelError: two keys stand for one name, and their contents differ.
    """
    keys: dict[str, str] = {}
    for key, content in fields.items():
        if (name := names.get(normalise(key))) is not None:
            earlier = keys.setdefault(name, key)
            if earlier != key and fields[earlier] != content:
                message = f"fields {earlier!r} and {key!r} both stand for {name} and differ"
                message += ": rename one, or name another with --id" if name == "id" else ""
                raise LabelError(message, key)
    return keys


def at(fields: Any, path: str) -> Any:
    """The content of a field, or at a path.

    `a.b` is the field b of the object a; `a.0` is the first entry of the list a, or the first turn
    of the chat that a holds as JSON text; `a.-1` is the last.

    Raises:
        KeyError: there is no such field.
        LabelError: two fields match, by path or by names that differ only in case, spaces, - and _.
    """
    head, _, tail = path.partition(".")
    if isinstance(fields, list):
        try:
            entry = fields[int(head)]
        except (ValueError, IndexError):
            raise KeyError(path) from None
        return at(entry, tail) if tail else entry
    if not isinstance(fields, dict):
        raise KeyError(path)
    path, head = key_for(fields, path), key_for(fields, head)
    inner = _opened(fields.get(head)) if tail else None
    key = path if path in fields or inner is None else head
    if key not in fields:
        raise KeyError(path)
    plain = normalise(key)
    if (twin := next((k for k in fields if k != key and normalise(k) == plain), None)) is not None:
        raise LabelError(f"fields {key!r} and {twin!r} have the same name: rename one", path)
    if key != path:
        return at(inner, tail)
    if inner is not None:
        with suppress(KeyError):
            at(inner, tail)
            message = (
                f"field {path!r}, and field {tail!r} of {head!r}, have the same path: rename one"
            )
            raise LabelError(message, path)
    return fields[path]


def _opened(content: object) -> dict[str, Any] | list[Any] | None:
    """The container in which a path continues; None if `content` has no parts."""
    return content if isinstance(content, dict | list) else chat_in(content)


def find(fields: Mapping[str, Any], path: str) -> Any:
    """As `at`, but if no name matches exactly, case, spaces, - and _ are ignored.

    `country` finds `Country`, `first_name` finds `First-Name`.
    """
    try:
        return at(fields, path)
    except KeyError:
        head, _, tail = path.partition(".")
        keys = {normalise(key): key for key in fields}
        if (key := keys.get(normalise(path))) is not None:
            return fields[key]
        if not tail or (key := keys.get(normalise(head))) is None:
            raise
        return find(fields[key], tail) if isinstance(fields[key], dict) else at(fields[key], tail)


NO_CONTENT, SEVERAL = "(none)", "(several)"
"""Placeholders for the content of a missing field, and of several fields of one name."""


def stratum(fields: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """A record's content of each of these fields (`find`): text, composed (NFC), NO_CONTENT or
    SEVERAL."""
    contents = []
    for name in names:
        try:
            content = find(fields, name)
        except KeyError:
            content = NO_CONTENT
        except LabelError:
            content = SEVERAL
        is_text = isinstance(content, str)
        text = content if is_text else json.dumps(content, ensure_ascii=False)
        contents.append(normalize("NFC", text))
    return tuple(contents)


Item = TypeVar("Item")


def strata_of(
    items: Iterable[Item], fields_of: Callable[[Item], Mapping[str, Any]], names: Sequence[str]
) -> dict[tuple[str, ...], list[Item]]:
    """Items grouped by their content of these fields, sorted.

    Raises:
        UsageError: no item has one of the fields.
    """
    strata: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        strata.setdefault(stratum(fields_of(item), names), []).append(item)
    refuse_absent(strata, names, next((fields_of(part[0]) for part in strata.values()), {}))
    return dict(sorted(strata.items()))


def refuse_absent(
    strata: Collection[tuple[str, ...]], names: Sequence[str], there: Collection[str]
) -> None:
    """Raise UsageError for a `--by` field that no record has; `there`: fields of the first one."""
    for place, name in enumerate(names):
        if all(labels[place] == NO_CONTENT for labels in strata):
            raise UsageError(no_such_field(f"--by {name}", name, there))


def holds(fields: Any, path: str) -> bool:
    """Whether `at` finds a field, or more than one."""
    with suppress(LabelError):
        try:
            at(fields, path)
        except KeyError:
            return False
    return True


def no_such_field(origin: str, name: str, there: Collection[str], among: str = "no record") -> str:
    """The message that no record, or none `among` some, has the field `name`, with the nearest of
    the fields `there`."""
    near = nearest(name, there)
    hint = f"did you mean {near}?" if near else f"the first has {clip([*there], 300)}"
    if "," in name and {part.strip() for part in name.split(",")} <= {*there}:
        hint = f"give {origin.split()[0]} once for each field"
    return f"{origin}: {among} has this field; {hint}"


def put(fields: dict[str, Any] | list[Any], path: str, content: object) -> None:
    """Set the field that `at` finds at `path`, with copies of the containers inside `fields`."""
    container: Any = fields
    head, _, tail = path.partition(".")
    key: Any = head
    if isinstance(fields, list):
        key = int(head)
    elif (whole := key_for(fields, path)) in fields or not tail:
        key, tail = whole, ""
    else:
        key = key_for(fields, head)
    if tail:
        inner = container[key]
        opened = (_opened(inner) or inner).copy()
        put(opened, tail, content)
        content = json.dumps(opened, ensure_ascii=False) if isinstance(inner, str) else opened
    container[key] = content


_EIGHT_DIGITS = re.compile(r"(?=([0-9a-f]{8}))")


_NOT_IN_WORDS = re.compile(r"[\W_]+")
_BETWEEN_WORDS = bytes(n for n in range(128) if not chr(n).isalnum())


def _plain(text: str) -> str:
    """The text's letters and digits alone, in lower case: a model may take `DEAD BEEF` for
    `deadbeef`."""
    if text.isascii():  # Ten times faster.
        return text.lower().encode("ascii").translate(None, _BETWEEN_WORDS).decode("ascii")
    return _NOT_IN_WORDS.sub("", normalize("NFKC", text).lower())


def fence_mark(seed: str, texts: Sequence[str]) -> str:
    """8 hex digits that none of the texts holds, in any spelling; the first 8 of `seed`, if
    possible."""
    mark, plain = seed[:8], [*map(_plain, texts)]
    if any(mark in text for text in plain):
        # At once, because a text may hold many of those that would follow.
        held = {run[1] for text in plain for run in _EIGHT_DIGITS.finditer(text)}
        while mark in held:
            mark = digest(mark.encode() + seed.encode(), 4)
    return mark


def is_verdict(content: object) -> bool:
    """Whether the content of the field `judge` is an earlier verdict, not the input's own field.

    An output line has a verdict, and a fingerprint or an error; without these two, all its keys
    must be keys of a judgement.
    """
    if not isinstance(content, dict) or content.get("verdict") not in [*Verdict]:
        return False
    typed = content.keys() <= Judgement.model_fields.keys()
    return typed or isinstance(content.get("fingerprint") or content.get("error"), str | dict)


def has_parts(content: Mapping[str, Any]) -> bool:
    """Whether the checks and the original fields of an earlier verdict can be read by their keys.

    It looks at no more, so that a run can read a million lines.
    """
    checks = content.get("checks") or []
    if not isinstance(checks, list) or not isinstance(content.get("original") or {}, dict):
        return False
    return all(
        isinstance(check, dict)
        and isinstance(check.get("check"), str)
        and isinstance(check.get("verdict"), str)
        for check in checks
    )


class SeenIds:
    """The ids of a run, and the place where each came first.

    They are stored in a temporary SQLite database, up to 16 MB in memory, then on disk, which is
    deleted with this object. It is never closed earlier: SQLite would crash if a thread still read.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for setting in ("synchronous=OFF", "journal_mode=OFF", "cache_size=-16000"):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("CREATE TABLE seen (id BLOB PRIMARY KEY, place BLOB) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def first_place(self, id: str, place: str) -> str | None:
        """The place where `id` came first; for a new id None, and `place` is stored.

        Raises JudgeError if the database cannot be written.
        """
        # Bytes, because ids may hold lone surrogates, which SQLite's text cannot.
        row = [text.encode("utf-8", "surrogatepass") for text in (id, place)]
        try:
            if self._db.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", row).rowcount:
                return None
            first = self._db.execute("SELECT place FROM seen WHERE id = ?", row[:1]).fetchone()
        except sqlite3.Error as error:
            message = f"the ids of the records cannot be remembered in {tempfile.gettempdir()}"
            raise unwritable(message, error) from error
        return bytes(first[0]).decode("utf-8", "surrogatepass")


def flat(tree: Any, path: str = "") -> dict[str, Any]:
    """The leaves of nested objects, by path: `settings.votes`."""
    if not isinstance(tree, Mapping):
        return {path: tree}
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{path}.{key}" if path else str(key))
    return leaves

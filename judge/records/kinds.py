"""Kinds of records. A kind declares its fields, and is found by an entry point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any

from judge import plugins
from judge.errors import UsageError
from judge.records.base import LabelError, clip, keys_of, kind_of, spelt_id
from judge.records.base import normalise as normalise
from judge.records.text import shown
from judge.records.words import is_blank

MAX_TEXT = 4_000_000
"""Most characters of a typed field: about a million tokens, more than a model can read."""

RECORD = "record"
"""The kind of a record that fits no other kind."""

_GROUP = "judge.kinds"
_NAME_BREAK = re.compile("[,;\n\u060c\u061b\u3001\uff0c\uff1b]")

Parser = Callable[[Any, Mapping[str, Any]], Any]
"""Parses a field's content, given the typed fields parsed before it. Lists become tuples of texts
or of `ListEntry`. Raises ValueError."""


@dataclass(frozen=True)
class ListEntry:
    """An entry of a list field, as parsed by a kind."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def subject(self) -> str:
        """The words to compare with passages of the record."""
        return self.text

    @property
    def claim(self) -> str:
        """The part of the entry that controls swap between entries."""
        return self.text

    def claiming(self, claim: str) -> str:
        """The text of the entry with another claim."""
        return claim


@dataclass(frozen=True)
class RecordKind:
    """The fields of one kind of record. Its name is that of its entry point in `judge.kinds`.

    - `fields`: a parser for each field, in parsing order
    - `needed`: the fields that make a record one of this kind; the last distinguishes it from other
      kinds
    - `each`: the list field whose entries are checked
    - `listed`: list fields that are shown to judges, numbered
    - `first`: the texts that prompts show first, in this order
    - `other_names`: alternative names of fields, normalised
    """

    fields: Mapping[str, Parser] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    each: str | None = None
    listed: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    other_names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def texts(self) -> frozenset[str]:
        """The fields shown to judges: unparsed texts, and numbered lists."""
        return frozenset(n for n, parse in self.fields.items() if parse is text or n in self.listed)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Maps every accepted name, normalised, to its field."""
        return {normalise(name): name for name in self.fields} | dict(self.other_names)

    def fits(self, fields: Mapping[str, Any], *, filled: bool) -> bool:
        """Whether the needed fields are there and, with `filled`, not blank."""
        # An empty list counts as filled, except for the field whose entries are checked.
        found = {
            name
            for key, content in fields.items()
            if (name := self.names.get(normalise(key)))
            if not filled or not _blank(content) or (content == [] and name != self.each)
        }
        return bool(self.needed) and found.issuperset(self.needed)


def text(content: object, typed: Mapping[str, Any]) -> str:
    """Accepts a text, unchanged."""
    if not isinstance(content, str):
        raise ValueError(f"must be a text, not {kind_of(content)}")
    if is_blank(content):
        raise ValueError("is empty")
    return content


def identifier(content: object, typed: Mapping[str, Any]) -> str:
    """Accepts a text or a number, as text (`spelt_id`)."""
    if isinstance(content, int | float) and not isinstance(content, bool):
        return spelt_id(content)
    if isinstance(content, str):
        return spelt_id(text(content, typed))
    raise ValueError(f"must be a text or a number, not {kind_of(content)}: name another with --id")


def names(content: object, typed: Mapping[str, Any]) -> tuple[str, ...]:
    """Accepts a list of names, or one text with names separated by commas, semicolons (of any
    script) or lines."""
    if isinstance(content, str):
        return tuple(part.strip() for part in _NAME_BREAK.split(content) if part.strip())
    if not isinstance(content, list):
        raise ValueError(f"must be a list of texts, not {kind_of(content)}")
    for name in content:
        if not isinstance(name, str):
            raise ValueError(f"must be a list of texts, and holds {kind_of(name)}")
    return tuple(content)


def _blank(content: object) -> bool:
    return content is None or content == [] or (isinstance(content, str) and is_blank(content))


_LABELS = re.compile(
    r"(gold|human|true|final|majority|crowd|expert)?labels?\d*|gold|winner(model[ab]|tie)?|"
    r"(annotat(or|ion)|rater)s?[a-e]?\d*(labels?)?|(better|safer)responseid|g[12]winner|"
    r"[a-z]*ratings|votes|majority"
)
"""Normalised names of fields that hold people's answers."""


@cache
def kind_names() -> tuple[str, ...]:
    """The installed kinds, sorted, then `record`."""
    return (*_installed(), RECORD)


@cache
def _installed() -> Mapping[str, RecordKind]:
    """The kinds of packages; a warning names each that cannot be used."""
    return plugins.usable(_GROUP, RecordKind)


@cache
def kind_named(name: str) -> RecordKind:
    """The kind with this name; UsageError if there is none."""
    if name == RECORD:
        return RecordKind({"id": identifier})
    if name not in _installed():
        kinds = ", ".join(kind_names())
        raise UsageError(f"no kind of records is called {name!r}; there are {kinds}")
    return _installed()[name]


@cache
def shown_first() -> tuple[str, ...]:
    """The fields that prompts show first, in order."""
    kinds = map(kind_named, kind_names())
    return tuple(dict.fromkeys(name for kind in kinds for name in kind.first))


def normalised(keys: Iterable[str]) -> set[str]:
    """All `keys`, normalised."""
    return {normalise(key) for key in keys}


@lru_cache(maxsize=1024)
def holds_labels(key: str) -> bool:
    """Whether a field of this name holds people's answers."""
    return _LABELS.fullmatch(normalise(key)) is not None


def _size(content: object) -> int:
    """The characters of all texts and names in a JSON value."""
    size, stack = 0, [content]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            size += len(node)
        elif isinstance(node, dict):
            stack += [*node, *node.values()]
        elif isinstance(node, list):
            stack += node
    return size


def recognise(fields: Mapping[str, Any]) -> str | None:
    """The only kind whose needed fields are filled; None if there are none or several.

    If no kind's needed fields are filled, being there is enough.
    """
    candidates = _candidates(fields)
    return candidates[0] if len(candidates) == 1 else None


def _candidates(fields: Mapping[str, Any]) -> list[str]:
    for filled in (True, False):
        if fitting := [n for n in kind_names() if kind_named(n).fits(fields, filled=filled)]:
            return fitting
    return []


def typed_fields(name: str, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Parses the fields that the kind of this name knows.

    Returns the filled fields, parsed, by typed name; and the record's own key of each known field
    that is there, by typed name.

    Raises LabelError: a field is missing, has the wrong form, is given twice, or exceeds MAX_TEXT.
    """
    kind = kind_named(name)
    keys = keys_of(kind.names, fields)
    for needed in kind.needed:
        if needed not in keys:
            raise LabelError(f"field {needed!r} is missing", needed)
    typed: dict[str, Any] = {}
    for known, parse in kind.fields.items():
        key = keys.get(known)
        if key is not None and (known in kind.needed or not _blank(fields[key])):
            try:
                typed[known] = parse(fields[key], typed)
            except ValueError as error:
                raise LabelError(f"field {key!r} {error}", key) from None
    contents = fields if name == RECORD else {key: fields[key] for key in keys.values()}
    for key, content in contents.items():
        if (size := _size(content)) > MAX_TEXT:
            message = f"field {key!r} has {size} characters, the limit is {MAX_TEXT}"
            raise LabelError(message, key)
    if name == RECORD and (label := shown(fields.get("label")).text.strip().lower()):
        typed["label"] = label
    return typed, keys


def the_kind_of(fields: Mapping[str, Any], default: str | None) -> str:
    """As `recognise`; if no kind fits, or several do, `default`, or LabelError without one."""
    candidates = _candidates(fields)
    if len(candidates) == 1:
        return candidates[0]
    if default is not None:
        return default
    if candidates:
        kinds = ", ".join(candidates)
        raise LabelError(
            f"may be of kind {kinds}: choose a workflow, or remove the fields of the other"
        )
    known = ((name, kind_named(name).needed) for name in kind_names())
    kinds = "; ".join(f"{name}: {', '.join(needed)}" for name, needed in known if needed)
    raise LabelError(
        f"is of no known kind ({kinds.replace('_', ' ')}): its fields are "
        f"{clip([*fields], 300)}; --ask and --rubric ask your own question about any record"
    )

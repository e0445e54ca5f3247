"""A record: from the line that it was read from to the line that it is written to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judge.records.base import (
    LINEAGE,
    RESERVED,
    LabelError,
    Problem,
    SeenIds,
    at,
    fence_mark,
    hashed_json,
    own_fields,
    own_id,
    put,
    verdict_columns,
)
from judge.records.kinds import (
    RECORD,
    ListEntry,
    holds_labels,
    kind_named,
    the_kind_of,
    typed_fields,
)
from judge.records.text import Shown, entries, shown

if TYPE_CHECKING:
    from judge.backends.base import Prompt


class Texts(Mapping[str, str]):
    """The texts of a record by field; what has no text is not there.

    Those of `contents` are shown where a rubric names no field. Any other of `fields`, or a path
    into one (`at`), has its text, too.
    """

    def __init__(self, contents: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self._contents, self._fields = contents, fields
        self._shown: dict[str, Shown] = {}
        self._entries: dict[str, tuple[str, ...]] = {}

    def shown(self, name: str) -> Shown:
        """A field as it is shown; KeyError where there is none."""
        if name not in self._shown:
            self._shown[name] = shown(self.content(name))
        return self._shown[name]

    def entries(self, name: str) -> tuple[str, ...]:
        """The texts of a list field's entries; () where there is no list."""
        if name not in self._entries:
            with suppress(KeyError):
                self._entries[name] = entries(self.content(name))
        return self._entries.get(name, ())

    def content(self, name: str) -> Any:
        """What stands in a field, as it was read; KeyError where there is none."""
        return self._contents[name] if name in self._contents else at(self._fields, name)

    def refuse_ambiguous(self, names: Iterable[str]) -> None:
        """Raise LabelError where a name, or a path, leads to two fields."""
        for name in names:
            with suppress(KeyError):
                at(self._fields, name)

    def __getitem__(self, name: str) -> str:
        if text := self.shown(name).text:
            return text
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._contents if self.shown(name).text)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Record:
    """One unit of input, readable or not.

    As it was read:

    - `source`: the file's name or `<stdin>`; `line` counts from 1 (in Parquet, rows)
    - `fields`: the JSON object; None where it is unreadable
    - `raw`: the source text: of a record in JSON the object, on one line; of an unreadable one what
      could not be read, with bytes that are not UTF-8 written as `\\xNN`, cut over the size limit
    - `problem`: why it cannot be judged
    - `among`: whether there are several sources

    As it is judged:

    - `name`: what a label set calls it ("": its own id, or its line)
    - `columns`: names that judges see, with the fields, or paths into objects, that they stand for;
      the record stays as it is
    - `input_key`: the name that the record's own field `judge` has here ("": it has none)
    - `kind`, `typed`, `names`: what `of_kind` recognised: the fields that the kind knows and that
      are filled, by typed name; and of these names the keys that judges see (`visible`)
    - `repeated`: whether a record before it has the same id
    - `rewrites`: new texts of fields
    - `first_mark`: the mark of the record that this one was made from

    What is made of a record (its texts, hash, prompts) is made once, when it is needed.
    """

    source: str
    line: int
    fields: dict[str, Any] | None
    raw: str | None = None
    problem: Problem | None = None
    among: bool = False
    name: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    input_key: str = ""
    kind: str = RECORD
    typed: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    repeated: bool = False
    rewrites: Mapping[str, str] = field(default_factory=dict)
    first_mark: str = ""

    def of_kind(self, kind: str | None = None, ids: SeenIds | None = None) -> Record:
        """The record as one of this kind, or with the problem that keeps it from being one.

        `kind` None recognises it by its fields. With `ids`, a record whose id came before is
        named by its place.
        """
        if self.problem is not None or self.fields is None:
            return self
        try:
            kind = kind or the_kind_of(self.visible)
            typed, names = typed_fields(kind, self.visible)
        except LabelError as error:
            return replace(self, problem=error.problem)
        repeated = bool(
            ids is not None and "id" in typed and ids.first_place(typed["id"], self.at_line)
        )
        return replace(self, kind=kind, typed=typed, names=names, repeated=repeated)

    def usable(self) -> Record:
        """The record itself; LabelError where it has a problem."""
        if (problem := self.problem) is not None:
            raise LabelError(problem.message, problem.field, problem.type)
        return self

    # ------------------------------------------------------------ place, id, hash

    @property
    def place(self) -> dict[str, Any]:
        """The line, and the file where there are several, as output lines have them."""
        where: dict[str, Any] = {"line": self.line}
        return {"file": self.source, **where} if self.among else where

    @property
    def at_line(self) -> str:
        """The place that it was read from: `mails.csv:3`."""
        return f"{self.source.strip('<>')}:{self.line}"

    @property
    def called(self) -> str:
        """What people know the record by: its id, else its place, also where its id came before."""
        if self.repeated:
            return self.at_line
        return self.name or self.typed.get("id") or own_id(self.fields or {}) or self.at_line

    @property
    def id(self) -> str:
        """The record's name or own id, else its position: `#17` for line 17."""
        return self.name or str(self.typed.get("id", f"#{self.line}"))

    @cached_property
    def _hash_and_mark(self) -> tuple[str, str]:
        plain, seed = hashed_json(self.fields or {})
        return seed, fence_mark(seed, [plain, *self.rewrites.values()])

    @property
    def content_hash(self) -> str:
        """The hash of the record's own fields, the same in whatever order they stand."""
        return self._hash_and_mark[0]

    @property
    def mark(self) -> str:
        """What fences the record's texts in prompts: 8 hex digits that none of them holds.

        It outlives edits, so that a prompt's prefix stays the same up to the first edited word.
        """
        return self.first_mark or self._hash_and_mark[1]

    # ------------------------------------------------------------ what judges see

    @cached_property
    def visible(self) -> dict[str, Any]:
        """The fields as judges see them: those of `columns` under their new names.

        A field of the record itself is renamed where it stands; one within an object comes last,
        and stays in the object, too. Raises KeyError where the record lacks a column.
        """
        fields = self.fields or {}
        if not self.columns:
            return fields
        names = {path: name for name, path in self.columns.items()}
        visible = {names.get(key, key): content for key, content in fields.items()}
        return visible | {name: at(fields, path) for name, path in self.columns.items()}

    def contents(self) -> dict[str, Any]:
        """What judges are shown where a rubric names no field, as it was read: first the fields
        that the kind does not know, by their own names, then its texts, by typed names."""
        visible, texts = self.visible, kind_named(self.kind).texts
        keys = {RESERVED, LINEAGE, *self.names.values(), *verdict_columns(visible)}
        contents = {
            key: content
            for key, content in visible.items()
            if key not in keys and not holds_labels(key)
        }
        return contents | {name: visible[key] for name, key in self.names.items() if name in texts}

    def hidden(self) -> dict[str, str]:
        """The fields that are not shown where a rubric names none, and why, in their order."""
        own = own_fields(self.visible)
        earlier = (self.visible.keys() - own.keys()) | verdict_columns(self.visible)
        why = dict.fromkeys(earlier, "a verdict")
        why |= {LINEAGE: "what it was made from"} if LINEAGE in self.visible else {}
        why |= {key: "labels" for key in self.visible if holds_labels(key)}
        for name, key in self.names.items():
            if name not in kind_named(self.kind).texts:
                why[key] = {"id": "the id", "label": "labels"}.get(name, "a list of the workflow")
        for name in self.contents():
            if name not in self.texts:
                why[name] = ", ".join(self.texts.shown(name).omitted) or "empty"
        return {name: why[name] for name in (*self.visible, *why) if name in why}

    @cached_property
    def texts(self) -> Texts:
        """The fields that have a text: by typed name those that the kind knows, the further ones by
        their own names. Lists of the kind's are numbered from 1."""
        contents = self.contents()
        listed = kind_named(self.kind).listed
        contents |= {n: _numbered(self.entries(n)) for n in listed if n in self.lists}
        return Texts({**contents, **self.rewrites}, own_fields(self.visible))

    @property
    def label(self) -> str | None:
        """The answer that the record itself gives for right."""
        return self.typed.get("label")

    @cached_property
    def prompts(self) -> dict[object, Prompt]:
        """The prompts made of these texts, by what they ask."""
        return {}

    @cached_property
    def screened(self) -> dict[str, tuple[tuple[tuple[str, str], ...], str]]:
        """What looks like a message to the judge, by text."""
        return {}

    @cached_property
    def lists(self) -> Mapping[str, tuple[str | ListEntry, ...]]:
        """The lists among the typed fields that have entries."""
        pairs = self.typed.items()
        return {name: content for name, content in pairs if isinstance(content, tuple) and content}

    def entries(self, name: str) -> tuple[str, ...]:
        """The texts of a list field's entries; they are numbered from 1."""
        if name in self.lists:
            return tuple(map(str, self.lists[name]))
        return self.texts.entries(name)

    def entry(self, name: str | None, number: int) -> str | None:
        """The text of the list field's entry with this number; None for the record (0)."""
        return self.entries(name)[number - 1] if name and number else None

    def typed_entry(self, name: str, number: int) -> ListEntry:
        """The list field's entry with this number, as the record's kind reads it."""
        entry = self.lists.get(name, self.texts.entries(name))[number - 1]
        return entry if isinstance(entry, ListEntry) else ListEntry(entry)

    def lacks(self, names: Iterable[str]) -> tuple[str, ...]:
        """Which of these fields have nothing to show, as messages have it: `email` where there is
        no such field, `text in email` where it is empty, `text in photo (image not shown)`."""
        return tuple(lack for name in names if (lack := self._lack(name)) is not None)

    def _lack(self, name: str) -> str | None:
        if name in self.texts or self._lists(name):
            return None
        if not self.has(name):
            return name
        omitted = ", ".join(self.texts.shown(name).omitted)
        return f"text in {name}" + (f" ({omitted} not shown)" if omitted else "")

    def has(self, name: str) -> bool:
        """Whether the record has this field, also where it is empty, or has two of that path."""
        with suppress(LabelError):
            try:
                self.texts.shown(name)
            except KeyError:
                return self._lists(name)
        return True

    def _lists(self, name: str) -> bool:
        return name in self.lists or (name == "label" and self.label is not None)

    def as_mapping(self) -> dict[str, Any]:
        """The record as plain data, for scripted judges."""
        return {
            **self.texts,
            **{name: list(self.entries(name)) for name in self.lists},
            "label": self.label,
        }

    # ------------------------------------------------------------ changes

    def with_text(self, name: str, text: str) -> Record:
        """The record with a new text in a field that judges see."""
        mark = "" if self.mark in text else self.mark
        return replace(self, rewrites={**self.rewrites, name: text}, first_mark=mark)

    def with_fields(self, changes: Mapping[str, Any]) -> Record:
        """The record with `changes` of its fields (see `with_changes`), in the same fence where
        they do not hold its mark."""
        fields = self.with_changes(changes)
        mark = "" if self.mark in hashed_json(fields)[0] else self.mark
        return replace(self, fields=fields, raw=None, first_mark=mark)

    def with_typed(self, **contents: Any) -> Record:
        """The record with other contents of typed fields, for judges; `fields` stay as they are."""
        return replace(self, typed={**self.typed, **contents}, first_mark=self.mark)

    def originals(self, names: Iterable[str]) -> dict[str, Any]:
        """The record's own fields that changes of these typed fields touch, as they were read."""
        fields = self.fields or {}
        paths = [self._path(self.names[name]) for name in names]
        keys = [path if path in fields else path.partition(".")[0] for path in paths]
        return {key: fields[key] for key in keys}

    def with_changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The record's own fields, in their order and form, with `changes` in their place.

        `changes` maps typed names to new contents (of a list its entries); what the record lacks
        comes last. An earlier verdict is left out.
        """
        fields = own_fields(self.fields or {})
        for name, content in changes.items():
            key = self.names.get(name, name)
            if isinstance(content, tuple | list) and key in self.names.values():
                content = [str(entry) for entry in content]
                content = content if isinstance(self.visible[key], list) else "\n".join(content)
            put(fields, self._path(key), content)
        return fields

    def _path(self, key: str) -> str:
        """Where the field that judges see under this key stands in the record itself."""
        return self.columns.get(key, key)


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))

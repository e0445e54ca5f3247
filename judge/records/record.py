"""A record, from its input line to its output line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judge.digest import digest
from judge.judgement import verdict_columns
from judge.records.base import (
    LINEAGE,
    RESERVED,
    LabelError,
    Problem,
    SeenIds,
    at,
    content_hash,
    fence_mark,
    holds,
    key_for,
    normalise,
    own_fields,
    own_id,
    own_json,
    put,
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
    """The texts of a record by field; fields without text are absent.

    Iteration gives the fields of `contents`, which are shown where a rubric names no field. A
    lookup also finds any other field of `fields`, or a path into one (`at`).
    """

    def __init__(self, contents: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self.contents, self.fields = contents, fields
        self._shown: dict[str, Shown] = {}
        self._entries: dict[str, tuple[str, ...]] = {}

    def shown(self, name: str) -> Shown:
        """A field as it is shown; KeyError if there is none."""
        if name not in self._shown:
            self._shown[name] = shown(self.content(name))
        return self._shown[name]

    def entries(self, name: str) -> tuple[str, ...]:
        """The texts of a list field's entries; () if there is no list."""
        if name not in self._entries:
            with suppress(KeyError):
                self._entries[name] = entries(self.content(name))
        return self._entries.get(name, ())

    def content(self, name: str) -> Any:
        """The content of a field, as it was read; KeyError if there is none."""
        return self.contents[name] if name in self.contents else at(self.fields, name)

    def refuse_ambiguous(self, names: Iterable[str]) -> None:
        """Raise LabelError if a name or a path matches two fields."""
        for name in names:
            with suppress(KeyError):
                at(self.fields, name)

    def __getitem__(self, name: str) -> str:
        if text := self.shown(name).text:
            return text
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.contents if self.shown(name).text)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Record:
    """One unit of input, readable or not.

    As read:

    - `source`: the file's name or `<stdin>`; `line` counts from 1 (in Parquet, rows)
    - `fields`: the JSON object; empty if it is unreadable
    - `json`: the source text of a record in JSON, on one line
    - `raw`: the text that could not be read, with bytes that are not UTF-8 written as `\\xNN`, cut
      at the size limit; None if there is an object
    - `problem`: why it cannot be judged
    - `among`: whether there are several sources

    As judged:

    - `name`: its name in a label set ("": its own id, or its line)
    - `columns`: maps names shown to judges to the record's fields, or paths into objects; the
      record itself is unchanged
    - `input_key`: the new name of the record's own field `judge` ("": it has none)
    - `kind`, `typed`, `names`: the kind that `of_kind` found, its filled fields by typed name, and
      the key in `visible` of each of its fields
    - `repeated`: whether an earlier record has the same id
    - `rewrites`: new texts of fields

    Derived values (texts, hash, prompts) are computed once, on first use.
    """

    source: str
    line: int
    fields: dict[str, Any]
    _: KW_ONLY
    json: str | None = None
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

    @classmethod
    def unreadable(cls, source: str, line: int, problem: Problem, raw: str = "") -> Record:
        """The record of this text (`raw`), which could not be read."""
        return cls(source, line, {}, raw=raw, problem=problem)

    @property
    def fault(self) -> str:
        """Why it cannot be judged; "" if it can."""
        return self.problem.message if self.problem else ""

    def of_kind(
        self, kind: str | None = None, ids: SeenIds | None = None, *, default: str | None = None
    ) -> Record:
        """The record as one of this kind, or with the problem that prevents it.

        With `kind` None, the kind is recognised from the fields; `default` is that of a record that
        no kind fits, or several. With `ids`, a record whose id came before is named by its place.
        """
        if self.problem is not None:
            return self
        try:
            kind = kind or the_kind_of(self.visible, default)
            typed, names = typed_fields(kind, self.visible)
        except LabelError as error:
            return replace(self, problem=error.problem)
        repeated = bool(
            ids is not None and "id" in typed and ids.first_place(typed["id"], self.at_line)
        )
        return replace(self, kind=kind, typed=typed, names=names, repeated=repeated)

    def usable(self) -> Record:
        """The record itself; LabelError if it has a problem."""
        if (problem := self.problem) is not None:
            raise LabelError(problem.message, problem.field, problem.type)
        return self

    # ------------------------------------------------------------ place, id, hash

    @property
    def place(self) -> dict[str, Any]:
        """The line, and the file if there are several sources, for output lines."""
        where: dict[str, Any] = {"line": self.line}
        return {"file": self.source, **where} if self.among else where

    @property
    def at_line(self) -> str:
        """The place it was read from: `mails.csv:3`."""
        return f"{self.source.strip('<>')}:{self.line}"

    @property
    def called(self) -> str:
        """The record's name for people: its name or id; its place if it has none or it repeats."""
        if self.repeated:
            return self.at_line
        return self.name or self.typed.get("id") or own_id(self.fields) or self.at_line

    @property
    def id(self) -> str:
        """The record's name or own id, else its position: `#17` for line 17."""
        return self.name or str(self.typed.get("id", f"#{self.line}"))

    @property
    def draft(self) -> int:
        """Its number in the set that it was generated for, from 1; 0 for any other record."""
        lineage = self.fields.get(LINEAGE)
        index = lineage.get("index") if isinstance(lineage, dict) else None
        return index if isinstance(index, int) and index > 0 else 0

    @cached_property
    def content_hash(self) -> str:
        """The hash of the record's own fields, in any order."""
        return content_hash(self.fields)

    def mark(self, names: Iterable[str], others: Iterable[str] = ()) -> str:
        """The fence in prompts that show these fields: 8 hex digits that no text of the record
        holds, nor those of `others` as judges see them, whose escapes are read.

        It is derived from the fields of `names` as they were read. So a new column or label changes
        no prompt, and an edit only from the first edited word on.
        """
        key, lists = tuple(sorted(names)), tuple(others)
        if (key, lists) not in self._marks:
            texts = [own_json(self.fields), *self.rewrites.values()]
            texts += (self.texts.get(name, "") for name in {*key, *lists})
            texts += (entry for name in lists for entry in self.entries(name))
            seed = digest([self._texts_read.get(name, "") for name in key])
            self._marks[key, lists] = fence_mark(seed, texts)
        return self._marks[key, lists]

    @cached_property
    def _marks(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], str]:
        return {}

    # ------------------------------------------------------------ what judges see

    @cached_property
    def visible(self) -> dict[str, Any]:
        """The fields as judges see them, with `columns` renamed.

        A top-level field is renamed in place; one inside an object is added at the end and stays in
        the object, too. Where a column is the id, the record's own (`id`, `ID`, `_id`) is left out.
        Raises KeyError if the record lacks a column.
        """
        fields = self.fields
        if not self.columns:
            return fields
        names = {key_for(fields, path): name for name, path in self.columns.items()}
        visible = {
            names.get(key, key): content
            for key, content in fields.items()
            if key in names or "id" not in self.columns or normalise(key) != "id"
        }
        return visible | {name: at(fields, path) for name, path in self.columns.items()}

    def contents(self) -> dict[str, Any]:
        """The fields shown to judges where a rubric names none, as they were read.

        First those unknown to the kind, by their own names, then the kind's texts, by typed names.
        """
        visible, texts = self.visible, kind_named(self.kind).texts
        keys = {RESERVED, LINEAGE, *self.names.values(), *verdict_columns(visible)}
        contents = {
            key: content
            for key, content in visible.items()
            if key not in keys and not holds_labels(key)
        }
        return contents | {name: visible[key] for name, key in self.names.items() if name in texts}

    def hidden(self) -> dict[str, str]:
        """The fields not shown where a rubric names none, and why, in the record's order."""
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
        """The fields with a text: the kind's by typed name, others by their own names.

        The kind's lists are numbered from 1.
        """
        read = self._texts_read
        return Texts({**read.contents, **self.rewrites}, read.fields) if self.rewrites else read

    @cached_property
    def _texts_read(self) -> Texts:
        """The texts without `rewrites`."""
        listed = kind_named(self.kind).listed
        lists = {n: _numbered(self.entries(n)) for n in listed if n in self.lists}
        return Texts(self.contents() | lists, own_fields(self.visible))

    @property
    def label(self) -> str | None:
        """The right answer, according to the record itself."""
        return self.typed.get("label")

    @cached_property
    def prompts(self) -> dict[object, Prompt]:
        """A cache of the prompts made from these texts, by question."""
        return {}

    @cached_property
    def screened(self) -> dict[str, tuple[tuple[tuple[str, str], ...], str]]:
        """A cache of the passages that look like messages to the judge, by text."""
        return {}

    @cached_property
    def lists(self) -> Mapping[str, tuple[str | ListEntry, ...]]:
        """The non-empty lists among the typed fields."""
        pairs = self.typed.items()
        return {name: content for name, content in pairs if isinstance(content, tuple) and content}

    def entries(self, name: str) -> tuple[str, ...]:
        """The texts of a list field's entries."""
        if name in self.lists:
            return tuple(map(str, self.lists[name]))
        return self.texts.entries(name)

    def numbers(self, name: str | None) -> tuple[int, ...]:
        """The numbers (from 1) of a list field's entries, of equal ones that of the first; (0,)
        without a field, for the whole record."""
        if name is None:
            return (0,)
        first: dict[str, int] = {}
        for number, entry in enumerate(self.entries(name), 1):
            first.setdefault(entry, number)
        return tuple(first.values())

    def entry(self, name: str | None, number: int) -> str | None:
        """The text of entry `number` (from 1) of a list field; None for 0, the whole record."""
        return self.entries(name)[number - 1] if name and number else None

    def typed_entry(self, name: str, number: int) -> ListEntry:
        """Entry `number` (from 1) of a list field, as parsed by the record's kind."""
        entry = self.lists.get(name, self.texts.entries(name))[number - 1]
        return entry if isinstance(entry, ListEntry) else ListEntry(entry)

    def lacks(self, names: Iterable[str]) -> tuple[str, ...]:
        """The fields of `names` that have nothing to show, worded for messages.

        `email`: no such field; `text in email`: it is empty; `text in photo (image not shown)`.
        """
        lacking = []
        for name in names:
            if name in self.texts or self._lists(name):
                continue
            if not self.has(name):
                lacking.append(name)
                continue
            omitted = ", ".join(self.texts.shown(name).omitted)
            lacking.append(f"text in {name}" + (f" ({omitted} not shown)" if omitted else ""))
        return tuple(lacking)

    def has(self, name: str) -> bool:
        """Whether the record has this field, even if empty or ambiguous."""
        texts = self.texts
        return name in texts.contents or self._lists(name) or holds(texts.fields, name)

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
        return replace(self, rewrites={**self.rewrites, name: text})

    def with_fields(self, changes: Mapping[str, Any]) -> Record:
        """The record with `changes` of its fields (see `with_changes`)."""
        return replace(self, fields=self.with_changes(changes), json=None)

    def with_typed(self, **contents: Any) -> Record:
        """The record with other typed fields, for judges; `fields` are unchanged."""
        return replace(self, typed={**self.typed, **contents})

    def originals(self, names: Iterable[str]) -> dict[str, Any]:
        """The record's own fields, as they were read, that changes of these typed fields alter."""
        fields = self.fields
        paths = [key_for(fields, self._path(self.names[name])) for name in names]
        keys = [p if p in fields else key_for(fields, p.partition(".")[0]) for p in paths]
        return {key: fields[key] for key in keys}

    def with_changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The record's own fields, in their order and form, with `changes` applied.

        `changes` maps typed names to new contents (for a list, its entries); new fields come last.
        An earlier verdict is left out.
        """
        fields = own_fields(self.fields)
        for name, content in changes.items():
            key = self.names.get(name, name)
            if isinstance(content, tuple | list) and key in self.names.values():
                content = [str(entry) for entry in content]
                content = content if isinstance(self.visible[key], list) else "\n".join(content)
            put(fields, self._path(key), content)
        return fields

    def _path(self, key: str) -> str:
        """The path in the record itself of the field that judges see under this key."""
        return self.columns.get(key, key)


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))

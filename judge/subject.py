"""The record as rubrics see it, with its current text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from judge.digest import digest
from judge.records.base import at, hashed_json, own_fields
from judge.records.text import Shown, shown

if TYPE_CHECKING:
    from judge.backends.base import Prompt
    from judge.records import Record, Value

Kind = Literal["story", "norm", "extraction", "record", "pair", "exchange", "comparison"]
"""What a record is; workflows take the first four, calibration the others too."""


class Texts(Mapping[str, str]):
    """The texts of a record by field; what has no text is not there.

    Those of `contents` are shown where a rubric names no field. Any other field of `record`, or a
    path into one (`at`), has its text, too.
    """

    def __init__(self, contents: Mapping[str, Any], record: Mapping[str, Any] | None = None):
        self._contents, self._record = contents, record or {}
        self._shown: dict[str, Shown] = {}

    def shown(self, name: str) -> Shown:
        """A field as it is shown; KeyError where there is none."""
        if name not in self._shown:
            known = self._contents
            self._shown[name] = shown(known[name] if name in known else at(self._record, name))
        return self._shown[name]

    def refuse_ambiguous(self, names: Iterable[str]) -> None:
        """Raise LabelError where a name, or a path, leads to two fields."""
        for name in names:
            with suppress(KeyError):
                at(self._record, name)

    def __getitem__(self, name: str) -> str:
        if text := self.shown(name).text:
            return text
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._contents if self.shown(name).text)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __or__(self, other: Mapping[str, str]) -> Texts:
        """The same with these texts in the place of their fields'."""
        return Texts({**self._contents, **other}, self._record)


@dataclass(frozen=True, slots=True)
class Subject:
    """A record in the middle of its workflow.

    `texts` holds the fields that have a text, by typed name, and the record's further fields by
    their own names; a plain mapping becomes one. `values` are numbered from 1 in the order of the
    record, through all edits. `mark` fences the text in prompts and outlives edits too, so that a
    prompt's prefix stays the same up to the first edited word. `predicted` values stand numbered
    from 1 among the texts. `prompts` and `screened` keep what was made of this text.
    """

    id: str
    kind: Kind
    texts: Texts
    mark: str
    values: tuple[Value, ...] = ()
    characters: tuple[str, ...] = ()
    label: str | None = None
    predicted: tuple[str, ...] = ()
    prompts: dict[object, Prompt] = field(default_factory=dict, compare=False, repr=False)
    screened: dict[str, tuple[tuple[tuple[str, str], ...], str]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.texts, Texts):
            object.__setattr__(self, "texts", Texts(self.texts))

    @classmethod
    def of(cls, record: Record) -> Subject:
        typed, contents = record.typed, record.contents()
        values: tuple[Value, ...] = tuple(typed.get("values", ()))
        predicted: tuple[str, ...] = tuple(typed.get("predicted", ()))
        if predicted:
            contents["predicted"] = _numbered(predicted)
        fields = own_fields(record.item.shown)
        label = typed.get("label")
        if label is None and record.kind == "record":
            label = shown(fields.get("label")).text.strip().lower()
        plain, seed = hashed_json(record.fields)
        return cls(
            id=record.id,
            kind=record.kind,
            texts=Texts(contents, fields),
            mark=fence_mark(seed, [plain]),
            values=values,
            characters=tuple(typed.get("characters", ())),
            label=label or None,
            predicted=predicted,
        )

    @classmethod
    def of_texts(
        cls, id: str, kind: Kind, texts: Mapping[str, str], label: str | None = None
    ) -> Subject:
        """A subject out of texts alone, such as a pair of sentences; blank ones are left out."""
        filled = {name: text for name, text in texts.items() if text.strip()}
        mark = fence_mark(digest(filled), list(filled.values()))
        return cls(id, kind, Texts(filled), mark, label=label)

    @property
    def story(self) -> str:
        return self.texts["story"]

    @property
    def multiple(self) -> bool:
        """Whether each value belongs to one character (CQ-Bench's multiple attitude setting)."""
        return any(value.character is not None for value in self.values)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.values) + 1))

    def value(self, number: int) -> str:
        """The full text of the value with this number (from 1)."""
        return self.values[number - 1].text

    def about(self, number: int) -> str | None:
        """What a number asks about: a value's text, or None for the record (0)."""
        return self.values[number - 1].text if number else None

    def numbered(self, values: Collection[str]) -> tuple[int, ...]:
        """The numbers of the values with these texts."""
        return tuple(n for n, one in enumerate(self.values, 1) if one.text in values)

    def with_text(self, field: str, text: str) -> Subject:
        return replace(self, texts=self.texts | {field: text}, prompts={})

    def with_first_predicted(self, count: int) -> Subject:
        """The same with the first `count` predicted values (at least one) alone."""
        if len(self.predicted) <= count:
            return self
        kept = self.predicted[:count]
        texts = self.texts | {"predicted": _numbered(kept)}
        return replace(self, texts=texts, predicted=kept, prompts={})

    def lacks(self, fields: Iterable[str]) -> tuple[str, ...]:
        """Which of these fields have nothing to show, as messages have it: `email` where there is
        no such field, `text in email` where it is empty, `text in photo (image not shown)`."""
        lacking = (self._lack(name) for name in fields)
        return tuple(name for name in lacking if name is not None)

    def _lack(self, name: str) -> str | None:
        if name in self.texts or self._typed(name):
            return None
        if not self.has(name):
            return name
        omitted = ", ".join(self.texts.shown(name).omitted)
        return f"text in {name}" + (f" ({omitted} not shown)" if omitted else "")

    def has(self, name: str) -> bool:
        """Whether the record has this field, also where it is empty."""
        try:
            self.texts.shown(name)
        except KeyError:
            return self._typed(name)
        return True

    def _typed(self, name: str) -> bool:
        return bool(self.values if name == "values" else self.label if name == "label" else ())

    def as_mapping(self) -> dict[str, Any]:
        """The record as plain data, for scripted judges."""
        return {
            **self.texts,
            "values": [value.text for value in self.values],
            "characters": list(self.characters),
            "label": self.label,
            "predicted": list(self.predicted),
        }


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def fence_mark(seed: str, texts: Sequence[str]) -> str:
    """8 hex digits that none of the texts holds; `seed` is a hash of them, in hex digits."""
    mark = seed[:8]
    while any(mark in text for text in texts):
        mark = digest(mark.encode() + seed.encode(), 4)
    return mark

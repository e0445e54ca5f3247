"""What CQ-Bench's data sets are built from: validated stories and released ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.evaluation.cqbench_options import folded
from judge.records import RESERVED, BadValueError, Item, Problem, Record, StoryRecord, Value, build
from judge.records.fields import LabelError
from judge.records.jsontext import kind_of
from judge.records.names import normalise
from judge.records.values import clip, parse_values
from judge.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Story:
    """A story whose values were validated.

    `values` are those it carries; `original` those it was written for, dropped ones included;
    `contradicted` are values that somebody in the story speaks against.
    """

    text: str
    setting: str | None
    values: tuple[Value, ...]
    original: tuple[Value, ...]
    contradicted: tuple[Value, ...]

    @property
    def multiple(self) -> bool:
        """Whether each value is one character's (CQ-Bench's multiple attitude setting)."""
        return any(value.character is not None for value in self.values)

    def is_contradicted(self, value: Value) -> bool:
        return any(_same(value, other) for other in self.contradicted)


def story_of(item: Item) -> Story:
    """The story of an output line of `judge validate`, or in CQ-Bench's released form.

    Of the first, `dropped` and `contradictions` under `judge` are read; of the second,
    `original_values` and `contradiction`, a mapping or list of values. A record with neither is
    taken as it stands.

    Raises:
        LabelError: it holds no story with values, or its validation rejected it for its length or
            did not come to an end.
    """
    record = build(item, "story")
    if isinstance(record, Problem):
        raise LabelError(record.message, record.field, record.type)
    data = record.data
    assert isinstance(data, StoryRecord), "built as a story"
    judged = record.fields.get(RESERVED)
    if judged is not None:
        _must_be_settled(judged)
        dropped, against = judged.get("dropped") or [], judged.get("contradictions") or []
        field = RESERVED
        texts = [found.get("value") if isinstance(found, dict) else found for found in against]
    else:
        field, texts = _released_contradictions(record)
        dropped = []
    named = any(value.character is not None for value in data.values)
    original = _originals(record, data) or (*data.values, *_values(dropped, RESERVED, named))
    # Characters of the multiple setting differ on purpose, and nobody checks them for it.
    contradicted = () if named else _values(texts, field, named)
    return Story(data.story, data.setting, tuple(data.values), original, contradicted)


def _must_be_settled(judged: Mapping[str, Any]) -> None:
    verdict = judged.get("verdict")
    if verdict in (Verdict.ERROR, Verdict.UNREADABLE):
        raise LabelError(f"its validation ended as {verdict}: validate it again", RESERVED)
    checks = [check for check in judged.get("checks") or [] if isinstance(check, dict)]
    for check in checks:
        if check.get("check") == "length" and check.get("verdict") == Verdict.FAIL:
            message = f"validation rejected it for its length ({check.get('reason')})"
            raise LabelError(message, RESERVED, "rejected")


def _released_contradictions(record: Record) -> tuple[str, list[Any]]:
    key = next((key for key in record.fields if normalise(key) == "contradiction"), None)
    content = record.fields[key] if key is not None else None
    if content is None or content == "":
        return "contradiction", []
    if not isinstance(content, Mapping | list):
        message = f"field {key!r} must be an object or a list of values, not {kind_of(content)}"
        raise LabelError(message, key)
    return str(key), list(content)


def _originals(record: Record, data: StoryRecord) -> tuple[Value, ...]:
    key = next((key for key in record.fields if normalise(key) == "originalvalues"), None)
    if key is None:
        return ()
    try:
        found = parse_values(record.fields[key], story=data.story, setting=data.setting)
    except BadValueError as error:
        raise LabelError(f"field {key!r} {error}", key) from error
    return tuple(found)


def _values(texts: Sequence[object], field: str, named: bool) -> tuple[Value, ...]:
    values = []
    for text in texts:
        if not isinstance(text, str):
            raise LabelError(f"field {field!r} names no value: {clip(text)}", field)
        try:
            values.append(Value.parse(text, named=named))
        except BadValueError as error:
            raise LabelError(f"field {field!r} {error}", field) from error
    return tuple(values)


def _same(one: Value, other: Value) -> bool:
    return _key(one) == _key(other)


def _key(value: Value) -> tuple[str, str]:
    return folded(value.statement), folded(value.attitude or "")

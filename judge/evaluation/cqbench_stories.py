"""What CQ-Bench's items are built from: validated stories, released stories, released questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.evaluation.cqbench_statements import parse_options
from judge.evaluation.cqbench_values import folded
from judge.evaluation.rows import Row
from judge.records import RESERVED, BadValueError, Problem, StoryRecord, Value, build
from judge.records.fields import LabelError, text_of
from judge.records.jsonfiles import kind_of
from judge.records.kinds import normalise, normalised
from judge.records.values import clip, parse_values
from judge.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Story:
    """A story whose values were validated.

    `values` are those it carries; `original` those it was written for, dropped ones included;
    `contradicted` are values that a speaker in the story contradicts.
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
        return _key(value) in map(_key, self.contradicted)


def story_of(row: Row) -> Story:
    """The story of an output line of `judge validate`, or in CQ-Bench's released form.

    Of the first, `dropped` and `contradictions` under `judge` are read; of the second,
    `original_values` and `contradiction`, a mapping or list of values. A record with neither is
    taken as it stands.

    Raises:
        LabelError: it holds no story with values, or its validation rejected it for its length or
            did not come to an end.
    """
    record = build(row.item, "story")
    if isinstance(record, Problem):
        raise LabelError(record.message, record.field, record.type)
    data = record.data
    assert isinstance(data, StoryRecord), "built as a story"
    named = any(value.character is not None for value in data.values)
    dropped: Sequence[object] = []
    judged = row.fields.get(RESERVED)
    if judged is not None:
        _must_be_settled(judged)
        dropped, against = judged.get("dropped") or [], judged.get("contradictions") or []
        field = RESERVED
        texts = [found.get("value") if isinstance(found, dict) else found for found in against]
    else:
        field, content = _spelt(row.fields, "contradiction")
        if content is not None and content != "" and not isinstance(content, Mapping | list):
            message = f"field {field!r} must be an object or a list of values"
            raise LabelError(f"{message}, not {kind_of(content)}", field)
        texts = list(content or [])
    key, content = _spelt(row.fields, "original_values")
    if content is not None:
        try:
            original = tuple(parse_values(content, story=data.story, setting=data.setting))
        except BadValueError as error:
            raise LabelError(f"field {key!r} {error}", key) from error
    else:
        original = (*data.values, *_values(dropped, RESERVED, named))
    # Characters of the multiple setting differ on purpose: no contradiction is sought there.
    contradicted = () if named else _values(texts, field, named)
    return Story(data.story, data.setting, tuple(data.values), original, contradicted)


def is_attitude(fields: Mapping[str, Any]) -> bool:
    """Whether a line holds questions of attitude detection: `story`, `questions`."""
    return {"story", "questions"} <= normalised(fields)


def is_selection(fields: Mapping[str, Any]) -> bool:
    """Whether a line holds a value selection: `story`, `options`, `values`."""
    return {"story", "options", "values"} <= normalised(fields)


def attitude_questions(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The questions of `{story, questions: [{name, value, options, "gold label"}]}`.

    A question is about one character where its `name` stands in the story; the released single
    questions carry other text there, or none.

    Raises:
        LabelError: a field is missing or of the wrong kind, or the gold label is no option.
    """
    story, questions = _text(fields, "story"), _spelt(fields, "questions")[1]
    if not isinstance(questions, list) or not questions:
        raise LabelError("field 'questions' must be a list of questions", "questions")
    made = []
    for number, question in enumerate(questions, 1):
        try:
            made.append(_question(story, question))
        except LabelError as error:
            raise LabelError(f"question {number}: {error}", "questions") from error
    return made


def selection(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The question of `{story, options, values}`, its options in their order.

    Raises:
        LabelError: a field is missing or of the wrong kind, an option stands twice, or a value is
            no option.
    """
    options, values = _texts(fields, "options"), _texts(fields, "values")
    places = {folded(option): option for option in options}
    if len(places) < len(options):
        raise LabelError("field 'options' has an option twice", "options")
    for value in values:
        if folded(value) not in places:
            raise LabelError(f"field 'values': {clip(value)} is none of the options", "values")
    gold = list(dict.fromkeys(places[folded(value)] for value in values))
    story = _text(fields, "story")
    return {"setting": "single", "story": story, "options": options, "gold": gold}


def _question(story: str, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise LabelError(f"must be an object, not {clip(content)}")
    statement, gold = _text(content, "value").strip(), _text(content, "gold label").strip()
    options = _texts(content, "options")
    right = next((option for option in options if folded(option) == folded(gold)), None)
    if right is None:
        raise LabelError(f"gold label {clip(gold)} is none of {', '.join(options)}")
    name = content.get("name")
    name = name.strip() if isinstance(name, str) else ""
    there = name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", story)
    return {
        "setting": "multiple" if there else "single",
        "story": story,
        **({"character": name} if there else {}),
        "statement": statement,
        "options": options,
        "gold": right,
    }


def _must_be_settled(judged: Mapping[str, Any]) -> None:
    verdict = judged.get("verdict")
    if verdict in (Verdict.ERROR, Verdict.UNREADABLE):
        raise LabelError(f"its validation ended as {verdict}: validate it again", RESERVED)
    checks = [check for check in judged.get("checks") or [] if isinstance(check, dict)]
    for check in checks:
        if check.get("check") == "length" and check.get("verdict") == Verdict.FAIL:
            message = f"validation rejected it for its length ({check.get('reason')})"
            raise LabelError(message, RESERVED, "rejected")


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


def _key(value: Value) -> tuple[str, str]:
    return folded(value.statement), folded(value.attitude or "")


def _spelt(fields: Mapping[str, Any], name: str) -> tuple[str, Any]:
    """The record's own spelling of a key, and what stands there; None where nothing does."""
    key = next((key for key in fields if normalise(key) == normalise(name)), name)
    return key, fields.get(key)


def _text(fields: Mapping[str, Any], name: str) -> str:
    return text_of(fields, _spelt(fields, name)[0])


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:
    content = _spelt(fields, name)[1]
    found: object = content
    if isinstance(content, str):
        lines = content.splitlines()
        found = lines if len(lines) > 1 else parse_options(content)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise LabelError(f"field {name!r} must be a list of texts, not {clip(content)}", name)
    texts = [one.strip() for one in found if one.strip()]
    if not texts:
        raise LabelError(f"field {name!r} is empty", name)
    return texts

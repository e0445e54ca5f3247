"""CQ-Bench's released questions, already made: attitude detection and value selection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judge.evaluation.cqbench_options import folded
from judge.records import Item, parse_options
from judge.records.fields import LabelError, text_of
from judge.records.names import normalise, normalised
from judge.records.values import clip


def is_attitude(fields: Mapping[str, Any]) -> bool:
    """Whether a line holds questions of attitude detection: `story`, `questions`."""
    return {"story", "questions"} <= normalised(fields)


def is_selection(fields: Mapping[str, Any]) -> bool:
    """Whether a line holds a value selection: `story`, `options`, `values`."""
    return {"story", "options", "values"} <= normalised(fields)


def attitude_questions(item: Item) -> list[dict[str, Any]]:
    """The questions of `{story, questions: [{name, value, options, "gold label"}]}`.

    A question is about one character where its `name` stands in the story; the released single
    questions carry other text there, or none.

    Raises:
        LabelError: a field is missing or of the wrong kind, or the gold label is no option.
    """
    fields = item.fields or {}
    story, questions = text_of(fields, *_spelt(fields, "story")), _field(fields, "questions")
    if not isinstance(questions, list) or not questions:
        raise LabelError("field 'questions' must be a list of questions", "questions")
    return [_question(story, number, one) for number, one in enumerate(questions, 1)]


def selection(item: Item) -> dict[str, Any]:
    """The question of `{story, options, values}`, its options in their order.

    Raises:
        LabelError: a field is missing or of the wrong kind, an option stands twice, or a value is
            no option.
    """
    fields = item.fields or {}
    story = text_of(fields, *_spelt(fields, "story"))
    options, values = _texts(fields, "options"), _texts(fields, "values")
    places = {folded(option): option for option in options}
    if len(places) < len(options):
        raise LabelError("field 'options' has an option twice", "options")
    for value in values:
        if folded(value) not in places:
            raise LabelError(f"field 'values': {clip(value)} is none of the options", "values")
    gold = list(dict.fromkeys(places[folded(value)] for value in values))
    return {"setting": "single", "story": story, "options": options, "gold": gold}


def _question(story: str, number: int, content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise LabelError(f"question {number} must be an object, not {clip(content)}", "questions")
    try:
        statement, gold = (
            text_of(content, *_spelt(content, "value")).strip(),
            text_of(content, *_spelt(content, "gold label")).strip(),
        )
        options = _texts(content, "options")
    except LabelError as error:
        raise LabelError(f"question {number}: {error}", "questions") from error
    right = next((option for option in options if folded(option) == folded(gold)), None)
    if right is None:
        message = f"question {number}: gold label {clip(gold)} is none of {', '.join(options)}"
        raise LabelError(message, "questions")
    name = content.get("name")
    character = name.strip() if isinstance(name, str) and _stands(name.strip(), story) else None
    return {
        "setting": "multiple" if character else "single",
        "story": story,
        **({"character": character} if character else {}),
        "statement": statement,
        "options": options,
        "gold": right,
    }


def _stands(name: str, story: str) -> bool:
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", story) is not None


def _spelt(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The record's own spelling of a key, and the plain one for messages."""
    own = [key for key in fields if normalise(key) == normalise(name)]
    return (*own[:1], name)


def _field(fields: Mapping[str, Any], name: str) -> Any:
    key = _spelt(fields, name)[0]
    if key not in fields:
        raise LabelError(f"field {name!r} is missing", name)
    return fields[key]


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:
    content = _field(fields, name)
    if isinstance(content, str):
        lines = content.splitlines()
        found: Sequence[Any] = lines if len(lines) > 1 else parse_options(content)
    else:
        found = content
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise LabelError(f"field {name!r} must be a list of texts, not {clip(content)}", name)
    texts = [one.strip() for one in found if one.strip()]
    if not texts:
        raise LabelError(f"field {name!r} is empty", name)
    return texts

"""CQ-Bench's value files: statements, each with the attitudes that one can take to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from judge.records.base import Item, Problem
from judge.records.jsonfiles import kind_of
from judge.records.kinds import normalise

_NUMBER = re.compile(r"(?:^|(?<=\s))-?\d+[.):](?!\d)")
_BREAK = re.compile(r"[\n;|]|,(?!\d)")


class ValueStatement(BaseModel):
    """A statement of the World Values Survey and the attitudes to it, in their order and case."""

    model_config = ConfigDict(frozen=True)

    topic: str | None = None
    q_id: str | None = None
    statement: str
    options: list[str]


def parse_options(text: str) -> list[str]:
    """The attitudes in one text, `" 2. agree 3. Disagree "`, without their numbers.

    A text without numbers is split at newlines, bars, semicolons and commas.
    """
    parts = _NUMBER.split(text) if _NUMBER.search(text) else _BREAK.split(text)
    return [part.strip() for part in parts if part.strip()]


def value_statement(item: Item) -> ValueStatement | Problem:
    """The statement that an item of a value file holds, or what keeps it from being one."""
    if item.problem is not None or item.fields is None:
        return item.problem or Problem("there is no record")
    fields = {normalise(key): (key, content) for key, content in item.fields.items()}
    for name in ("qcontent", "option"):
        if name not in fields:
            return Problem("not an item of a list of values: it has no q_content and option")
    key, option = fields["option"]
    options = parse_options(option) if isinstance(option, str) else option
    if not isinstance(options, list) or not options:
        return Problem(f"field {key!r} must hold attitudes, not {kind_of(option)}", key)
    return _checked(fields, options)


def _checked(fields: Mapping[str, tuple[str, Any]], options: list[Any]) -> ValueStatement | Problem:
    key, statement = fields["qcontent"]
    if not isinstance(statement, str) or not statement.strip():
        return Problem(f"field {key!r} must be a text that is not empty", key)
    try:
        return ValueStatement(
            topic=_text(fields, "topic"),
            q_id=_text(fields, "qid"),
            statement=statement.strip(),
            options=options,
        )
    except ValidationError:
        return Problem(f"field {fields['option'][0]!r} must hold texts", fields["option"][0])


def _text(fields: Mapping[str, tuple[str, Any]], name: str) -> str | None:
    content = fields[name][1] if name in fields else None
    return None if content is None or content == "" else str(content)

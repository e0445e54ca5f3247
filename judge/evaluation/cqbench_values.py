"""CQ-Bench's values: value files, and the options that are drawn from them (2.2, A.1 to A.3)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.errors import UsageError
from judge.evidence import fold
from judge.records import Item, Value
from judge.records.base import clip
from judge.records.fields import LabelError, text_of
from judge.records.kinds import normalise

OPTIONS = 15
"""How many options a value selection has (CQ-Bench, section 2.2)."""

_NUMBER = re.compile(r"(?:^|(?<=\s))-?\d+[.):](?!\d)")

Pair = tuple[str, str]
"""A statement and an attitude to it."""


def folded(text: str) -> str:
    """A statement or attitude as it is compared: without case, spelling of quotes, final stop."""
    return fold(text).casefold().rstrip(". ")


def key_of(value: Value) -> Pair:
    """A value as it is compared: its statement and its attitude, folded."""
    return folded(value.statement), folded(value.attitude or "")


def spelt(fields: Mapping[str, Any], name: str) -> tuple[str, Any]:
    """The record's own spelling of a key, and what stands there; None where nothing does."""
    key = next((key for key in fields if normalise(key) == normalise(name)), name)
    return key, fields.get(key)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the World Values Survey and the attitudes to it, in their order and case."""

    text: str
    options: tuple[str, ...]
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class ValueList:
    """A value file: its statements by their folded text, in the order of the file."""

    name: str
    statements: Mapping[str, Statement]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of its statements, each once, in plain spelling."""
        named = (known.topic for known in self.statements.values())
        return tuple(dict.fromkeys(topic for topic in named if topic))

    def pair(self, value: Value) -> Pair:
        """The pair in the list's own spelling; LabelError: it has no such statement or attitude."""
        if (known := self.statements.get(folded(value.statement))) is not None:
            for option in known.options:
                if folded(option) == folded(value.attitude or ""):
                    return known.text, option
        told = f"no question can be made of {value.display!r}: {self.name} has no such statement"
        raise LabelError(f"{told} with such an attitude", "values")


def value_list(name: str, items: Iterable[Item]) -> ValueList:
    """Read a value file (topic, q_id, q_content, option).

    Raises:
        UsageError: a line that holds no statement, or a statement that stands twice with different
            attitudes; with file and line.
    """
    statements: dict[str, Statement] = {}
    for item in items:
        try:
            found = _statement(item)
        except LabelError as error:
            raise UsageError(f"{name}, line {item.line}: {error}") from None
        first = statements.setdefault(folded(found.text), found)
        if [folded(o) for o in first.options] != [folded(o) for o in found.options]:
            raise UsageError(
                f"{name}, line {item.line}: the statement {found.text!r} stood there before with "
                "other attitudes"
            )
    return ValueList(name, statements)


def _statement(item: Item) -> Statement:
    if item.fields is None:
        raise LabelError(item.problem.message if item.problem else "there is no record")
    key, option = spelt(item.fields, "option")
    options = parse_options(option) if isinstance(option, str) else option
    if not isinstance(options, list) or not options or not all(isinstance(o, str) for o in options):
        raise LabelError(f"field {key!r} must hold attitudes, not {clip(option)}", key)
    text = text_of(item.fields, spelt(item.fields, "q_content")[0]).strip()
    return Statement(text, tuple(options), tidy_topic(spelt(item.fields, "topic")[1]))


def parse_options(text: str) -> list[str]:
    """The attitudes in one text, `" 2. agree 3. Disagree "`, without their numbers."""
    return [part.strip() for part in _NUMBER.split(text) if part.strip()]


def tidy_topic(topic: object) -> str | None:
    """`  RELIGIOUS_VALUES` as `religious`; None for what is no text or blank."""
    if not isinstance(topic, str) or not topic.strip():
        return None
    plain = " ".join(topic.replace("_", " ").casefold().split())
    return plain.removesuffix(" values")


def selection(
    pool: ValueList,
    pairs: Sequence[Pair],
    rng: random.Random,
    contradicted: Sequence[Value] = (),
    absent: Sequence[Value] = (),
) -> dict[str, list[str]]:
    """`OPTIONS` values in random order with the gold ones among them, and the gold ones.

    The others are drawn from the pool without repetition: never a gold value (CQ-Bench, section
    2.2), nor one that the story was written for and that is absent from it, as in the released
    script, and no attitude to a statement that a speaker in the story contradicts (appendix A.3).

    Raises:
        LabelError: the pool has too few pairs; how many there are.
    """
    gold = list(dict.fromkeys(pairs))
    barred = {(folded(statement), folded(attitude)) for statement, attitude in gold}
    barred |= set(map(key_of, absent))
    against = {folded(value.statement) for value in contradicted}
    free = [
        (known.text, option)
        for key, known in pool.statements.items()
        for option in known.options
        if key not in against and (key, folded(option)) not in barred
    ]
    needed = OPTIONS - len(gold)
    if not 0 <= needed <= len(free):
        others = f"{len(free)} other statement-attitude pairs"
        message = f"it has {len(gold)} values, and {pool.name} leaves {others}"
        raise LabelError(f"no selection of {OPTIONS} options can be made: {message}", "values")
    options = ["--".join(pair) for pair in (*gold, *rng.sample(free, needed))]
    rng.shuffle(options)
    return {"options": options, "gold": ["--".join(pair) for pair in gold]}

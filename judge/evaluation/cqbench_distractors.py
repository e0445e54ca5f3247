"""Value lists, and the options that a value selection offers beside the right ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judge.errors import UsageError
from judge.evaluation.cqbench_options import folded
from judge.records import Item, Problem, Value, ValueStatement, value_statement

OPTIONS = 15
"""How many options a value selection has (CQ-Bench, section 2.2)."""

Rule = Literal["paper", "released"]
Pair = tuple[str, str]
"""A statement and an attitude to it."""


class ShortPoolError(Exception):
    """There are fewer distractors than the options need."""


@dataclass(frozen=True, slots=True)
class ValueList:
    """A value file: its statements by their folded text, in the order of the file."""

    name: str
    statements: Mapping[str, ValueStatement]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of its statements, each once, in plain spelling."""
        named = (tidy_topic(known.topic) for known in self.statements.values())
        return tuple(dict.fromkeys(topic for topic in named if topic))

    @property
    def pairs(self) -> list[Pair]:
        """Every statement with every attitude to it."""
        return [(s.statement, option) for s in self.statements.values() for option in s.options]

    def topic(self, statement: str) -> str | None:
        known = self.statements.get(folded(statement))
        return tidy_topic(known.topic) if known else None

    def pair(self, value: Value) -> Pair | None:
        """The pair in the list's own spelling; None where it has no such statement or attitude."""
        known = self.statements.get(folded(value.statement))
        if known is None or value.attitude is None:
            return None
        held = folded(value.attitude)
        spelt = next((option for option in known.options if folded(option) == held), None)
        return None if spelt is None else (known.statement, spelt)


def tidy_topic(topic: str | None) -> str | None:
    """`  RELIGIOUS_VALUES` as `religious`."""
    if topic is None or not topic.strip():
        return None
    plain = " ".join(topic.replace("_", " ").casefold().split())
    return plain.removesuffix(" values")


def value_list(name: str, items: Iterable[Item]) -> ValueList:
    """Read a value file (topic, q_id, q_content, option).

    Raises:
        UsageError: a line that holds no statement, or a statement that stands twice with different
            attitudes; with file and line.
    """
    statements: dict[str, ValueStatement] = {}
    for item in items:
        found = value_statement(item)
        if isinstance(found, Problem):
            raise UsageError(f"{name}, line {item.line}: {found.message}")
        first = statements.setdefault(folded(found.statement), found)
        if [folded(o) for o in first.options] != [folded(o) for o in found.options]:
            raise UsageError(
                f"{name}, line {item.line}: the statement {found.statement!r} stood there before "
                "with other attitudes"
            )
    return ValueList(name, statements)


def list_of(lists: Sequence[ValueList], statements: Iterable[str]) -> ValueList | None:
    """The list that knows most of the statements, the first of equals; None without any list."""
    wanted = [folded(statement) for statement in statements]
    return max(lists, key=lambda known: sum(w in known.statements for w in wanted), default=None)


def distractors(
    pool: ValueList,
    gold: Sequence[Pair],
    rule: Rule,
    rng: random.Random,
    *,
    original: Sequence[Value] = (),
    contradicted: Sequence[Value] = (),
) -> list[Pair]:
    """As many pairs beside the gold ones as make `OPTIONS`, drawn at random without repetition.

    Never a gold value (CQ-Bench, section 2.2), and no attitude to a statement that somebody in the
    story contradicts (appendix A.3). Rule `released`, that of the authors' script, leaves out the
    values that the story was written for and that validation dropped, too; by the paper's rule
    they are values that the story does not carry, like any other.

    Args:
        gold: the right options.
        original: the values that the story was written for; read under `released` alone.
        contradicted: the values that somebody in the story speaks against.

    Raises:
        ShortPoolError: the list has too few pairs; how many there are and are needed.
    """
    barred = {_key(pair) for pair in gold}
    if rule == "released":
        barred |= {_key((value.statement, value.attitude or "")) for value in original}
    statements = {folded(value.statement) for value in contradicted}
    free = [p for p in pool.pairs if _key(p) not in barred and folded(p[0]) not in statements]
    needed = OPTIONS - len(gold)
    if needed < 0:
        raise ShortPoolError(f"it has {len(gold)} values, and a selection offers {OPTIONS} options")
    if len(free) < needed:
        raise ShortPoolError(
            f"{pool.name} leaves {len(free)} other statement-attitude pairs, {needed} are needed "
            f"to make {OPTIONS} options"
        )
    return rng.sample(free, needed)


def _key(pair: Pair) -> Pair:
    return folded(pair[0]), folded(pair[1])

"""CQ-Bench's values: attitudes and how they compare, value files, options beside the right ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.evaluation.cqbench_statements import ValueStatement, value_statement
from judge.evidence import fold
from judge.records import Item, Problem, Value
from judge.records.fields import LabelError

OPTIONS = 15
"""How many options a value selection has (CQ-Bench, section 2.2)."""

SEVERITY: tuple[tuple[str, str], ...] = (
    ("very frequently", "quite frequently"),
    ("not frequently", "not at all frequently"),
    ("not often", "not at all often"),
    ("definitely should have the right", "probably should have the right"),
    ("definitely should not have the right", "probably should not have the right"),
)
"""Attitudes that differ only in severity: what the "merged" figures take as one.

CQ-Bench, section 3.2 and table 2, name two of them; the whole list is that of the authors' released
evaluation script. Scales outside it (`very important`, `not at all`) stay apart there and here.
"""

NEUTRAL = frozenset(
    {
        "neither agree nor disagree",
        "neither disagree nor agree",
        "neither agree or disagree",
        "neither agree/disagree",
        "hard to say",
        "neutral",
    }
)
"""The stance between agreeing and disagreeing, in the spellings of the released value files.

CQ-Bench, appendix B.1, speaks of `neither agree nor disagree`; `hard to say` is the middle of the
scale of World Values Survey questions 122 to 129.
"""

_GROUP = {attitude: " / ".join(group) for group in SEVERITY for attitude in group}

Pair = tuple[str, str]
"""A statement and an attitude to it."""


def folded(text: str) -> str:
    """A statement or attitude as it is compared: without case, spelling of quotes, final stop."""
    return fold(text).casefold().rstrip(". ")


def merged(attitude: str) -> str:
    """The attitude, folded, or the group of severities that it belongs to."""
    plain = folded(attitude)
    return _GROUP.get(plain, plain)


def is_neutral(attitude: str) -> bool:
    """Whether it is the stance between the two sides."""
    return folded(attitude) in NEUTRAL


def shown(pair: Pair) -> str:
    """The pair as an option."""
    return f"{pair[0]}--{pair[1]}"


def tidy_topic(topic: object) -> str | None:
    """`  RELIGIOUS_VALUES` as `religious`; None for what is no text or blank."""
    if not isinstance(topic, str) or not topic.strip():
        return None
    plain = " ".join(topic.replace("_", " ").casefold().split())
    return plain.removesuffix(" values")


# ------------------------------------------------------------ value files


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
        wanted = folded(value.attitude)
        spelt = next((option for option in known.options if folded(option) == wanted), None)
        return None if spelt is None else (known.statement, spelt)


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
    rng: random.Random,
    contradicted: Sequence[Value] = (),
) -> list[Pair]:
    """As many pairs beside the gold ones as make `OPTIONS`, drawn at random without repetition.

    Never a gold value (CQ-Bench, section 2.2), and no attitude to a statement that a speaker in the
    story contradicts (appendix A.3). Values that validation dropped are values that the story does
    not carry, like any other.

    Args:
        gold: the right options.
        contradicted: the values that a speaker in the story contradicts.

    Raises:
        LabelError: the list has too few pairs; how many there are and are needed.
    """
    barred = {_key(pair) for pair in gold}
    statements = {folded(value.statement) for value in contradicted}
    free = [p for p in pool.pairs if _key(p) not in barred and folded(p[0]) not in statements]
    needed = OPTIONS - len(gold)
    no = "no selection can be made of it"
    if needed < 0:
        message = f"{no}: it has {len(gold)} values, and a selection offers {OPTIONS} options"
        raise LabelError(message, "values")
    if len(free) < needed:
        message = (
            f"{no}: {pool.name} leaves {len(free)} other statement-attitude pairs, {needed} are "
            f"needed to make {OPTIONS} options"
        )
        raise LabelError(message, "values")
    return rng.sample(free, needed)


def _key(pair: Pair) -> Pair:
    return folded(pair[0]), folded(pair[1])


# ------------------------------------------------------------ selections


def hits(given: Sequence[str], gold: Sequence[str]) -> tuple[int, int, int]:
    """How many right options were given, of how many given, of how many right ones.

    Case, blanks and repetition do not count. F1, the harmonic mean of precision and recall, is
    2 hits / (given + right).
    """
    found, right = {folded(text) for text in given}, {folded(text) for text in gold}
    return len(found & right), len(found), len(right)

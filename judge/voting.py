"""From votes to what they come to, and when no further vote can change it.

A vote says `pass` or `fail`, or one of a rubric's answers (from the best to the worst) where those
count for themselves; or it is undecided: `abstain`, `unreadable`, `error`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Literal

Rule = Literal["majority", "unanimous", "any"]

PASS_OR_FAIL = ("pass", "fail")
_UNDECIDED = ("abstain", "unreadable", "error")


def decide(
    said: Sequence[str], asked: int, rule: Rule = "majority", answers: Sequence[str] = PASS_OR_FAIL
) -> str:
    """What `said` comes to, out of `asked` votes: one of `answers`, or one of the undecided.

    Lost votes count as asked. `answers` stand from the best to the worst.

    - `majority`: what more than half of the votes asked say; else `abstain`.
    - `unanimous`: what every vote asked says; else `abstain`.
    - `any`: the worst answer that one vote gave (for pass and fail: `fail` as soon as one vote
      fails, the rule of CQ-Bench's released script); the best if every vote asked gave it; else
      `abstain`.

    With no readable vote at all it is `error` if any vote is, else `unreadable`.

    Raises:
        ValueError: fewer than one vote asked, or more said than that.
    """
    if asked < 1 or len(said) > asked:
        raise ValueError(f"{len(said)} opinions of {asked} votes asked")
    return (*answers, *_UNDECIDED)[_decide(_counts(said, answers), asked, rule)]


def settled(
    said: Sequence[str], asked: int, rule: Rule = "majority", answers: Sequence[str] = PASS_OR_FAIL
) -> bool:
    """Whether the votes still to come give the same outcome whatever they say."""
    return _settled(_counts(said, answers), asked, rule)


def needed(
    said: Sequence[str], asked: int, rule: Rule = "majority", answers: Sequence[str] = PASS_OR_FAIL
) -> int:
    """The least number of further votes, each one of `answers`, that could settle the matter.

    0 when it is settled. Asking so many at once never asks a vote too many, unless votes abstain.
    """
    return _needed(_counts(said, answers), asked, rule)


_Counts = tuple[int, ...]
"""How many votes say each answer, from the best on, then how many abstain, are unreadable, lost."""


def _counts(said: Sequence[str], answers: Sequence[str]) -> _Counts:
    return tuple(map(said.count, (*answers, *_UNDECIDED)))


@lru_cache(maxsize=4096)
def _decide(counts: _Counts, asked: int, rule: Rule) -> int:
    """The place in the counts of what the votes come to."""
    *said, abstained, _, errors = counts
    abstain, unreadable, error = range(len(said), len(counts))
    if not sum(said) + abstained:
        return error if errors else unreadable
    if rule == "any" and any(said[1:]):
        return max(place for place, count in enumerate(said) if count)
    bar = asked // 2 if rule == "majority" else asked - 1
    return next((place for place, count in enumerate(said) if count > bar), abstain)


@lru_cache(maxsize=4096)
def _settled(counts: _Counts, asked: int, rule: Rule) -> bool:
    # Under each rule, any outcome that a mixture of the missing votes can bring, missing votes
    # that all say the same can bring too; so there are few ends to look at, not every mixture.
    missing = asked - sum(counts)
    ends = {_decide(_with(counts, place, missing), asked, rule) for place in range(len(counts))}
    return len(ends) == 1


@lru_cache(maxsize=4096)
def _needed(counts: _Counts, asked: int, rule: Rule) -> int:
    answers = range(len(counts) - len(_UNDECIDED))
    for more in range(asked - sum(counts)):
        for come in combinations_with_replacement(answers, more):
            after = tuple(count + come.count(place) for place, count in enumerate(counts))
            if _settled(after, asked, rule):
                return more
    return asked - sum(counts)


def _with(counts: _Counts, place: int, more: int) -> _Counts:
    return (*counts[:place], counts[place] + more, *counts[place + 1 :])

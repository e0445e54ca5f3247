"""From votes to a verdict, and when no further vote can change it.

Votes are counted as pass or fail, or by their answers (from the best to the worst of them) where a
rubric's answers count for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Literal

from judge.verdict import Verdict, Vote

Rule = Literal["majority", "unanimous", "any"]

PASS_OR_FAIL: tuple[str, ...] = (Verdict.PASS, Verdict.FAIL)
_UNDECIDED = (Verdict.ABSTAIN, Verdict.UNREADABLE, Verdict.ERROR)


def decide(opinions: Sequence[Verdict], asked: int, rule: Rule = "majority") -> Verdict:
    """The verdict of `opinions`, out of `asked` votes (lost votes count as asked).

    - `majority`: what more than half of the votes asked say; else `abstain`.
    - `unanimous`: what every vote asked says; else `abstain`.
    - `any`: `fail` as soon as one vote fails (the rule of CQ-Bench's released script); `pass` if
      every vote asked passes; else `abstain`.

    With no readable vote at all the verdict is `error` if any vote is, else `unreadable`.

    Raises:
        ValueError: fewer than one vote asked, or more opinions than that.
    """
    return Verdict(decide_among(opinions, asked, rule, PASS_OR_FAIL))


def decide_among(
    opinions: Sequence[str], asked: int, rule: Rule, answers: Sequence[str] = PASS_OR_FAIL
) -> str:
    """What `opinions` come to: one of `answers`, or `abstain`, `unreadable` or `error`.

    As `decide`, with `answers`, from the best to the worst, in the place of pass and fail. Under
    `any` the worst answer that was given stands, the best one only if every vote asked gave it.

    Raises:
        ValueError: as `decide`.
    """
    if asked < 1 or len(opinions) > asked:
        raise ValueError(f"{len(opinions)} opinions of {asked} votes asked")
    return (*answers, *_UNDECIDED)[_decide(_counts(opinions, answers), asked, rule)]


def settled(
    opinions: Sequence[str],
    asked: int,
    rule: Rule = "majority",
    answers: Sequence[str] = PASS_OR_FAIL,
) -> bool:
    """Whether every way in which the votes still to come may turn out gives the same verdict."""
    return _settled(_counts(opinions, answers), asked, rule)


def needed(
    opinions: Sequence[str],
    asked: int,
    rule: Rule = "majority",
    answers: Sequence[str] = PASS_OR_FAIL,
) -> int:
    """The least number of further votes, each one of `answers`, that could settle the matter.

    0 when it is settled. Asking so many at once never asks a vote too many, unless votes abstain.
    """
    return _needed(_counts(opinions, answers), asked, rule)


def opinions_on(subject: int, votes: Iterable[Vote]) -> list[Verdict]:
    """What each vote says of one value (0: the record); a lost vote counts as what it is.

    A vote that speaks of other values only was not asked about this one.
    """
    return [
        vote.opinions.get(subject, vote.verdict)
        for vote in votes
        if subject in vote.opinions or not vote.opinions
    ]


def answers_on(subject: int, votes: Iterable[Vote]) -> list[str]:
    """`opinions_on`, with the answer in the place of pass and fail."""
    return [
        vote.answers.get(subject, vote.opinions.get(subject, vote.verdict))
        for vote in votes
        if subject in vote.opinions or not vote.opinions
    ]


def tally(
    votes: Sequence[Vote], subjects: Sequence[int], asked: int, rule: Rule
) -> Mapping[int, Verdict]:
    """The verdict for each value (or for the record, 0) by strict vote counting."""
    return {s: _verdict(tuple(opinions_on(s, votes)), asked, rule) for s in subjects}


# Most values of a record get the same opinions, and so do most records.
_verdict = lru_cache(maxsize=4096)(decide)


_Counts = tuple[int, ...]
"""How many votes say each answer, from the best on, then how many abstain, are unreadable, lost."""


def _counts(opinions: Sequence[str], answers: Sequence[str]) -> _Counts:
    return tuple(map(opinions.count, (*answers, *_UNDECIDED)))


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
    # Under each rule, whatever verdict some mixture of the missing votes can bring, missing votes
    # that all say one thing can bring too; so there are few ends to look at, not every mixture.
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

"""From votes to a verdict, and when no further vote can change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from judge.verdict import Verdict, Vote

Rule = Literal["majority", "unanimous", "any"]

_OUTCOMES = (Verdict.PASS, Verdict.FAIL, Verdict.ABSTAIN, Verdict.UNREADABLE, Verdict.ERROR)


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
    if asked < 1 or len(opinions) > asked:
        raise ValueError(f"{len(opinions)} opinions of {asked} votes asked")
    return _decide(_counts(opinions), asked, rule)


def settled(opinions: Sequence[Verdict], asked: int, rule: Rule = "majority") -> bool:
    """Whether every way in which the votes still to come may turn out gives the same verdict."""
    return _settled(_counts(opinions), asked, rule)


def needed(opinions: Sequence[Verdict], asked: int, rule: Rule = "majority") -> int:
    """The least number of further votes, each a pass or a fail, that could settle the matter.

    0 when it is settled. Asking so many at once never asks a vote too many, unless votes abstain.
    """
    return _needed(_counts(opinions), asked, rule)


def opinions_on(subject: int, votes: Iterable[Vote]) -> list[Verdict]:
    """What each vote says of one value (0: the record); a lost vote counts as what it is.

    A vote that speaks of other values only was not asked about this one.
    """
    return [
        vote.opinions.get(subject, vote.verdict)
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


def _counts(opinions: Sequence[Verdict]) -> _Counts:
    return tuple(map(opinions.count, _OUTCOMES))


@lru_cache(maxsize=4096)
def _decide(counts: _Counts, asked: int, rule: Rule) -> Verdict:
    passed, failed, abstained, _, errors = counts
    if not passed + failed + abstained:
        return Verdict.ERROR if errors else Verdict.UNREADABLE
    if rule == "any" and failed:
        return Verdict.FAIL
    bar = asked // 2 if rule == "majority" else asked - 1
    if passed > bar:
        return Verdict.PASS
    if failed > bar and rule != "any":
        return Verdict.FAIL
    return Verdict.ABSTAIN


@lru_cache(maxsize=4096)
def _settled(counts: _Counts, asked: int, rule: Rule) -> bool:
    # Under each rule, whatever verdict some mixture of the missing votes can bring, missing votes
    # that all say one thing can bring too; so there are five ends to look at, not every mixture.
    missing = asked - sum(counts)
    ends = {_decide(_with(counts, place, missing), asked, rule) for place in range(len(counts))}
    return len(ends) == 1


@lru_cache(maxsize=4096)
def _needed(counts: _Counts, asked: int, rule: Rule) -> int:
    for more in range(asked - sum(counts)):
        for passes in range(more + 1):
            after = _with(_with(counts, 0, passes), 1, more - passes)
            if _settled(after, asked, rule):
                return more
    return asked - sum(counts)


def _with(counts: _Counts, place: int, more: int) -> _Counts:
    return (*counts[:place], counts[place] + more, *counts[place + 1 :])

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import pytest

from judge.verdict import (
    Verdict,
    decide,
    needed,
    settled,
)

P, F, A, U, E = Verdict.PASS, Verdict.FAIL, Verdict.ABSTAIN, Verdict.UNREADABLE, Verdict.ERROR
EVERY = (P, F, A, U, E)


@pytest.mark.parametrize(
    ("votes", "asked", "verdict"),
    [
        ([P], 1, P),
        ([P, P, F], 3, P),
        ([F, P, F], 3, F),
        ([P, F], 2, A),
        ([P, P, F, F], 4, A),
        ([P, F, U], 3, A),
        ([P, P, U], 3, P),
        ([P, U, U], 3, A),
        ([P, P], 4, A),
        ([U, U, U], 3, U),
        ([U, E, U], 3, E),
        ([A, U, E], 3, A),
    ],
)
def test_the_verdict_of_votes(votes: list[Verdict], asked: int, verdict: Verdict) -> None:
    assert decide(votes, asked) == verdict


def test_more_opinions_than_votes_asked_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 opinions of 1"):
        decide([P, P], 1)
    with pytest.raises(ValueError, match="0 opinions of 0"):
        decide([], 0)


def reachable(votes: Sequence[Verdict], asked: int) -> set[str]:
    """Every verdict that some completion of the votes brings, by trying them all."""
    rest = combinations_with_replacement(EVERY, asked - len(votes))
    return {decide([*votes, *more], asked) for more in rest}


@pytest.mark.parametrize("asked", range(1, 8))
def test_settled_means_that_no_missing_vote_can_change_the_verdict(asked: int) -> None:
    for count in range(asked + 1):
        for votes in combinations_with_replacement(EVERY, count):
            ends = reachable(votes, asked)
            assert settled(votes, asked) is (len(ends) == 1), votes


@pytest.mark.parametrize("asked", range(1, 8))
def test_needed_is_the_least_number_that_can_settle(asked: int) -> None:
    for count in range(asked + 1):
        for votes in combinations_with_replacement(EVERY, count):
            more = needed(votes, asked)
            assert (more == 0) is settled(votes, asked)
            assert count + more <= asked
            for fewer in range(more):
                for come in combinations_with_replacement((P, F), fewer):
                    assert not settled([*votes, *come], asked), (votes, come)


@pytest.mark.parametrize("asked", range(1, 8))
def test_asking_until_settled_gives_the_verdict_of_all_votes(asked: int) -> None:
    # With seven votes there are 78,125 patterns; three outcomes hold every way they differ in.
    outcomes = EVERY if asked < 6 else (P, F, U)
    for pattern in product(outcomes, repeat=asked):
        cast = 0
        while not settled(pattern[:cast], asked):
            more = needed(pattern[:cast], asked)
            assert more >= 1
            cast += more
        assert decide(pattern[:cast], asked) == decide(pattern, asked), pattern


GRADES = ("fully", "partially", "absent")


@pytest.mark.parametrize("asked", range(1, 6))
def test_asking_by_answers_until_settled_gives_what_all_votes_give(asked: int) -> None:
    for pattern in product((*GRADES, A, U), repeat=asked):
        cast = 0
        while not settled(pattern[:cast], asked, GRADES):
            more = needed(pattern[:cast], asked, GRADES)
            assert more >= 1
            cast += more
        early = decide(pattern[:cast], asked, GRADES)
        assert early == decide(pattern, asked, GRADES), pattern


def test_large_panels_are_decided_at_once() -> None:
    assert not settled([P] * 10, 199)
    assert settled([P] * 100, 199)
    assert 1 <= needed([], 199) <= 100

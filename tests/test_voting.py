from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from typing import get_args

import pytest

from judge.verdict import Verdict
from judge.voting import (
    Rule,
    decide,
    needed,
    settled,
)

P, F, A, U, E = Verdict.PASS, Verdict.FAIL, Verdict.ABSTAIN, Verdict.UNREADABLE, Verdict.ERROR
EVERY = (P, F, A, U, E)
RULES: tuple[Rule, ...] = get_args(Rule)


@pytest.mark.parametrize(
    ("votes", "asked", "rule", "verdict"),
    [
        ([P], 1, "majority", P),
        ([P, P, F], 3, "majority", P),
        ([F, P, F], 3, "majority", F),
        ([P, F], 2, "majority", A),
        ([P, P, F, F], 4, "majority", A),
        ([P, F, U], 3, "majority", A),
        ([P, P, U], 3, "majority", P),
        ([P, U, U], 3, "majority", A),
        ([P, P], 4, "majority", A),
        ([U, U, U], 3, "majority", U),
        ([U, E, U], 3, "majority", E),
        ([A, U, E], 3, "majority", A),
        ([P, P, P], 3, "unanimous", P),
        ([F, F, F], 3, "unanimous", F),
        ([P, P, F], 3, "unanimous", A),
        ([P, P, U], 3, "unanimous", A),
        ([P, P, F], 3, "any", F),
        ([U, U, F], 3, "any", F),
        ([P, P, P], 3, "any", P),
        ([P, P, U], 3, "any", A),
        ([E, E], 2, "any", E),
    ],
)
def test_the_verdict_of_votes(
    votes: list[Verdict], asked: int, rule: Rule, verdict: Verdict
) -> None:
    assert decide(votes, asked, rule) == verdict


def test_more_opinions_than_votes_asked_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 opinions of 1"):
        decide([P, P], 1)
    with pytest.raises(ValueError, match="0 opinions of 0"):
        decide([], 0)


def reachable(votes: Sequence[Verdict], asked: int, rule: Rule) -> set[str]:
    """Every verdict that some completion of the votes brings, by trying them all."""
    rest = combinations_with_replacement(EVERY, asked - len(votes))
    return {decide([*votes, *more], asked, rule) for more in rest}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("asked", range(1, 8))
def test_settled_means_that_no_missing_vote_can_change_the_verdict(asked: int, rule: Rule) -> None:
    for count in range(asked + 1):
        for votes in combinations_with_replacement(EVERY, count):
            ends = reachable(votes, asked, rule)
            assert settled(votes, asked, rule) is (len(ends) == 1), votes


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("asked", range(1, 8))
def test_needed_is_the_least_number_that_can_settle(asked: int, rule: Rule) -> None:
    for count in range(asked + 1):
        for votes in combinations_with_replacement(EVERY, count):
            more = needed(votes, asked, rule)
            assert (more == 0) is settled(votes, asked, rule)
            assert count + more <= asked
            for fewer in range(more):
                for come in combinations_with_replacement((P, F), fewer):
                    assert not settled([*votes, *come], asked, rule), (votes, come)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("asked", range(1, 8))
def test_asking_until_settled_gives_the_verdict_of_all_votes(asked: int, rule: Rule) -> None:
    # With seven votes there are 78,125 patterns; three outcomes hold every way they differ in.
    outcomes = EVERY if asked < 6 else (P, F, U)
    for pattern in product(outcomes, repeat=asked):
        cast = 0
        while not settled(pattern[:cast], asked, rule):
            more = needed(pattern[:cast], asked, rule)
            assert more >= 1
            cast += more
        assert decide(pattern[:cast], asked, rule) == decide(pattern, asked, rule), pattern


GRADES = ("fully", "partially", "absent")


@pytest.mark.parametrize(
    ("votes", "asked", "rule", "comes_to"),
    [
        (["partially"], 1, "majority", "partially"),
        (["fully", "absent", "absent"], 3, "majority", "absent"),
        (["fully", "partially", "absent"], 3, "majority", A),
        (["fully", "fully", U], 3, "majority", "fully"),
        (["fully", U, U], 3, "majority", A),
        ([U, E], 2, "majority", E),
        (["partially", "partially"], 2, "unanimous", "partially"),
        (["partially", "absent"], 2, "unanimous", A),
        (["fully", "partially", "absent"], 3, "any", "absent"),
        (["fully", "partially", "fully"], 3, "any", "partially"),
        (["fully", "fully", U], 3, "any", A),
        (["fully", "fully"], 2, "any", "fully"),
    ],
)
def test_what_votes_by_answers_come_to(
    votes: list[str], asked: int, rule: Rule, comes_to: str
) -> None:
    assert decide(votes, asked, rule, GRADES) == comes_to


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("asked", range(1, 6))
def test_asking_by_answers_until_settled_gives_what_all_votes_give(asked: int, rule: Rule) -> None:
    for pattern in product((*GRADES, A, U), repeat=asked):
        cast = 0
        while not settled(pattern[:cast], asked, rule, GRADES):
            more = needed(pattern[:cast], asked, rule, GRADES)
            assert more >= 1
            cast += more
        early = decide(pattern[:cast], asked, rule, GRADES)
        assert early == decide(pattern, asked, rule, GRADES), pattern


@pytest.mark.parametrize("rule", RULES)
def test_large_panels_are_decided_at_once(rule: Rule) -> None:
    assert not settled([P] * 10, 199, rule)
    assert settled([P] * 100, 199, "majority")
    assert 1 <= needed([], 199, rule) <= 100

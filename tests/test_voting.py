from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import pytest

from judge.verdict import Verdict
from judge.voting import Opinion, decide, needed

P, F, A, U, E = (
    (verdict, None)
    for verdict in (
        Verdict.PASS,
        Verdict.FAIL,
        *(Verdict.ABSTAIN, Verdict.UNREADABLE),
        Verdict.ERROR,
    )
)


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
def test_the_verdict_of_votes(votes: list[Opinion], asked: int, verdict: Opinion) -> None:
    assert decide(votes, asked) == verdict


def test_more_opinions_than_votes_asked_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 opinions of 1"):
        decide([P, P], 1)
    with pytest.raises(ValueError, match="0 opinions of 0"):
        decide([], 0)


GRADES = tuple((Verdict.ANSWERED, name) for name in ("fully", "error", "abstain"))
LOST = (A, U, E)


def reachable(votes: Sequence[Opinion], asked: int, answers: Sequence[Opinion]) -> set[Opinion]:
    """Every verdict that some completion of the votes leads to, by brute force."""
    rest = combinations_with_replacement((*answers, *LOST), asked - len(votes))
    return {decide([*votes, *more], asked) for more in rest}


@pytest.mark.parametrize("answers", [(P, F), GRADES])
@pytest.mark.parametrize("asked", range(1, 6))
def test_needed_is_the_least_number_of_votes_that_can_settle(
    asked: int, answers: Sequence[Opinion]
) -> None:
    for count in range(asked + 1):
        for votes in combinations_with_replacement((*answers, *LOST), count):
            more = needed(votes, asked, len(answers))
            assert (more == 0) is (len(reachable(votes, asked, answers)) == 1), votes
            ends = [
                len(reachable([*votes, *come], asked, answers))
                for come in combinations_with_replacement(answers, more)
            ]
            assert 1 in ends, f"{votes}: {more} votes can settle it"
            for come in combinations_with_replacement(answers, max(0, more - 1)):
                assert not more or len(reachable([*votes, *come], asked, answers)) > 1, votes


def test_large_panels_are_decided_at_once() -> None:
    assert needed([P] * 10, 199) == 90
    assert needed([P] * 100, 199) == 0
    assert needed([], 199) == 100

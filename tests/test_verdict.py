from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.verdict import (
    Check,
    Edit,
    Extraction,
    Finding,
    Judgement,
    Usage,
    Verdict,
    Vote,
    gravest,
)

GRAVITY = [Verdict.ERROR, Verdict.FAIL, Verdict.UNREADABLE, Verdict.ABSTAIN, Verdict.PASS]


@given(st.lists(st.sampled_from(list(Verdict))))
def test_one_verdict_for_many_is_the_gravest_and_skipped_says_nothing(
    verdicts: list[Verdict],
) -> None:
    said = [v for v in verdicts if v is not Verdict.SKIPPED]
    expected = min(said, key=GRAVITY.index) if said else Verdict.ABSTAIN
    assert gravest(verdicts) is expected


@pytest.mark.parametrize("pair", list(permutations(GRAVITY, 2)))
def test_order_never_matters(pair: tuple[Verdict, Verdict]) -> None:
    assert gravest(pair) is gravest(reversed(pair)) is min(pair, key=GRAVITY.index)


def test_nothing_is_never_a_pass() -> None:
    assert gravest([]) is Verdict.ABSTAIN
    assert gravest([Verdict.SKIPPED]) is Verdict.ABSTAIN
    assert gravest([Verdict.SKIPPED, Verdict.PASS]) is Verdict.PASS


def test_usage_adds_up_and_an_unknown_cost_stays_unknown() -> None:
    one, two = Usage(1, 10, 5, 0.25), Usage(2, 20, 6, 0.5)
    assert one + two == Usage(3, 30, 11, 0.75)
    assert (one + Usage(1, 1, 1, None)).cost_usd is None
    assert sum([one, two], Usage()) == Usage(3, 30, 11, 0.75)
    assert Usage().as_json()["cost_usd"] is None
    assert Usage(1, 1, 1, 0.0).as_json()["cost_usd"] == 0.0
    assert Usage(1, 1, 1, 1 / 3).as_json()["cost_usd"] == 0.33333333


def test_a_check_uses_what_its_votes_used_lost_ones_too() -> None:
    votes = tuple(
        Vote(verdict, "m:x", 0, 0.0, {}, usage=Usage(2, 7, 3, None))
        for verdict in (Verdict.PASS, Verdict.UNREADABLE)
    )
    assert Check("relevance", Verdict.ABSTAIN, votes=votes).usage == Usage(4, 14, 6, None)


def test_what_a_finding_does_not_know_is_left_out() -> None:
    assert Finding(Verdict.PASS, number=3).as_json() == {"verdict": "pass"}
    assert Finding(Verdict.PASS, predicted=(1, 3)).as_json()["predicted"] == [1, 3]
    full = Finding(Verdict.FAIL, "v--Agree", "Ann", "no", "yes", "r", 0.12345678)
    assert full.as_json() == {
        "value": "v--Agree",
        "verdict": "fail",
        "answer": "yes",
        "character": "Ann",
        "quote": "no",
        "reason": "r",
        "probability": 0.123457,
    }


def test_a_judgement_as_it_is_written() -> None:
    judgement = Judgement(
        Verdict.FAIL,
        "story",
        reason="length: 3 words",
        checks=(Check("length", Verdict.FAIL, by="counting", reason="3 words"),),
        edits=(Edit(1, "consistency", "a", "b", "m:x", "Ann", ("v--Agree",)),),
        original={"story": "a"},
        dropped=("w--Agree",),
        contradictions=(Finding(Verdict.FAIL, "v--Agree", "Ann", "a"),),
    )
    shown = judgement.as_json({"judge": ["m:x"]}, "00ff")
    assert list(shown) == [
        "verdict",
        "workflow",
        "reason",
        "checks",
        "edits",
        "original",
        "dropped",
        "contradictions",
        "usage",
        "models",
        "fingerprint",
        "error",
    ]
    assert shown["checks"][0]["verdict"] == "fail"
    assert shown["edits"][0]["values"] == ["v--Agree"]
    bare = Judgement(Verdict.PASS, "story").as_json({}, "")
    assert not {"original", "dropped", "contradictions", "extraction"} & set(bare)


def test_a_recall_is_over_what_is_settled_and_says_so() -> None:
    found = Extraction((1.0, 0.5, 0.0, None), cut=2)
    told = {"credits": [1.0, 0.5, 0.0, None], "recall": 0.5, "over": 3, "of": 4, "cut": 2}
    assert found.as_json() == told
    shown = Judgement(Verdict.FAIL, "extraction", extraction=found).as_json({}, "")
    assert shown["extraction"] == told
    assert Extraction((None,)).recall is None
    assert Extraction((1.0, 1.0, 0.0)).as_json()["recall"] == 0.666667

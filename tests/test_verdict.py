from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.judgement import Edit, Extraction, Failure, Judgement
from judge.reasons import reason_of
from judge.verdict import Answer, Check, Usage, Verdict, Vote, worst

GRAVITY = [Verdict.ERROR, Verdict.FAIL, Verdict.UNREADABLE, Verdict.ABSTAIN, Verdict.PASS]
GRAVITY.append(Verdict.ANSWERED)


@given(st.lists(st.sampled_from(list(Verdict))))
def test_one_verdict_for_many_is_the_gravest_and_skipped_says_nothing(
    verdicts: list[Verdict],
) -> None:
    said = [v for v in verdicts if v is not Verdict.SKIPPED]
    expected = min(said, key=GRAVITY.index) if said else Verdict.ABSTAIN
    assert worst(verdicts) is expected


PASSED = Check(
    name="relevance",
    verdict=Verdict.PASS,
    votes=(
        Vote(
            model="m:x",
            verdict=Verdict.PASS,
            evidence=(Answer(verdict=Verdict.PASS, answer="yes"),),
        ),
    ),
)


def test_usage_adds_up_and_an_unknown_cost_stays_unknown() -> None:
    one, two = Usage(1, 10, 5, 0.25), Usage(2, 20, 6, 0.5)
    assert one + two == Usage(3, 30, 11, 0.75)
    assert (one + Usage(1, 1, 1, None)).cost_usd is None
    assert sum([one, two], Usage()) == two + one + Usage() == Usage(3, 30, 11, 0.75)
    assert Usage(1, 1, 1, 1 / 3).as_json()["cost_usd"] == 0.33333333
    lost = Vote(verdict=Verdict.UNREADABLE, model="m:x", usage=two)
    assert PASSED.model_copy(update={"votes": (lost, lost)}).usage == two + two


def said(verdict: Verdict, answer: str | None, value: str = "Thrift") -> Answer:
    return Answer(value=value, verdict=verdict, answer=answer)


FULLY, PARTLY, ABSENT = (
    said(Verdict.PASS, "fully"),
    said(Verdict.PASS, "partially"),
    said(Verdict.FAIL, "absent"),
)


@pytest.mark.parametrize(
    ("evidence", "graded", "plain"),
    [
        ((FULLY,), "fully", "pass"),
        # Of two findings on one value the one that decides it counts, in whatever order.
        ((FULLY, ABSENT), "absent", "fail"),
        ((ABSENT, FULLY), "absent", "fail"),
        ((ABSENT, PARTLY), "absent", "fail"),
        # An answer that the judge is not sure of, or that is none, counts as its verdict.
        ((said(Verdict.ABSTAIN, "partially"),), "abstain", "abstain"),
        ((said(Verdict.PASS, None),), "pass", "pass"),
        ((said(Verdict.UNREADABLE, ""),), "unreadable", "unreadable"),
    ],
)
def test_what_a_vote_counts_as_where_answers_are_grades(
    evidence: tuple[Answer, ...], graded: str, plain: str
) -> None:
    other = said(Verdict.PASS, "partially", "Care")
    vote = Vote(model="m:x", verdict=Verdict.FAIL, evidence=(*evidence, other))
    named = None if graded == plain else graded
    assert vote.counted_as(graded=True) == {
        "Thrift": (plain, named),
        "Care": ("pass", "partially"),
    }
    assert vote.counted_as() == {"Thrift": (plain, None), "Care": ("pass", None)}


@given(
    votes=st.lists(st.sampled_from([Verdict.PASS, Verdict.FAIL]), min_size=1, max_size=3),
    text=st.text(st.characters(), min_size=1),
    known=st.booleans(),
)
def test_a_judgement_reads_back_as_it_was_written(
    votes: list[Verdict], text: str, known: bool
) -> None:
    """Also if the record has unpaired surrogates, which JSON can only hold as escapes."""
    finding = Answer(value=text, verdict=Verdict.FAIL, character="Ann", quote=text, predicted=(2,))
    check = Check(
        name="consistency",
        by="final",
        verdict=Verdict.FAIL,
        probability=0.25,
        votes=tuple(Vote(model="m:x", seed=0, verdict=v, evidence=(finding,)) for v in votes),
        evidence=(Answer(verdict=Verdict.FAIL, reason=text),),
    )
    judgement = Judgement(
        verdict=Verdict.FAIL,
        workflow="story",
        reason=text,
        checks=(check, Check(name="length", verdict=Verdict.SKIPPED, by="counting")),
        edits=(Edit(round=1, check="consistency", before="", after=text, model="m:x"),),
        original={text: [None, {text: 10**30}]},
        dropped=(text,),
        contradictions=(finding,),
        extraction=Extraction(credits=(1.0, None)),
        usage=Usage(3, 2, 1, 0.25 if known else None),
        fingerprint="00ff",
        error=Failure(type="bad-request", message=text, line=3),
    )
    told = json.loads(json.dumps(judgement.as_json()))
    assert Judgement.model_validate(told) == judgement


def test_a_key_without_a_value_is_left_out() -> None:
    told = Judgement(verdict=Verdict.PASS, workflow="story", checks=(PASSED,)).as_json()
    assert list(told) == ["verdict", "workflow", "checks", "edits", "usage"]
    assert told["checks"] == (
        {
            "check": "relevance",
            "by": "loop",
            "verdict": "pass",
            "round": 1,
            "votes": (
                {
                    "model": "m:x",
                    "method": "structured",
                    "verdict": "pass",
                    "evidence": ({"verdict": "pass", "answer": "yes"},),
                },
            ),
        },
    )


def test_a_recall_is_over_what_is_settled() -> None:
    found = Extraction(credits=(1.0, 0.5, 0.0, None), cut=2)
    assert (found.recall, found.settled) == (0.5, (1.0, 0.5, 0.0))
    assert Extraction(credits=(None,)).recall is None
    assert Extraction(credits=(1.0, 1.0, 0.0)).recall == 0.666667


# ---------------------------------------------------------------- the reason


def check_of(
    *said: tuple[Verdict, str], name: str = "consistency", value: str = "Tea is good"
) -> Check:
    votes = tuple(
        Vote(
            model="m:x",
            verdict=verdict,
            evidence=(
                Answer(value=value, verdict=verdict, character="Tomo", quote=quote, reason="a lie"),
            ),
        )
        for verdict, quote in said
    )
    made = Check(name=name, verdict=Verdict.FAIL, votes=votes)
    return made.model_copy(update={"verdict": worst(made.verdicts().values())})


FAIL, PASS = (Verdict.FAIL, "I hate tea"), (Verdict.PASS, "I like tea")


def test_the_reason_names_the_deciding_check_with_value_quote_and_why() -> None:
    undecided = check_of(PASS, FAIL, name="incorporation")
    failed = check_of(FAIL, PASS, FAIL)
    told = reason_of([PASSED, undecided, failed], ["insertion gave up: no"])
    assert told == (
        'consistency: 1 of 1 failed: Tea is good: Tomo says "I hate tea" (a lie); '
        "incorporation: 1 of 1 undecided; insertion gave up: no"
    )
    assert reason_of([undecided]) == (
        'incorporation: 1 of 1 undecided: Tea is good: Tomo says "I hate tea" (a lie)'
    ), "an abstention keeps what was said against it"
    unquoted = Answer(value="Tea", verdict=Verdict.FAIL, character="Tomo", reason="a lie")
    vote = Vote(model="m:x", verdict=Verdict.FAIL, evidence=(unquoted,))
    bare = Check(name="consistency", verdict=Verdict.FAIL, votes=(vote,))
    assert reason_of([bare]) == "consistency: 1 of 1 failed: Tea: a lie"
    assert reason_of([PASSED]) is None
    skipped = Check(name="consistency", verdict=Verdict.SKIPPED)
    assert reason_of([skipped]) == "no check could be made"


@pytest.mark.parametrize(
    ("verdict", "answer", "told"),
    [
        ("fail", "no", "question: no (P(pass) 0.10)"),
        ("fail", "yes", "question: yes (P(pass) 0.10)"),  # of a rubric that no passes
        ("abstain", "no", "question: undecided (P(pass) 0.10)"),
    ],
)
def test_where_first_tokens_decide_the_reason_has_answer_and_probability(
    verdict: Verdict, answer: str, told: str
) -> None:
    found = Answer(verdict=Verdict(verdict), answer=answer, probability=0.1)
    vote = Vote(model="m:x", method="logprobs", verdict=found.verdict, evidence=(found,))
    check = Check(name="question", verdict=found.verdict, probability=0.1, votes=(vote,))
    assert reason_of([check]) == told
    for part in ("quote", "reason"):
        said = found.model_copy(update={part: "I hate tea"})
        heard = check.model_copy(update={"votes": (vote.model_copy(update={"evidence": (said,)}),)})
        reason = reason_of([heard]) or ""
        assert "I hate tea" in reason and "P(pass)" not in reason
    bounds = {"probability": None, "probability_range": (0.1, 0.2)}
    bounded = vote.model_copy(update={"evidence": (found.model_copy(update=bounds),)})
    listed = check.model_copy(update={"probability": None, "votes": (bounded,)})
    assert reason_of([listed]) == told.replace("0.10", "between 0.10 and 0.20")
    assert reason_of([check.model_copy(update={"answer": "rude"})]) == f"question: {verdict} (rude)"
    # A table counts what was decided: an undecided check leans to an answer, and has none.
    assert check.to_dict()["answer"] == (None if verdict == "abstain" else answer)


def test_a_reason_is_one_line_of_at_most_300_characters() -> None:
    long = check_of((Verdict.FAIL, "I hate\ntea " * 200), value="x y " * 100)
    told = reason_of([long] * 2 + [check_of(FAIL, name=f"own_{n}") for n in range(30)])
    assert told is not None and len(told) == 300 and "\n" not in told


def test_where_answers_are_counted_only_those_that_stand_bear_the_verdict_out() -> None:
    votes = tuple(
        Vote(
            model="m:x",
            verdict=Verdict.FAIL,
            evidence=(Answer(value="Tea", verdict=Verdict.FAIL, answer=answer, reason=answer),),
        )
        for answer in ("absent", "partially", "partially")
    )
    grades = ("fully", "partially", "absent")
    check = Check(name="value_extraction", verdict=Verdict.FAIL, counted=grades, votes=votes)
    assert check.outcomes() == {"Tea": (Verdict.FAIL, "partially")}
    assert [finding.reason for finding in check.supporting_evidence()] == ["partially"]

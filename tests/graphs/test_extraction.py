from __future__ import annotations

import json
from typing import Any

import pytest

from judge.verdict import Verdict

from .conftest import Entry, Take, Taken, entry

CHECK = "value_extraction"
RECORD: dict[str, Any] = {
    "id": "e1",
    "values": ["Sport matters--Agree", "Grown children care for parents--Agree", "Lying is wrong"],
    "predicted": ["Sport and parents matter", "Children owe their parents care"],
    "category": "social",
}
WORTH = {"fully": 1.0, "partially": 0.5, "absent": 0.0, None: None}


def said(*answers: str | tuple[str, list[int]]) -> dict[str, Any]:
    """A reply with one answer for each gold value; without numbers it rests on the first."""
    values = []
    for number, one in enumerate(answers, 1):
        presence, named = one if isinstance(one, tuple) else (one, [] if one == "absent" else [1])
        values.append(
            {
                "value": number,
                "predicted": named,
                "reason": f"{number} is {presence}",
                "presence": presence,
            }
        )
    return {"values": values}


def votes(*replies: dict[str, Any] | None) -> list[Entry]:
    """The replies, vote by vote; None is a reply that never becomes valid."""
    return [
        entry(CHECK, vote=n, **({"text": "no"} if reply is None else {"reply": reply}))
        for n, reply in enumerate(replies)
    ]


def result(taken: Taken) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(json.dumps(taken.judgement.as_json()))["extraction"]
    return shown


async def test_credits_recall_and_what_each_rests_on(take: Take) -> None:
    reply = said(("fully", [1, 2]), ("partially", [2]), "absent")
    taken = await take(RECORD, [entry(CHECK, reply)])
    # CQ-Bench, section 3.1: (1 + 0.5 + 0) / 3.
    assert result(taken) == {
        "credits": [1.0, 0.5, 0.0],
        "recall": 0.5,
        "cut": 0,
    }
    assert taken.judgement.verdict is Verdict.FAIL
    assert taken.judgement.reason == (
        f"value_extraction: 2 of 3 failed: {RECORD['values'][1]}: 2 is partially"
    )
    (check,) = taken.judgement.checks
    assert [
        finding.model_dump(mode="json", exclude_none=True)
        for finding in check.supporting_evidence()
    ] == [
        {
            "value": value,
            "verdict": "pass" if answer == "fully" else "fail",
            "answer": answer,
            "reason": f"{n} is {answer}",
            **({"predicted": named} if named else {}),
        }
        for n, value, answer, named in (
            (1, RECORD["values"][0], "fully", [1, 2]),
            (2, RECORD["values"][1], "partially", [2]),
            (3, RECORD["values"][2], "absent", []),
        )
    ]
    assert taken.line == RECORD


@pytest.mark.parametrize(
    ("replies", "credits", "verdict"),
    [
        # The majority of each value is its own; no majority is no credit.
        (
            (
                said("fully", "fully", "absent"),
                said("fully", "partially", "absent"),
                said("absent", "absent", "partially"),
            ),
            [1.0, None, 0.0],
            Verdict.FAIL,
        ),
        # A lost vote is asked for, and counts for nothing, least of all for absent.
        ((None, said(*["fully"] * 3), said(*["fully"] * 3)), [1.0, 1.0, 1.0], Verdict.PASS),
        ((None, None, said("fully", "absent", "fully")), [None, None, None], Verdict.ABSTAIN),
        # Two that say less than fully, each another thing, do not make a credit together.
        (
            (said(*["partially"] * 3), said(*["absent"] * 3), said(*["fully"] * 3)),
            [None, None, None],
            Verdict.ABSTAIN,
        ),
    ],
)
async def test_votes_are_counted_by_answers(
    take: Take,
    replies: tuple[dict[str, Any] | None, ...],
    credits: list[float | None],
    verdict: Verdict,
) -> None:
    taken = await take(RECORD, votes(*replies), votes=3, reasks=0)
    assert result(taken)["credits"] == credits
    assert taken.judgement.verdict is verdict
    known = [credit for credit in credits if credit is not None]
    assert result(taken).get("recall") == (sum(known) / len(known) if known else None)
    (check,) = taken.judgement.checks
    assert [WORTH[answer] for _, answer in check.outcomes().values()] == credits
    assert list(check.verdicts()) == RECORD["values"]


async def test_nothing_predicted_is_absent_without_asking_anybody(take: Take) -> None:
    empty: tuple[object, ...] = ([], "", " \n")
    for nothing in empty:
        taken = await take({**RECORD, "predicted": nothing}, [])
        assert taken.calls == [] and taken.judgement.verdict is Verdict.FAIL
        assert result(taken) == {
            "credits": [0.0, 0.0, 0.0],
            "recall": 0.0,
            "cut": 0,
        }
        (check,) = taken.judgement.checks
        assert (check.by, check.votes) == ("counting", ())
        assert [f.answer for f in check.supporting_evidence()] == ["absent"] * 3


async def test_predictions_on_the_lines_of_a_text_count_as_those_of_a_list(take: Take) -> None:
    script = [entry(CHECK, said(("fully", [1, 2]), ("partially", [2]), "absent"))]
    lines = "Sport  and parents matter\n\nChildren owe their parents care\n"
    of_text = await take({**RECORD, "predicted": lines}, script)
    of_list = await take(RECORD, script)
    assert result(of_text) == result(of_list) and result(of_text)["recall"] == 0.5
    assert of_text.calls[0].messages == of_list.calls[0].messages


async def test_another_check_alone_leaves_the_credits_out(take: Take) -> None:
    taken = await take(RECORD, [], check=("irony",))
    assert taken.judgement.extraction is None and taken.judgement.verdict is Verdict.ABSTAIN


async def test_ten_predicted_values_count_and_the_rest_is_told(take: Take) -> None:
    many = [f"Predicted {n}." for n in range(1, 13)]
    reply = said(("fully", [10]), "absent", "absent")
    taken = await take({**RECORD, "predicted": many}, [entry(CHECK, reply)])
    shown = str(taken.calls[0].messages[-1]["content"])
    assert "10. Predicted 10." in shown and "Predicted 11." not in shown
    assert result(taken)["cut"] == 2 and result(taken)["credits"][0] == 1.0
    assert taken.line["predicted"] == many
    ten = await take({**RECORD, "predicted": many[:10]}, [entry(CHECK, reply)])
    assert result(ten)["cut"] == 0
    named = await take(
        {**RECORD, "predicted": many},
        [entry(CHECK, said(("fully", [11]), "absent", "absent"))],
        reasks=0,
    )
    assert named.judgement.verdict is Verdict.UNREADABLE


# ---------------------------------------------------------------- first-token probabilities


def chances(number: int, whole: float, topic: float) -> list[Entry]:
    value = RECORD["values"][number - 1]
    return [
        entry(CHECK, contains=f"{value}\n[end", p_yes=whole, lacks="speak of the topic"),
        entry(CHECK, contains=f"{value}\n[end", p_yes=topic),
    ]


async def test_two_questions_a_value_read_from_first_tokens(take: Take) -> None:
    script = [*chances(1, 0.9, 0.95), *chances(2, 0.2, 0.8), *chances(3, 0.1, 0.3)]
    taken = await take(RECORD, script, method="logprobs", votes=3)
    assert result(taken)["credits"] == [1.0, 0.5, 0.0]
    (check,) = taken.judgement.checks
    assert len(taken.calls) == 6 and len(check.votes) == 1
    assert [f.probability for f in check.supporting_evidence()] == [
        pytest.approx(p) for p in (0.9, 0.2, 0.1)
    ]
    assert all(not f.predicted and f.reason is None for f in check.supporting_evidence())

"""Asking a judge about labelled items: the questions, their order, the reading of replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from judge.backends.base import Call
from judge.calibration import controls
from judge.calibration.guarantee import sureness
from judge.calibration.observe import LabelledAnswer, observe
from judge.errors import BackendError, BadRequest, Denied, Unreachable
from judge.judging.answer_reader import AnswerReader
from judge.judging.judge import NOTHING_READ, Judge
from judge.judging.limits import Budget, BudgetReached
from judge.records import Record
from judge.records.labels import LabelledItem

from .asking import PLAIN, Answering, judge_of, norm_item, yes_no

STORY = {
    "story": "An shook her head. Bo left the room.",
    "values": ["Pears are good--Agree", "Plums are good--Disagree"],
}


def seen(judge: Judge, items: Sequence[LabelledItem], **more: Any) -> list[LabelledAnswer]:
    return asyncio.run(observe(judge, items, at_once=4, budget=Budget(), **more))


def asked(judge: Judge) -> list[Call]:
    backend: Any = judge.client.backend
    assert isinstance(backend, Answering)
    return backend.asked


def value_items(record: str, count: int = 2) -> list[LabelledItem]:
    return [
        LabelledItem(Record("", 0, STORY, name=record), "incorporation", number=number, gold="yes")
        for number in range(1, count + 1)
    ]


# ---------------------------------------------------------------- order


def test_the_items_of_a_record_are_asked_one_after_the_other() -> None:
    """Whatever their order in the file: so an engine reads its text once."""
    judge = judge_of("incorporation", lambda call: 0.9)
    items = [item for pair in zip(value_items("a"), value_items("b"), strict=True) for item in pair]
    assert [
        one.item for one in asyncio.run(observe(judge, items, at_once=1, budget=Budget()))
    ] == items
    calls = [(call.origin.record, "Pears" in call.messages[-1]["content"]) for call in asked(judge)]
    expected = [("a", True), ("a", False), ("b", True), ("b", False)]
    assert list(dict.fromkeys(calls)) == expected and calls == sorted(calls, key=expected.index)


# ---------------------------------------------------------------- `logprobs` method


def test_answered_abstained_unreadable_error_and_skipped_are_told_apart() -> None:
    def answer(call: Call) -> Any:
        return {
            "sure": 0.9,
            "torn": 0.55,
            "mute": [("Well", 0.99)],
            "lost": BadRequest("too long"),
        }[call.origin.record]

    judge = judge_of(PLAIN, answer)
    judge = Judge(judge.rubric, judge.client, "logprobs", reader=AnswerReader(margin=0.1))
    unlike = LabelledItem(
        Record("", 0, {"story": "Ann greets Bo."}, name="bare"), "plain", gold="yes"
    )
    items = [*(norm_item(name) for name in ("sure", "torn", "mute", "lost")), unlike]
    found = seen(judge, items)
    assert [(one.outcome, one.answer) for one in found] == [
        ("answered", "yes"),
        ("abstained", None),
        ("unreadable", None),
        ("error", None),
        ("skipped", None),
    ]
    assert [one.reason for one in found] == [
        None,
        None,
        NOTHING_READ,
        "bad-request: too long",
        "the record has no rule_of_thumb",
    ]
    assert [bool(one.observation and one.observation.chances) for one in found] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [one.record is not None for one in found] == [True, True, True, True, False]
    # What abstained still tells how likely it held each answer.
    assert found[1].probabilities == pytest.approx({"yes": 0.55, "no": 0.45})


def test_where_half_is_listed_an_item_counts_as_the_least_that_it_can_be() -> None:
    judge = judge_of(PLAIN, lambda call: [("Yes", {"most": 0.8, "half": 0.4}[call.origin.record])])
    most, half = seen(judge, [norm_item("most"), norm_item("half")])
    assert (most.answer, most.probabilities) == ("yes", pytest.approx({"yes": 0.8, "no": 0.2}))
    assert (half.outcome, half.answer) == ("abstained", None)
    assert [one.observation and one.observation.open for one in (most, half)] == [
        {0: pytest.approx(0.2)},
        {0: pytest.approx(0.6)},
    ]
    assert sureness(most) == pytest.approx(0.8), "a threshold between 0.8 and 1 is not reached"


@pytest.mark.parametrize(
    "error", [Unreachable("nobody there"), Denied("no key"), BudgetReached("used up")]
)
@pytest.mark.parametrize("method", ["logprobs", "structured"])
def test_what_concerns_the_whole_run_ends_it(error: BackendError, method: Any) -> None:
    judge = judge_of(PLAIN, lambda call: error, method)
    with pytest.raises(type(error)) as raised:
        seen(judge, [norm_item(f"{n}") for n in range(9)])
    assert str(raised.value) == str(error)


# ---------------------------------------------------------------- structured method


def test_a_structured_answer_comes_with_its_evidence() -> None:
    judge = judge_of("relevance", lambda call: yes_no("yes", "Ann, number a, greets"), "structured")
    (one,) = seen(judge, [norm_item("a", check="relevance")])
    assert (one.answer, one.quote, one.reason) == ("yes", "Ann, number a, greets", "It is yes.")
    assert (one.observation, one.probabilities) == (None, {})
    judge = judge_of(PLAIN, lambda call: yes_no("no"), "structured")
    (one,) = seen(judge, [norm_item("a")])
    assert (one.answer, one.reason) == ("no", "It is no.")


@pytest.mark.parametrize(
    ("replies", "outcome", "answer"),
    [
        (["yes", "no", "yes"], "answered", "yes"),
        (["yes", "no", "?"], "abstained", None),
        (["yes", "!", "!"], "abstained", None),
        (["?", "?", "?"], "unreadable", None),
        (["?", "?", "!"], "error", None),
        (["yes", "no"], "abstained", None),
    ],
)
def test_the_majority_of_all_votes_answers_and_without_one_the_outcome_is_a_validations(
    replies: list[str], outcome: str, answer: str | None
) -> None:
    def cast(call: Call) -> Any:
        said = replies[call.vote]
        return {"?": "no JSON", "!": BadRequest("bad")}.get(said) or yes_no(said)

    judge = judge_of(PLAIN, cast, "structured")
    (one,) = seen(judge, [norm_item("a")], votes=len(replies))
    assert (one.outcome, one.answer) == (outcome, answer)


def test_the_reason_is_that_of_a_vote_for_the_answer() -> None:
    judge = judge_of(PLAIN, lambda call: yes_no(["no", "yes", "yes"][call.vote]), "structured")
    (one,) = seen(judge, [norm_item("a")], votes=3)
    assert (one.answer, one.reason) == ("yes", "It is yes.")


@pytest.mark.parametrize("per_entry", [False, True])
def test_the_values_of_a_story_are_asked_about_as_a_validation_does(per_entry: bool) -> None:
    calls = []

    def cast(call: Call) -> dict[str, Any]:
        content = call.messages[-1]["content"]
        calls.append(content)
        reflected = {
            "quote": "Bo left the room.",
            "character": None,
            "reason": "x",
            "reflected": "yes",
        }
        missing = {"quote": None, "character": None, "reason": "", "reflected": "no"}
        numbers = [n for n in (1, 2) if f"\n{n}. " in content.rpartition("[values")[2]]
        return {"values": [{"value": n, **(reflected if n == 2 else missing)} for n in numbers]}

    judge = replace(judge_of("incorporation", cast, "structured"), per_entry=per_entry)
    found = seen(judge, value_items("s"))
    assert [(one.answer, one.quote, one.reason) for one in found] == [
        ("no", None, None),
        ("yes", "Bo left the room.", "x"),
    ]
    assert len(calls) == (2 if per_entry else 1)


def test_records_of_one_id_get_votes_of_their_own() -> None:
    """Two files may both count from 1, and a control changes one entry of a record at a time."""
    judge = judge_of(
        PLAIN, lambda call: yes_no("no" if "Cy" in str(call.messages) else "yes"), "structured"
    )
    twins = [
        replace(
            norm_item("1"), record=Record("", 0, {"rule_of_thumb": "Tip.", "story": s}, name="1")
        )
        for s in ("Ann tips.", "Cy left.", "Ann tips.")
    ]
    assert [one.answer for one in seen(judge, twins)] == ["yes", "no", "yes"]
    assert len(asked(judge)) == 2

    def reflects(call: Call) -> dict[str, Any]:
        values = call.messages[-1]["content"].rpartition("[values")[2]
        found = {"quote": "Bo left the room.", "character": None, "reason": "", "reflected": "yes"}
        none = {"quote": None, "character": None, "reason": "", "reflected": "no"}
        shown = [found if f"{n}. (left out)" not in values else none for n in (1, 2)]
        return {"values": [{"value": n, **one} for n, one in enumerate(shown, 1)]}

    judge = judge_of("incorporation", reflects, "structured")
    blind = controls.blinded(value_items("a"), judge.rubric, "value")
    assert [one.answer for one in seen(judge, blind)] == ["no", "no"]


# ---------------------------------------------------------------- what a judge is shown


def test_the_reference_is_never_shown() -> None:
    judge = judge_of("entailment", lambda call: [("Yes", 0.6), ("No", 0.4)])
    texts = {"premise": "It rains.", "hypothesis": "It is wet."}
    prompts = []
    for gold in ("entailment", "contradiction"):
        seen(judge, [LabelledItem(Record("", 0, texts, name="a"), "entailment", gold=gold)])
        prompts.append([call.messages for call in asked(judge)])
        asked(judge).clear()
    assert prompts[0] == prompts[1]

"""What a judge is asked about labelled items, in which order, and what is made of its replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from judge.backends.base import Call
from judge.calibration.observations import Observation, observe
from judge.errors import BackendError, BadRequest, Denied, Unreachable
from judge.judging.judge import NOTHING_READ, Judge
from judge.judging.limits import BudgetReached
from judge.judging.reading import Reader
from judge.records.labels import LabelledItem

from .asking import MANY, PLAIN, Answering, judge_of, norm_item, yes_no

STORY = {
    "story": "An shook her head. Bo left the room.",
    "values": ["Pears are good--Agree", "Plums are good--Disagree"],
}


def seen(judge: Judge, items: Sequence[LabelledItem], **more: Any) -> list[Observation]:
    return asyncio.run(observe(judge, items, at_once=4, **more))


def asked(judge: Judge) -> list[Call]:
    backend: Any = judge.client.backend
    assert isinstance(backend, Answering)
    return backend.asked


def value_items(record: str, count: int = 2) -> list[LabelledItem]:
    return [
        LabelledItem(record, "incorporation", STORY, number=number, gold="yes")
        for number in range(1, count + 1)
    ]


# ---------------------------------------------------------------- order


async def test_the_items_of_a_record_are_asked_one_after_the_other() -> None:
    """Records side by side, each record's items in turn: so an engine reads its text once."""
    calls: list[tuple[str, str]] = []
    judge = judge_of("incorporation", lambda call: 0.9)
    backend: Any = judge.client.backend
    complete = backend.complete

    async def slowly(call: Call, mode: Any) -> Any:
        value = "Pears" if "Pears" in call.messages[-1]["content"] else "Plums"
        calls.append((call.origin.record, value))
        await asyncio.sleep(0.002)
        calls.append((call.origin.record, value))
        return await complete(call, mode)

    backend.complete = slowly
    items = [item for pair in zip(value_items("a"), value_items("b"), strict=True) for item in pair]
    found = await observe(judge, items, at_once=2)
    assert [one.item for one in found] == items
    questions = judge.rubric.readings.probability
    assert questions is not None
    each = 2 * len(questions.questions)
    for record in ("a", "b"):
        own = [value for name, value in calls if name == record]
        assert own == ["Pears"] * each + ["Plums"] * each
    # A call of the one record begins before that of the other has ended.
    assert {name for name, _ in calls[:2]} == {"a", "b"}


# ---------------------------------------------------------------- probability readings


def test_every_question_of_the_rubric_is_asked_and_kept() -> None:
    judge = judge_of(MANY, lambda call: [("Yes", 0.5), ("no", 0.25), (" Neutral", 0.25)])
    (one,) = seen(judge, [norm_item("a")])
    assert len(asked(judge)) == 5
    assert one.chances is not None
    assert {q: tuple(round(c, 4) for c in chances) for q, chances in one.chances.items()} == {
        0: (0.6667, 0.3333),
        1: (0.5, 0.25, 0.25),
        2: (0.6667, 0.3333),
        3: (0.6667, 0.3333),
        4: (0.6667, 0.3333),
    }
    assert (one.said.outcome, one.said.answer) == ("answered", "yes")
    assert one.said.probabilities == pytest.approx({"yes": 2 / 3, "no": 1 / 3})


def test_answered_abstained_unreadable_error_and_skipped_are_told_apart() -> None:
    def answer(call: Call) -> Any:
        return {
            "sure": 0.9,
            "torn": 0.55,
            "mute": [("Well", 0.99)],
            "lost": BadRequest("too long"),
        }[call.origin.record]

    judge = judge_of(PLAIN, answer)
    judge = Judge(judge.rubric, judge.client, "probability", reader=Reader(margin=0.1))
    unlike = LabelledItem("bare", "plain", {"story": "Ann greets Bo."}, gold="yes")
    items = [*(norm_item(name) for name in ("sure", "torn", "mute", "lost")), unlike]
    found = seen(judge, items)
    assert [(one.said.outcome, one.said.answer) for one in found] == [
        ("answered", "yes"),
        ("abstained", None),
        ("unreadable", None),
        ("error", None),
        ("skipped", None),
    ]
    assert [one.said.evidence for one in found] == [
        None,
        None,
        NOTHING_READ,
        "bad-request: too long",
        "the record has no rule_of_thumb",
    ]
    assert [bool(one.chances) for one in found] == [True, True, False, False, False]
    assert [one.subject is not None for one in found] == [True, True, True, True, False]
    # What abstained still tells how likely it held each answer.
    assert found[1].said.probabilities == pytest.approx({"yes": 0.55, "no": 0.45})


@pytest.mark.parametrize(
    "error", [Unreachable("nobody there"), Denied("no key"), BudgetReached("used up")]
)
@pytest.mark.parametrize("reading", ["probability", "structured"])
def test_what_concerns_the_whole_run_ends_it(error: BackendError, reading: Any) -> None:
    judge = judge_of(PLAIN, lambda call: error, reading)
    with pytest.raises(type(error)) as raised:
        seen(judge, [norm_item(f"{n}") for n in range(9)])
    assert str(raised.value) == str(error)


# ---------------------------------------------------------------- structured readings


def test_a_structured_answer_comes_with_its_evidence() -> None:
    judge = judge_of("relevance", lambda call: yes_no("yes", "Ann, number a, greets"), "structured")
    (one,) = seen(judge, [norm_item("a", check="relevance")])
    assert (one.said.answer, one.said.evidence) == (
        "yes",
        "Ann, number a, greets — It is yes.",
    )
    assert (one.chances, one.said.probabilities) == (None, {})
    judge = judge_of(PLAIN, lambda call: yes_no("no"), "structured")
    (one,) = seen(judge, [norm_item("a")])
    assert (one.said.answer, one.said.evidence) == ("no", "It is no.")


@pytest.mark.parametrize(
    ("replies", "outcome", "answer"),
    [
        (["yes", "no", "yes"], "answered", "yes"),
        (["no", "no", "?"], "answered", "no"),
        (["yes", "no", "?"], "unreadable", None),
        (["yes", "no", "!"], "error", None),
        (["yes", "?", "?"], "unreadable", None),
        (["yes", "no"], "abstained", None),
        (["?"], "unreadable", None),
        (["!"], "error", None),
    ],
)
def test_the_majority_of_all_votes_answers(
    replies: list[str], outcome: str, answer: str | None
) -> None:
    def cast(call: Call) -> Any:
        said = replies[call.vote]
        return {"?": "no JSON", "!": BadRequest("bad")}.get(said) or yes_no(said)

    judge = judge_of(PLAIN, cast, "structured")
    (one,) = seen(judge, [norm_item("a")], votes=len(replies))
    assert (one.said.outcome, one.said.answer) == (outcome, answer)


def preference(record: str, first: str, second: str) -> LabelledItem:
    fields = {"instruction": "Say hello.", "output_1": first, "output_2": second}
    return LabelledItem(record, "preference", fields, gold="1")


def test_swapped_order_is_told_of_the_alternatives_as_the_record_has_them() -> None:
    """One judge goes by the text, one by the place: only the second changes its answer."""

    def by_text(call: Call) -> dict[str, Any]:
        shown = call.messages[-1]["content"]
        return yes_no("1" if shown.index("Hello.") < shown.index("Goodbye.") else "2")

    items = [preference("a", "Hello.", "Goodbye."), preference("b", "Goodbye.", "Hello.")]
    found = seen(judge_of("preference", by_text, "structured"), items)
    assert [(one.said.answer, one.said.swapped) for one in found] == [("1", "1"), ("2", "2")]
    found = seen(judge_of("preference", lambda call: yes_no("1"), "structured"), items)
    assert [(one.said.answer, one.said.swapped) for one in found] == [("1", "2"), ("1", "2")]


def test_a_probability_reading_is_swapped_too() -> None:
    def by_text(call: Call) -> Any:
        shown = call.messages[-1]["content"]
        first = shown.index("Hello.") < shown.index("Goodbye.")
        word = "1" if "Answer 1 or 2" in shown else "Yes"
        other = {"1": "2", "Yes": "No"}[word]
        return [(word, 0.8 if first else 0.2), (other, 0.2 if first else 0.8)]

    items = [preference("a", "Hello.", "Goodbye."), preference("b", "Goodbye.", "Hello.")]
    found = seen(judge_of("preference", by_text), items)
    assert [(one.said.answer, one.said.swapped) for one in found] == [("1", "1"), ("2", "2")]


@pytest.mark.parametrize("apart", [False, True])
def test_the_values_of_a_story_are_asked_about_as_a_validation_does(apart: bool) -> None:
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

    judge = replace(judge_of("incorporation", cast, "structured"), apart=apart)
    found = seen(judge, value_items("s"))
    assert [(one.said.answer, one.said.evidence) for one in found] == [
        ("no", None),
        ("yes", "Bo left the room. — x"),
    ]
    assert len(calls) == (2 if apart else 1)


# ---------------------------------------------------------------- what a judge is shown


def test_the_reference_is_never_shown() -> None:
    judge = judge_of("entailment", lambda call: [("Yes", 0.6), ("No", 0.4)])
    texts = {"premise": "It rains.", "hypothesis": "It is wet."}
    prompts = []
    for gold in ("entailment", "contradiction"):
        seen(judge, [LabelledItem("a", "entailment", texts, gold=gold)])
        prompts.append([call.messages for call in asked(judge)])
        asked(judge).clear()
    assert prompts[0] == prompts[1]

"""What a measured model is asked, and what is made of its replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.backends.base import Reading
from judge.backends.scripted import ScriptedBackend
from judge.errors import Unreachable
from judge.evaluation.asking import Examinee
from judge.evaluation.benchmark import NoAnswer
from judge.judging.client import Client
from judge.judging.judge import Sampling
from judge.judging.limits import Budget
from judge.task import Task

QUIZ = Task(
    name="quiz",
    title="t",
    source="s",
    fields=("question",),
    lettered=True,
    question="{{ options }}",
)
LABEL = QUIZ.model_copy(update={"name": "label", "lettered": False})
OPTIONS = ("red", "green", "blue")
TEXTS = {"question": "Which?"}

Ask = Callable[[Examinee], Coroutine[Any, Any, Any]]


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """What the measured model gives, and the model afterwards; NoAnswer where it gives nothing."""

    def made(
        ask: Ask, *script: dict[str, Any], reading: Reading = "structured"
    ) -> tuple[Any, Examinee]:
        path = tmp_path / "model.yaml"
        path.write_text(yaml.safe_dump({"replies": list(script)}), "utf-8")
        client = Client(
            "scripted:m",
            ScriptedBackend(str(path)),
            cache=None,
            budget=Budget(),
            limit=4,
            reasks=1,
            backoff=0,
        )
        fields = {"id": "i1", "colour": "red"}
        examinee = Examinee(client, reading, Sampling(0.7, 5), fields)
        try:
            found = asyncio.run(ask(examinee))
        except NoAnswer as no:
            found = no
        return found, examinee

    return made


def choose(examinee: Examinee) -> Coroutine[Any, Any, str]:
    return examinee.choose(QUIZ, TEXTS, OPTIONS)


def select(examinee: Examinee) -> Coroutine[Any, Any, list[str]]:
    return examinee.select(QUIZ, TEXTS, OPTIONS, 2)


def lists(examinee: Examinee) -> Coroutine[Any, Any, list[str]]:
    return examinee.list_texts(QUIZ, TEXTS)


def writes(examinee: Examinee) -> Coroutine[Any, Any, str]:
    return examinee.write(QUIZ, TEXTS)


def test_a_typed_choice_is_the_option_of_its_letter(given: Any) -> None:
    found, model = given(choose, {"reply": {"answer": "B"}})
    assert (found, model.probabilities, model.usage.replies) == ("green", None, 1)


def test_a_choice_read_from_the_first_token_has_a_probability_for_each_option(given: Any) -> None:
    words = {"words": {" C": 0.6, "a": 0.2, "Zebra": 0.2}}
    found, model = given(choose, words, reading="probability")
    assert found == "blue"
    assert model.probabilities == pytest.approx({"red": 0.25, "green": 0.0, "blue": 0.75})


def test_options_without_letters_are_read_by_their_words_and_stand_for_answers(given: Any) -> None:
    def ask(examinee: Examinee) -> Coroutine[Any, Any, str]:
        return examinee.choose(LABEL, TEXTS, ("yes", "no", "neutral"), ("Y", "N", "0"))

    _, model = given(ask, {"words": {"Neutral": 0.5, "Yes": 0.5}}, reading="probability")
    assert model.probabilities == pytest.approx({"Y": 0.5, "N": 0.0, "0": 0.5})
    assert given(ask, {"reply": {"answer": "neutral"}})[0] == "0"


@pytest.mark.parametrize("ask", [choose, select, lists, writes])
@pytest.mark.parametrize("reading", ["structured", "probability"])
def test_a_refusal_is_no_answer_and_not_unreadable(given: Any, ask: Ask, reading: Reading) -> None:
    refused = {"text": "I would rather not.", "finish_reason": "refusal"}
    if reading == "probability" and ask is choose:
        refused = {"words": {"a": 1.0}, "finish_reason": "refusal"}  # type: ignore[dict-item]
    found, _ = given(ask, refused, reading=reading)
    assert found.outcome == "refused"


@pytest.mark.parametrize(
    ("ask", "reply", "valid", "answer"),
    [
        (choose, {"answer": "D"}, {"answer": "A"}, "red"),
        (choose, {"answer": "red"}, {"answer": "A"}, "red"),
        (select, {"answers": ["A", "A"]}, {"answers": ["C", "A"]}, ["blue", "red"]),
        (select, {"answers": ["A"]}, {"answers": ["C", "A"]}, ["blue", "red"]),
        (select, {"answers": ["A", "B", "C"]}, {"answers": ["C", "A"]}, ["blue", "red"]),
        (lists, {"entries": [""]}, {"entries": ["x", "y"]}, ["x", "y"]),
        (lists, {"entries": ["x"] * 21}, {"entries": ["x", "y"]}, ["x", "y"]),
    ],
)
def test_a_reply_that_is_not_valid_is_asked_again_and_then_unreadable(
    given: Any, ask: Ask, reply: dict[str, Any], valid: dict[str, Any], answer: Any
) -> None:
    found, model = given(ask, {"reply": reply})
    assert (found.outcome, model.usage.replies) == ("unreadable", 2)
    assert given(ask, {"reply": reply, "times": 1}, {"reply": valid})[0] == answer


def test_a_text_that_was_cut_off_is_given_and_says_so(given: Any) -> None:
    found, model = given(writes, {"text": " Once upon ", "finish_reason": "length"})
    assert (found, model.note) == ("Once upon", "cut off at 400 tokens")
    assert given(writes, {"text": " \n"})[0].outcome == "unreadable"


def test_draws_differ_in_their_seed_and_a_script_sees_the_item(given: Any) -> None:
    script = [
        {"when": {"vote": 1, "id": "i1", "rubric": "quiz"}, "reply": "second {{ colour }}"},
        {"when": {"vote": 0}, "reply": "first {{ colour }}"},
    ]
    assert given(writes, *script)[0] == "first red"
    assert given(lambda one: one.write(QUIZ, TEXTS, draw=1), *script)[0] == "second red"


def test_a_model_out_of_reach_is_an_error_and_no_answer(given: Any) -> None:
    with pytest.raises(Unreachable):
        given(choose, {"error": "unreachable"})

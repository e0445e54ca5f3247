"""The prompts of a measured model, and the reading of its replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from clients import scripted

from judge.backends.base import Method
from judge.judging.judge import Sampling
from judge.papers.asking import MeasuredModel
from judge.papers.tasks import NoAnswer
from judge.questions.rubric import Rubric

QUIZ = Rubric(
    name="quiz",
    title="t",
    source="s",
    fields=("question",),
    lettered=True,
    question="{{ options }}",
    max_tokens=400,
)
LABEL = QUIZ.model_copy(update={"name": "label", "lettered": False})
OPTIONS = ("red", "green", "blue")
TEXTS = {"question": "Which?"}

Ask = Callable[[MeasuredModel], Coroutine[Any, Any, Any]]


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """The measured model's answer (NoAnswer if it gives none), and the model after the call."""

    def made(
        ask: Ask, *script: dict[str, Any], method: Method = "structured"
    ) -> tuple[Any, MeasuredModel]:
        client = scripted(tmp_path, *script, reasks=1)
        fields = {"id": "i1", "colour": "red"}
        measured = MeasuredModel(client, method, Sampling(0.7, 5), fields, pytest.fail)
        try:
            found = asyncio.run(ask(measured))
        except NoAnswer as no:
            found = no
        return found, measured

    return made


choose: Ask = methodcaller("choose", QUIZ, TEXTS, OPTIONS)
select: Ask = methodcaller("select", QUIZ, TEXTS, OPTIONS, 2)
lists: Ask = methodcaller("list_texts", QUIZ, TEXTS)
writes: Ask = methodcaller("write", QUIZ, TEXTS)
says: Ask = methodcaller("say", LABEL, TEXTS, OPTIONS)
says_alone: Ask = methodcaller("say", LABEL, TEXTS, OPTIONS, tokens=3)


def test_a_typed_choice_is_the_option_of_its_letter(given: Any) -> None:
    found, model = given(choose, {"reply": {"answer": "B"}})
    assert (found, model.probabilities, model.usage.replies) == ("green", None, 1)


def test_a_choice_read_from_the_first_token_has_a_probability_for_each_option(given: Any) -> None:
    words = {"words": {" C": 0.6, "a": 0.2, "Zebra": 0.2}}
    found, model = given(choose, words, method="logprobs")
    assert found == "blue"
    assert model.probabilities == pytest.approx({"red": 0.25, "green": 0.0, "blue": 0.75})


def test_options_without_letters_are_read_by_their_words_and_stand_for_answers(given: Any) -> None:
    ask = methodcaller("choose", LABEL, TEXTS, ("yes", "no", "neutral"), ("Y", "N", "0"))
    _, model = given(ask, {"words": {"Neutral": 0.5, "Yes": 0.5}}, method="logprobs")
    assert model.probabilities == pytest.approx({"Y": 0.5, "N": 0.0, "0": 0.5})
    assert given(ask, {"reply": {"answer": "neutral"}})[0] == "0"


@pytest.mark.parametrize("ask", [choose, select, lists, writes])
@pytest.mark.parametrize("method", ["structured", "logprobs"])
def test_a_refusal_is_no_answer_and_not_unreadable(given: Any, ask: Ask, method: Method) -> None:
    refused = {"text": "I would rather not.", "finish_reason": "refusal"}
    if method == "logprobs" and ask is choose:
        refused = {"words": {"a": 1.0}, "finish_reason": "refusal"}  # type: ignore[dict-item]
    found, _ = given(ask, refused, method=method)
    assert found.outcome == "refused"


@pytest.mark.parametrize(
    ("ask", "reply", "valid", "answer"),
    [
        (choose, {"answer": "D"}, {"answer": "A"}, "red"),
        (select, {"answers": ["A", "A"]}, {"answers": ["C", "A"]}, ["blue", "red"]),
        (select, {"answers": ["A", "B", "C"]}, {"answers": ["C", "A"]}, ["blue", "red"]),
        (lists, {"entries": [""]}, {"entries": ["x", "y"]}, ["x", "y"]),
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


@pytest.mark.parametrize(
    ("text", "anywhere", "alone"),
    [
        ("Blue.", "blue", "blue"),
        ("It is blue.", "blue", None),
        ("Red or blue", None, None),
        ("Pink", None, None),
    ],
)
def test_a_text_names_one_option_or_none(
    given: Any, text: str, anywhere: str | None, alone: str | None
) -> None:
    for ask, option in ((says, anywhere), (says_alone, alone)):
        found, _ = given(ask, {"text": text})
        assert found == option if option else found.outcome == "unreadable"


def test_draws_differ_in_their_seed_and_a_script_sees_the_item(given: Any) -> None:
    script = [
        {"when": {"vote": 1, "id": "i1", "rubric": "quiz"}, "reply": "second {{ colour }}"},
        {"when": {"vote": 0}, "reply": "first {{ colour }}"},
    ]
    assert given(writes, *script)[0] == "first red"
    assert given(lambda one: one.write(QUIZ, TEXTS, draw=1), *script)[0] == "second red"

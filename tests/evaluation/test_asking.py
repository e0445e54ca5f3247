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
from judge.evaluation.benchmark import Given
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

Ask = Callable[[Examinee], Coroutine[Any, Any, Given]]


@pytest.fixture(autouse=True)
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Task] = {"quiz": QUIZ, "label": LABEL}
    monkeypatch.setattr("judge.evaluation.asking.load_task", known.__getitem__)


@pytest.fixture
def given(tmp_path: Path) -> Any:
    def made(ask: Ask, *script: dict[str, Any], reading: Reading = "structured") -> Given:
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
        examinee = Examinee(client, reading, Sampling(0.7, 5)).about({"id": "i1", "colour": "red"})
        return asyncio.run(ask(examinee))

    return made


def choose(examinee: Examinee) -> Coroutine[Any, Any, Given]:
    return examinee.choose("quiz", TEXTS, OPTIONS)


def select(examinee: Examinee) -> Coroutine[Any, Any, Given]:
    return examinee.select("quiz", TEXTS, OPTIONS, 2)


def lists(examinee: Examinee) -> Coroutine[Any, Any, Given]:
    return examinee.lists("quiz", TEXTS)


def writes(examinee: Examinee) -> Coroutine[Any, Any, Given]:
    return examinee.writes("quiz", TEXTS)


def test_a_typed_choice_is_the_place_of_its_letter(given: Any) -> None:
    found = given(choose, {"reply": {"answer": "B"}})
    assert (found.place, found.trouble, found.probabilities) == (1, None, None)
    assert found.usage.replies == 1


def test_a_choice_read_from_the_first_token_has_a_probability_for_each_option(given: Any) -> None:
    found = given(choose, {"words": {" C": 0.6, "a": 0.2, "Zebra": 0.2}}, reading="probability")
    assert found.place == 2
    assert found.probabilities == pytest.approx((0.25, 0.0, 0.75))


def test_options_without_letters_are_read_by_their_words(given: Any) -> None:
    def ask(examinee: Examinee) -> Coroutine[Any, Any, Given]:
        return examinee.choose("label", TEXTS, ("yes", "no", "neutral"))

    found = given(ask, {"words": {"Neutral": 0.5, "Yes": 0.5}}, reading="probability")
    assert found.probabilities == pytest.approx((0.5, 0.0, 0.5))
    assert given(ask, {"reply": {"answer": "neutral"}}).place == 2


def test_an_option_of_several_words_cannot_be_read_from_one_token(given: Any) -> None:
    def ask(examinee: Examinee) -> Coroutine[Any, Any, Given]:
        return examinee.choose("label", TEXTS, ("very good", "bad"))

    with pytest.raises(ValueError, match="letter them"):
        given(ask, {"words": {"very": 1.0}}, reading="probability")


@pytest.mark.parametrize("ask", [choose, select, lists, writes])
def test_a_refusal_is_no_answer_and_not_unreadable(given: Any, ask: Ask) -> None:
    found = given(ask, {"text": "I would rather not.", "finish_reason": "refusal"})
    assert found.trouble == "refused"
    assert (found.place, found.places, found.entries, found.text) == (None, (), (), "")


def test_a_refusal_of_a_first_token_is_one_too(given: Any) -> None:
    refused = {"words": {"a": 1.0}, "finish_reason": "refusal"}
    assert given(choose, refused, reading="probability").trouble == "refused"


def test_no_option_among_the_first_tokens_is_unreadable(given: Any) -> None:
    found = given(choose, {"words": {"Well": 0.99, "a": 0.01}}, reading="probability")
    assert found.trouble == "unreadable"


@pytest.mark.parametrize(
    ("ask", "reply"),
    [
        (choose, {"answer": "D"}),
        (choose, {"answer": "red"}),
        (select, {"answers": ["A", "A"]}),
        (select, {"answers": ["A"]}),
        (select, {"answers": ["A", "B", "C"]}),
        (lists, {"entries": [""]}),
        (lists, {"entries": ["x"] * 21}),
    ],
)
def test_a_reply_that_is_not_valid_is_asked_again_and_then_unreadable(
    given: Any, ask: Ask, reply: dict[str, Any]
) -> None:
    found = given(ask, {"reply": reply})
    assert found.trouble == "unreadable"
    assert found.usage.replies == 2
    assert given(ask, {"reply": reply, "times": 1}, _valid(ask)).trouble is None


def _valid(ask: Ask) -> dict[str, Any]:
    by_ask: dict[Any, dict[str, Any]] = {
        choose: {"answer": "A"},
        select: {"answers": ["C", "A"]},
        lists: {"entries": ["x"]},
    }
    return {"reply": by_ask[ask]}


def test_several_options_come_in_the_order_in_which_they_were_named(given: Any) -> None:
    assert given(select, {"reply": {"answers": ["C", "A"]}}).places == (2, 0)


def test_a_list_is_given_as_it_came(given: Any) -> None:
    assert given(lists, {"reply": {"entries": ["x", "y"]}}).entries == ("x", "y")


def test_a_text_that_was_cut_off_is_given_and_says_so(given: Any) -> None:
    found = given(writes, {"text": " Once upon ", "finish_reason": "length"})
    assert (found.text, found.trouble) == ("Once upon", None)
    assert "cut off at 400 tokens" in found.detail


def test_an_empty_text_is_unreadable(given: Any) -> None:
    assert given(writes, {"text": " \n"}).trouble == "unreadable"


def test_draws_differ_in_their_seed_and_a_script_sees_the_item(given: Any) -> None:
    def second(examinee: Examinee) -> Coroutine[Any, Any, Given]:
        return examinee.writes("quiz", TEXTS, draw=1)

    script = [
        {"when": {"vote": 1, "id": "i1", "rubric": "quiz"}, "reply": "second {{ colour }}"},
        {"when": {"vote": 0}, "reply": "first {{ colour }}"},
    ]
    assert given(writes, *script).text == "first red"
    assert given(second, *script).text == "second red"


def test_a_model_out_of_reach_is_an_error_and_no_answer(given: Any) -> None:
    with pytest.raises(Unreachable):
        given(choose, {"error": "unreachable"})

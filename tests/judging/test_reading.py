"""From first tokens to answers: words of any kind, readers with a combination, turned questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.backends.scripted import ScriptedBackend
from judge.errors import UsageError
from judge.judging.client import Client
from judge.judging.judge import Judge
from judge.judging.limits import Budget
from judge.judging.reading import LEAST_MASS, Logistic, Reader, word_chances
from judge.prompts import messages
from judge.rubric import Rubric, parse, system_text
from judge.subject import Subject
from judge.verdict import Usage, Verdict

LABELS = ("yes", "no", "neutral")


def logs(tokens: Mapping[str, float]) -> dict[str, float]:
    return {token: math.log(p) for token, p in tokens.items()}


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("tokens", "words", "expected"),
    [
        ({"Neutral": 0.5, " yes": 0.2, "No": 0.1, "The": 0.2}, LABELS, (0.25, 0.125, 0.625)),
        ({"1": 0.6, " 1.": 0.1, "2": 0.1, "3": 0.2}, ("1", "2"), (0.875, 0.125)),
        # the order is that of the words, not of the tokens
        ({"No": 0.75, "Yes": 0.25}, ("yes", "no"), (0.25, 0.75)),
        ({"No": 0.75, "Yes": 0.25}, ("no", "yes"), (0.75, 0.25)),
        # a word that no token has is impossible, one that is not asked for counts for nothing
        ({"No": 0.3, "Neutral": 0.6}, ("yes", "no"), (0.0, 1.0)),
        ({"12": 0.9, "1": 0.04}, ("1", "2"), None),
    ],
)
def test_the_share_of_each_word(
    tokens: dict[str, float], words: tuple[str, ...], expected: tuple[float, ...] | None
) -> None:
    found = word_chances(logs(tokens), words)
    assert found == (None if expected is None else pytest.approx(expected))


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1), min_size=2, max_size=6))
def test_shares_add_up_to_one_or_nothing_was_read(parts: list[float]) -> None:
    words = tuple("abcdef"[: len(parts)])
    total = sum(parts) * 1.5
    tokens = {word.upper(): part / total for word, part in zip(words, parts, strict=True)}
    found = word_chances(logs(tokens), words)
    assert found is not None, "two thirds of all there is"
    assert sum(found) == pytest.approx(1)
    assert found == pytest.approx([part / sum(parts) for part in parts])
    thin = {word: p * LEAST_MASS for word, p in tokens.items()}
    assert word_chances(logs(thin), words) is None


# ---------------------------------------------------------------- readers


def listed(steps: str, also: str = "[]", order: str = "") -> Rubric:
    text = (
        "name: own\ntitle: t\nsource: s\nreply: LabelAnswer\nfields: [rule_of_thumb, story]\n"
        f"{order}"
        "verdict: {pass_equals: label}\nreadings:\n  structured: {question: Q}\n  probability:\n"
        f"    steps: {steps}\n    also: {also}"
    )
    return parse(text, "own.yaml")


RUBRIC = listed(
    '[{question: "A?", no: neutral}, {question: "B?", "yes": "yes", "no": "no"}]',
    '[{question: "C?", words: ["yes", "no", neutral]}, {question: "D?"}]',
)
WEIGHED = Logistic(
    questions=(1, 2),
    answers=LABELS,
    weights=((1, 0, 0, 0), (-1, 0, 0, 0), (0, 0, 0, 1)),
    intercepts=(0, 0, 0),
)


def test_the_likeliest_answer_is_taken_and_sure_from_the_threshold_on() -> None:
    # Question C is level, so neutral scores 0; of yes and no one has exp(log 3), the other 1/3.
    read = {1: (0.75, 0.25), 2: (1 / 3, 1 / 3, 1 / 3)}
    whole = 3 + 1 / 3 + 1
    expected = {"yes": 3 / whole, "no": 1 / 3 / whole, "neutral": 1 / whole}
    for sure_at, sure in [(0.0, True), (3 / whole - 1e-9, True), (3 / whole + 1e-9, False)]:
        decided = Reader(combination=WEIGHED, sure_at=sure_at).decide(RUBRIC, read)
        assert decided.probabilities == pytest.approx(expected)
        assert (decided.answer, decided.sure) == ("yes", sure)


def test_a_threshold_on_the_probability_goes_for_the_list_as_well() -> None:
    # A yes at 0.8, then B yes at 0.9: the branch has 0.72.
    read = {0: (0.8, 0.2), 1: (0.9, 0.1)}
    for sure_at, sure in [(0.0, True), (0.71, True), (0.73, False)]:
        decided = Reader(sure_at=sure_at).decide(RUBRIC, read)
        assert (decided.answer, decided.sure) == ("yes", sure)
        assert decided.probabilities == pytest.approx({"yes": 0.72, "no": 0.08, "neutral": 0.2})


# ---------------------------------------------------------------- a judge that reads by one


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client that answers a question with these first tokens, and the prompts that it got."""

    def made(answers: Mapping[str, Mapping[str, float]]) -> tuple[Client, list[str]]:
        path = tmp_path / "judge.yaml"
        path.write_text(yaml.safe_dump({"replies": []}))
        asked: list[str] = []

        async def first_token(self: Client, call: Any) -> tuple[dict[str, float], Usage]:
            prompt = call.messages[-1]["content"]
            asked.append(prompt.rsplit("\n", 1)[-1])
            return logs(answers[asked[-1]]), Usage(1, 10, 1)

        monkeypatch.setattr(Client, "first_token", first_token)
        backend = ScriptedBackend(str(path))
        return Client("scripted:a", backend, cache=None, budget=Budget(), limit=8), asked

    return made


def norm(label: str) -> Subject:
    texts = {"story": "Bo left.", "rule_of_thumb": "Stay to the end."}
    return Subject("n", "norm", texts, "abcd1234", label=label)


@pytest.mark.parametrize(
    ("label", "sure_at", "verdict", "probability"),
    [
        ("yes", 0.0, "pass", 9 / 13),
        ("no", 0.0, "fail", 1 / 13),
        ("neutral", 0.0, "fail", 3 / 13),
        ("yes", 0.7, "abstain", 9 / 13),
    ],
)
async def test_a_vote_by_a_combination_worked_by_hand(
    client: Any, label: str, sure_at: float, verdict: str, probability: float
) -> None:
    # logit(B) = log 3, so yes : no : neutral = 3 : 1/3 : 1, since C is level.
    level = {"Yes": 0.3, "No": 0.3, "neutral": 0.3}
    made, asked = client({"B?": {"Yes": 0.6, "No": 0.2}, "C?": level})
    judge = Judge(RUBRIC, made, "probability", reader=Reader(combination=WEIGHED, sure_at=sure_at))
    vote = await judge.vote(norm(label))
    assert vote.verdict == verdict
    assert vote.evidence[0].probability == pytest.approx(probability, abs=1e-6)
    assert vote.evidence[0].answer == "yes"
    assert asked == ["B?", "C?"] and vote.usage == Usage(2, 20, 2)


async def test_chances_of_any_question_and_none_where_one_is_unreadable(client: Any) -> None:
    made, asked = client(
        {
            "A?": {"Yes": 0.4, "No": 0.4},
            "C?": {"neutral": 0.8, "No": 0.2},
            "D?": {"Maybe": 0.9},
        }
    )
    judge = Judge(RUBRIC, made, "probability")
    found, paid = await judge.chances(norm("yes"), 0, (2, 0))
    assert found is not None and list(found) == [2, 0]
    assert found[2] == pytest.approx((0.0, 0.2, 0.8)) and found[0] == pytest.approx((0.5, 0.5))
    assert paid.replies == 2
    assert (await judge.chances(norm("yes"), 0, (3, 0)))[0] is None
    assert asked == ["C?", "A?", "D?"], "what cannot be used any more is not asked"
    vote = await Judge(
        RUBRIC,
        made,
        "probability",
        reader=Reader(combination=WEIGHED.model_copy(update={"questions": (0, 3)})),
    ).vote(norm("yes"))
    assert vote.verdict is Verdict.UNREADABLE and vote.evidence[0].probability is None


# ---------------------------------------------------------------- fields in each other's place

COMPARISON = Subject.of_texts(
    "c",
    "comparison",
    {"instruction": "Name a fruit.", "output_1": "Apple.", "output_2": "There are so many!"},
    "1",
)
CHOICE = parse(
    """\
name: choice
title: t
source: s
kinds: [comparison]
fields: [instruction, output_1, output_2]
order: [output_1, output_2]
reply: ChoiceAnswer
verdict: {pass_equals: label}
readings:
  structured: {question: "Which is better?"}
  probability:
    steps: [{question: "Is output 1 better?", "yes": "1", "no": "2"}]
    also: [{question: "Is output 1 better?", swapped: true}]
""",
    "choice.yaml",
)
TURNED = """\
[instruction {mark}]
Name a fruit.
[end {mark}]

[output 1 {mark}]
There are so many!
[end {mark}]

[output 2 {mark}]
Apple.
[end {mark}]

Is output 1 better?"""


def sent(prompt: Sequence[Any]) -> str:
    assert [message["role"] for message in prompt] == ["system", "user"]
    assert prompt[0]["content"] == system_text()
    return str(prompt[1]["content"])


def test_a_swapped_question_shows_two_fields_in_each_others_place() -> None:
    golden = TURNED.format(mark=COMPARISON.mark)
    assert sent(messages(CHOICE, COMPARISON, step=1)) == golden, "swapped in the rubric"
    assert sent(messages(CHOICE, COMPARISON, step=0, swapped=True)) == golden, "by the judge"
    # Turned twice it stands as it was.
    straight = sent(messages(CHOICE, COMPARISON, step=0))
    assert straight != golden
    assert sent(messages(CHOICE, COMPARISON, step=1, swapped=True)) == straight


async def test_a_swapped_judge_asks_every_question_turned_round(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = client({})
    seen: list[str] = []

    async def first_token(self: Client, call: Any) -> tuple[dict[str, float], Usage]:
        seen.append(sent(call.messages))
        return logs({"Yes": 0.8, "No": 0.1}), Usage(1)

    monkeypatch.setattr(Client, "first_token", first_token)
    await Judge(CHOICE, made, "probability", swapped=True).chances(COMPARISON, 0, (0, 1))
    assert seen[0] == TURNED.format(mark=COMPARISON.mark)
    assert f"[output 1 {COMPARISON.mark}]\nApple." in seen[1]


# ---------------------------------------------------------------- in a rubric file


@pytest.mark.parametrize(
    ("also", "order", "message"),
    [
        ('[{question: "C?", swapped: true}]', "", "a swapped question needs an order"),
        ('[{question: "C?"}]', "order: [story, value]\n", "story, value are not both among"),
        ('[{question: "C?", words: ["yes"]}]', "", "at least 2 items"),
        ('[{question: "C?", words: [Yes, No]}]', "", "should match pattern|valid string"),
        ('[{question: "{{ nothing }}"}]', "", "unknown variable 'nothing'"),
        ('[{question: "C?", threshold: 0.5}]', "", "no such key"),
    ],
)
def test_what_a_rubric_may_not_ask(also: str, order: str, message: str) -> None:
    steps = '[{question: "A?", no: neutral}, {question: "B?", "yes": "yes", "no": "no"}]'
    with pytest.raises(UsageError, match=message):
        listed(steps, also, order)

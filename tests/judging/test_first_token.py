"""From first tokens to answers: words of any kind, readers with a classifier, turned questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from clients import scripted

from judge.judging.answer_reader import NONE_FITS, AnswerReader
from judge.judging.classifiers import Logistic
from judge.judging.client import Client
from judge.judging.first_token import open_share, word_chances
from judge.judging.judge import Judge
from judge.judging.prompts import mark_of, messages
from judge.questions.from_flags import rubrics_from_flags
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Record
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
        # a word is a whole token, with marks and blanks around it at most
        ({"\u2581A.": 0.3, "\u0120**B": 0.6, "As": 0.05, "A's": 0.05}, ("a", "b"), (1 / 3, 2 / 3)),
        ({"I'm": 0.5, "(I)": 0.2, " H\n": 0.3}, ("i", "h"), (0.4, 0.6)),
        ({"1.5": 0.6, "1": 0.1, "2:": 0.3}, ("1", "2"), (0.25, 0.75)),
        ({"no-one": 0.4, "No,": 0.3, "Yes": 0.3}, ("yes", "no"), (0.5, 0.5)),
    ],
)
def test_the_share_of_each_word(
    tokens: dict[str, float], words: tuple[str, ...], expected: tuple[float, ...] | None
) -> None:
    found = word_chances(logs(tokens), words)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("tokens", "words", "expected"),
    [
        ({"Yes": 0.52}, ("yes", "no"), 0.48),
        ({"Yes": 0.52, "No": 0.48}, ("yes", "no"), 0),
        # what is certain of another word is no word's; what is not listed may be any word's
        ({"Yes": 0.4, "The": 0.3}, ("yes", "no"), 0.3 / 0.7),
        # no token that is not listed is likelier than those that are
        ({"Yes": 0.6, "No": 0.3, "To": 0.001}, ("yes", "no"), 0),
        ({"Yes": 0.6, "No": 0.25, "Well": 0.02}, ("yes", "no"), 0.1 / 0.95),
        ({"Yes": 0.9, "No": 0.0}, ("yes", "no"), 0),
        # a word in pieces, and a piece that hardly matters
        ({"Ye": 0.9, "No": 0.1}, ("yes", "no"), 0.9),
        ({"Yes": 0.5, "No": 0.45, "Ye": 0.05}, ("yes", "no"), 0),
        # 1 may be the first piece of 10, unless the tokenizer has a whole 10
        ({"1": 0.9, "2": 0.1}, ("1", "2", "10"), 0.9),
        ({"1": 0.9, "2": 0.08, "10": 0.02}, ("1", "2", "10"), 0),
        ({"no": 0.9, "yes": 0.1}, ("yes", "no", "none"), 0),
    ],
)
def test_the_share_that_no_listed_token_has(
    tokens: dict[str, float], words: tuple[str, ...], expected: float
) -> None:
    listed = {token: math.log(p) if p else -math.inf for token, p in tokens.items()}
    assert open_share(listed, words) == pytest.approx(expected)


# ---------------------------------------------------------------- readers


RUBRIC = Rubric.from_dict(
    {
        "name": "own",
        "question": "Q",
        "fields": ["rule_of_thumb", "story"],
        "answers": LABELS,
        "pass": "= label",
        "first_token": [
            {"question": "A?", "means": {"no": "neutral"}},
            {"question": "B?", "means": {"yes": "yes", "no": "no"}},
            {"question": "C?", "words": ["yes", "no", "neutral"]},
            "D?",
        ],
    }
)
WEIGHED = Logistic(
    questions=(1, 2),
    answers=LABELS,
    weights=((1, 0, 0, 0), (-1, 0, 0, 0), (0, 0, 0, 1)),
    intercepts=(0, 0, 0),
)


# ---------------------------------------------------------------- a judge that reads by one


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client that answers a question with these first tokens, and the prompts that it got."""

    def made(answers: Mapping[str, Mapping[str, float]]) -> tuple[Client, list[str]]:
        asked: list[str] = []

        async def first_token(
            self: Client, call: Any, *_: object
        ) -> tuple[dict[str, float], Usage]:
            prompt = call.messages[-1]["content"]
            asked.append(prompt.rsplit("\n", 1)[-1])
            return logs(answers[asked[-1]]), Usage(1, 10, 1)

        monkeypatch.setattr(Client, "first_token", first_token)
        return scripted(tmp_path), asked

    return made


def norm(label: str) -> Record:
    texts = {"story": "Bo left.", "rule_of_thumb": "Stay to the end."}
    return Record("n.jsonl", 1, {"id": "n", **texts, "label": label}).of_kind("norm")


@pytest.mark.parametrize(
    ("label", "sure_at", "verdict", "probability"),
    [
        ("yes", 0.0, "pass", 9 / 13),
        ("no", 0.0, "fail", 1 / 13),
        ("neutral", 0.0, "fail", 3 / 13),
        ("yes", 0.7, "abstain", 9 / 13),
    ],
)
async def test_a_vote_by_a_classifier_worked_by_hand(
    client: Any, label: str, sure_at: float, verdict: str, probability: float
) -> None:
    # logit(B) = log 3, so yes : no : neutral = 3 : 1/3 : 1, since C is level.
    level = {"Yes": 0.3, "No": 0.3, "neutral": 0.3, "The": 0.1}
    made, asked = client({"B?": {"Yes": 0.6, "No": 0.2, "Well": 0.2}, "C?": level})
    judge = Judge(
        RUBRIC, made, "logprobs", reader=AnswerReader(classifier=WEIGHED, sure_at=sure_at)
    )
    vote = await judge.vote(norm(label))
    assert vote.verdict == verdict
    assert vote.evidence[0].probability == pytest.approx(probability, abs=1e-6)
    assert vote.evidence[0].answer == "yes"
    assert asked == ["B?", "C?"] and vote.usage == Usage(2, 20, 2)


@pytest.mark.parametrize(
    ("first", "second", "margin", "verdict", "bounds"),
    [
        ({"Yes": 0.8}, {"Yes": 1.0}, 0.0, "pass", (0.8, 1.0)),
        ({"Yes": 0.8}, {"Yes": 1.0}, 0.4, "abstain", (0.8, 1.0)),
        ({"Yes": 0.4}, {"Yes": 1.0}, 0.0, "abstain", (0.4, 1.0)),
        # P(yes) = P(A) x P(B), and both are open
        ({"Yes": 0.8}, {"No": 0.9, "Yes": 0.04}, 0.0, "fail", (0.8 * 0.04, 0.1)),
        ({"Yes": 1.0}, {"Yes": 0.99}, 0.0, "pass", None),
    ],
)
async def test_a_vote_is_sure_whatever_the_unlisted_tokens_are_or_abstains(
    client: Any,
    first: Mapping[str, float],
    second: Mapping[str, float],
    margin: float,
    verdict: str,
    bounds: tuple[float, float] | None,
) -> None:
    made, _ = client({"A?": first, "B?": second})
    judge = Judge(RUBRIC, made, "logprobs", reader=AnswerReader(margin=margin))
    vote = await judge.vote(norm("yes"))
    (found,) = vote.evidence
    assert vote.verdict == verdict
    assert found.probability_range == (bounds and pytest.approx(bounds))
    assert (found.probability is None) == (bounds is not None)
    if verdict == "abstain" and bounds:
        assert vote.reason == (
            f"P(pass) is between {bounds[0]:.2f} and {bounds[1]:.2f}: "
            "the model lists too little of the first token's probability"
        )


async def test_chances_of_any_question_and_none_where_one_is_unreadable(client: Any) -> None:
    made, asked = client(
        {"A?": {"Yes": 0.4, "No": 0.4}, "C?": {"neutral": 0.8, "No": 0.2}, "D?": {"Maybe": 0.9}}
    )
    judge = Judge(RUBRIC, made, "logprobs")
    record = norm("yes")
    observer, call = judge.observer, judge.call(record)
    seen = await observer.observe(record, 0, call, (2, 0))
    found = seen.chances
    assert list(found) == [2, 0]
    assert found[2] == pytest.approx((0.0, 0.2, 0.8)) and found[0] == pytest.approx((0.5, 0.5))
    assert seen.usage.replies == 2
    assert not (await observer.observe(record, 0, call, (3, 0))).chances
    assert asked == ["C?", "A?", "D?"], "what cannot be used any more is not asked"
    vote = await Judge(
        RUBRIC,
        made,
        "logprobs",
        reader=AnswerReader(classifier=WEIGHED.model_copy(update={"questions": (0, 3)})),
    ).vote(norm("yes"))
    assert vote.verdict is Verdict.UNREADABLE and vote.evidence[0].probability is None


# ---------------------------------------------------------------- fields in each other's place

COMPARISON = Record(
    "c.jsonl",
    1,
    {"instruction": "Name a fruit.", "output_1": "Apple.", "output_2": "There are so many!"},
)


def test_a_swapped_question_shows_two_fields_in_each_others_place() -> None:
    def first(step: int) -> str:
        """What stands as the first output."""
        rubric = builtin()["preference"]
        prompt = messages(rubric, COMPARISON, step=step)
        mark = mark_of(rubric, COMPARISON)
        return prompt[1]["content"].split(f"[output 1 {mark}]\n")[1].split("\n")[0]

    questions = builtin()["preference"].first_token or ()
    turned = next(n for n, one in enumerate(questions) if one.swap)
    assert (first(0), first(turned)) == ("Apple.", "There are so many!")


@pytest.mark.parametrize(
    ("answers", "words", "ends"),
    [
        ("B,A", ("b", "a"), "Which? Answer with one of the letters B, A."),
        ("0,1,2", ("0", "1", "2"), "Which? Answer with one of the numbers 0, 1, 2."),
        # Not one sign for each: by letters of their own.
        ("1,10", ("a", "b"), "A. 1\nB. 10\nAnswer with the letter."),
        ("a,1", ("a", "b"), "A. a\nB. 1\nAnswer with the letter."),
        ("bad,good", ("a", "b"), "A. bad\nB. good\nAnswer with the letter."),
    ],
)
def test_answers_of_one_sign_are_asked_for_by_that_sign(
    answers: str, words: tuple[str, ...], ends: str
) -> None:
    """A question with `A. B` and `B. A` would be read either way."""
    listed = answers.split(",")
    passes = ">= 2" if listed[0].isdigit() else listed[0]
    (rubric,) = rubrics_from_flags("Which?", [], answers=listed, passes=passes)
    first = (rubric.first_token or ())[0]
    assert (first.words, first.question.endswith(ends)) == (words, True)
    assert [*first.means.values()] == [*rubric.answers]


@pytest.mark.parametrize(
    ("chances", "verdict", "said"),
    [
        ({"A": 0.2, "B": 0.1, "C": 0.7}, "abstain", "none of these"),
        ({"A": 0.5, "B": 0.1, "C": 0.4}, "pass", "one"),
    ],
)
async def test_where_none_fits_a_judge_fitted_to_labels_without_none_abstains(
    client: Any, chances: Mapping[str, float], verdict: str, said: str
) -> None:
    text = (
        "name: own\nquestion: Which?\nanswers: [one, two]\npass: one\nnone: true\nfields: [story]"
    )
    rubric = Rubric.from_text(text)
    weights = ((0.0,) * 3, (0.0,) * 3)
    made, _ = client({"Answer with the letter.": chances})
    # It answers one, whatever it reads.
    fitted = Logistic(
        questions=(0,), answers=rubric.answers[:2], weights=weights, intercepts=(2.0, 0.0)
    )
    judge = Judge(rubric, made, "logprobs", reader=AnswerReader(classifier=fitted))
    vote = await judge.vote(norm("yes"))
    assert (vote.verdict, vote.evidence[0].answer) == (verdict, said)
    assert vote.reason == (NONE_FITS if said == "none of these" else None)

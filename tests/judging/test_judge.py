from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clients import scripted
from judge.graphs.values import Value

from judge.judging.answer_reader import NOT_LISTED, AnswerReader
from judge.judging.client import Client
from judge.judging.judge import Judge, Sampling
from judge.judging.prompts import mark_of
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.verdict import Verdict

STORY = "An shook her head. Bo left her there."
VALUES = tuple(Value.parse(f"{s}--Agree") for s in ("one", "two"))
STORY_SUBJECT = Record(
    "s.jsonl", 1, {"id": "s", "story": STORY, "values": [value.text for value in VALUES]}
).of_kind("story")


def norm(label: str | None) -> Record:
    texts = {"story": STORY, "rule_of_thumb": "Stay to the end."}
    return Record("n.jsonl", 1, {"id": "n", **texts, "label": label}).of_kind("norm")


@pytest.fixture
def client(tmp_path: Path) -> Any:
    return partial(scripted, tmp_path)


# ---------------------------------------------------------------- decision lists, by hand


def listed(
    *steps: dict[str, Any], passes: str = "yes", answers: Sequence[str] = ("yes", "no", "neutral")
) -> Rubric:
    """A rubric with this decision list; questions are named A, B, C."""
    named = [
        {"question": f"Question {q}?", "means": step} for q, step in zip("ABC", steps, strict=False)
    ]
    keys = {"name": "own", "question": "Q", "fields": ["rule_of_thumb", "story"], "pass": passes}
    return Rubric.from_dict({**keys, "answers": answers, "first_token": named})


ONE = listed({"yes": "yes", "no": "no"}, passes="no")
TWO = listed({"no": "neutral"}, {"yes": "yes", "no": "no"}, passes="= label")
YES_FIRST = listed({"yes": "no"}, {"yes": "yes", "no": "neutral"}, passes="= label")


@pytest.mark.parametrize(
    ("rubric", "label", "chances", "answer", "verdict", "probability"),
    [
        # one step: yes with P, no with 1 - P; here a no passes
        (ONE, None, [0.3], "no", "pass", 0.7),
        (ONE, None, [0.9], "yes", "fail", 0.1),
        # A no -> neutral; else B yes -> yes, B no -> no
        (TWO, "yes", [0.8, 0.9], "yes", "pass", 0.8 * 0.9),
        (TWO, "no", [0.8, 0.9], "yes", "fail", 0.8 * 0.1),
        (TWO, "neutral", [0.3, 0.9], "neutral", "pass", 0.7),
        (TWO, "no", [0.6, 0.2], "no", "pass", 0.6 * 0.8),
        # A yes -> no; else B yes -> yes, B no -> neutral
        (YES_FIRST, "no", [0.7, 0.9], "no", "pass", 0.7),
        (YES_FIRST, "yes", [0.4, 0.9], "yes", "pass", 0.6 * 0.9),
    ],
)
async def test_a_decision_list_worked_by_hand(
    client: Any,
    rubric: Rubric,
    label: str | None,
    chances: Sequence[float],
    answer: str,
    verdict: str,
    probability: float,
) -> None:
    script = [
        {"when": {"contains": f"Question {q}?"}, "p_yes": p}
        for q, p in zip("AB", chances, strict=False)
    ]
    vote = await Judge(rubric, client(*script), "logprobs").vote(norm(label))
    assert (vote.verdict, vote.evidence[0].answer) == (verdict, answer)
    assert vote.evidence[0].probability == pytest.approx(probability, abs=1e-6)
    assert vote.usage.replies == len(chances), "every step is asked, so that P is always whole"


@pytest.mark.parametrize(("margin", "verdict"), [(0.0, "pass"), (0.2, "abstain")])
async def test_near_a_threshold_it_abstains(client: Any, margin: float, verdict: str) -> None:
    script = [{"when": {"contains": "Question A?"}, "p_yes": 0.8}, {"p_yes": 0.6}]
    judge = Judge(TWO, client(*script), "logprobs", reader=AnswerReader(margin))
    vote = await judge.vote(norm("yes"))
    assert vote.verdict == verdict
    assert vote.evidence[0].probability == pytest.approx(0.8 * 0.6)


@pytest.mark.parametrize("hundredths", [10, 15, 20, 25, 30, 35, 40, 45])
async def test_a_probability_at_the_margin_decides(client: Any, hundredths: int) -> None:
    chances = [(50 - hundredths) / 100, (50 + hundredths) / 100]
    verdicts = []
    for chance in (*chances, chances[0] + 0.001):
        reader = AnswerReader(hundredths / 100)
        judge = Judge(ONE, client({"p_yes": chance}), "logprobs", reader=reader)
        verdicts.append((await judge.vote(norm(None))).verdict)
    assert verdicts == ["pass", "fail", "abstain"]


@pytest.mark.parametrize(("margin", "verdict"), [(0.09, "pass"), (0.11, "abstain")])
async def test_a_score_near_its_bound_abstains(client: Any, margin: float, verdict: str) -> None:
    text = "name: own\nquestion: How kind?\nanswers: [1, 2, 3]\npass: '>= 2'\nfields: [story]\n"
    # It passes with a probability of 0.6: 0.2 more than it fails with.
    asked = client({"words": {"1": 0.4, "2": 0.1, "3": 0.5}})
    judge = Judge(
        Rubric.from_text(text, "own.yaml"), asked, "logprobs", reader=AnswerReader(margin)
    )
    vote = await judge.vote(norm(None))
    assert (vote.verdict, vote.evidence[0].probability) == (verdict, pytest.approx(0.6))


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ("[1, 2, 3]", {"1": 0.45, "2": 0.35}),
        ("[1, 2, 3]", {"1": 0.6}),  # The mean is between 1 and 1.8.
        ("[1, 2, 3]", {"1": 0.8, "2": 0.1}),  # 1 is the likeliest, and the mean 1.1 to 1.3
        ("[one, two]", {"A": 0.45, "B": 0.35}),
    ],
)
async def test_an_unlisted_share_is_the_reason_where_answers_are_counted(
    client: Any, answers: str, words: dict[str, float]
) -> None:
    text = f"name: own\nquestion: How?\nanswers: {answers}\nfields: [story]\n"
    asked = client({"words": words})
    vote = await Judge(Rubric.from_text(text), asked, "logprobs").vote(norm(None))
    assert (vote.verdict, vote.reason) == (Verdict.ABSTAIN, NOT_LISTED)


async def test_neither_yes_nor_no_is_unreadable_never_a_no(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first_token(self: Client, call: Any, *_: object) -> Any:
        from judge.verdict import Usage

        text = call.messages[-1]["content"]
        return ({"Maybe": -0.1} if "one--Agree" in text else {"Neither": -0.01}), Usage(1)

    monkeypatch.setattr(Client, "first_token", first_token)
    judge = Judge(builtin()["consistency"], client(), "logprobs")
    vote = await judge.vote(STORY_SUBJECT)
    assert list(vote.verdicts().values()) == [Verdict.UNREADABLE, Verdict.PASS]
    assert vote.verdict is Verdict.UNREADABLE
    assert [one.probability is None for one in vote.evidence] == [True, False]
    assert vote.reason is not None and vote.usage.replies == 2


# ---------------------------------------------------------------- structured


@pytest.mark.parametrize(
    ("quote", "verdict", "reason"),
    [
        (None, "unreadable", "invalid: the answer '2' needs a quote from the answer 2"),
        ("Ann came in", "unreadable", "'Ann came in' is not in the answer 2"),
        ("Bo went out", "pass", ""),
    ],
)
async def test_a_comparison_needs_the_quote_that_its_rubric_asks_for(
    client: Any, quote: str | None, verdict: str, reason: str
) -> None:
    keys = {"name": "better", "question": "Which?", "compare": ["old", "new"], "pass": "new"}
    rubric = Rubric.from_dict({**keys, "quote": {"field": "new", "answers": ["new"]}})
    record = Record("a.jsonl", 1, {"old": "Ann came in.", "new": "Bo went out."})
    replies = (
        {
            "when": {"contains": f"[answer 1 {mark_of(rubric, record)}]\n{first}"},
            "reply": {"quote": quote, "reason": "", "answer": answer},
        }
        for first, answer in (("Ann", "2"), ("Bo", "1"))
    )
    vote = await Judge(rubric, client(*replies), "structured").vote(record)
    assert vote.verdict == verdict and (vote.reason or "").endswith(reason)


@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("structured", {"reply": {"quote": None, "reason": "", "answer": "2"}}),
        ("logprobs", {"words": {"1": 0.2, "2": 0.8}}),
        # An invalid reply, and asking again fails.
        ("structured", {"reply": {"quote": None, "reason": "", "answer": "3"}}),
    ],
)
async def test_a_vote_that_fails_was_paid_for_in_its_first_reply(
    client: Any, method: Any, first: dict[str, Any]
) -> None:
    rubric = Rubric.from_dict({"name": "better", "question": "Which?", "compare": ["old", "new"]})
    record = Record("a.jsonl", 1, {"old": "Ann came in.", "new": "Bo went out."})
    replies = client({**first, "times": 1}, {"error": "bad-request"}, reasks=1)
    vote = await Judge(rubric, replies, method).vote(record)
    assert (vote.verdict, vote.usage.replies) == (Verdict.ERROR, 1)
    assert vote.reason == "bad-request: scripted bad-request"


async def test_a_vote_on_entries_says_why_one_is_lost_before_what_another_lacks(
    client: Any,
) -> None:
    rubric = Rubric.from_dict({"name": "fine", "question": "Fine?", "each": "parts"})
    record = Record("a.jsonl", 1, {"text": "x", "parts": ["one", "two"]})
    unfounded = {"reply": {"quote": "not there at all", "reason": "", "answer": "yes"}}
    replies = ({"when": {"contains": "two"}, "error": "bad-request"}, unfounded)
    vote = await Judge(rubric, client(*replies), "structured").vote(record)
    assert [one.verdict for one in vote.evidence] == [Verdict.PASS, Verdict.ERROR]
    assert vote.reason == "bad-request: scripted bad-request"


async def test_a_structured_vote_carries_its_evidence(client: Any) -> None:
    found = [{"character": "Bo", "quote": "Bo left her there."}]
    reply = {
        "values": [
            {"value": 1, "reason": "r", "speeches": found},
            {"value": 2, "reason": "", "speeches": []},
        ]
    }
    judge = Judge(builtin()["consistency"], client({"reply": reply}), "structured")
    vote = await judge.vote(STORY_SUBJECT, vote=3, sampling=Sampling(0.7, 10))
    assert list(vote.verdicts().values()) == [Verdict.FAIL, Verdict.PASS]
    assert (vote.seed, vote.temperature, vote.verdict) == (13, 0.7, Verdict.FAIL)
    assert [(f.value, f.character, f.quote, f.answer, f.reason) for f in vote.evidence] == [
        (VALUES[0].text, "Bo", "Bo left her there.", "yes", "r"),
        (VALUES[1].text, None, None, "no", None),
    ]

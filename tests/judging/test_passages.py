"""Questions to each passage of a text: the cuts, the deciding passage, the quote."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clients import scripted
from hypothesis import given
from hypothesis import strategies as st

from judge.backends.base import Call
from judge.errors import UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Logistic
from judge.judging.client import Client
from judge.judging.judge import Judge
from judge.judging.overlap import overlap
from judge.judging.passages import MAX_WORDS, passages
from judge.judging.prompts import mark_of, messages
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.records.words import word_count

LONG = "One two three four five six, she said, and " + "seven eight nine ten " * 4 + "came after."
HALF = "One two three four five six seven eight nine ten, she said."
TEACHING = Path(__file__).parents[2] / "docs" / "examples" / "teaching" / "passage.yaml"
VALUES = ("Tipping should be abolished--Agree", "Shops should be open on Sundays--Agree")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{LONG}\n\n{LONG}\n{LONG}", [LONG, LONG, LONG]),
        # a short one goes with the one before it, and the first with the next
        (f"{LONG}\n\nYes.\n\n{LONG}", [f"{LONG}\n\nYes.", LONG]),
        (f"Yes.\n\n{LONG}", [f"Yes.\n\n{LONG}"]),
        ("  \n ", []),
        ("Ana.", ["Ana."]),
        (
            "他笑了。\n十六岁就该投票，我们一直这样说。",
            ["他笑了。\n十六岁就该投票，我们一直这样说。"],
        ),
    ],
)
def test_a_text_is_cut_into_its_paragraphs(text: str, expected: list[str]) -> None:
    assert list(passages(text)) == expected


def test_a_long_paragraph_is_cut_where_sentences_end() -> None:
    found = passages(" ".join([HALF] * 12))
    assert [len(one.split()) for one in found] == [48, 48, 48]
    assert all(one.startswith("One two") and one.endswith("said.") for one in found)


@given(
    st.lists(st.sampled_from([f"{LONG} ", "Yes. ", "\n", "\n\n", " ", "word " * 200]), max_size=30)
)
def test_nothing_of_a_text_is_lost_or_changed(parts: list[str]) -> None:
    text = "".join(parts)
    found = passages(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    at = 0
    for one in found:
        at = text.index(one, at) + len(one)
    sentences = [one for one in found if "word" not in one]
    assert all(len(one.split()) <= MAX_WORDS for one in sentences)


# ---------------------------------------------------------------- judging by them

SHOWN = (
    '"I gave the waiter my watch," said Bo, "because he carried nine plates at once, and smiled, '
    'and my mother did the same when I was small and we had little."'
)
AGAINST = (
    '"Put that coin away," said Ana, "they are paid for their work, like you and me, and nobody '
    'ever put a coin into your hand when you had mended a tap."'
)
STORY = f"{SHOWN}\n\n{AGAINST}"


def client(tmp_path: Path, replies: list[dict[str, Any]], slots: int | None = None) -> Client:
    made = scripted(tmp_path, *replies, limit=1)
    made.backend.slots = slots
    return made


def record(story: str = STORY, values: tuple[str, ...] = VALUES) -> Record:
    fields = {"story": story, "values": [*values]}
    return Record("s.jsonl", 1, fields).of_kind("story")


def reader(check: str) -> tuple[Rubric, AnswerReader]:
    """The check decided by its question about passages alone, at a half."""
    rubric = builtin()[check]
    known = rubric.first_token or ()
    place = next(n for n, one in enumerate(known) if one.passages)
    half = Logistic(
        questions=(place,), answers=("yes", "no"), weights=((1,), (0,)), intercepts=(0, 0)
    )
    return rubric, AnswerReader(classifier=half)


def said(passage: str, value: str, **words: float) -> list[dict[str, Any]]:
    end = f"[end {record().mark(['story'])}]"
    return [{"when": {"contains": f"{passage}\n{end}\n\nIs somebody"}, "words": words}]


@pytest.mark.parametrize(
    ("check", "verdict", "quote", "probability"),
    [
        ("incorporation", "pass", AGAINST, 0.9),  # for 0.6 and stated 0.3, in one passage
        ("consistency", "fail", SHOWN, 0.3),  # against 0.7; a pass is a no
        ("implicitness", "pass", None, 0.7),  # stated 0.3 at most
    ],
)
async def test_the_likeliest_passage_decides_and_is_quoted(
    tmp_path: Path, check: str, verdict: str, quote: str | None, probability: float
) -> None:
    replies = [
        *said(SHOWN, VALUES[0], against=0.7, neither=0.2, states=0.1),
        *said(AGAINST, VALUES[0], **{"for": 0.6, "states": 0.3, "against": 0.1}),
    ]
    rubric, read = reader(check)
    judge = Judge(rubric, client(tmp_path, replies), "logprobs", reader=read)
    vote = await judge.vote(record(values=VALUES[:1]))
    (found,) = vote.evidence
    assert (found.verdict, found.quote, found.probability) == (verdict, quote, probability)
    assert vote.usage.replies == 2


async def test_the_sentence_that_has_the_words_is_quoted_where_it_lies_in_the_passage(
    tmp_path: Path,
) -> None:
    spoken = "Shops should be open on Sundays."
    long = f'{SHOWN} Ana put the coin away. "{spoken}"'
    both = Logistic(
        questions=(0, 1), answers=("yes", "no"), weights=((1, 1), (0, 0)), intercepts=(0, 0)
    )
    replies = [*said(AGAINST, VALUES[1], neither=1.0), {"when": {}, "words": {"states": 0.9}}]
    read = AnswerReader(classifier=both)
    judge = Judge(builtin()["implicitness"], client(tmp_path, replies), "logprobs", reader=read)
    for story, quote in ((f"{long}\n\n{AGAINST}", spoken), (f"{SHOWN}\n\n{AGAINST}", SHOWN)):
        vote = await judge.vote(record(story, VALUES[1:]))
        assert (vote.verdict, vote.evidence[0].quote) == ("fail", quote)


async def test_a_passage_that_cannot_be_read_leaves_the_value_unreadable(tmp_path: Path) -> None:
    replies = [*said(SHOWN, VALUES[0], neither=0.9), *said(AGAINST, VALUES[0], maybe=0.9)]
    rubric, read = reader("incorporation")
    judge = Judge(rubric, client(tmp_path, replies), "logprobs", reader=read)
    assert (await judge.vote(record())).verdict == "unreadable"


async def test_an_engine_is_asked_about_all_values_before_the_next_passage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it evaluates a passage once: the prompts share their beginning."""
    asked: list[tuple[bool, bool]] = []
    made = client(tmp_path, [{"when": {}, "words": {"neither": 1.0}}], slots=1)
    complete = made.backend.complete

    async def heard(call: Call, *rest: Any) -> Any:
        content = str(call.messages[1]["content"])
        asked.append((AGAINST in content, VALUES[1] in content))
        await asyncio.sleep(0)  # As an engine on its thread would.
        return await complete(call, *rest)

    monkeypatch.setattr(made.backend, "complete", heard)
    rubric, read = reader("incorporation")
    await Judge(rubric, made, "logprobs", reader=read).vote(record())
    assert asked == [(False, False), (False, True), (True, False), (True, True)]


def test_the_adapter_is_taught_the_very_question_that_the_checks_ask() -> None:
    taught = Rubric.from_file(TEACHING)
    about = Record("s.jsonl", 1, {"story": SHOWN, "value": VALUES[0]})
    for check in ("incorporation", "consistency", "implicitness"):
        rubric, read = reader(check)
        asked = messages(rubric, record(SHOWN), step=read.questions(rubric)[0], numbers=(1,))
        learnt = messages(taught, about, step=0)
        marks = mark_of(taught, about), mark_of(rubric, record(SHOWN))
        assert str(learnt).replace(*marks) == str(asked)


def test_passages_are_words_of_a_question_about_one_text() -> None:
    base = builtin()["incorporation"].model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (step,) = base["first_token"]
    question = {"question": "Q?", "words": ["for", "neither"], "passages": ["against"]}
    base["first_token"].append(question)
    with pytest.raises(UsageError, match="'against' is not one of the words"):
        Rubric.from_dict(base)
    question["passages"] = ["for"]
    Rubric.from_dict(base)
    sought = step.pop("passages")
    with pytest.raises(UsageError, match="means: 'no' is not one of the words"):
        Rubric.from_dict(base)
    step["passages"] = sought
    with pytest.raises(UsageError, match="passages come from one text"):
        Rubric.from_dict({**base, "fields": ["story", "background"]})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ('Ann said: "Hi -- there."', 5),
        ("\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4", 2),  # Korean has blanks
        ("\u300c\u4f60\u597d\uff0c\u4e16\u754c\u3002\u300d", 4),  # 你 好 世 界
        ("\u6771\u4eac\u30bf\u30ef\u30fc 333 m", 7),
        ("\uff76\uff9e\uff77\uff9e\u884c", 3),  # two katakana of half width, with their marks
        ("\u0e17\u0e35\u0e48\u0e19\u0e35\u0e48", 2),  # two letters of Thai, four marks
        ("\u0e23\u0e32\u0e04\u0e32\u0e51\u0e50\u0e50", 5),  # four letters, and the number 100
        ("-" * 100_000 + "\u0e35" * 100_000, 2),
    ],
)
def test_letters_of_scripts_without_spaces_are_counted_as_words(text: str, count: int) -> None:
    assert word_count(text) == count


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    [
        lambda n: "Ana came.\n" + " " * n + "\nShe left.",
        lambda n: "word " * 100 + "\u3002" * n,
        lambda n: ("Ana.\n" + "\n" * (n // 80)) * 80,
    ],
)
def test_time_grows_with_the_text_and_no_faster(hostile: Callable[[int], str]) -> None:
    def seconds(size: int) -> float:
        text = hostile(size)
        began = time.process_time()
        passages(text)
        overlap("Shops should open on Sundays", text)
        return time.process_time() - began

    # The best of some: what else the machine does makes a run slower, never faster.
    long, short = (min(seconds(size) for _ in range(4)) for size in (100_000, 10_000))
    assert long < 30 * max(short, 0.01)

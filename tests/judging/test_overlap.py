"""Word overlap, without a model: how many of a value's words one sentence of a story has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from clients import scripted

from judge.backends.base import Call
from judge.errors import UsageError
from judge.judging.answer_reader import AnswerReader
from judge.judging.classifiers import Logistic
from judge.judging.client import Client
from judge.judging.judge import Judge
from judge.judging.overlap import overlap
from judge.questions.ready_made import builtin
from judge.questions.rubric import Rubric
from judge.records import Record
from judge.stats.classification import aucs
from judge.verdict import Usage

PASSAGES = Path(__file__).parents[2] / "fixtures" / "labelled" / "passages.jsonl"
STATED = 'People should vote from sixteen," said Ana.'
STORY = f'Ana fed the hens. "{STATED} Bo laughed.\n\n"I\'d have handed her my pencil," said Bo.'


@pytest.mark.parametrize(
    ("statement", "text", "share", "sentence"),
    [
        ("Sixteen is the age at which people vote", STORY, 3.5 / 7, STATED),
        ("Old houses stay", STORY, 0.5 / 4, ""),
        # words of two sentences, or of two lines, do not add up
        ("hens pencil", STORY, 1.5 / 3, "Ana fed the hens."),
        ("投票十六", "他笑了。十六岁就该投票！", 4.5 / 5, "十六岁就该投票！"),
        # a word of Hindi has its vowels and marks, and the stroke ends a sentence
        ("आदमी नहीं होती", "वह आया। आदमी नहीं आया। होती रही", 2.5 / 4, "आदमी नहीं आया।"),
        ("cafe\u0301 cafe", "the café", 1.5 / 3, "the café"),
        ("ที่ ๑๐๐", "ที่นี่", 1.5 / 2, "ที่นี่"),
        ("", STORY, 0.5, ""),
    ],
)
def test_the_share_of_the_words_that_one_sentence_has(
    statement: str, text: str, share: float, sentence: str
) -> None:
    assert overlap(statement, text) == (pytest.approx(share), sentence)


def test_passages_that_state_a_value_outright_share_its_words() -> None:
    """AUC 0.88 on our labelled passages, on which the words to compare were chosen."""
    given = [json.loads(line) for line in PASSAGES.read_text("utf-8").splitlines()]
    shares = np.array([overlap(one["statement"], one["story"])[0] for one in given])
    stated = np.array([one["labels"]["passage"] == "states" for one in given])
    assert stated.sum() == 60
    assert aucs(stated, shares, np.ones((1, len(given))))[0] == pytest.approx(0.878, abs=0.001)


async def test_a_value_that_a_sentence_repeats_is_found_and_quoted_without_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first_token(self: Client, call: Call, *_: object) -> tuple[dict[str, float], Usage]:
        raise AssertionError("nothing is to be asked")

    monkeypatch.setattr(Client, "first_token", first_token)
    half = Logistic(
        questions=(1,), answers=("yes", "no"), weights=((1,), (0,)), intercepts=(0.2, 0)
    )
    reader = AnswerReader(classifier=half)
    judge = Judge(builtin()["implicitness"], scripted(tmp_path), "logprobs", reader=reader)
    values = ("People should vote from the age of sixteen--Agree", "Old houses stay--Agree")
    record = Record("s.jsonl", 1, {"story": STORY, "values": [*values]}).of_kind("story")
    vote = await judge.vote(record)
    assert [(one.verdict, one.quote) for one in vote.evidence] == [("fail", STATED), ("pass", None)]
    assert vote.usage == Usage()


def test_overlap_is_counted_for_values_only() -> None:
    counted = {"question": "Q?", "overlap": True}
    rubric = {"name": "own", "question": "Q", "fields": ["story"], "first_token": ["Q?", counted]}
    with pytest.raises(UsageError, match="overlap counts the words of an entry"):
        Rubric.from_dict(rubric)

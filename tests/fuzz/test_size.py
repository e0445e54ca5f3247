"""What once took quadratic time, or many times the memory: at sizes where that would be hours."""

from __future__ import annotations

import random
import time

import pytest

from judge import evidence
from judge.judging.reading import word_chances
from judge.replies import About, Rewrite, Rewrites
from judge.verdict import Check, Finding, Verdict, Vote

SECONDS = 60


def test_a_reply_about_a_hundred_thousand_values() -> None:
    record = About(texts={}, passages=100_000)
    parts = [Rewrite(passage=number, text="x") for number in range(1, 100_001)]
    began = time.monotonic()
    assert list(Rewrites.model_construct(rewrites=parts).problems(record)) == []
    wrong = [Rewrite(passage=0, text="x")] * 2 + parts[:-1]
    assert list(Rewrites.model_construct(rewrites=wrong).problems(record)) == [
        "passage 0 was not asked about; the numbers are the 100000 from 1 to 100000",
        "passage 100000 is not answered",
    ]
    assert time.monotonic() - began < SECONDS


def test_findings_about_twenty_thousand_values() -> None:
    texts = [f"tea {number}--good" for number in range(20_000)]
    found = tuple(Finding(verdict=Verdict.PASS, value=text) for text in texts)
    vote = Vote(verdict=Verdict.PASS, model="m", evidence=found)
    began = time.monotonic()
    check = Check(name="incorporation", verdict=Verdict.PASS, votes=(vote, vote))
    assert check.bearing() == found
    assert time.monotonic() - began < SECONDS


def test_a_long_quote_that_stands_nowhere() -> None:
    chosen = random.Random(1)
    text = "".join(chosen.choices("abcdefgh ij", k=100_000))
    quote = "".join(chosen.choices("abcdefgh ij", k=20_000))
    began = time.monotonic()
    assert evidence.locate(quote, text) is None
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 800.0, 0.5])
def test_what_is_no_log_probability_is_not_read(odd: float) -> None:
    assert word_chances({"yes": odd, "no": -0.1}) is None
    assert word_chances({"yes": -0.1, "other": odd}) is None


def test_no_log_probabilities_are_nothing_read() -> None:
    assert word_chances({}) is None
    assert word_chances({"yes": float("-inf")}) is None
    assert word_chances({"yes": 1e-7}) == (1.0, 0.0)

"""What an open line carries comes back as it was, as far as any reading looks at it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from judge.backends.base import Completion
from judge.errors import ContextExceeded, UsageError
from judge.judging.carried import Heard
from judge.judging.client import Client
from judge.judging.reading import word_chances
from judge.records import Item, Problem, Record, SeenIds, build
from judge.run.lines import earlier
from judge.run.openline import carried, first_line, left_open
from judge.run.setup import Bound, Setup
from judge.settings import resolve

FIELDS = {"rule_of_thumb": "Greet.", "story": "He greets."}
TOKENS = ((" Yes", -0.1234567890123), ("no", -3.5), ("maybe", -4.0), ("YES", -5.0), ("\ud800", -6))


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("replies: []")
    (tmp_path / "b.yaml").write_text("replies: [{}]")
    given = {"model": ("scripted:a.yaml",), "cheap_model": "scripted:b.yaml", "cache": False}
    return Setup.of(resolve(given))


def line(setup: Setup, heard: dict[str, Heard]) -> tuple[dict[str, Any], bytes]:
    with SeenIds() as ids:
        record = build(Item("in", 17, dict(FIELDS)), None, ids)
    assert isinstance(record, Record) and not isinstance(record, Problem)
    bound: Bound = setup.bound("norm")
    client: Client = setup.client("scripted:b.yaml")
    text = left_open(record, ["relevance", "relevance", "leakage"], heard, bound, client).text
    return json.loads(text)["judge"], text


def test_readings_are_the_same_from_what_is_carried(setup: Setup) -> None:
    given = Completion("Yes", "length", 41, 1, 30, (*TOKENS, ("No", -math.inf)))
    judgement, _ = line(setup, {"k": given, "none": Completion("", "refusal", 3, 0)})
    back, seeded = carried(judgement, "here")
    read = back["k"]
    assert isinstance(read, Completion) and read.first_token == (TOKENS[0], TOKENS[1], TOKENS[3])
    assert given.first_token is not None
    assert word_chances(dict(read.first_token)) == word_chances(dict(given.first_token))
    assert (read.text, read.finish_reason, read.input_tokens, read.output_tokens) == (
        ("Yes", "length", 41, 1)
    )
    assert back["none"] == Completion("", "refusal", 3, 0) and seeded is True
    assert judgement["usage"]["replies"] == 2 and judgement["usage"]["input_tokens"] == 44
    assert first_line(judgement) == 17
    assert judgement["reason"] == "for the strong stage: relevance, leakage"


def test_faults_keep_their_kind_and_words(setup: Setup) -> None:
    judgement, _ = line(setup, {"k": ContextExceeded("the prompt has 9 tokens")})
    back = carried(judgement, "here")[0]["k"]
    assert (back.kind, str(back)) == ("context-exceeded", "the prompt has 9 tokens")  # type: ignore[union-attr]


def test_an_open_line_stands_for_the_cheap_stage_alone(setup: Setup) -> None:
    _, text = line(setup, {})
    found = earlier(text)
    assert found is not None and not found.finished
    assert found.stands(open_stands=True) and not found.stands()


@pytest.mark.parametrize(
    "damage",
    [
        {"stage": None},
        {"stage": {"replies": {}}},
        {"stage": {"seeded": True, "replies": {"k": []}}},
        {"stage": {"seeded": True, "replies": {"k": ["stop", "x", 1, "", None]}}},
        {"stage": {"seeded": True, "replies": {"k": ["stop", 1, 1, "", [["Yes"]]]}}},
        {"stage": {"seeded": True, "replies": {"k": ["error", "rate-limited"]}}},
    ],
)
def test_damage_is_told_with_its_place(damage: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="f line 3: the replies"):
        carried({"verdict": "open", **damage}, "f line 3")

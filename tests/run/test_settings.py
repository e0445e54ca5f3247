"""Where a setting comes from, and what is said when it does not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.run.setup import Setup
from judge.settings import resolve


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ROUNDS", "MODEL", "PRICES", "CACHE"):
        monkeypatch.delenv(f"JUDGE_{name}", raising=False)
    monkeypatch.setenv("JUDGE_TRUST_CONFIG", "1")
    return tmp_path


def test_flags_then_variables_then_file_then_defaults(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve({"rounds": None}).rounds == 3
    (folder / "judge.toml").write_text('rounds = 4\nmodel = ["a:1", "b:2"]\ncache = false\n')
    assert resolve({"rounds": None}).rounds == 4
    assert resolve({"model": []}).model == ("a:1", "b:2")
    monkeypatch.setenv("JUDGE_ROUNDS", "5")
    monkeypatch.setenv("JUDGE_MODEL", "c:3, d:4")
    assert resolve({"rounds": None, "model": None}).rounds == 5
    assert resolve({"model": ()}).model == ("c:3", "d:4")
    found = resolve({"rounds": 0, "model": ["e:5"]})
    assert found.rounds == 0 and found.model == ("e:5",) and found.cache is False


def test_a_price_is_not_taken_from_stray_variables(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTPUT", "7")
    (folder / "judge.toml").write_text('[prices."a:1"]\ninput = 1\n')
    with pytest.raises(UsageError, match=r"judge.toml \(prices.a:1.output\): Field required"):
        resolve({})


@pytest.mark.parametrize(
    ("toml", "variables", "flags", "told"),
    [
        ("rounds = 99", {}, {}, r"judge.toml \(rounds\): .*less than or equal to 20"),
        ("rounds = 1", {"JUDGE_ROUNDS": "many"}, {}, "JUDGE_ROUNDS: .*valid integer"),
        ("", {"JUDGE_ROUNDS": "1"}, {"rounds": 21}, "--rounds: "),
        ("", {}, {"reading": "aloud"}, "--reading: .*'structured' or 'probability'"),
        ("", {}, {"min_words": -1}, "--min-words: "),
        (
            "round = 1",
            {},
            {},
            r"judge.toml \(round\): there is no such setting; there are .*rounds",
        ),
        ("rounds = ", {}, {}, "judge.toml: Invalid value"),
        ("", {"JUDGE_PRICES": "{"}, {}, "JUDGE_PRICES: "),
        ('[prices."a:1"]\ninput = -1\noutput = 1', {}, {}, r"judge.toml \(prices.a:1.input\): "),
    ],
)
def test_an_error_names_its_place(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    toml: str,
    variables: dict[str, str],
    flags: dict[str, object],
    told: str,
) -> None:
    (folder / "judge.toml").write_text(toml)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=told):
        resolve(flags)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"abstractoin": [0.5]}, "no rubric called 'abstractoin' is read by probability"),
        ({"story_regeneration": [0.5]}, "no rubric called 'story_regeneration' is read"),
        ({"abstraction": [0.3, 0.95]}, "abstraction has 1 step, and 2 thresholds are given"),
        ({"abstraction": [2]}, "less than or equal to 1"),
        ({"abstraction": []}, "at least 1 item"),
    ],
)
def test_thresholds_that_would_not_count_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, list[float]], told: str
) -> None:
    (folder / "yes.yaml").write_text("reading: probability\nreplies: [{p_yes: 0.9}]")
    monkeypatch.setenv("JUDGE_THRESHOLDS", json.dumps(given))
    with pytest.raises(UsageError, match="(?i:thresholds).*" + re.escape(told)):
        Setup.of(resolve({"model": ("scripted:yes.yaml",), "cache": False}))


def test_fewer_thresholds_than_steps_leave_the_rest_as_they_are(folder: Path) -> None:
    (folder / "yes.yaml").write_text("reading: probability\nreplies: [{p_yes: 0.9}]")
    given = {"thresholds": {"label_correctness": (0.3,)}, "model": ("scripted:yes.yaml",)}
    setup = Setup.of(resolve({**given, "cache": False}))
    (judge,) = setup.panel("label_correctness").judges
    assert judge.reader.thresholds == (0.3,)

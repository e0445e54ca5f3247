"""Where a setting comes from, who may set it, and what is said when it does not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.run.setup import Setup
from judge.settings import MACHINE, Settings, described, flag, option, resolve, strays, variable


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, with a configuration folder of the user's beside it."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in Settings.model_fields:
        monkeypatch.delenv(variable(name), raising=False)
    return here


def own(folder: Path, text: str) -> Path:
    """The user's own judge.toml."""
    path = folder.parent / "config" / "judge" / "judge.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_flag_then_variable_then_folder_then_user_then_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_TRUST_CONFIG", "yes")
    assert resolve({}).rounds == 3
    own(folder, "rounds = 4\nmin_words = 100\n")
    assert resolve({"rounds": None}).rounds == 4
    (folder / "judge.toml").write_text('rounds = 5\nmodel = ["a:1", "b:2"]\n')
    found = resolve({"model": []})
    assert (found.rounds, found.min_words, found.model) == (5, 100, ("a:1", "b:2"))
    monkeypatch.setenv("JUDGE_ROUNDS", "6")
    monkeypatch.setenv("JUDGE_MODEL", "c:3, d:4")
    assert (resolve({}).rounds, resolve({}).model) == (6, ("c:3", "d:4"))
    given = resolve({"rounds": "0", "model": ["e:5"]})
    assert (given.rounds, given.model, given.min_words) == (0, ("e:5",), 100)


@pytest.mark.parametrize("name", [n for n in Settings.model_fields if option(n).group != "Trust"])
def test_an_untrusted_file_sets_only_what_is_harmless(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    value = SAMPLES[name]
    (folder / "judge.toml").write_text(f"{name} = {_toml(value)}\n")
    if name in HARMLESS:
        assert resolve({}).from_files == {"judge.toml": (name,)}
        return
    with pytest.raises(UsageError) as refused:
        resolve({})
    told = str(refused.value)
    assert f"{folder}/judge.toml sets {name}," in told and "--trust-config" in told
    # What the file says counts for nothing where the user says it.
    if flag_value := resolve({name: value}):
        assert flag_value.from_files == {}
    monkeypatch.setenv("JUDGE_TRUST_CONFIG", "1")
    assert resolve({}).from_files == {"judge.toml": (name,)}
    monkeypatch.delenv("JUDGE_TRUST_CONFIG")
    (folder / "judge.toml").unlink()
    mine = own(folder, f"{name} = {_toml(value)}\n")
    assert resolve({}).from_files == {str(mine): (name,)}, "the user's own file is trusted"


HARMLESS = {"fail_fast", "workers", "worker_gpus", "concurrency", "timeout"}
SAMPLES: dict[str, Any] = {
    "model": ["a:1"],
    "accept_model": ["a:1"],
    "rewrite_model": "a:1",
    "cheap_model": "a:1",
    "cheap_margin": 0.1,
    "workflow": "norm",
    "check": ["relevance"],
    "rubric": ["r.yaml"],
    "reading": "structured",
    "votes": 5,
    "rule": "any",
    "all_votes": True,
    "fail_fast": True,
    "apart": True,
    "rounds": 1,
    "temperature": 0.5,
    "vote_temperature": 0.5,
    "rewrite_temperature": 0.5,
    "seed": 7,
    "margin": 0.1,
    "thresholds": {"relevance": [0.3]},
    "profile": "none",
    "min_words": 0,
    "injected": "ask",
    "reasks": 0,
    "engine": "batch",
    "address": "auto",
    "workers": 2,
    "worker_gpus": 0,
    "concurrency": 2,
    "timeout": 5.0,
    "max_calls": 5,
    "max_cost": 0.5,
    "prices": {"a:1": {"input": 1.0, "output": 2.0}},
    "cache": False,
    "cache_dir": "elsewhere",
}
"""A value other than the default of each setting."""


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(inner)}' for key, inner in value.items()) + "}"
    return json.dumps(value)


def test_each_setting_is_described_and_has_a_sample() -> None:
    assert set(SAMPLES) == {name for name in Settings.model_fields if option(name).group != "Trust"}
    for name, value in SAMPLES.items():
        assert described(name)
        assert Settings.model_validate({name: value}) != Settings(), name
        assert flag(name).strip("-").replace("-", "_") == name


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if option(name).decides])
def test_each_setting_that_can_change_a_verdict_changes_the_fingerprint(
    folder: Path, name: str
) -> None:
    (folder / "yes.yaml").write_text("reading: probability\nreplies: [{p_yes: 0.9}]")
    plain = {"model": ("scripted:yes.yaml",), "cache": False}
    # A probability is read once, however many votes are wanted.
    plain |= {"reading": "structured"} if name == "votes" else {}
    marks = [
        Setup.of(resolve({**plain, **more})).bound("norm").fingerprint
        for more in ({}, {name: SAMPLES[name]})
    ]
    assert marks[0] != marks[1]


def test_what_cannot_change_a_verdict_leaves_the_fingerprint(folder: Path) -> None:
    (folder / "yes.yaml").write_text("reading: probability\nreplies: [{p_yes: 0.9}]")
    plain = {"model": ("scripted:yes.yaml",), "cache": False}
    names = ("concurrency", "timeout", "max_calls", "cache_dir", "workers", "worker_gpus")
    more = {name: SAMPLES[name] for name in names}
    one, other = (Setup.of(resolve(given)).bound("norm") for given in (plain, {**plain, **more}))
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    ("toml", "variables", "flags", "told"),
    [
        ("rounds = 99", {}, {}, r"judge.toml \(rounds\): .*less than or equal to 20"),
        ("rounds = 1", {"JUDGE_ROUNDS": "many"}, {}, "JUDGE_ROUNDS: .*valid integer"),
        ("", {"JUDGE_ROUNDS": "1"}, {"rounds": 21}, "--rounds: "),
        ("", {}, {"reading": "aloud"}, "--reading: .*'structured' or 'probability'"),
        ("", {}, {"min_words": -1}, "--min-words: "),
        ("round = 1", {}, {}, r"judge.toml \(round\): there is no such setting; .*rounds"),
        ("rounds = ", {}, {}, "judge.toml: Invalid value"),
        ("", {"JUDGE_PRICES": "{"}, {}, "JUDGE_PRICES: "),
        ('[prices."a:1"]\ninput = -1\noutput = 1', {}, {}, r"judge.toml \(prices.a:1.input\): "),
        ('[prices."a:1"]\ninput = 1', {"OUTPUT": "7"}, {}, r"\(prices.a:1.output\): Field req"),
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


def test_variables_that_nothing_reads_come_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("JUDGE_MODLE", "JUDGE_XYZZY", *MACHINE):
        monkeypatch.setenv(name, "1")
    assert strays() == {"JUDGE_MODLE": "JUDGE_MODEL", "JUDGE_XYZZY": None}


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

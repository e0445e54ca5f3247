"""Where a setting comes from, who may set it, and what is said when it does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judge.configuration import MACHINE, resolve, strays
from judge.errors import UsageError
from judge.run.panels import Resources
from judge.settings import Settings, option, variable


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
    given = resolve({"rounds": "1", "model": ["e:5"]})
    assert (given.rounds, given.model, given.min_words) == (1, ("e:5",), 100)


def test_an_untrusted_file_sets_only_what_is_harmless(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless = {name for name in Settings.model_fields if option(name).harmless}
    assert harmless == {"concurrency", "timeout"}
    (folder / "judge.toml").write_text("concurrency = 2\n")
    assert resolve({}).from_files == {"judge.toml": ("concurrency",)}
    (folder / "judge.toml").write_text('model = ["a:1"]\nconcurrency = 2\n')
    with pytest.raises(UsageError) as refused:
        resolve({})
    told = str(refused.value)
    assert f"{folder}/judge.toml sets model," in told and "--trust-config" in told
    # What the file says counts for nothing where the user says it.
    assert resolve({"model": ["b:2"]}).from_files == {"judge.toml": ("concurrency",)}
    assert resolve({"trust_config": True}).model == ("a:1",)
    monkeypatch.setenv("JUDGE_TRUST_CONFIG", "1")
    assert resolve({}).from_files == {"judge.toml": ("concurrency", "model")}
    monkeypatch.delenv("JUDGE_TRUST_CONFIG")
    (folder / "judge.toml").unlink()
    mine = own(folder, 'model = ["a:1"]\n')
    assert resolve({}).from_files == {str(mine): ("model",)}, "the user's own file is trusted"
    monkeypatch.chdir(mine.parent)
    assert resolve({}).from_files == {str(mine): ("model",)}, "also when it is run from there"


DECIDING = {
    "all_votes": True,
    "on_injection": "ask",
    "id": "ID",
    "keep_dropped": True,
    "map": ("story=Text",),
    "abstain_margin": 0.1,
    "max_tokens": 9,
    "method": "structured",
    "min_words": 0,
    "per_entry": True,
    "normad_release": "corrected",
    "reasks": 0,
    "reasoning_effort": "low",
    "repair": True,
    "rewrite_temperature": 0.5,
    "rounds": 1,
    "seed": 7,
    "temperature": 0.5,
    "vote_temperature": 0.5,
    "votes": 5,
}
"""Settings that can change a verdict, or the name in its line, each with another value."""


def fingerprint(**more: Any) -> str:
    Path("yes.yaml").write_text("method: logprobs\nreplies: [{p_yes: 0.9}]")
    given = {"model": ("scripted:yes.yaml",), "cache": False, "profile": "none", **more}
    return Resources.of(resolve(given)).bound("norm").fingerprint


@pytest.mark.slow
def test_what_can_change_a_verdict_changes_the_fingerprint_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert {name for name in Settings.model_fields if option(name).decides} == set(DECIDING)
    # A probability is read once, however many votes are wanted.
    repaired: dict[str, Any] = {"repair": True}
    needed = {
        "rounds": repaired,
        "keep_dropped": repaired,
        "votes": {"method": "structured"},
        "reasoning_effort": {"model": ("openai:m",)},
    }
    same = {name: fingerprint(**more) for name, more in needed.items()}
    for name, value in DECIDING.items():
        more = needed.get(name, {})
        assert fingerprint(**more, **{name: value}) != same.get(name, fingerprint()), name
    others = {"concurrency": 2, "timeout": 5, "max_calls": 5, "cache_dir": "x", "workers": 2}
    assert fingerprint(**others) == fingerprint()


@pytest.mark.parametrize(
    ("toml", "variables", "flags", "told"),
    [
        ("rounds = 99", {}, {}, r"judge.toml \(rounds\): .*at most 20"),
        ("rounds = 1", {"JUDGE_ROUNDS": "many"}, {}, "JUDGE_ROUNDS: must be a whole number"),
        ("", {"JUDGE_ROUNDS": "1"}, {"rounds": 21}, "--rounds: "),
        ("", {}, {"method": "aloud"}, "--method: 'aloud' is not one of structured, logprobs or"),
        ("", {}, {"min_words": -1}, "--min-words: "),
        ("round = 1", {}, {}, r"judge.toml \(round\): unknown setting; did you mean rounds\?"),
        ('modl = "a:1"', {}, {}, r"\(modl\): unknown setting; did you mean model\?"),
        ('[models]\ninsertion = "a:1"', {}, {}, r"unknown setting; did you mean model_for\?"),
        ("margin = 0.1", {}, {}, r"unknown setting; did you mean abstain_margin\?"),
        ("qqq = 1", {}, {}, r"unknown setting; there are abstain_margin, address, all_votes"),
        ("[servers.a]\nurl = 'x'\nmod = 'json'", {}, {}, "unknown key; did you mean 'mode'"),
        ("rounds = ", {}, {}, "judge.toml: Invalid value"),
        ('[prices."a:1"]\ninput = -1\noutput = 1', {}, {}, r"judge.toml \(prices.a:1.input\): "),
        ('[prices."a:1"]\ninput = 1', {"OUTPUT": "7"}, {}, r"\(prices.a:1.output\): missing key"),
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


def test_pass_is_called_pass_wherever_python_allows_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = own(folder, 'pass = ">= 4"\n')
    found = resolve({})
    assert (found.pass_, found.from_files) == (">= 4", {str(mine): ("pass",)})
    monkeypatch.setenv("JUDGE_PASS", ">= 3")
    assert resolve({}).pass_ == ">= 3" and resolve({"pass_": "> 1"}).pass_ == "> 1"
    (folder / "judge.toml").write_text('pass = "> 0"\n')
    monkeypatch.delenv("JUDGE_PASS")
    with pytest.raises(UsageError, match="sets pass, which can change verdicts"):
        resolve({})
    mine.write_text('pass_ = ">= 4"\n')
    (folder / "judge.toml").unlink()
    with pytest.raises(UsageError, match=r"\(pass_\): unknown setting; did you mean pass\?"):
        resolve({})


def test_variables_that_nothing_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGE_MODLE", "JUDGE_XYZZY", *MACHINE):
        monkeypatch.setenv(name, "1")
    assert strays() == ["JUDGE_MODLE", "JUDGE_XYZZY"]

"""`judge config`: each setting with its value and source, without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import norm
from .typed import Typed

TOML = """
timeout = 5
votes = 3
fail_under = "90%"
[servers.lab]
url = "http://me:secret-word@lab/v1?code=secret-code"
headers = {X-Team = "secret-team"}
key_env = "LAB_KEY"
"""


@pytest.fixture(autouse=True)
def _no_file_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_each_setting_has_its_value_and_its_source(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", "secret-key-of-the-lab")
    monkeypatch.setenv("JUDGE_VOTES", "5")
    typed.write("mine.toml", [], f"\ufeff{TOML}")  # As editors on Windows save it.
    words = ("config", "--config", "mine.toml", "--rounds", "7")
    code, out, told = typed.text(*words)
    assert code == 0 and "from mine.toml: fail_under, servers, timeout" in told
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line[:1].isalpha()}
    assert rows["timeout"] == ["timeout", "5.0", "mine.toml"]
    assert rows["votes"] == ["votes", "5", "JUDGE_VOTES"]
    assert rows["rounds"] == ["rounds", "7", "--rounds"]
    assert rows["fail_under"] == ["fail_under", "0.9", "mine.toml"]
    assert rows["reasks"] == ["reasks", "2", "default"]
    assert " ".join(rows["method"][1:]) == "(by model) default"
    assert " ".join(rows["cheap_model"][1:]) == "(not set) default"
    assert " ".join(rows["model_for"][1:]) == "(not set) default"
    assert all(len(line) <= 80 for line in out.splitlines()[3:])
    changed = {line.partition(" ")[0] for line in typed.text(*words, "--changed")[1].splitlines()}
    assert changed >= {"timeout", "votes", "rounds", "fail_under"} and "reasks" not in changed
    monkeypatch.setenv("JUDGE_ON", "a\x9b31m\u202eb")
    printed = typed.text(*words, "--json")[1]
    values = json.loads(printed)
    assert values["on"]["value"] == ["a\x9b31m\u202eb"] and "\\u009b31m\\u202e" in printed
    assert values["votes"] == {"value": 5, "source": "JUDGE_VOTES"}
    assert values["servers"]["value"]["lab"]["url"] == "http://lab/v1"
    for text in (out, json.dumps(values)):
        assert "secret-" not in text and "LAB_KEY" in text


def test_a_file_that_is_not_trusted_ends_it_as_it_ends_a_run(typed: Typed) -> None:
    typed.write("judge.toml", [], "votes = 3\n")
    code, out, told = typed.text("config")
    assert (code, out) == (2, "") and "judge.toml sets votes, which can change verdicts" in told
    assert typed("config", "--trust-config").returncode == 0


def test_a_file_may_name_models_for_the_steps_of_other_runs(typed: Typed) -> None:
    typed.write("n.jsonl", [norm(1)])
    typed.write("models.toml", [], '[model_for]\ninsertion = "openai:m"\nkind = "openai:m"\n')
    run = ("validate", "n.jsonl", "--ask", "Kind?", "-m", "scripted:yes.yaml", "-q")
    code, out, told = typed.text(*run, "--config", "models.toml")
    assert code == 0 and json.loads(out)["judge"]["verdict"] == "pass", told
    code, _, told = typed.text(*run, "--config", "models.toml", "--name", "kinds")
    assert code == 2 and "--model-for kind: there is no such step; did you mean kinds?" in told
    assert typed.text(*run, "--model-for", "insertion=openai:m")[0] == 2


def test_gates_of_a_file_of_the_repository_gate_in_a_folder_of_it(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (typed.folder / ".git").mkdir()
    (typed.folder / "data").mkdir()
    typed.write("data/n.jsonl", [norm(1), norm(2)])
    typed.script("no.yaml", [{"p_yes": 0.1}], method="logprobs")
    typed.write("judge.toml", [], 'fail_under = "90%"\nmodel = "scripted:no.yaml"\n')
    monkeypatch.chdir(typed.folder / "data")
    words = ("validate", "n.jsonl", "--check", "relevance", "--trust-config")
    code, _, told = typed.text(*words)
    assert code == 1 and "gate record >= 0.9: does not hold" in told
    assert "from ../judge.toml: fail_under, model" in told
    assert typed(*words, "--fail-under", "0").returncode == 0, "a flag decides"


def test_an_engine_in_a_file_ends_no_command_that_asks_no_model(typed: Typed) -> None:
    typed.write("mine.toml", [], 'engine = "ray"\nworkers = 2\n')
    typed.write("mails.jsonl", [{"mail": "Thanks."}])
    for words, code in (
        (("cache", "stats"), 0),
        (("label", "mails.jsonl", "--ask", "Polite?", "--sheet", "sheet.csv"), 0),
        (("calibrate", "mails.jsonl", "--ask", "Polite?"), 2),
    ):
        exit_code, _, told = typed.text(*words, "--config", "mine.toml")
        assert exit_code == code, told
    assert "only validate and generate run with engine = ray, and calibrate does not" in told

"""Settings: their sources, who may set them, and the errors for invalid ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from judge import plugins
from judge.configuration import MACHINE, refuse_stray, resolve, strays
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


def test_servers_and_prices_of_your_own_file_stay_beside_those_of_the_folder(folder: Path) -> None:
    price = '[prices."{}"]\ninput = {}\noutput = 9\n'
    server = "[servers.{}]\nurl = 'http://{}/v1'\n"
    mine = own(folder, price.format("a:1", 1) + price.format("b:2", 2) + server.format("x", "mine"))
    here = folder / "judge.toml"
    here.write_text(price.format("b:2", 3) + server.format("y", "here"))
    found = resolve({"trust_config": True})
    assert {name: price.input for name, price in found.prices.items()} == {"a:1": 1, "b:2": 3}
    assert {name: one.url for name, one in found.servers.items()} == {
        "x": "http://mine/v1",
        "y": "http://here/v1",
    }
    mine.write_text(price.format("a:1", -1))
    with pytest.raises(UsageError, match=rf"^{mine}:2 \(prices.a:1.input\)"):
        resolve({"trust_config": True})


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


def test_a_file_is_found_in_parents_up_to_the_repository(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    (folder.parent / "judge.toml").write_text("timeout = 9\n")
    (folder / "judge.toml").write_text("timeout = 5\n")
    assert resolve({}).from_files == {}, "without a repository no parent is looked at"
    (folder / ".git").mkdir()
    assert resolve({}).from_files == {"../../judge.toml": ("timeout",)}
    (deep.parent / "judge.toml").write_text('cheap_model = "a:1"\n')
    with pytest.raises(UsageError, match=f"{deep.parent}/judge.toml sets cheap_model"):
        resolve({})
    (deep.parent / "judge.toml").unlink()
    (folder / "judge.toml").unlink()
    assert resolve({}).timeout == 120, "never above the repository"
    deep.rmdir()
    assert resolve({}).timeout == 120, "nor where the folder is gone"


def test_a_file_of_another_user_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / "a"
    deep.mkdir()
    (folder / ".git").mkdir()
    (folder / "judge.toml").write_text("timeout = 5\n")
    theirs, stat = list[Path](), Path.stat

    def owned(path: Path, **more: Any) -> Any:
        fields = list(stat(path, **more))
        fields[4] += path in theirs
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "stat", owned)
    monkeypatch.chdir(deep)
    assert resolve({}).timeout == 5
    for theirs[:] in ([folder], [folder / "judge.toml"], [deep]):
        assert resolve({}).timeout == 120
    monkeypatch.chdir(folder)
    for theirs[:] in ([folder], [folder / "judge.toml"]):
        with pytest.raises(UsageError, match=r"another user's: --config judge\.toml reads it"):
            resolve({"trust_config": True})
        assert resolve({"config": "judge.toml"}).timeout == 5
        assert resolve({"config": os.devnull}).timeout == 120


def test_a_named_file_takes_the_place_of_the_one_found_and_is_trusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(folder, "rounds = 4\nvotes = 3\n")
    (folder / "judge.toml").write_text('model = "a:1"\ntimeout = 5\n')
    (folder / "ci").mkdir()
    (folder / "ci" / "mine.toml").write_text('rounds = 6\nmodel = "b:2"\n')
    found = resolve({"config": "ci/mine.toml"})
    assert (found.rounds, found.votes, found.model, found.timeout) == (6, 3, ("b:2",), 120)
    assert found.from_files["ci/mine.toml"] == ("model", "rounds")
    monkeypatch.setenv("JUDGE_CONFIG", "ci/mine.toml")
    assert resolve({}).model == ("b:2",)
    with pytest.raises(UsageError, match=r"no\.toml: cannot be read: No such file"):
        resolve({"config": "no.toml"})


def test_paths_in_a_file_are_relative_to_it(folder: Path) -> None:
    (folder / "ci" / "faithful").mkdir(parents=True)
    for name in ("polite.yaml", "flow.py", "yes.yaml", "m.gguf"):
        (folder / "ci" / name).touch()
    text = """
        rubric = ["polite.yaml", "faithful", "other.yaml"]
        workflow = "flow.py:graph"
        model = ["scripted:yes.yaml", "openai:gpt-4.1"]
        model_for.insertion.model = "local:./m.gguf"
        ask = "polite.yaml"
    """
    (folder / "ci" / "judge.toml").write_text(text)
    found = resolve({"config": "ci/judge.toml"})
    assert found.rubric == ("ci/polite.yaml", "faithful", "other.yaml")
    assert (found.workflow, found.ask) == ("ci/flow.py:graph", ("polite.yaml",))
    assert found.model == ("scripted:ci/yes.yaml", "openai:gpt-4.1")
    assert found.model_for["insertion"].model == "local:ci/m.gguf"


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
    "one_pass": True,
    "reasks": 0,
    "reasoning_effort": "low",
    "repair": True,
    "rewrite_temperature": 0.5,
    "rounds": 1,
    "seed": 7,
    "temperature": 0.5,
    "value_of_neutral": True,
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
        "one_pass": repaired,
        "rewrite_model": repaired,
        "rewrite_temperature": repaired,
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
        ("rounds = 99", {}, {}, r"judge.toml:1 \(rounds\): .*at most 20"),
        ("rounds = 1", {"JUDGE_ROUNDS": "many"}, {}, "JUDGE_ROUNDS: must be a whole number"),
        ("", {"JUDGE_ROUNDS": "1"}, {"rounds": 21}, "--rounds: "),
        ("", {}, {"method": "aloud"}, "--method: 'aloud' is not one of structured, logprobs or"),
        ("", {}, {"min_words": -1}, "--min-words: "),
        ("fail_under = 95", {}, {}, r"toml:1 \(fail_under\): 95: type 0.95"),
        ("", {"JUDGE_FAIL_UNDER": "200%"}, {}, "JUDGE_FAIL_UNDER: 200%: a share is from 0 to 1"),
        ("cache_dir = ''", {}, {}, r"toml:1 \(cache_dir\): must not be empty"),
        ("", {}, {"config": ""}, "--config: must not be empty"),
        ("", {"JUDGE_FAIL_UNDER": "most"}, {}, "'most' is not a share: type 0.9 or 90%"),
        ('config = "other.toml"', {}, {}, "cannot make itself trusted or name another"),
        (
            "\n# round\nround = 1",
            {},
            {},
            r"^judge.toml:3 \(round\): unknown setting; did you mean rounds\?",
        ),
        ('modl = "a:1"', {}, {}, r"\(modl\): unknown setting; did you mean model\?"),
        ("qqq = 1", {}, {}, r"unknown setting; there are abstain_margin, address, all_votes"),
        ("[servers.a]\nurl = 'mod'\nmod = 'json'", {}, {}, r"toml:3 .*did you mean 'mode'"),
        *(
            (f"[servers.a]\nurl = 'x'\nkey_env = '{name}'", {}, {}, r"toml:3 .*\): name a variable")
            for name in ("LAB_CRED", "sk-abc123")
        ),
        ("rounds = ", {}, {}, "judge.toml: Invalid value"),
        ('[prices."a:1"]\ninput = -1\noutput = 1', {}, {}, r"judge.toml:2 \(prices.a:1.input\): "),
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


def test_a_packages_engine_is_refused_where_no_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: ("mine",))
    settings = resolve({"engine": "mine"})
    refuse_stray(settings, "validate")
    with pytest.raises(UsageError, match="run with engine = mine, and calibrate does not"):
        refuse_stray(settings, "calibrate")

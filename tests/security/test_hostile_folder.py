"""A folder with an attacker's files, and packages by an attacker."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import norm
from cli.typed import Typed

from judge import plugins
from judge.errors import UsageError
from judge.run.task import fingerprint

RUN = ("validate", "n.jsonl", "--check", "relevance", "-q")


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    made = Typed(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made.write("n.jsonl", [norm(0)])
    for name, chance in (("no", 0.1), ("yes", 0.9)):
        script = {"method": "logprobs", "replies": [{"p_yes": chance}]}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(script))
    return made


def test_a_folder_brings_neither_code_nor_verdicts_unasked(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The attacks: a class of the folder's own as a model, a cache of another judge's verdicts."""
    monkeypatch.delenv("JUDGE_CACHE_DIR")
    (tmp_path / "evil.py").write_text("open('boom', 'w')\nclass C: ...\n")
    (tmp_path / "judge.toml").write_text('model = "langchain:evil.C"\ncache_dir = "planted"\n')
    for words in (
        RUN,
        ("plan", "n.jsonl"),
        ("evaluate", "hostile", "--limit", "0"),
        ("cache", "stats"),
    ):
        done = typed(*words)
        assert (done.returncode, done.stdout) == (2, b""), words
        assert b"judge.toml sets cache_dir, model, which" in done.stderr
        assert b"--trust-config" in done.stderr
    assert not (tmp_path / "boom").exists() and not (tmp_path / "planted").exists()


def test_settings_from_a_file_are_named(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "judge.toml").write_text("timeout = 5\nconcurrency = 3\n")
    done = typed(*RUN, "-m", "scripted:yes.yaml", "--summary", "s.json")
    assert (done.returncode, done.stderr) == (0, b"judge: from judge.toml: concurrency, timeout\n")
    told = json.loads((tmp_path / "s.json").read_text())
    assert told["settings_from"] == {"judge.toml": ["concurrency", "timeout"]}


RUBRIC = """\
name: {}
title: Planted
kinds: [norm, story]
fields: [story]
question: Is it so?
pass: ["yes", "no"]
"""


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["relevance", "relevance/relevance.yaml"])
def test_a_planted_file_takes_no_built_in_rubrics_place(
    typed: Typed, tmp_path: Path, planted: str
) -> None:
    """A name is a built-in rubric; a file that is named by its path and replaces one is told."""
    words = (*RUN, "-m", "scripted:no.yaml", "--rubric")
    before = typed.text(*words, "relevance")
    (tmp_path / planted).parent.mkdir(exist_ok=True)
    (tmp_path / planted).write_text(RUBRIC.format("relevance"))
    assert typed.text(*words, "relevance") == before
    assert json.loads(before[1])["judge"]["verdict"] == "fail"
    for command in (words[:-1], ("plan", "n.jsonl"), ("evaluate", "hostile", "--limit", "0")):
        done = typed(*command, "--rubric", f"./{planted}")
        assert f"judge: {planted} replaces the built-in rubric relevance\n" in done.stderr.decode()


# ---------------------------------------------------------------- packages


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a package with one entry point found beside those that are installed."""
    installed = plugins._installed()

    def put(package: str, version: str, group: str, name: str) -> None:
        place = tmp_path / "site" / f"{package}-{version}.dist-info"
        place.mkdir(parents=True)
        (place / "METADATA").write_text(f"Name: {package}\nVersion: {version}\n")
        (place / "entry_points.txt").write_text(f"[{group}]\n{name} = evil:C\n")
        found = [p for d in distributions(path=[str(tmp_path / "site")]) for p in d.entry_points]
        points = {group: (*installed[group], *found)}
        monkeypatch.setattr(plugins, "_installed", lambda: points)

    return put


@pytest.mark.parametrize(
    ("group", "name"), [("judge.backends", "openai"), ("judge.workflows", "norm")]
)
def test_a_plug_in_cannot_take_the_name_of_ours(install: Any, group: str, name: str) -> None:
    install("evil", "1.0", group, name)
    with pytest.raises(UsageError, match=r"several packages .* \(evil, judge-text\): uninstall"):
        plugins.load(group, name)


def test_a_plug_in_and_its_version_are_in_the_fingerprint(install: Any, tmp_path: Path) -> None:
    described: dict[str, Any] = {"workflow": "norm"}
    models: dict[str, Any] = {"mine:m": {}, "openai:m": {}}
    marks = [fingerprint(described, models)]
    for version in ("1.0", "1.1"):
        install("mine", version, "judge.backends", "mine")
        assert plugins.packages("judge.backends", ["mine", "openai"]) == {"mine": f"mine {version}"}
        marks.append(fingerprint(described, models))
        (tmp_path / "site" / f"mine-{version}.dist-info").rename(tmp_path / version)
    assert len(set(marks)) == 3


BASE = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find(name, path=None, target=None):
    return None if name.partition(".")[0] in {absent} else found(name, path, target)
PathFinder.find_spec = find
import json, sys
from judge.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["judge", *words]
    try:
        main()
    except SystemExit as ended:
        print(f"exit {ended.code or 0}", file=sys.stderr)
"""
"""Commands one after another, in an installation without any extra."""


@pytest.mark.slow
def test_the_base_install_runs_and_names_the_extra_that_is_missing(
    typed: Typed, tmp_path: Path
) -> None:
    absent = {"langchain", "langchain_community", "langchain_openai", "matplotlib", "numpy"}
    absent |= {"pyarrow", "pydantic_settings", "ray", "scipy", "sklearn", "torch", "xllamacpp"}
    program = BASE.replace("{absent}", repr(absent))

    (tmp_path / "n.parquet").write_bytes(b"PAR1")
    typed_words = {
        "": (*RUN, "-m", "scripted:yes.yaml"),
        "parquet": ("validate", "n.parquet", "-m", "scripted:yes.yaml"),
        "langchain": (*RUN, "-m", "langchain:openai:gpt-4o"),
        "local": RUN,
        "calibrate": ("calibrate", "n.jsonl", "-m", "scripted:yes.yaml"),
    }
    command = [sys.executable, "-c", program, json.dumps(list(typed_words.values()))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    first, *told = done.stderr.splitlines()
    assert first == "exit 0", done.stderr
    for extra, message, ended in zip([*typed_words][1:], told[::2], told[1::2], strict=True):
        assert ended == "exit 2", done.stderr
        assert "pip install '" in message and f"[{extra}]'" in message

"""What is told when something is amiss, or there is nothing to do: the file, in words, a way on."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import judge as package
from judge.settings import MACHINE, Settings, variable
from judge.weights.catalog import CATALOG

from .conftest import norm
from .typed import Typed

ONE = ("-m", "scripted:yes.yaml", "--check", "relevance", "-q")


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    typed = Typed(tmp_path, monkeypatch, capfd)
    script = {"reading": "probability", "replies": [{"p_yes": 0.9}]}
    (tmp_path / "yes.yaml").write_text(json.dumps(script))
    return typed


def test_of_several_inputs_the_file_at_fault_is_named(judge: Typed) -> None:
    judge.write("a.jsonl", [norm(1)])
    judge.write("b.jsonl", [norm(1), norm(2)])
    done = judge("validate", "a.jsonl", "b.jsonl", *ONE)
    assert done.returncode == 3
    told = json.loads(done.stdout.splitlines()[1])["judge"]["error"]
    assert (told["file"], told["line"]) == ("b.jsonl", 1)
    assert told["message"] == "id 'n1' was already on line 1 of a.jsonl"

    done = judge("validate", "a.jsonl", "a.jsonl", *ONE)
    told = json.loads(done.stdout.splitlines()[1])["judge"]["error"]
    assert told["message"] == "id 'n1' was already on line 1 of a.jsonl"


@pytest.mark.parametrize(
    ("words", "file", "told"),
    [
        (("-m", "scripted:bad"), b"", "scripted:bad: a script is a mapping with `replies`: "),
        (("-m", "scripted:bad"), b"{replies: 3}", "scripted:bad: replies: "),
        (("-m", "scripted:bad"), b"\xff", "scripted:bad: cannot be read: not UTF-8: byte 0xff at"),
        (("-m", "scripted:no"), b"", "scripted:no: cannot be read: No such file or directory\n"),
        (("--profile", "no"), b"", "--profile no: cannot be read: No such file or directory\n"),
        (("--profile", "bad"), b"\xff", "--profile bad: cannot be read: not UTF-8: byte 0xff at"),
        (("--rubric", "bad"), b"\xff", "bad: cannot be read: not UTF-8: byte 0xff at byte 1\n"),
        (("--rubric", "bad"), b"", "bad:1: a mapping of keys is needed, and here is nothing but"),
        (("--rubric", "bad"), b"name: x y", "bad:1: name: "),
    ],
)
def test_no_exception_is_a_message(judge: Typed, words: Any, file: bytes, told: str) -> None:
    (judge.folder / "bad").write_bytes(file)
    judge.write("a.jsonl", [norm(1)])
    done = judge("validate", "a.jsonl", "-m", "scripted:yes.yaml", *words)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"judge: {told}")
    # All mistakes of a rubric are told at once, each with its line.
    assert all(b"bad:1: " in line for line in done.stderr.splitlines()[1:])
    assert b"pydantic" not in done.stderr


def test_a_cache_that_is_not_there_is_not_made(judge: Typed) -> None:
    for words in (["stats"], ["clear", "--yes"], ["prune", "--older-than", "1d"]):
        done = judge("cache", *words, "--cache-dir", "typo")
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr == b"judge: --cache-dir typo: there is no cache\n"
    assert not (judge.folder / "typo").exists()


def test_nobody_to_ask_removes_nothing(judge: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    done = judge("cache", "clear")
    assert (done.returncode, done.stdout) == (2, b"")
    told = done.stderr.decode().splitlines()
    assert told[0].startswith("Remove 0 entries from ") and told[0].endswith("? [y/N] ")
    assert told[1:] == ["judge: nothing was removed; --yes removes them without asking"]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert judge("cache", "clear").stdout == b"removed 0 entries\n"


def test_the_table_of_models_is_whole(judge: Typed) -> None:
    lines = judge("models", "list").stdout.decode().splitlines()
    assert lines[0].split() == ["name", "size", "licence", "here", "what", "for"]
    assert [line.split()[0] for line in lines[2:] if line[0] != " "] == list(CATALOG)
    assert all(len(line) <= 80 for line in lines)


def test_the_general_help_cuts_nothing_off(judge: Typed) -> None:
    assert "..." not in judge("--help").stdout.decode().partition("Commands:")[2].partition("Ex")[0]


def test_a_variable_that_nothing_reads_is_told(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_MODLE", "scripted:other.yaml")
    monkeypatch.setenv("JUDGE_SERVER_LOG", "log")
    judge.write("a.jsonl", [norm(1)])
    done = judge("validate", "a.jsonl", *ONE)
    assert done.returncode == 0
    assert done.stderr == (
        b"judge: JUDGE_MODLE changes nothing: judge reads no such variable; JUDGE_MODEL?\n"
    )


def test_every_variable_in_the_source_is_known() -> None:
    """A variable that is read, and told to change nothing, would be worse than no word at all."""
    found = set()
    for path in Path(package.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        found |= set(re.findall(r"\bJUDGE_[A-Z_]+[A-Z]\b", text))
        found |= {f"JUDGE_BATCH_{name}" for name in re.findall(r'_positive\("([A-Z]+)"', text)}
    assert found <= {*MACHINE, *map(variable, Settings.model_fields)}
    assert found >= set(MACHINE)


def test_an_unexpected_error_has_its_own_exit_code(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("with sk-secret-secret-secret")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret-secret")
    monkeypatch.setattr("judge.run.workflows.workflow_names", broken)
    done = judge("workflows", "list")
    assert (done.returncode, done.stdout) == (70, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"ZeroDivisionError: with [secret]. Please report it with" in done.stderr
    monkeypatch.setenv("JUDGE_DEBUG", "1")
    told = judge("workflows", "list").stderr
    assert b"Traceback" in told and b"sk-secret" not in told

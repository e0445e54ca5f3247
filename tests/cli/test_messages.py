"""Error messages: they name the file, say in words what is wrong, and what to do."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

import judge as package
from judge.cli import _of_system
from judge.configuration import MACHINE
from judge.settings import Settings, variable

from .conftest import norm
from .typed import Typed

WORKFLOW = Path(__file__).parents[2] / "docs" / "examples" / "workflow.py"
ONE = ("-m", "scripted:yes.yaml", "--check", "relevance", "-q")


def test_of_several_inputs_the_file_at_fault_is_named(typed: Typed) -> None:
    typed.write("a.jsonl", [norm(1)])
    (typed.folder / "more").mkdir()
    typed.write("more/a.jsonl", [norm(1), norm(2)])
    done = typed("validate", "a.jsonl", "more/a.jsonl", *ONE)
    assert done.returncode == 0
    lines = [json.loads(line)["judge"] for line in done.stdout.splitlines()]
    assert [line.get("name") for line in lines] == [None, "more/a.jsonl:1", None]
    assert b"id 'n1' is repeated: more/a.jsonl:1" in done.stderr


@pytest.mark.parametrize(
    ("words", "file", "told"),
    [
        (("-m", "scripted:bad"), b"{replies: 3}", "scripted:bad:1: replies: "),
        (("-m", "scripted:no"), b"", "scripted:no: cannot be read: No such file or directory\n"),
        (("--profile", "bad"), b"\xff", "--profile bad: cannot be read: not UTF-8: byte 0xff at"),
        (("--rubric", "./bad"), b"\xff", "bad: cannot be read: not UTF-8: byte 0xff at byte 1\n"),
        (("--rubric", "./bad"), b"name: x y\nquestion: Is it?", "bad:1: name: "),
        (("--rubric", "bad"), b"", "bad: not a built-in rubric; a file needs a path: ./bad\n"),
        (("--rubric", "taste"), b"", "taste: neither a path nor a built-in rubric; `judge rubrics"),
        (
            ("--rubric", "relevence"),
            b"",
            "relevence: neither a path nor a built-in rubric; did ",
        ),
        (("--workflow", "tale"), b"", "no workflow is called 'tale'; there are extraction, norm,"),
        (
            ("--workflow", f"{WORKFLOW}:workflow"),
            b"",
            "no rubric is called polite, which the workflow polite_norms@",
        ),
        (("--check", "taste"), b"", "--check taste: there is no such check. There are abstraction"),
        (("-m", "oracle:x"), b"", "oracle:x: unknown provider 'oracle'; known are"),
        (("--format", "xml"), b"", "format 'xml' is unknown; there are jsonl"),
        (("no.jsonl",), b"", "no.jsonl does not exist"),
    ],
)
def test_a_mistake_is_told_in_words(typed: Typed, words: Any, file: bytes, told: str) -> None:
    (typed.folder / "bad").write_bytes(file)
    typed.write("a.jsonl", [norm(1)])
    done = typed("validate", "a.jsonl", "-m", "scripted:yes.yaml", "-o", "o", *words)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"judge: {told}")
    # All mistakes of a rubric are told at once, each with its line.
    assert all(b"bad:1: " in line for line in done.stderr.splitlines()[1:])
    assert b"pydantic" not in done.stderr
    assert not (typed.folder / "o").exists(), "nothing was judged"


@pytest.mark.parametrize(
    ("typed_name", "meant", "needs"),
    [
        ("openai/gpt-4o", "openai:gpt-4o", "?"),
        ("gpt-4o", "openai:gpt-4o", "?"),
        ("ollama/llama3", "openai:llama3", ", with OPENAI_BASE_URL=http://localhost:11434/v1?"),
        ("ollama:llama3", "openai:llama3", ", with OPENAI_BASE_URL=http://localhost:11434/v1?"),
        *(
            (name, "langchain:anthropic:claude-9", "? It needs ANTHROPIC_API_KEY, and pip install")
            for name in ("claude-9", "anthropic/claude-9", "anthropic:claude-9")
        ),
        ("gemini-9", "langchain:google_genai:gemini-9", "? It needs GOOGLE_API_KEY, and pip"),
        ("groq:llama3", "[servers.groq] in judge.toml", ""),
    ],
)
def test_a_model_as_others_name_it_is_answered_with_what_to_type(
    typed: Typed, typed_name: str, meant: str, needs: str
) -> None:
    typed.write("a.jsonl", [norm(1)])
    code, _, told = typed.text("validate", "a.jsonl", "-m", typed_name)
    assert code == 2 and f"{meant}{needs}" in told


def test_a_variable_that_nothing_reads_is_told(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_MODLE", "scripted:other.yaml")
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", "")
    typed.write("a.jsonl", [norm(1)])
    code, _, told = typed.text("validate", "a.jsonl", *ONE)
    assert (code, told) == (
        0,
        "judge: JUDGE_MODLE is not a variable of judge and is ignored\n",
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
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("with sk-secret-secret-secret")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret-secret")
    monkeypatch.setattr("judge.workflows.load.workflow_names", broken)
    code, out, told = typed.text("workflows", "list")
    assert (code, out, told.count("\n")) == (70, "", 1)
    assert "ZeroDivisionError: with [secret]. Please report it with" in told
    monkeypatch.setenv("JUDGE_DEBUG", "1")
    told = typed.text("workflows", "list")[2]
    assert "Traceback" in told and "sk-secret" not in told


@pytest.mark.parametrize("option", ["-m", "--model=openai:x"])
def test_an_option_before_the_command_is_told_to_come_after_it(typed: Typed, option: str) -> None:
    done = typed(option, "validate", "a.jsonl")
    name = option.partition("=")[0]
    assert done.returncode == 2
    expected = f"Error: {name} comes after the command: judge validate ... {name} ...\n"
    assert done.stderr.decode().endswith(expected)
    assert b"No such option: --modle" in typed("--modle", "a.jsonl").stderr


def test_files_that_the_system_refuses_are_named(typed: Typed) -> None:
    typed.write("in.jsonl", [norm(1)])
    long = "Is it polite? " * 30
    for words in (
        ("validate", long, *ONE),
        ("validate", "in.jsonl", "-o", f"{long}.jsonl", *ONE),
        ("validate", "in.jsonl", "--rubric", long, *ONE[:2]),
        ("report", long, "-o", "page.html"),
        ("calibrate", long),
        ("agreement", long),
    ):
        done = typed(*words)
        assert done.returncode == 2, words
        assert b": cannot be used: File name too long\n" in done.stderr, words


def test_a_deleted_working_folder_is_told(typed: Typed) -> None:
    typed.write("in.jsonl", [norm(1)])
    source, gone = typed.folder / "in.jsonl", typed.folder / "gone"
    for words in (
        ("validate", str(source), "-o", "o.jsonl", *ONE),
        ("report", str(source), "-o", "p.html"),
    ):
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()
        done = typed(*words)
        told = b"judge: the working folder was deleted: change to one that is there\n"
        assert (done.returncode, done.stderr) == (2, told)


def test_a_system_without_room_for_temporary_files_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
        with pytest.raises(FileNotFoundError) as found:
            tempfile.gettempdir()
    told = str(_of_system(found.value))
    assert told.endswith("in ['/nowhere']: make room there, or name a folder in TMPDIR")


@pytest.mark.parametrize(
    ("error", "resource"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "open files (ulimit -n)"),
        (RuntimeError("can't start new thread"), "threads (ulimit -u)"),
        (MemoryError(), "memory"),
        (RuntimeError("dictionary changed size"), None),
        (ValueError("start new thread"), None),
    ],
)
def test_a_limit_of_the_system_is_named(error: Exception, resource: str | None) -> None:
    message = f"the system gives this process no more {resource}; --resume continues"
    assert str(_of_system(error)) == str(message if resource else None)

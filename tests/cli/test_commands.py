"""The smaller commands, help, completion."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from judge.cache import ReplyCache
from judge.cli import app
from judge.local.store import CATALOG
from judge.version import __version__

from .conftest import Shell
from .typed import Typed


def commands(group: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        inside = hasattr(command, "list_commands")
        found += commands(command, (*words, name)) if inside else [(*words, name)]
    return found


def test_every_help_fits_and_shows_an_example(typed: Typed) -> None:
    for words in ((), *commands(get_command(app))):
        code, out, _ = typed.text(*words, "--help")
        assert code == 0
        examples = [
            line for line in out.splitlines() if " ".join(("judge", *words, "")) in f"{line} "
        ]
        # The usage line is one; an example is another.
        assert len(examples) >= 2 or words[:1] == ("models",), out
        assert all(len(line) <= 80 for line in out.splitlines()), out
        assert "..." not in out.partition("Commands:")[2].partition("Examples")[0], out


def test_help_shows_what_most_runs_need_and_help_all_the_rest(typed: Typed) -> None:
    _, some, _ = typed.text("validate", "--help")
    _, every, _ = typed.text("validate", "--help-all")
    assert some.count("\n") <= 70
    for flag in ("--ask", "--model", "--rubric", "--out", "--resume", "--fail-under"):
        assert f" {flag} " in some.replace(",", " ")
    for flag in ("--cheap-margin", "--format", "--summary", "--workers"):
        assert f"{flag} " in every and f"{flag} " not in some
    assert "--help-all" not in typed.text("report", "--help")[1], "it shows every option already"


def test_help_all_is_taken_everywhere(typed: Typed) -> None:
    groups = {words[:1] for words in commands(get_command(app)) if len(words) > 1}
    for words in ((), *groups, *commands(get_command(app))):
        code, out, told = typed.text(*words, "--help-all")
        assert (code, told) == (0, "") and out.startswith("Usage: "), (words, told)


def test_version_and_a_command_that_is_none(typed: Typed) -> None:
    assert typed.text("--version")[:2] == (0, f"judge {__version__}\n")
    code, _, told = typed.text("evalute")
    assert code == 2 and "evaluate" in told


def test_shell_completion(judge: Shell) -> None:
    asked = {"_JUDGE_COMPLETE": "complete_bash", "COMP_WORDS": "judge val", "COMP_CWORD": "1"}
    script = [str(Path(sys.executable).with_name("judge"))]
    done = subprocess.run(script, capture_output=True, env={**judge.env, **asked})
    assert done.stdout.decode().split() == ["validate"], done.stderr


def test_workflows_list_and_draw(typed: Typed) -> None:
    code, out, _ = typed.text("workflows", "list")
    assert code == 0 and {line.split(" ")[0] for line in out.splitlines()} >= {"norm", "story"}
    code, out, _ = typed.text("workflows", "draw", "story")
    assert code == 0 and "graph TD;" in out and "insertion" in out
    code, out, _ = typed.text("workflows", "draw", "pairs")
    assert code == 0 and "neutralising --> faults" in out, "a set of judge generate"
    code, _, told = typed.text("workflows", "draw", "tale")
    assert code == 2 and "there are extraction, norm, normad-filter, record, story" in told
    (typed.folder / "own.py").write_text("import nowhere")
    code, _, told = typed.text("workflows", "draw", "own.py:workflow")
    assert code == 2 and "own.py: ModuleNotFoundError: No module named 'nowhere'" in told


def test_rubrics_list_and_show(typed: Typed) -> None:
    code, out, _ = typed.text("rubrics", "list")
    assert code == 0 and "incorporation" in out and "relevance" in out
    code, out, _ = typed.text("rubrics", "show", "consistency")
    typed.write("mine.yaml", [], out)
    assert code == 0 and typed("rubrics", "list", "--rubric", "mine.yaml").returncode == 0
    assert typed("rubrics", "show", "taste").returncode == 2


def test_the_table_of_models_is_whole(typed: Typed) -> None:
    lines = typed.text("models", "list")[1].splitlines()
    assert lines[0].split() == ["name", "size", "licence", "here", "what", "for"]
    assert [line.split()[0] for line in lines[2:-2] if line[0] != " "] == list(CATALOG)
    assert all(len(line) <= 80 for line in lines[:-2]) and lines[-1].startswith("folder: /")


def test_a_file_in_the_place_of_a_command_is_told_what_to_type(typed: Typed) -> None:
    typed.write("mails.jsonl", [{"text": "Hello."}])
    code, _, told = typed.text("mails.jsonl", "--ask", "Is it polite?")
    assert code == 2 and "judge validate mails.jsonl ..." in " ".join(told.split())
    assert "No such command 'mials'" in typed.text("mials")[2]


def test_cache_stats_prune_clear(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ReplyCache(typed.folder / "elsewhere")
    for number in range(3):
        cache.set(f"k{number}", {"text": "reply"})
    cache.close()
    where = ("--cache-dir", "elsewhere")
    assert json.loads(typed.text("cache", "stats", "--json")[1])["entries"] == 0
    assert json.loads(typed.text("cache", "stats", "--json", *where)[1])["entries"] == 3
    shown = typed.text("cache", "stats", *where)[1].split("\n")
    assert shown[1:] == ["entries  3", "size     0.0 MB", "oldest   0.0 days", ""]
    assert typed.text("cache", "prune", "--older-than", "0.1", *where)[1] == "removed 0 entries\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, told = typed.text("cache", "clear", *where)
    assert (code, out) == (2, "") and told.startswith("Remove 3 entries from ")
    assert told.endswith("judge: nothing was removed; --yes removes them without asking\n")
    assert typed.text("cache", "clear", "--yes", *where)[1] == "removed 3 entries\n"


def test_a_cache_that_is_not_there_is_not_made(typed: Typed) -> None:
    for words in (["stats"], ["clear", "--yes"], ["prune", "--older-than", "1"]):
        code, out, told = typed.text("cache", *words, "--cache-dir", "typo")
        assert (code, out) == (2, "")
        assert told == "judge: --cache-dir typo: there is no cache\n"
    assert not (typed.folder / "typo").exists()


def test_benchmarks_are_listed(typed: Typed) -> None:
    code, out, _ = typed.text("evaluate", "--list")
    names = {line.split(" ")[0] for line in out.splitlines()}
    assert code == 0 and names >= {"normad", "culturalbench", "cqbench", "cali", "eecc"}
    assert "normad --setting paper: " in out and "eecc: temperature 0.3, the paper's" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    code, _, told = typed.text("evaluate")
    assert code == 2 and "judge evaluate --list shows them" in told

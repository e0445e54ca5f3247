"""The smaller commands, help, completion, and what starting costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from judge.cache import ReplyCache
from judge.cli import app, main

from .conftest import Shell


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Any:
    """The command in this process: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_CACHE_DIR", str(tmp_path / "cache"))

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["judge", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return run


def commands(group: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        inside = hasattr(command, "list_commands")
        found += commands(command, (*words, name)) if inside else [(*words, name)]
    return found


@pytest.mark.parametrize("words", commands(get_command(app)), ids=" ".join)
def test_every_help_shows_an_example(typed: Any, words: tuple[str, ...]) -> None:
    if words[0] == "models":
        pytest.skip("looked after by tests of the weights")
    code, out, _ = typed(*words, "--help")
    assert code == 0
    examples = [line for line in out.splitlines() if f"judge {' '.join(words)} " in f"{line} "]
    # The usage line is one; an example is another, on a line that nothing else begins on.
    assert len(examples) >= 2, out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_version_and_no_command(typed: Any) -> None:
    from judge import __version__

    assert typed("--version")[:2] == (0, f"judge {__version__}\n")
    code, out, told = typed()
    assert code in (0, 2) and "validate" in out + told
    code, _, told = typed("evalute")
    assert code == 2 and "evaluate" in told


def test_workflows_list_and_draw(typed: Any, tmp_path: Path) -> None:
    code, out, _ = typed("workflows", "list")
    assert code == 0 and {line.split("\t")[0] for line in out.splitlines()} >= {"norm", "story"}
    for name, node in [("story", "insertion"), ("norm", "regeneration")]:
        code, out, _ = typed("workflows", "draw", name)
        assert code == 0 and "graph TD;" in out and node in out
    code, _, told = typed("workflows", "draw", "tale")
    assert code == 2 and "there are extraction, norm, story" in told


def test_rubrics_list_and_show(typed: Any) -> None:
    code, out, _ = typed("rubrics", "list")
    assert code == 0 and "incorporation" in out and "relevance" in out
    code, out, _ = typed("rubrics", "show", "consistency")
    assert code == 0 and "structured question" in out
    code, out, _ = typed("rubrics", "show", "consistency", "--json")
    assert json.loads(out)["name"] == "consistency"
    assert typed("rubrics", "show", "taste")[0] == 2


def test_cache_stats_prune_clear(typed: Any, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "elsewhere")
    for number in range(3):
        cache.set(f"k{number}", {"text": "reply"})
    cache.close()
    assert json.loads(typed("cache", "stats", "--json")[1])["entries"] == 0
    where = ("--cache-dir", "elsewhere")
    assert json.loads(typed("cache", "stats", "--json", *where)[1])["entries"] == 3
    assert typed("cache", "prune", "--older-than", "1h", *where)[1] == "removed 0 entries\n"
    code, _, told = typed("cache", "prune", "--older-than", "soon", *where)
    assert code == 2 and "give a number and s, m, h, d or w" in told
    assert typed("cache", "clear", "--yes", *where)[1] == "removed 3 entries\n"
    assert json.loads(typed("cache", "stats", "--json", *where)[1])["entries"] == 0


def test_shell_completion(judge: Shell) -> None:
    asked = {"_JUDGE_COMPLETE": "complete_bash", "COMP_WORDS": "judge val", "COMP_CWORD": "1"}
    script = [str(Path(sys.executable).with_name("judge"))]
    done = subprocess.run(script, capture_output=True, env={**judge.env, **asked})
    assert done.stdout.decode().split() == ["validate"], done.stderr


def test_the_widths_of_intervals_by_number_of_labels(typed: Any) -> None:
    code, out, told = typed("plan", "--labels", "--expect", "0.6")
    assert (code, told) == (0, "")
    lines = out.splitlines()
    assert lines[1].split() == ["labels", "accuracy", "kappa", "true-positive-rate", "pass-rate"]
    widths = {line.split()[0]: line.split()[2] for line in lines[3:-1]}
    # Fleiss, Cohen and Everitt (1969): 0.443 is twice 1.96 times the square root of 0.64 / 50.
    assert (widths["50"], widths["200"], widths["1,000"]) == ("0.443", "0.222", "0.099")
    code, _, told = typed("plan", "--labels", "--expect", "1")
    assert code == 2 and "--expect 1: no agreement at prevalence 0.5" in told
    code, _, told = typed("plan", "--labels", "stories.jsonl")
    assert code == 2 and "--labels reads no INPUT" in told

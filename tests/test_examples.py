"""The examples of docs/ that its pages (tests/test_pages.py) do not run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.workflows.load import _of_graph, load_workflow

QUESTIONS = Path(__file__).parent.parent / "docs" / "examples" / "questions"


def judged(rubric: str, *words: str) -> tuple[list[dict[str, Any]], str]:
    """The lines and the summary of docs/examples/questions/mails.jsonl, judged by the rubric."""
    command = [sys.executable, "-m", "judge", "validate", "mails.jsonl", "--rubric", rubric]
    command += ["-m", "scripted:judge.yaml", "--no-cache", *words]
    done = subprocess.run(command, cwd=QUESTIONS, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize("rubric", ["tone", "clarity", "better", "mail"])
def test_a_page_shows_the_rubric_that_is_there(rubric: str) -> None:
    pages = [page.read_text("utf-8") for page in (QUESTIONS.parents[1] / "howto").glob("*.md")]
    assert any((QUESTIONS / f"{rubric}.yaml").read_text("utf-8") in page for page in pages)


def test_each_example_of_an_addition_is_complete_in_40_lines() -> None:
    added = [*QUESTIONS.parent.glob("*.py"), QUESTIONS.parent / "check" / "polite.yaml"]
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in added}
    assert lengths.keys() >= {
        "backend.py",
        "benchmark.py",
        "command.py",
        "labels.py",
        "workflow.py",
    }
    assert max(lengths.values()) < 40, lengths


def test_several_questions_are_asked_in_one_reply_each_a_check() -> None:
    lines, summary = judged("mail.yaml", "--votes", "3")
    told = {}
    for line in lines:
        assert line["judge"]["usage"]["replies"] == 3
        told[line["id"]] = [
            (c["check"], c["verdict"], c.get("score"), len(c["votes"]))
            for c in line["judge"]["checks"]
        ]
    kind = [("mail.polite", "pass", None, 3), ("mail.clear", "fail", 2, 3)]
    rude = [("mail.polite", "fail", None, 3), ("mail.clear", "pass", 5, 3)]
    assert told == {"thanks": kind, "late": rude, "order": kind}
    assert "9 calls" in summary
    assert "mail.clear: mean score 3.00" in summary


def test_a_compiled_graph_is_the_workflow_that_it_is_uncompiled() -> None:
    path = QUESTIONS.parent / "graph.py"
    bare = load_workflow(f"{path}:graph")
    assert bare.kind == "norm" and bare.rewrites == ("story_regeneration",)
    compiled = _of_graph(bare.graph, path, "graph")
    assert replace(compiled, name="", graph=None) == replace(bare, name="", graph=None)


def test_a_workflow_edited_in_a_session_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    code = (QUESTIONS.parent / "workflow.py").read_text("utf-8")
    names = set()
    for title in ("Kind", "Polite", "Kind"):
        file.write_text(code.replace("Situations in which somebody is polite", title))
        made = load_workflow(f"{file}:workflow")
        assert made.title == title
        names.add(made.name)
    assert len(names) == 2


def test_a_workflow_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "own.py").write_text(
        "from langgraph.graph import StateGraph\nfrom judge.workflows import State\n"
        "loose, other = StateGraph(State), StateGraph(dict)\n"
    )
    for name, told in (
        ("empty.py:workflow", "'workflow' is neither"),
        ("no.py:x", "be read"),
        ("own.py:loose", "entrypoint"),
        ("own.py:other", r"must be judge\.workflows\.State"),
    ):
        with pytest.raises(UsageError, match=told):
            load_workflow(str(tmp_path / name))

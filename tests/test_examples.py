"""The examples of the guide, run as it says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.run.workflows import load_workflow

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
CHECK = ("--rubric", "check/polite.yaml", "-m", "scripted:check/judge.yaml", "--no-cache", "-q")


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        (("--check", "polite"), {"thanks": ["polite"], "silence": ["polite"]}),
        (
            ("--workflow", "workflow.py:workflow"),
            {"thanks": ["relevance", "polite"], "silence": ["relevance"]},
        ),
    ],
)
def test_a_check_and_a_workflow_of_ones_own(
    tmp_path: Path, more: tuple[str, ...], asked: dict[str, list[str]]
) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    command = [sys.executable, "-m", "judge", "validate", "check/situations.jsonl", *CHECK, *more]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = {
        line["id"]: line["judge"] for line in map(json.loads, done.stdout.splitlines())
    }
    assert {name: one["verdict"] for name, one in told.items()} == {
        "thanks": "pass",
        "silence": "fail",
    }
    assert {n: [c["check"] for c in one["checks"]] for n, one in told.items()} == asked


@pytest.mark.parametrize(
    ("rubric", "found"),
    [
        (
            "tone",
            {"thanks": ("pass", "warm"), "late": ("fail", "rude"), "order": ("pass", "neutral")},
        ),
        ("clarity", {"thanks": ("fail", 3), "late": ("pass", 5), "order": ("pass", 4)}),
        (
            "better",
            {"thanks": ("pass", "new"), "late": ("fail", "old"), "order": ("abstain", None)},
        ),
    ],
)
def test_the_guides_labels_scores_and_comparison(rubric: str, found: dict[str, Any]) -> None:
    folder = EXAMPLES / "questions"
    text = (folder / f"{rubric}.yaml").read_text("utf-8")
    assert text in (EXAMPLES.parent / "guide.md").read_text("utf-8")
    words = ("--rubric", f"{rubric}.yaml", "-m", "scripted:judge.yaml", "--no-cache", "-q")
    command = [sys.executable, "-m", "judge", "validate", "mails.jsonl", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    told = {}
    for line in map(json.loads, done.stdout.splitlines()):
        (check,) = line["judge"]["checks"]
        told[line["id"]] = check["verdict"], check.get("answer", check.get("score"))
    assert told == found


def test_several_questions_are_asked_in_one_reply_each_a_check() -> None:
    folder = EXAMPLES / "questions"
    text = (folder / "mail.yaml").read_text("utf-8")
    assert text in (EXAMPLES.parent / "guide.md").read_text("utf-8")
    words = ("--rubric", "mail.yaml", "-m", "scripted:judge.yaml", "--no-cache", "--votes", "3")
    command = [sys.executable, "-m", "judge", "validate", "mails.jsonl", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    told = {}
    for line in map(json.loads, done.stdout.splitlines()):
        assert line["judge"]["usage"]["replies"] == 3
        told[line["id"]] = [
            (c["check"], c["verdict"], c.get("score"), len(c["votes"]))
            for c in line["judge"]["checks"]
        ]
    kind = [("mail.polite", "pass", None, 3), ("mail.clear", "fail", 2, 3)]
    rude = [("mail.polite", "fail", None, 3), ("mail.clear", "pass", 5, 3)]
    assert told == {"thanks": kind, "late": rude, "order": kind}
    assert "9 calls" in done.stderr
    assert "mail.clear: mean score 3.00" in done.stderr


def test_a_workflow_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    for name, told in (("empty.py:workflow", "is called 'workflow'"), ("no.py:x", "be read")):
        with pytest.raises(UsageError, match=told):
            load_workflow(str(tmp_path / name))

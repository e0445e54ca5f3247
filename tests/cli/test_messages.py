"""What is told when something is amiss, or there is nothing to do: the file, in words, a way on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


def test_of_one_input_the_line_is_enough(judge: Typed) -> None:
    judge.write("a.jsonl", [norm(1), norm(1)])
    done = judge("validate", "a.jsonl", *ONE)
    assert json.loads(done.stdout.splitlines()[1])["judge"]["error"] == {
        "type": "duplicate-id",
        "line": 2,
        "message": "id 'n1' was already on line 1",
        "field": "id",
    }


def test_nothing_to_do_is_told(judge: Typed) -> None:
    (judge.folder / "empty").write_text("")
    done = judge("report", "empty", "-o", "page.html")
    assert done.returncode == 0 and b"judge: no records in empty\n" in done.stderr
    done = judge("audit", "-m", "scripted:yes.yaml", "--limit", "0")
    assert done.returncode == 0 and b"judge: nothing was done: --limit 0\n" in done.stderr

"""What `judge audit` says on standard error, and which libraries it asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.audit.suite import cases
from judge.cli import options
from judge.rubric import builtin

from .typed import Typed

AUDIT = ("audit", "-m", "scripted:judge.yaml", "--profile", "none", "--rubric", "relevance")
CASES = [case.id for case in cases(dict(builtin())) if case.check == "relevance"]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    return Typed(tmp_path, monkeypatch, capfd)


def scripted(judge: Typed, *replies: dict[str, Any]) -> None:
    told = {"reading": "probability", "replies": [*replies, {"p_yes": 0.9}]}
    (judge.folder / "judge.yaml").write_text(json.dumps(told))


def test_why_pairs_have_no_verdict(judge: Typed) -> None:
    first, second, third = CASES[:3]
    scripted(
        judge,
        {"when": {"id": first}, "error": "bad-request"},
        {"when": {"id": second}, "error": "bad-request"},
        {"when": {"id": third}, "words": {"perhaps": 0.9}},
    )
    done = judge(*AUDIT, "--limit", "4")
    assert done.returncode == 3
    told = done.stderr.decode()
    assert "judge: 2 x bad-request: " in told and "scripted bad-request" in told
    assert "judge: 1 x unreadable: no word that answers" in told
    assert b" x " not in judge(*AUDIT, "--limit", "4", "-q").stderr


def test_a_key_that_the_error_holds_is_not_told(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "denied-for-good-and-all")
    from judge.backends import scripted as backend
    from judge.errors import Denied

    async def refuses(self: object, call: object, mode: object) -> None:
        error = Denied("no")
        error.args = ("denied-for-good-and-all \x1b[2J",)
        raise error

    scripted(judge)
    monkeypatch.setattr(backend.ScriptedBackend, "complete", refuses)
    done = judge(*AUDIT, "--limit", "1")
    assert done.returncode == 4
    assert b"[secret]" in done.stderr
    assert b"denied-for-good" not in done.stderr and b"\x1b" not in done.stderr


def test_only_what_is_used_must_be_installed(judge: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(judge)
    here = {"numpy", "scipy"}
    monkeypatch.setattr(options, "find_spec", lambda name: object() if name in here else None)
    assert judge(*AUDIT, "--limit", "1", "-q").returncode == 0
    drawn = judge(*AUDIT, "--limit", "1", "-q", "--tables", "tables")
    assert drawn.returncode == 2 and b"judge audit needs matplotlib: pip install" in drawn.stderr
    here.clear()
    done = judge(*AUDIT, "--limit", "1", "-q")
    assert done.returncode == 2 and b"needs numpy, scipy: pip install" in done.stderr

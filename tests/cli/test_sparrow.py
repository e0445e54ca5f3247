"""Real servers of decision models on this machine: one with weights in its package, and the
conformance suite's test server with faults."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from .typed import Typed

pytestmark = pytest.mark.slow

MAILS = [
    {"id": f"m{n}", "mail": f"{('Do it over, now.', 'Thank you so much.')[n % 2]} Invoice {n}."}
    for n in range(8)
]
ASK = ("validate", "in.jsonl", "--ask", "Is the mail polite?", "--on", "mail", "-m")


@contextmanager
def serving(program: str, *words: str) -> Iterator[str]:
    """The address of a server."""
    found = shutil.which(program, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{program} is not installed")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
    command = [found, *words, "--port", port]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("in.jsonl", MAILS)
    return made


def labelled(count: int) -> list[dict[str, Any]]:
    """Actions that follow a rule or break it; half of the rules are turned round."""
    rows = []
    for n in range(count):
        turned, kept = n % 2, n // 2 % 2
        rows.append(
            {
                "id": f"a{n}",
                "rule": f"Guests should {'never ' if turned else ''}take off their shoes.",
                "action": f"Guest {n} {'left the shoes on' if kept else 'took off the shoes'}.",
                "labels": {"kept": "yes" if turned == kept else "no"},
            }
        )
    return rows


def test_a_small_real_model_repeats_itself_and_is_found_out(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It guesses at norms; the report, the profile and the controls say so."""
    with serving("sparrow-decider", "serve") as url:
        monkeypatch.setenv("SYSTEMONE_BASE_URL", url)
        for out in ("first", "second"):
            assert judge.text(*ASK, "systemone:sparrow", "-o", out, "--no-cache")[0] == 0
        whole = judge.read("first")
        assert judge.read("second") == whole and whole.count(b"sparrow-nano-general") == 8
        (judge.folder / "first").write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
        assert judge.text(*ASK, "systemone:sparrow", "-o", "first", "--resume")[0] == 0
        assert judge.read("first") == whole
        judge.write("labels.jsonl", labelled(64))
        (judge.folder / "kept.yaml").write_text(
            "{name: kept, question: Does the action follow the rule?, fields: [rule, action],\n"
            "control: {field: rule}}"
        )
        words = ("calibrate", "labels.jsonl", "--rubric", "kept.yaml", "--check", "kept")
        assert judge.text(*words, "-m", "systemone:sparrow", "-o", "done")[0] == 0
    (found,) = json.loads(judge.read("done/profile.json"))["judges"]
    assert found["answered_by"][0].startswith("sparrow-nano")
    assert found["controls"]["looks"] is False


FAULTS = {
    "noul-range": "is no probability",
    "boolean-type": "is of type 'boolean'",
    "choice-sum": "add up to",
    "choice-second": "is not the likeliest",
    "choice-key-case": "not those of the choices",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_conformance_suites_faults_are_seen(
    judge: Typed, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    labels = ("--answers", "Form,Payment,Other") if fault.startswith("choice") else ()
    judge.write("in.jsonl", MAILS[:2])
    with serving("jevcompat", "mock", "--fault", fault) as url:
        monkeypatch.setenv("SYSTEMONE_BASE_URL", url)
        code, out, told = judge.text(*ASK, "systemone:jev-latest", *labels)
    if not labels:
        assert code == 2 and FAULTS[fault] in told, "by the small question, before any record"
        return
    votes = [json.loads(line)["judge"]["checks"][0]["votes"][0] for line in out.splitlines()]
    assert code == 3 and {vote["verdict"] for vote in votes} == {"unreadable"}, told
    assert all(FAULTS[fault] in vote["reason"] for vote in votes), votes

"""Which model answered: models behind one address share no replies, and the run names them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.typed import Typed
from loopback import Answer, Asked, Loopback, completion

from judge.judging.served_model import is_same

RECORDS = [{"id": name, "email": f"Dear {name}, thank you."} for name in "abc"]


def loaded(model: str | None, answer: str, mark: str | None = None) -> Any:
    """A server that takes any name and answers with the model that it has loaded."""

    def script(asked: Asked) -> Answer:
        said = {"quote": None, "reason": "so", "answer": answer}
        text = '{"ready": "yes"}' if asked.probe else json.dumps(said)
        made = completion(asked, Answer(text)) | {"model": model, "system_fingerprint": mark}
        return Answer(body=json.dumps(made).encode())

    return script


class Runs:
    def __init__(self, typed: Typed, server: Loopback) -> None:
        self.typed, self.server = typed, server
        typed.write("in.jsonl", RECORDS)

    def __call__(self, out: str, *flags: str, code: int = 0) -> str:
        words = ("validate", "in.jsonl", "--ask", "Polite?", "-m", "openai:m", "-o", out, *flags)
        got, _, told = self.typed.text(*words)
        assert got == code, told
        return told

    def answered(self, out: str) -> dict[str, Any]:
        (run,) = json.loads(self.typed.read(f"{out}.run.json")).values()
        found: dict[str, Any] = run["answered_by"]["openai:m"]
        return found


@pytest.fixture
def judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Runs]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Loopback(scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield Runs(Typed(tmp_path, monkeypatch, capfd), server)


@pytest.mark.parametrize("listed", [True, False])
def test_another_model_behind_the_same_address_gets_none_of_the_first_ones_replies(
    judge: Runs, listed: bool
) -> None:
    def load(model: str, answer: str) -> None:
        judge.server.script = loaded(model, answer, f"{model}-build")
        judge.server.listed = [model] if listed else None
        judge.server.calls.clear()

    load("small.gguf", "yes")
    told = judge("a")
    assert "the model that answers is small.gguf" in told
    assert judge.answered("a") == {
        "models": ["small.gguf"], "system_fingerprints": ["small.gguf-build"],
    }  # fmt: skip
    load("large.gguf", "no")
    judge("b")
    assert len(judge.server.asked) == 3
    assert judge.typed.read("a") != judge.typed.read("b")
    assert judge.answered("b")["models"] == ["large.gguf"]
    load("small.gguf", "no longer asked")
    told = judge("again")
    assert judge.typed.read("again") == judge.typed.read("a") and not judge.server.asked
    assert len(judge.server.calls) == (0 if listed else 1), "one small call where there is no list"
    assert judge.answered("again")["models"] == judge.answered("a")["models"]


def test_a_list_that_fails_for_a_moment_changes_nothing(judge: Runs) -> None:
    judge.server.script, judge.server.listed = loaded("m-2026-01-01", "yes"), ["m", "n"]
    judge("a")
    judge.server.calls.clear()
    judge.server.listed = None
    judge("b")
    assert len(judge.server.calls) == 1, "one small call"
    judge.server.listed = ["m", "n"]
    judge("c")
    assert len(judge.server.calls) == 1
    assert judge.typed.read("a") == judge.typed.read("b") == judge.typed.read("c")
    judge.server.listed, judge.server.script = None, loaded("other", "no")
    judge("d")
    assert len(judge.server.asked) == 3 and judge.answered("d")["models"] == ["other"]


def test_the_cache_serves_a_machine_without_a_network(judge: Runs) -> None:
    judge.server.script, judge.server.listed = loaded("small.gguf", "yes"), None
    judge("a")
    judge.typed._patch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    judge("none", code=4)
    judge.typed._patch.setenv("OPENAI_BASE_URL", judge.server.url)
    judge.server.script = loaded(None, "", None)
    budget = judge("b", "--max-calls", "0")
    assert "the cache's replies of small.gguf are used" in budget
    assert judge.typed.read("b") == judge.typed.read("a")


def test_a_dated_name_and_a_changing_fingerprint_change_nothing(judge: Runs) -> None:
    judge.server.script, judge.server.listed = loaded("m-2024-08-06", "yes", "fp_1"), ["x", "m"]
    told = judge("whole", "--no-cache")
    assert "answers" not in told
    judge("part", "--limit", "2")
    judge.server.script = loaded("m-2024-08-06", "yes", "fp_2")
    told = judge("part", "--resume")
    assert "2 kept" in told and "answers" not in told
    assert judge.typed.read("part") == judge.typed.read("whole")
    assert judge.answered("part")["system_fingerprints"] == ["fp_1", "fp_2"]


def test_a_change_within_a_run_is_told_once(judge: Runs) -> None:
    def script(asked: Asked) -> Answer:
        made: Answer = loaded("m" if asked.number < 3 else "tiny/fallback-1b", "yes")(asked)
        return made

    judge.server.script = script
    told = judge("a")
    assert told.count("the model that answers has changed: m, then tiny/fallback-1b") == 1
    assert judge.answered("a")["models"] == ["m", "tiny/fallback-1b"]


def test_a_run_that_goes_on_with_another_model_says_so(judge: Runs) -> None:
    judge.server.script = loaded("m", "yes")
    judge("a", "--limit", "2")
    judge.server.script = loaded("m-2", "no")
    told = judge("a", "--resume", "--no-cache")
    assert told.count("the model that answers has changed: m, then m-2") == 1
    assert judge.answered("a")["models"] == ["m", "m-2"]


@pytest.mark.parametrize(
    ("asked", "answering", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("llama3", "llama3:latest", True),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("llama3.1:8b", "llama3.1:70b", False),
        ("Qwen2.5", "qwen2.5", True),
        ("gpt-4", "gpt-4-turbo", False),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o", "tiny/fallback-1b", False),
    ],
)
def test_an_alias(asked: str, answering: str, same: bool) -> None:
    assert is_same(asked, answering) == same

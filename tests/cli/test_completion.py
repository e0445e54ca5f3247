"""Shell completion after a flag, in the form that bash asks for: words cut at colons."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback import Loopback

from .typed import Typed

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Complete:
    """The completions that bash gets for the last of these words."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("_JUDGE_COMPLETE", "complete_bash")
    # The variable is named by the program, which is else pytest.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "")

    def told(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", "\n".join(("judge", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        code, out, errors = typed.text()
        assert (code, errors) == (0, "")
        return out.split()

    return told


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("validate", "--rubric", "poli"), ["polite"]),
        (("validate", "--check", "consis"), ["consistency"]),
        (("validate", "--workflow", "no"), ["norm", "normad-filter"]),
        (("validate", "--method", ""), ["structured", "logprobs", "probe"]),
        (("validate", "--rejudge", "fail,a"), ["fail,abstain", "fail,answered"]),
        (("validate", "--format", "j"), ["jsonl", "json"]),
        (("evaluate", "c"), ["cali", "cqbench", "culturalbench"]),
        (("rubrics", "show", "faith"), ["faithful"]),
        (("models", "pull", "smol"), ["smollm2-135m"]),
        (("validate", "-m", "scr"), ["scripted:"]),
        (("validate", "-m", "openai", ":", "gpt-4.1-n"), ["gpt-4.1-nano"]),
        (("validate", "-m", "openai", ":", "o3", "-m", "vll"), ["vllm:"]),
        (("validate", "-m", "nothing", ":", ""), []),
    ],
)
def test_values_are_completed(
    complete: Complete, words: tuple[str, ...], values: list[str]
) -> None:
    assert complete(*words) == values


def test_models_are_those_of_the_server(
    complete: Complete, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Loopback() as server:
        server.listed = ["llama-3", "qwen-9"]
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        assert complete("validate", "-m", "openai", ":") == ["llama-3", "qwen-9"]
        toml = f'[servers.zed]\nurl = "{server.url}"\n'
        (tmp_path / "mine.toml").write_text(toml)
        (tmp_path / "judge.toml").write_text(toml)
        assert complete("plan", "-m", "zed", ":", "q") == [], "a file that is not trusted"
        monkeypatch.setenv("JUDGE_CONFIG", "mine.toml")
        assert complete("plan", "-m", "zed", ":", "q") == ["qwen-9"]
        assert complete("plan", "-m", "ze") == ["zed:llama-3", "zed:qwen-9"]
    assert complete("plan", "-m", "zed", ":", "q") == [], "the server is gone"
    assert complete("plan", "-m", "ze") == ["zed:"]

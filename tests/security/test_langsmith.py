"""LANGSMITH_TRACING alone uploads no record: judge's own setting must allow it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import norm
from collector import Collector
from loopback import Loopback, says

from judge import langsmith

VALIDATE = "import sys; from judge.cli import main; sys.argv[0] = 'judge'; main()"


def traced(program: str, *words: str, cwd: Path, to: Collector, **env: str) -> tuple[int, bytes]:
    """(exit code, standard error) of a program that LangSmith's variables set to tracing."""
    reply = {"quote": None, "reason": "so it is", "answer": "no"}
    keys = {"OPENAI_API_KEY": "sk-test-0123456789abcdef", "LANGSMITH_TRACING": "true"}
    keys |= {"LANGSMITH_ENDPOINT": to.url, "LANGSMITH_API_KEY": "ls-test-0123456789abcdef"}
    with Loopback(lambda asked: says(reply)) as server:
        env = {**os.environ, **keys, "OPENAI_BASE_URL": server.url, **env}
        run = (sys.executable, "-c", program, *words)
        done = subprocess.run(run, cwd=cwd, env=env, capture_output=True, check=False)
        assert server.asked, done.stderr
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("told", [None, "1"])
def test_records_are_uploaded_only_where_judge_is_told(
    tmp_path: Path, collector: Collector, told: str | None
) -> None:
    (tmp_path / "n.jsonl").write_text(json.dumps(norm(0)) + "\n")
    words = ("validate", "n.jsonl", "-m", "langchain:openai:m", "--check", "leakage")
    words = (*words, "--method", "structured", "--no-cache")
    env = {} if told is None else {langsmith.TOLD: told}
    _, said = traced(VALIDATE, *words, cwd=tmp_path, to=collector, **env)
    assert bool(collector.seen) == (told is not None), said
    assert (b"judge: tracing is on" in said) == (told is not None)


@pytest.mark.parametrize("name", langsmith.SWITCHES)
def test_every_switch_is_turned_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(langsmith.TOLD, raising=False)
    monkeypatch.setenv(name, "True")
    langsmith.guard_tracing()
    assert not langsmith.tracing()
    assert os.environ[name] == "false"


HOST = """
import judge, langsmith
from langchain_core.runnables import RunnableLambda

async def ask(text):
    settings = {"model": "langchain:openai:m", "method": "structured", "cache": False}
    records = [{"text": "a secret record"}]
    done = [one async for one in judge.avalidate(records, ask="Is it so?", **settings)]
    return f"{len(done)} of the host's own"

import asyncio
print(asyncio.run(RunnableLambda(ask).ainvoke("the host's own words")))
RunnableLambda(str).invoke("words after the judging")
langsmith.Client().flush()
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
"""


@pytest.mark.slow
def test_a_program_that_uses_judge_keeps_its_own_traces(
    tmp_path: Path, collector: Collector
) -> None:
    code, said = traced(HOST, cwd=tmp_path, to=collector)
    assert code == 0, said
    seen = b"".join(collector.seen)
    assert b"host" in seen and b"words after the judging" in seen, "its traces go on"
    assert b"secret record" not in seen

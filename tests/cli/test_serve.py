"""A run with a server of its own: a made-up vLLM."""

from __future__ import annotations

import os

import pytest
from serving.made_vllm import alive, put, starts

from .conftest import Shell, jsonl, norm

POLITE = """
name: polite
title: Is it polite?
source: "made up"
kinds: [norm]
role: judge
about: record
fields: [story]
reply: YesNo
verdict: {pass: "yes"}
methods:
  structured: {max_tokens: 60, question: "Is it polite? Give a reason, then answer."}
  logprobs: {steps: [{question: "Is it polite? Answer Yes or No.", "yes": "yes", "no": "no"}]}
"""


@pytest.mark.slow
def test_a_server_that_is_killed_midway_changes_nothing(judge: Shell) -> None:
    path = f"{put(judge.folder / 'bin')}{os.pathsep}{os.environ['PATH']}"
    judge.env = {k: v for k, v in judge.env.items() if not k.startswith("VLLM_")}
    judge.env |= {"PATH": path, "MADE_VLLM": str(judge.folder)}
    (judge.folder / "polite.yaml").write_text(POLITE)
    check = ("--rubric", "polite.yaml", "--check", "polite")
    run = ("validate", "-", "-m", "vllm:some/model", *check, "--no-cache", "-q", "-o")
    records = jsonl(map(norm, range(20)))
    whole = judge(*run, "whole", stdin=records)
    assert whole.returncode == 0, whole.stderr
    killed = judge.folder / "killed"
    killed.mkdir()
    env = {"MADE_ANSWERS": "7", "MADE_VLLM": str(killed)}
    done = judge(*run, "out", stdin=records, env=env)
    assert done.returncode == 0, done.stderr
    assert b"was ended by SIGKILL; it is started again" in done.stderr
    assert judge.read("out") == judge.read("whole")
    assert len(starts(killed)) == 2
    assert not any(alive(entry["server"]) for entry in starts(judge.folder) + starts(killed))

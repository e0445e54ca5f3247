"""Runs with a server of their own: a made-up vLLM."""

from __future__ import annotations

import os
import signal

import pytest
from serving.made_vllm import alive, put, starts, wait_for

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
readings:
  structured: {max_tokens: 60, question: "Is it polite? Give a reason, then answer."}
  probability: {steps: [{question: "Is it polite? Answer Yes or No.", "yes": "yes", "no": "no"}]}
"""
CHECK = ("--rubric", "polite.yaml", "--check", "polite", "--rounds", "0")
RUN = ("validate", "n.jsonl", "-m", "vllm:some/model", *CHECK, "--no-cache", "-q")
PIPED = (RUN[0], "-", *RUN[2:])


@pytest.fixture
def made(judge: Shell) -> Shell:
    """A shell with a made-up vLLM."""
    path = f"{put(judge.folder / 'bin')}{os.pathsep}{os.environ['PATH']}"
    judge.env = {k: v for k, v in judge.env.items() if not k.startswith("VLLM_")}
    judge.env |= {"PATH": path, "MADE_VLLM": str(judge.folder)}
    judge.env |= {"JUDGE_SERVER_LOG": str(judge.folder / "log")}
    (judge.folder / "polite.yaml").write_text(POLITE)
    return judge


@pytest.mark.slow
def test_a_server_that_is_killed_midway_changes_nothing(made: Shell) -> None:
    records = jsonl(map(norm, range(20)))
    whole = made(*PIPED, "-o", "whole", stdin=records)
    assert whole.returncode == 0, whole.stderr
    run = made(*PIPED, "-o", "out", stdin=records, env={"MADE_ANSWERS": "7", "MADE_LIVES": "2"})
    assert run.returncode == 0, run.stderr
    assert b"was ended by SIGKILL; it is started again" in run.stderr
    assert made.read("out") == made.read("whole")
    assert len(starts(made.folder)) == 3
    assert not any(alive(entry["server"]) for entry in starts(made.folder))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_ends_early_leaves_no_server(made: Shell, number: signal.Signals) -> None:
    process = made.start(*PIPED, "-o", "out")
    assert process.stdin is not None
    # The input stays open, so that the run is not at its end before the signal, however late.
    process.stdin.write(jsonl(map(norm, range(50))))
    process.stdin.flush()
    calls = made.folder / "calls"
    wait_for(lambda: calls.exists() and calls.stat().st_size > 20, "nothing is judged")
    process.send_signal(number)
    assert process.wait(60) == (130 if number == signal.SIGTERM else -number)
    process.communicate()
    (entry,) = starts(made.folder)
    wait_for(lambda: not alive(entry["server"]) and not alive(entry["worker"]), "it lives on")

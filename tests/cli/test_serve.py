"""`judge models serve` and runs with a server of their own: a made-up vLLM."""

from __future__ import annotations

import os
import signal
import urllib.request

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
def test_serve_prints_an_address_and_brings_a_killed_server_back_once(made: Shell) -> None:
    words = ("models", "serve", "some/model", "--", "--tensor-parallel-size", "2")
    process = made.start(*words)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().decode().strip()
        for life in range(2):
            wait_for(lambda life=life: len(starts(made.folder)) == life + 1, "it is not back")
            wait_for(lambda: _healthy(url), "it does not answer")
            assert starts(made.folder)[life]["argv"][-2:] == ["--tensor-parallel-size", "2"]
            os.kill(starts(made.folder)[life]["server"], signal.SIGKILL)
        out, told = process.communicate(timeout=60)
        assert (process.returncode, out) == (4, b""), "one line, for scripts"
        assert b"was ended by SIGKILL, after a restart. Its log is" in told
        left = [entry["worker"] for entry in starts(made.folder)]
        wait_for(lambda: not any(map(alive, left)), "a worker lives on")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_serve_stops_at_sigterm(made: Shell) -> None:
    process = made.start("models", "serve", "some/model")
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith(b"http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 0 and b"is stopped" in told
        assert not any(alive(entry["server"]) for entry in starts(made.folder))
    finally:
        process.kill()
        process.communicate()


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url.removesuffix("/v1") + "/health", timeout=10) as answered:
            return bool(answered.status == 200)
    except OSError:
        return False


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("m", "--host", "0.0.0.0"), "opens the model to the network: set VLLM_API_KEY"),
        (("--", "--config=x.yaml"), "an option of a command line, not a model's name"),
        (("m", "--", "--api-key=abc"), "puts a key on a command line"),
    ],
)
def test_what_cannot_be_served(made: Shell, words: tuple[str, ...], told: str) -> None:
    refused = made("models", "serve", *words)
    assert refused.returncode == 2 and told in refused.stderr.decode()

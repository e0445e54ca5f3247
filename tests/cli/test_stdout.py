"""Standard output that cannot be written: one line and exit code 4; without a reader, 141."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from loopback import Answer, Asked, Loopback, says

from .conftest import COMMAND, Shell, lines, norm

PRINTING = (("--version",), ("validate", "--help"), ("rubrics", "list"))
"""Through typer's echo, its help, and a table."""


@pytest.mark.parametrize("typed", PRINTING, ids=" ".join)
def test_a_full_disk_is_one_line(judge: Shell, typed: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = judge.start(*typed, stdout=full)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 4, told
    assert told.count(b"\n") == 1 and told.startswith(b"judge: standard output cannot be written")
    assert b"No space left" in told


def test_a_reader_that_has_gone_is_no_error(judge: Shell) -> None:
    read, write = os.pipe()
    os.close(read)
    process = judge.start(*PRINTING[-1], stdout=write)
    os.close(write)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (141, b"")


@pytest.mark.slow
def test_a_reader_that_waits_costs_no_call_twice(judge: Shell) -> None:
    """The pipe is full while calls are under way, for longer than they may take."""
    read_again = threading.Event()

    def reply(asked: Asked) -> Answer:
        if asked.number > 12:
            read_again.set()
        return says({"quote": "and greets Bo", "reason": "r", "answer": "yes"}, delay=0.2)

    with Loopback(reply) as server:
        judge.env |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        judge.write("n.jsonl", [{**norm(n), "more": "x" * 100_000} for n in range(30)])
        run = ("validate", "n.jsonl", "-m", "openai:m", "--check", "relevance", "-q", "--no-cache")
        more = ("--timeout", "1", "--concurrency", "8", "--summary", "sums")
        process = judge.start(*run, *more)
        assert read_again.wait(60)
        time.sleep(2)
        out, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert [line["id"] for line in lines(out)] == [f"n{n}" for n in range(30)]
    assert len(server.asked) == 30
    assert json.loads(judge.read("sums"))["cost_usd"] is None, "a model without a price"


@pytest.mark.slow
def test_judging_into_a_file_needs_no_standard_output(judge: Shell) -> None:
    """Without -o: tests/faults/test_machine.py."""
    judge.write("one.jsonl", [norm(1)])
    run = ("validate", "one.jsonl", "-m", "scripted:yes.yaml", "--check", "relevance", "-o", "out")
    words = ["sh", "-c", '"$@" >&-', "sh", *COMMAND, *run]
    done = subprocess.run(words, cwd=judge.folder, env=judge.env, capture_output=True, timeout=100)
    assert done.returncode == 0 and b"1 of 1" in done.stderr
    assert judge.read("out").count(b"\n") == 1

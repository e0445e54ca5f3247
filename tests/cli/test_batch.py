"""`judge validate --engine batch` against a batch server. Kills: tests/backends/test_batch.py."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from batchserver import KEY, BatchServer, guest
from waiting import wait_for

from .typed import Typed

NORMS = [*map(guest, range(8))]
CHECKS = ("--check", "relevance", "--check", "derivation")
ROUNDS = 4
"""The calls that the odd guest's norm needs one after another."""


class Runs:
    """`judge validate` over the norms, on a server."""

    def __init__(self, typed: Typed, server: BatchServer, patch: pytest.MonkeyPatch) -> None:
        self._typed, self.server = typed, server
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("JUDGE_BATCH_QUIET", "0.4")
        patch.setenv("JUDGE_BATCH_POLL", "0.1")
        typed.write("norms.jsonl", NORMS)

    def __call__(self, *flags: str, engine: str = "batch") -> tuple[int, str]:
        """The exit code and the messages."""
        words = ("validate", "norms.jsonl", "-m", "openai:m", *CHECKS, "--engine", engine)
        code, _, told = self._typed.text(*words, "--repair", *flags)
        return code, told

    def out(self, name: str = "out") -> bytes:
        return self._typed.read(name)

    def online(self) -> bytes:
        """The output of the local engine, with one call at a time."""
        code, told = self("-o", "online", "--no-cache", engine="local")
        assert code == 0, told
        return self.out("online")


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as running:
        yield running


@pytest.fixture
def judge(typed: Typed, server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(typed, server, monkeypatch)


@pytest.mark.slow
def test_the_same_bytes_in_few_batches(judge: Runs, server: BatchServer) -> None:
    code, told = judge("-o", "out")
    assert code == 0, told
    # As many as one record needs; one more for each time that the machine stood still, and never as
    # many as there are requests.
    assert ROUNDS <= len(server.batches) < len(server.paid())
    assert set(server.paid().values()) == {1} and server.requests("online") == 0
    # Resumed by the other engine, all lines stand: it is the same fingerprint.
    code, told = judge("-o", "out", "--resume", engine="local")
    assert code == 0 and "8 kept" in told, told
    # Under another fingerprint no line is replayed; every reply is in the cache.
    code, told = judge("-o", "again", "--rounds", "4", engine="local")
    assert code == 0, told
    assert server.requests("online") == 1, "the probe for the way to ask for JSON"
    assert judge.online() == judge.out()


@pytest.mark.slow
def test_an_interrupt_stops_at_once_and_the_batch_goes_on(judge: Runs, server: BatchServer) -> None:
    server.plan(delay=600.0)

    def under_way() -> int:
        running = [batch for batch in server.batches if batch["status"] == "in_progress"]
        return sum(batch["request_counts"]["total"] for batch in running)

    def interrupt() -> None:
        # Each norm's first question; in two batches where the machine stood still between them.
        wait_for(lambda: under_way() == len(NORMS), "the questions are not at the provider")
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    code, told = judge("-o", "out")
    interrupting.join()
    assert code == 130, told
    assert under_way() == len(NORMS), "nobody has waited for it"
    assert "stopping now" in told
    assert "still at the provider; the same command with --resume picks" in told
    server.finish()
    code, said = judge("-o", "out", "--resume")
    assert code == 0, said
    assert set(server.paid().values()) == {1} and judge.out() == judge.online()


# ---------------------------------------------------------------- bad usage


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (("-m", "scripted:yes.yaml"), "--engine batch: scripted:yes.yaml has no batch API"),
        (
            ("-m", "openai:m", "--rewrite-model", "langchain:fake:m", "--repair"),
            "langchain:fake:m has no batch API that judge knows",
        ),
        (("-m", "openai:m", "--workers", "2"), "--workers"),
        (("-m", "openai:m", "--max-cost", "1"), "--max-cost needs the price of openai:m"),
    ],
)
def test_what_cannot_be_batched_is_bad_usage(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, models: tuple[str, ...], told: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    typed.write("norms.jsonl", NORMS)
    ran = typed("validate", "norms.jsonl", "--engine", "batch", *models)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert told in ran.stderr.decode()


def test_a_dead_address_ends_the_run_at_once(judge: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    code, told = judge("-o", "out", "--no-cache")
    assert code == 4 and "the batch API cannot be reached" in told, told

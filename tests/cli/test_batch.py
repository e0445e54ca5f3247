"""`judge validate --engine batch` against a batch server that is a process.

What is interrupted is a process, and so is the plain run that all are compared with; the rest runs
in this one, without the second that a new one takes to start. Kills: tests/backends/test_batch.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from batchserver import KEY, BatchServer

from .conftest import COMMAND
from .typed import Typed

NORMS = [
    {
        "id": f"n{number}",
        "country": "japan",
        "background": "- Guests take off their shoes at the door.\n- Gifts go from both hands.",
        "value": "Respect for the home",
        "rule_of_thumb": "Take off your shoes before you enter a home.",
        "story": f"{'An odd guest' if number == 3 else 'A guest'} number {number} stopped there "
        "and slipped off both shoes. Was it fine?",
        "label": "yes",
    }
    for number in range(8)
]
CHECKS = ("--check", "relevance", "--check", "derivation")
ROUNDS = 4
"""The calls that the odd guest's norm needs one after another."""


class Runs:
    """`judge validate` in a folder, on a server; with `typed`, calls are made in this process."""

    def __init__(self, folder: Path, server: BatchServer, typed: Typed | None = None) -> None:
        self.folder, self.server, self._typed = folder, server, typed
        text = "".join(json.dumps(norm) + "\n" for norm in NORMS)
        (folder / "norms.jsonl").write_text(text)

    def _environment(self) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": self.server.url,
            "OPENAI_API_KEY": KEY,
            "JUDGE_BATCH_QUIET": "0.4",
            "JUDGE_BATCH_POLL": "0.1",
            "JUDGE_CACHE_DIR": str(self.folder / "cache"),
        }

    def _words(self, engine: str, flags: tuple[str, ...]) -> list[str]:
        words = ("validate", "norms.jsonl", "-m", "openai:m", *CHECKS, "--engine", engine)
        return [*words, "--repair", *flags]

    def start(self, *flags: str, engine: str = "batch", **env: str) -> subprocess.Popen[bytes]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("JUDGE_", "OPENAI_"))}
        return subprocess.Popen(
            [*COMMAND, *self._words(engine, flags)],
            cwd=self.folder,
            env={**kept, **self._environment(), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *flags: str, engine: str = "batch") -> tuple[int, str]:
        """(exit code, what was told)."""
        if self._typed is None:
            process = self.start(*flags, engine=engine)
            _, told = process.communicate(timeout=100)
            return process.returncode, told.decode()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self._environment().items():
                patch.setenv(name, value)
            ran = self._typed(*self._words(engine, flags))
        return ran.returncode, ran.stderr.decode()

    def out(self, name: str = "out") -> bytes:
        """What was written, but for the fingerprint, which knows the server's port."""
        return re.sub(rb'"fingerprint":"\w+"', b"", (self.folder / name).read_bytes())


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as running:
        yield running


@pytest.fixture
def judge(
    tmp_path: Path,
    server: BatchServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Runs:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in [n for n in os.environ if n.startswith(("JUDGE_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    return Runs(folder, server, Typed(folder, monkeypatch, capfd))


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the local engine writes, each call made by itself."""
    folder = tmp_path_factory.mktemp("online")
    with BatchServer() as server:
        run = Runs(folder, server)
        code, told = run("-o", "out", engine="local")
        assert code == 0, told
        assert not server.batches
    return run.out()


@pytest.mark.slow
def test_the_same_bytes_in_few_batches(judge: Runs, server: BatchServer, online: bytes) -> None:
    code, told = judge("-o", "out")
    assert code == 0, told
    assert judge.out() == online
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


@pytest.mark.slow
def test_an_interrupt_stops_at_once_and_the_batch_goes_on(
    judge: Runs, server: BatchServer, online: bytes
) -> None:
    server.plan(delay=600.0)
    process = judge.start("-o", "out")

    def under_way() -> int:
        running = [batch for batch in server.batches if batch["status"] == "in_progress"]
        return sum(batch["request_counts"]["total"] for batch in running)

    # Each norm's first question; in two batches where the machine stood still between them.
    server.wait_for(lambda: under_way() == len(NORMS), "the questions are not at the provider")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert under_way() == len(NORMS), "nobody has waited for it"
    assert b"stopping now" in told and b"Traceback" not in told
    assert b"still at the provider; the same command with --resume picks" in told
    server.finish()
    code, said = judge("-o", "out", "--resume")
    assert code == 0, said
    assert judge.out() == online and set(server.paid().values()) == {1}


# ---------------------------------------------------------------- bad usage


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (("-m", "scripted:yes.yaml"), "--engine batch: scripted:yes.yaml has no batch API"),
        (
            ("-m", "openai:m", "--rewrite-model", "langchain:fake:m"),
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

"""`judge` as a user types it: subprocesses in an empty folder of their own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from .typed import Typed

FIXTURES = Path(__file__).parents[2] / "fixtures"
COMMAND = (sys.executable, "-m", "judge")
COUNTING = '''
"""The command line with a scripted judge that notes each call that is begun, and each that ends."""
import asyncio, os, sys
from pathlib import Path
from judge.backends.scripted import ScriptedBackend
from judge.cli import main

log = os.open(os.environ["CALL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
answer = ScriptedBackend.complete

async def complete(self, call, mode):
    os.write(log, b"begun\\n")
    while call.origin.record == os.environ["CALL_HELD"] and not Path("released").exists():
        await asyncio.sleep(0.02)
    completion = await answer(self, call, mode)
    os.write(log, b"ended\\n")
    return completion

ScriptedBackend.complete = complete
main()
'''


class Shell:
    """Runs `judge` in its folder, which holds judge.yaml (the fixtures' script) and yes.yaml.

    A call is a fork of a process that has judge imported (tests/warm.py); `start` starts a process.
    """

    def __init__(self, folder: Path, path: str) -> None:
        self.folder, self._judge = folder, f"{path.partition(':')[0]}/judge"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("JUDGE_")}
        self.env |= {"JUDGE_CACHE_DIR": str(folder / "cache"), "PYTHONUNBUFFERED": ""}
        (folder / "judge.yaml").write_bytes((FIXTURES / "judge.yaml").read_bytes())
        self.script("yes.yaml", [{"p_yes": 0.9}])

    def __call__(
        self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self._judge, *words],
            input=stdin,
            capture_output=True,
            cwd=self.folder,
            env={**self.env, **(env or {})},
            timeout=100,
            check=False,
        )

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [*COMMAND, *words], cwd=self.folder, env=self.env, **{**pipes, **more}
        )

    def counting(self, *words: str, held: str = "") -> subprocess.Popen[bytes]:
        """Started with every model call noted in `calls.log`; those about `held` end when they are
        released."""
        driver = self.folder / "counting.py"
        driver.write_text(COUNTING)
        return subprocess.Popen(
            [sys.executable, str(driver), *words],
            cwd=self.folder,
            env={
                **self.env,
                "CALL_LOG": str(self.folder / "calls.log"),
                "CALL_HELD": held,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def release(self) -> None:
        (self.folder / "released").touch()

    def calls(self) -> tuple[int, int]:
        """(begun, ended) model calls so far."""
        words = (self.folder / "calls.log").read_text().split()
        return words.count("begun"), words.count("ended")

    def script(self, name: str, replies: list[dict[str, Any]]) -> None:
        """A script whose judge is read by its first token."""
        text = json.dumps({"method": "logprobs", "replies": replies})
        (self.folder / name).write_text(text)

    def write(self, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        (self.folder / name).write_bytes(jsonl(records))

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def wait_until_told(process: subprocess.Popen[bytes], words: bytes) -> bytes:
    """What stands on the pipe of standard error, read until these words are there."""
    assert process.stderr is not None
    told, until = b"", time.monotonic() + 60
    while words not in told:
        left = until - time.monotonic()
        # Not from the buffer above the descriptor: `communicate` would not find the rest in there.
        ready, _, _ = select.select([process.stderr], [], [], max(0.0, left))
        piece = os.read(process.stderr.fileno(), 4096) if ready else b""
        assert piece, told
        told += piece
    return told


def jsonl(records: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def norm(number: int) -> dict[str, Any]:
    return {
        "id": f"n{number}",
        "rule_of_thumb": "It is polite to greet.",
        "story": f"Ann comes in as number {number} and greets Bo.",
        "label": "yes",
    }


def lines(output: bytes) -> list[dict[str, Any]]:
    assert not output or output.endswith(b"\n")
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def judge(tmp_path: Path, judge_path: str) -> Shell:
    return Shell(tmp_path, judge_path)


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    """The command in this process, in the folder that `judge` has, with yes.yaml in it."""
    made = Typed(tmp_path, monkeypatch, capfd)
    made.script("yes.yaml", [{"p_yes": 0.9}], method="logprobs")
    return made


def cells(out: str, *beginning: str) -> list[list[str]]:
    """The cells of each row of a table that begins with these."""
    rows = [[c.strip() for c in line.strip().split("  ") if c.strip()] for line in out.splitlines()]
    return [row for row in rows if row[: len(beginning)] == list(beginning)]

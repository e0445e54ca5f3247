"""As many connections at once as are wanted, where the system allows a process few open files."""

from __future__ import annotations

import resource
import subprocess
from dataclasses import replace

import pytest
from loopback import Answer, Asked, Loopback, chances, says

from .conftest import COMMAND, Shell, lines, norm

AT_ONCE = 100
FEW = 64
"""Less than there are calls at once, enough for a process to start."""


def held(asked: Asked) -> Answer:
    """So long that connections pile up."""
    if asked.body.get("logprobs"):
        return replace(chances(Yes=-0.05, No=-3.1), delay=0.5)
    return says({"answer": "yes"})


def limited(judge: Shell, flag: str, url: str, calls: int) -> subprocess.CompletedProcess[bytes]:
    """The command with so few open files: for good (`-n`), or until it asks for more (`-Sn`)."""
    run = ("validate", "n.jsonl", "-m", "openai:m", "--check", "relevance", "-o", "out")
    words = (*COMMAND, *run, "--reading", "probability", "--concurrency", str(calls))
    return subprocess.run(
        ["bash", "-c", f'ulimit {flag} {FEW}; exec "$@"', "_", *words],
        cwd=judge.folder,
        env={**judge.env, "OPENAI_BASE_URL": url},
        capture_output=True,
        timeout=100,
        check=False,
    )


@pytest.mark.slow
def test_a_limit_that_can_be_raised_is_raised(judge: Shell) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < AT_ONCE + 200:
        pytest.skip("this system allows no more")
    judge.write("n.jsonl", map(norm, range(2 * AT_ONCE)))
    with Loopback(held) as server:
        done = limited(judge, "-Sn", server.url, AT_ONCE)
    assert done.returncode == 0, done.stderr
    assert [line["judge"]["verdict"] for line in lines(judge.read("out"))] == ["pass"] * 200
    assert b"retried" not in done.stderr


def test_one_that_cannot_is_told_before_anything_is_asked(judge: Shell) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    with Loopback(held) as server:
        done = limited(judge, "-n", server.url, AT_ONCE)
        assert server.count == 0
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == (
        b"judge: 100 calls at once need 228 open files, and this system allows 64: "
        b"raise the limit (ulimit -n)\n"
    )
    assert not (judge.folder / "out").exists()

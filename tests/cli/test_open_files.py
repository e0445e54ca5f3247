"""As many connections at once as are wanted, where the system allows a process few open files."""

from __future__ import annotations

import subprocess

from loopback import Loopback

from .conftest import COMMAND, Shell, norm


def test_too_few_open_files_are_told_before_anything_is_asked(judge: Shell) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    run = ("validate", "n.jsonl", "-m", "openai:m", "--check", "relevance", "-o", "out")
    words = (*COMMAND, *run, "--method", "logprobs", "--concurrency", "100")
    with Loopback() as server:
        done = subprocess.run(
            ["bash", "-c", 'ulimit -n 64; exec "$@"', "_", *words],
            cwd=judge.folder,
            env={**judge.env, "OPENAI_BASE_URL": server.url},
            capture_output=True,
            timeout=100,
        )
        assert server.count == 0
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == (
        b"judge: 100 calls at once need 228 open files, and this system allows 64: "
        b"raise the limit (ulimit -n), or ask for fewer with --concurrency\n"
    )
    assert not (judge.folder / "out").exists()

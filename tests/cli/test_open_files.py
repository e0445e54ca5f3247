"""All the connections that a run needs, although the system allows a process few open files."""

from __future__ import annotations

import subprocess

import pytest
from loopback import Loopback

from .conftest import COMMAND, Shell, norm


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "fewer"), [(64, ""), (200, ", or --concurrency 72")])
def test_too_few_open_files_are_told_before_anything_is_asked(
    judge: Shell, limit: int, fewer: str
) -> None:
    judge.write("n.jsonl", map(norm, range(3)))
    run = ("validate", "n.jsonl", "-m", "openai:m", "--check", "relevance", "-o", "out")
    words = (*COMMAND, *run, "--method", "logprobs", "--concurrency", "100")
    with Loopback() as server:
        done = subprocess.run(
            ["bash", "-c", f'ulimit -n {limit}; exec "$@"', "_", *words],
            cwd=judge.folder,
            env={**judge.env, "OPENAI_BASE_URL": server.url},
            capture_output=True,
            timeout=100,
        )
        assert server.count == 0
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        "judge: the run needs 228 open files, 100 for calls at once and 128 for the rest, and this "
        f"system allows {limit}: raise the limit (ulimit -n){fewer}\n"
    )
    assert not (judge.folder / "out").exists()

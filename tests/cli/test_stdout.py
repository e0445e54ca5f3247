"""Standard output that cannot be written: one line and exit code 4; without a reader, 141."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .conftest import COMMAND, Shell, norm

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


@pytest.mark.parametrize("typed", PRINTING, ids=" ".join)
def test_a_reader_that_has_gone_is_no_error(judge: Shell, typed: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    process = judge.start(*typed, stdout=write)
    os.close(write)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (141, b"")


def test_judging_with_standard_output_closed(judge: Shell) -> None:
    judge.write("one.jsonl", [norm(1)])
    typed = ("validate", "one.jsonl", "-m", "scripted:yes.yaml", "--check", "relevance")
    done = _closed(judge, *typed)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1 and b"closed: name a file" in done.stderr

    done = _closed(judge, *typed, "-o", "out.jsonl")
    assert done.returncode == 0 and b"1 of 1" in done.stderr
    assert judge.read("out.jsonl").count(b"\n") == 1


def _closed(judge: Shell, *typed: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *COMMAND, *typed],
        cwd=judge.folder,
        env=judge.env,
        capture_output=True,
        timeout=100,
        check=False,
    )

"""Inside a pipeline: data on stdout, everything else on stderr, a line as soon as it is known."""

from __future__ import annotations

import os
import pty
import re

import pytest

from .conftest import FIXTURES, Shell, jsonl, lines, norm

ONE = ("-m", "scripted:yes.yaml", "--check", "relevance")


@pytest.mark.slow
def test_stories_in_verdicts_out(judge: Shell) -> None:
    stories = (FIXTURES / "stories.jsonl").read_bytes()
    typed = ("validate", "-", "--model", "scripted:judge.yaml", "--repair")
    done = judge(*typed, stdin=stories)
    assert done.returncode == 0, done.stderr
    out = lines(done.stdout)
    assert [line["id"] for line in out] == [record["id"] for record in lines(stories)]
    verdicts = [line["judge"]["verdict"] for line in out]
    assert verdicts.count("pass") == 13 and verdicts[12] == "fail"
    told = done.stderr.decode()
    assert "7 of 14 records pass as they came in (50.0%)" in told
    assert "13 after repair (92.9%; 6 edits, 0 values dropped)" in told and "reused" in told
    assert "\x1b" not in told, "no colours where standard error is no terminal"

    again = judge(*typed, "--quiet", "--seed", "0", stdin=stories)
    assert again.stdout == done.stdout, "cached equals fresh"
    assert again.stderr == b""


@pytest.mark.slow
def test_each_line_comes_before_the_next_record_is_there(judge: Shell) -> None:
    process = judge.start("validate", "-", *ONE, "-q")
    assert process.stdin is not None and process.stdout is not None
    for number in range(4):
        process.stdin.write(jsonl([norm(number)]))
        process.stdin.flush()
        assert lines(process.stdout.readline())[0]["id"] == f"n{number}"
    process.stdin.close()
    assert process.stdout.read() == b"" and process.wait(30) == 0


@pytest.mark.slow
def test_a_named_pipe_is_read_once(judge: Shell) -> None:
    # As in `judge validate <(generate)`: what was looked at is gone.
    read, write = os.pipe()
    os.write(write, jsonl(map(norm, range(3))))
    os.close(write)
    process = judge.start("validate", f"/dev/fd/{read}", *ONE, "-q", pass_fds=[read])
    out, told = process.communicate(timeout=60)
    os.close(read)
    assert [line["id"] for line in lines(out)] == ["n0", "n1", "n2"], told


@pytest.mark.slow
def test_a_named_pipe_is_written_to_and_no_file_is_put_beside_it(judge: Shell) -> None:
    judge.write("in.jsonl", map(norm, range(3)))
    os.mkfifo(judge.folder / "out")
    before = {*judge.folder.iterdir()}
    process = judge.start("validate", "in.jsonl", *ONE, "-q", "--no-cache", "-o", "out")
    out = (judge.folder / "out").read_bytes()
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and [line["id"] for line in lines(out)] == ["n0", "n1", "n2"]
    assert {*judge.folder.iterdir()} == before, told


@pytest.mark.slow
def test_a_terminal_gets_help_and_a_bar(judge: Shell) -> None:
    judge.script("slow.yaml", [{"p_yes": 0.9, "delay": 0.4}])
    judge.write("five.jsonl", map(norm, range(5)))
    # A bar is for terminals that can move back in a line, and have room for it.
    judge.env |= {"TERM": "xterm", "COLUMNS": "60"}
    outer, inner = pty.openpty()
    helped = judge.start("validate", stdin=inner)
    data, told = helped.communicate(timeout=60)
    assert helped.returncode == 2 and data == b"" and b"judge validate [OPTIONS]" in told

    flags = ("--check", "relevance", "-m", "scripted:slow.yaml", "--concurrency", "1")
    process = judge.start("validate", "five.jsonl", *flags, stderr=inner)
    os.close(inner)
    shown = b""
    while True:
        try:
            chunk = os.read(outer, 4096)
        except OSError:  # Linux's way of saying that the other side is closed.
            break
        if not chunk:
            break
        shown += chunk
    os.close(outer)
    out, _ = process.communicate(timeout=60)
    assert len(lines(out)) == 5
    bar = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown).decode()
    assert re.search(r"judging ━+.* [1-4]/5 ", bar), bar
    assert "5 of 5 records pass" in bar

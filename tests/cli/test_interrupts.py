"""Ctrl-C, SIGTERM, SIGKILL, a model that goes away: what was done is kept, and nothing hangs."""

from __future__ import annotations

import fcntl
import json
import random
import signal
import subprocess
import termios
import time
from pathlib import Path
from typing import IO

import pytest

from .conftest import Shell, lines, norm, wait_until_told
from .typed import Typed

CHECK = ("--check", "relevance")
HELD = 128
"""Finished lines that wait in memory; further ones lie on disk."""


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Typed:
    """The command in the same folder in this process, for runs that nobody interrupts."""
    return Typed(tmp_path, monkeypatch, capfd)


def wait_for_lines(judge: Shell, name: str, count: int) -> None:
    path = judge.folder / name
    until = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < until, "the run writes nothing"
        time.sleep(0.02)


def wait_for_calls(judge: Shell, count: int) -> None:
    until = time.monotonic() + 60
    while not (judge.folder / "calls.log").exists() or judge.calls()[0] < count:
        assert time.monotonic() < until, "no call is made"
        time.sleep(0.02)


def wait_until_read(pipe: IO[bytes]) -> None:
    """Come back when nothing that was written into a pipe is left in it."""
    until = time.monotonic() + 60
    while any(fcntl.ioctl(pipe.fileno(), termios.FIONREAD, bytes(4))):
        assert time.monotonic() < until, "nobody reads"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_once_finishes_what_is_under_way(judge: Shell, number: signal.Signals) -> None:
    judge.script("slow.yaml", [{"p_yes": 0.9, "delay": 0.5}])
    # Far more than are done before the signal, however late that comes.
    judge.write("n.jsonl", map(norm, range(800)))
    run = ("validate", "n.jsonl", "-m", "scripted:slow.yaml", *CHECK, "-o", "o", "-q")
    process = judge.counting(*run, "--concurrency", "4")
    wait_for_lines(judge, "o", 4)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    begun, ended = judge.calls()
    assert begun == ended == len(lines(judge.read("o"))) < 800, "calls under way were finished"
    assert b"finishing what is under way" in told
    assert b"the same command with --resume goes on" in told


@pytest.mark.slow
def test_twice_stops_at_once(judge: Shell) -> None:
    judge.script("stuck.yaml", [{"when": {"id": "n0"}, "p_yes": 0.9}, {"p_yes": 0.9, "delay": 600}])
    judge.write("n.jsonl", map(norm, range(40)))
    process = judge.counting("validate", "n.jsonl", "-m", "scripted:stuck.yaml", *CHECK, "-o", "o")
    wait_for_calls(judge, 3)
    wait_for_lines(judge, "o", 1)
    process.send_signal(signal.SIGINT)
    # Two signals before the first is heard are one.
    told = wait_until_told(process, b"finishing what is under way")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    # Far less than the calls would take.
    told += process.communicate(timeout=100)[1]
    assert process.returncode == 130 and b"stopping now" in told and b"Traceback" not in told
    assert [line["id"] for line in lines(judge.read("o"))] == ["n0"]


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("-o", "o", "--resume"), ("--sample", "3")])
def test_an_idle_standard_input_does_not_hold_the_process(
    judge: Shell, flags: tuple[str, ...]
) -> None:
    run = ("validate", "-", "-m", "scripted:yes.yaml", *CHECK, *flags)
    process = judge.start(*run)
    assert process.stdin is not None
    process.stdin.write(json.dumps(norm(0)).encode() + b"\n")
    process.stdin.flush()
    wait_until_read(process.stdin)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr is not None
    told = process.stderr.read()
    assert b"Fatal" not in told and b"Traceback" not in told, told


@pytest.mark.slow
@pytest.mark.parametrize("cache", [True, False])
def test_killed_again_and_again(judge: Shell, typed: Typed, cache: bool) -> None:
    kills, slots, records = (7, 4, 180) if cache else (3, 4, 90)
    # Uneven, so that lines wait for an earlier one and calls are under way at every moment.
    judge.script(
        "uneven.yaml",
        [{"when": {"contains": f"number {d}"}, "p_yes": 0.9, "delay": d / 50} for d in range(1, 4)]
        + [{"p_yes": 0.8, "delay": 0.01}],
    )
    judge.write("n.jsonl", map(norm, range(records)))
    run = ["validate", "n.jsonl", "-m", "scripted:uneven.yaml", "--check", "relevance"]
    run += ["-q", "--concurrency", str(slots), *([] if cache else ["--no-cache"])]
    whole = typed(*run, "-o", "whole", "--cache-dir", "other")
    assert whole.returncode == 0, whole.stderr

    chance = random.Random(11)
    for kill in range(kills):
        begun = judge.calls()[0] if kill else 0
        process = judge.counting(*run, "-o", "out", "--resume")
        wait_for_calls(judge, min(begun + chance.randrange(1, 30), records))
        time.sleep(chance.random() * 0.05)
        process.kill()
        process.communicate()
        if kill == 1:
            with (judge.folder / "out").open("ab") as out:
                out.write(b'{"id": "n99", "story": "torn off he')
    last = judge.counting(*run, "-o", "out", "--resume")
    _, told = last.communicate(timeout=100)
    assert last.returncode == 0, told
    assert judge.read("out") == judge.read("whole")
    assert not (judge.folder / "out.resume").exists()
    begun, ended = judge.calls()
    if cache:
        assert records <= ended, "each record was asked about"
        assert begun <= records + kills * slots, "a reply that came was paid for again"
    else:
        # Without the cache also what waited in memory for an earlier line is lost.
        assert begun <= records + kills * (slots + HELD)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unreachable", "denied"])
def test_a_model_that_goes_away(judge: Shell, typed: Typed, kind: str) -> None:
    records = [norm(number) for number in range(100, 130)]
    judge.write("n.jsonl", records)
    name = "moody.yaml"
    run = ("validate", "n.jsonl", "-m", f"scripted:{name}", *CHECK, "-q", "--concurrency", "3")
    trouble = {"when": {"id": "n115"}, "error": kind, "times": 3}
    judge.script(name, [trouble, {"p_yes": 0.9}])
    stopped = judge(*run, "-o", "out")
    assert stopped.returncode == 4, stopped.stderr
    assert f"the model cannot be used: scripted {kind}".encode() in stopped.stderr
    assert b"--resume goes on from there" in stopped.stderr
    done = [line["id"] for line in lines(judge.read("out"))]
    assert 15 <= len(done) < 30 and done[:15] == [r["id"] for r in records[:15]]
    if kind == "denied":
        return
    # Without the record that brings the trouble, because a new process counts `times` from 0.
    judge.write("without.jsonl", records[:15] + records[16:])
    again = typed("validate", "without.jsonl", *run[2:], "-o", "out", "--resume")
    assert again.returncode == 0, again.stderr
    fresh = typed("validate", "without.jsonl", *run[2:], "-o", "fresh", "--no-cache")
    assert fresh.returncode == 0
    assert judge.read("out") == judge.read("fresh")

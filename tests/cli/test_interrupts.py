"""Ctrl-C, SIGTERM, SIGKILL, a model that goes away: finished work is kept, and nothing hangs."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import termios
import time
from typing import IO

import pytest
from loopback import Answer, Asked, Loopback, fails, says
from waiting import wait_for, wait_for_lines

from .conftest import Shell, lines, norm, wait_until_told
from .typed import Typed

CHECK = ("--check", "relevance")


def wait_for_calls(judge: Shell, count: int) -> None:
    log = judge.folder / "calls.log"
    wait_for(lambda: log.exists() and judge.calls()[0] >= count, "no call is made")


def wait_until_read(pipe: IO[bytes]) -> None:
    """Come back when nothing that was written into a pipe is left in it."""
    size = bytes(4)
    wait_for(lambda: not any(fcntl.ioctl(pipe.fileno(), termios.FIONREAD, size)), "nobody reads")


# One signal: tests/faults/test_machine.py, and tests/run/test_stream.py for what is under way.
@pytest.mark.slow
def test_twice_stops_at_once(judge: Shell) -> None:
    judge.script("stuck.yaml", [{"when": {"id": "n0"}, "p_yes": 0.9}, {"p_yes": 0.9, "delay": 600}])
    judge.write("n.jsonl", map(norm, range(40)))
    process = judge.counting("validate", "n.jsonl", "-m", "scripted:stuck.yaml", *CHECK, "-o", "o")
    wait_for_calls(judge, 3)
    wait_for_lines(judge.folder / "o", 1)
    process.send_signal(signal.SIGINT)
    # Two signals before the first is heard are one.
    told = wait_until_told(process, b"finishing the records under way")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    # Far less than the calls would take.
    told += process.communicate(timeout=100)[1]
    assert process.returncode == 130 and b"stopping now" in told and b"Traceback" not in told
    assert [line["id"] for line in lines(judge.read("o"))] == ["n0"]


@pytest.mark.slow
def test_once_stops_at_once_where_calls_only_wait_for_another_try(judge: Shell) -> None:
    judge.write("n.jsonl", map(norm, range(40)))

    def script(asked: Asked) -> Answer:
        yes = {"quote": None, "reason": "so", "answer": "yes"}
        return says(yes) if "as number 0 " in asked.prompt else fails(503)

    with Loopback(script) as server:
        judge.env |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        ask = ("--ask", "Polite?", "--method", "structured", "-m", "openai:m", "-o", "o")
        process = judge.start("validate", "n.jsonl", *ask)
        wait_for(lambda: server.count > 45, "no call is tried again")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=100)[1]
    assert process.returncode == 130 and time.monotonic() - began < 3, told
    (line,) = lines(judge.read("o"))
    assert line["judge"]["verdict"] == "pass" and b"1 record was written to o; the same" in told


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--sample", "3")])
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
def test_sigterm_leaves_no_half_written_file(judge: Shell) -> None:
    process = judge.start("build", "filtered", "-", "-o", "sound.jsonl")
    wait_for(lambda: any(judge.folder.glob(".judge-*.tmp")), "no file was begun")
    process.send_signal(signal.SIGTERM)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and b"the same command can be run again" in told
    assert not any(judge.folder.glob("*sound*")) and not any(judge.folder.glob(".judge-*.tmp"))


@pytest.mark.slow
def test_a_calibration_in_the_background_of_a_script_hears_an_interrupt(judge: Shell) -> None:
    judge.script("slow.yaml", [{"p_yes": 0.9, "delay": 0.2}])
    rows = [{**norm(n), "labels": {"relevance": "yes"}} for n in range(400)]
    judge.write("labels.jsonl", rows)
    run = ("calibrate", "labels.jsonl", "-m", "scripted:slow.yaml", *CHECK)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # As `&` has it; a child inherits that.
    try:
        process = judge.counting(*run)
    finally:
        signal.signal(signal.SIGINT, before)
    wait_for_calls(judge, 1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert b"replies in the cache are not asked again" in told


@pytest.mark.slow
def test_of_two_runs_on_one_out_the_second_is_refused(judge: Shell, typed: Typed) -> None:
    judge.write("n.jsonl", map(norm, range(4)))
    run = ("validate", "n.jsonl", "-m", "scripted:yes.yaml", *CHECK, "-o", "o", "-q")
    first = judge.counting(*run, "--concurrency", "1", held="n2")
    wait_for_lines(judge.folder / "o", 2)
    for chosen in ("--resume", "--overwrite"):
        second = typed(*run, chosen)
        assert second.returncode == 2 and b"another run is writing to" in second.stderr
    judge.release()
    _, told = first.communicate(timeout=60)
    assert first.returncode == 0, told
    assert [line["id"] for line in lines(judge.read("o"))] == [f"n{i}" for i in range(4)]


@pytest.mark.parametrize("module", ["typer", "judge.run.validate"])
def test_an_interrupt_while_judge_is_loaded_ends_as_a_later_one(typed: Typed, module: str) -> None:
    program = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from judge.__main__ import main\n"
        "sys.argv = 'judge validate n.jsonl -m scripted:yes.yaml --ask Polite?'.split()\n"
        "main()\n"
    )
    typed.write("n.jsonl", [{"mail": "Thank you."}])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "judge: interrupted; the same command can be run again\n"

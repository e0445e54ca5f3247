"""Servers that come up, do not, die, hang, and are left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judge.errors import Denied, UsageError
from judge.serving.command import Kind, Served
from judge.serving.supervisor import Bounds, Supervisor

from .made_vllm import alive, put, starts, wait_for

QUICK = Bounds(ready=60, restarts=3, pause=0.02, grace=5)
KEY = "a-key-that-nobody-else-has"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a made-up vLLM that is on the PATH."""
    monkeypatch.setenv("PATH", f"{put(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MADE_VLLM", str(tmp_path))
    return tmp_path


class Watched:
    """A supervisor, and what it told."""

    def __init__(self, made: Path, bounds: Bounds = QUICK) -> None:
        self.told: list[str] = []
        self.made = made
        served = Served(Kind.VLLM, "some/model")
        log = made / "log"
        self.it = Supervisor(served, key=KEY, log=log, bounds=bounds, told=self.told.append)

    def pids(self) -> list[int]:
        return [entry[name] for entry in starts(self.made) for name in ("server", "worker")]


def listed(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("judge-server-")]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


async def test_from_start_to_stop(made: Path) -> None:
    watched = Watched(made)
    await asyncio.gather(*(watched.it.ready() for _ in range(5)))
    (entry,) = starts(made)
    assert alive(entry["server"]) and alive(entry["worker"])
    assert "some/model" in command_line(entry["server"]) and KEY not in command_line(
        entry["server"]
    )
    assert f"the key {KEY}" in (made / "log").read_text()
    assert (made / "log").stat().st_mode & 0o077 == 0
    await watched.it.aclose()
    assert not any(alive(pid) for pid in watched.pids())


async def test_a_server_that_is_killed_comes_back_at_the_same_address(made: Path) -> None:
    watched = Watched(made)
    await watched.it.ready()
    url = watched.it.url
    os.kill(starts(made)[0]["server"], signal.SIGKILL)
    watched.it.doubt()
    await watched.it.ready()
    first, second = starts(made)
    assert not alive(first["worker"]), "its worker would still hold the card's memory"
    assert alive(second["server"]) and watched.it.url == url
    came_back = "was ended by SIGKILL; it is started again in 0.02 s (1 of 3)"
    assert any(came_back in told for told in watched.told)
    await watched.it.aclose()


async def test_restarts_are_bounded(made: Path) -> None:
    watched = Watched(made, replace(QUICK, restarts=2))
    for life in range(3):
        await watched.it.ready()
        os.kill(starts(made)[life]["server"], signal.SIGKILL)
        watched.it.doubt()
    with pytest.raises(Denied, match="was ended by SIGKILL, after 2 restarts"):
        await watched.it.ready()
    with pytest.raises(Denied, match="after 2 restarts"):
        await watched.it.ended()
    assert len(starts(made)) == 3
    await watched.it.aclose()
    assert not any(alive(pid) for pid in watched.pids())


@pytest.mark.slow
async def test_a_steady_server_earns_its_restarts_back(made: Path) -> None:
    watched = Watched(made, replace(QUICK, restarts=1, steady=0.0))
    for life in range(2):
        await watched.it.ready()
        os.kill(starts(made)[life]["server"], signal.SIGKILL)
        watched.it.doubt()
    await watched.it.ready()
    assert len(starts(made)) == 3
    await watched.it.aclose()


async def test_one_that_never_comes_up_is_told_with_its_last_words(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_EXIT", "3")
    watched = Watched(made)
    with pytest.raises(Denied) as caught:
        await watched.it.ready()
    told = str(caught.value)
    assert "ended with exit code 3" in told and str(made / "log") in told
    assert "  CUDA out of memory" in told
    assert "the key [secret]" in told and KEY not in told
    assert len(starts(made)) == 1, "what keeps it from coming up will keep it again"
    await watched.it.aclose()


async def test_one_that_never_answers_is_given_up_in_time(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later_once_it_is_there() -> float:
        return time.monotonic() + (100 if watched.pids() else 0)

    monkeypatch.setenv("MADE_DEAF", "1")
    clock = SimpleNamespace(monotonic=later_once_it_is_there)
    monkeypatch.setattr("judge.serving.supervisor.time", clock)
    watched = Watched(made, replace(QUICK, ready=60, grace=0.3))
    with pytest.raises(Denied, match="did not answer within 60 s"):
        await watched.it.ready()
    assert len(watched.pids()) == 2 and not any(alive(pid) for pid in watched.pids())
    assert "did not end within 0.3 s of SIGTERM and is killed" in (made / "log").read_text()
    await watched.it.aclose()


async def test_one_that_hangs_is_started_again(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_SICK", "1")
    watched = Watched(made, replace(QUICK, silent=0.5))
    await watched.it.ready()
    wait = asyncio.get_running_loop().time() + 60
    while len(starts(made)) < 2:
        assert asyncio.get_running_loop().time() < wait
        await asyncio.sleep(0.05)
    await watched.it.ready()
    assert any("answered no health check for 0.5 s" in told for told in watched.told)
    await watched.it.aclose()


async def test_doubt_holds_calls_back_until_the_server_was_looked_at(made: Path) -> None:
    watched = Watched(made)
    await watched.it.ready()
    watched.it.doubt()
    waiting = asyncio.ensure_future(watched.it.ready())
    await asyncio.sleep(0)
    assert not waiting.done()
    await waiting
    assert len(starts(made)) == 1
    await watched.it.aclose()


async def test_a_program_that_cannot_run(made: Path) -> None:
    (made / "vllm").write_text("#!/no/such/interpreter\n")
    watched = Watched(made)
    with pytest.raises(Denied, match=r"exit code 127(?s:.*)cannot be started"):
        await watched.it.ready()
    await watched.it.aclose()


async def test_what_nobody_foresaw_is_told_and_nobody_waits_for_ever(made: Path) -> None:
    def unable(told: str) -> None:
        raise RuntimeError("the one who is told has gone")

    supervisor = Supervisor(Served(Kind.VLLM, "m"), key=None, log=made / "log", told=unable)
    for _ in range(2):
        async with asyncio.timeout(60):
            with pytest.raises(Denied, match="watched no more: RuntimeError: the one who is told"):
                await supervisor.ready()
        supervisor.doubt()
    await supervisor.aclose()


async def test_a_log_that_cannot_be_written(made: Path) -> None:
    (made / "log").mkdir()
    watched = Watched(made)
    with pytest.raises(Denied, match=r"cannot be started: .*log"):
        await watched.it.ready()
    await watched.it.aclose()


async def test_a_log_of_its_own_is_kept_only_after_trouble(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = made / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    served = Served(Kind.VLLM, "m")
    for trouble, kept in ((False, 0), (True, 1)):
        if trouble:
            monkeypatch.setenv("MADE_EXIT", "3")
        supervisor = Supervisor(served, key=None, bounds=QUICK, told=lambda text: None)
        try:
            await supervisor.ready()
        except Denied:
            assert trouble
        await supervisor.aclose()
        assert len(listed(temporary)) == kept


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
def test_a_bound_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("JUDGE_SERVE_TIMEOUT", text)
    with pytest.raises(UsageError, match="JUDGE_SERVE_TIMEOUT"):
        Bounds.from_environment()
    monkeypatch.setenv("JUDGE_SERVE_TIMEOUT", "7.5")
    assert Bounds.from_environment().ready == 7.5


STARTED = """
import asyncio, sys
from judge.serving.command import Kind, Served
from judge.serving.supervisor import Supervisor
async def main():
    supervisor = Supervisor(Served(Kind.VLLM, "m"), key=None)
    await supervisor.ready()
    print("ready", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("victim", ["judge", "guard"])
def test_whoever_is_killed_no_server_stays(made: Path, victim: str) -> None:
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    judge = subprocess.Popen([sys.executable, "-c", STARTED], **pipes)
    try:
        assert judge.stdout is not None and judge.stdout.readline() == b"ready\n"
        (entry,) = starts(made)
        if victim == "judge":
            judge.kill()
            wait_for(lambda: not alive(entry["worker"]), "its worker outlives its starter")
        else:
            status = Path(f"/proc/{entry['server']}/status").read_text()
            guard = int(status.partition("PPid:")[2].split()[0])
            assert guard != judge.pid
            os.kill(guard, signal.SIGKILL)
        wait_for(lambda: not alive(entry["server"]), "the server outlives its starter")
    finally:
        judge.kill()
        judge.communicate()
        # Nobody is left who knows of a worker whose guard was killed.
        for entry in starts(made):
            for name in ("server", "worker"):
                with suppress(ProcessLookupError):
                    os.kill(entry[name], signal.SIGKILL)

"""`judge validate --engine ray` on a real Ray: two nodes on this machine, killed in many ways.

The judge is scripted, and deadly where a test wants a worker killed; where a test kills a node, it
holds both nodes at work until then. Its providers lie in a folder that the nodes and the command
have on their path.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError

from .conftest import Shell, jsonl, lines, norm, wait_until_told

pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

LIMIT = 300
"""Seconds that a run may take on a machine that does much else."""

PLUGIN = '''
"""Scripted judges: one that kills its process, one that knows the node it is on."""
import asyncio, os, signal
from pathlib import Path
from judge.backends.scripted import ScriptedBackend

class Deadly(ScriptedBackend):
    """Always on one record, once on another; the file `died` tells of each death."""

    async def complete(self, call, mode):
        record, died = call.origin.record, Path("died")
        before = died.read_text().split() if died.exists() else []
        deadly = record == "n7" or (record == "n55" and record not in before)
        if deadly and "JUDGE_TEST_HARMLESS" not in os.environ:
            with died.open("a") as file:
                file.write(f"{record} ")
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().complete(call, mode)

class Doomed(ScriptedBackend):
    """On the node that the file `doomed` names it answers twice and then sticks, until it is
    killed; on others it waits at its ninth question for that to have happened."""

    asked = 0

    async def complete(self, call, mode):
        self.asked += 1
        if (doomed := Path("doomed")).exists():
            import ray
            here = ray.get_runtime_context().get_node_id() == doomed.read_text()
            while here and self.asked > 2:
                Path("stuck").touch()
                await asyncio.sleep(0.05)
            while self.asked > 8 and not Path("stuck").exists():
                await asyncio.sleep(0.05)
        return await super().complete(call, mode)
'''


class Nodes:
    """A Ray of two nodes with one core and one pretended card each; one of them can be killed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._size = {"num_cpus": 1, "num_gpus": 1, "include_dashboard": False}
        self._cluster = Cluster(head_node_args=self._size, initialize_head=True)
        self.address: str = self._cluster.address
        self._second = self._cluster.add_node(**self._size)

    @property
    def second(self) -> str:
        """Ray's name of the second node."""
        return str(self._second.node_id)

    def kill_second(self) -> None:
        self._cluster.remove_node(self._second, allow_graceful=False)

    def start_second(self) -> None:
        self._second = self._cluster.add_node(**self._size)

    def shutdown(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the providers `deadly` and `doomed`, as an installation leaves it."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "killing.py").write_text(PLUGIN)
    about = folder / "killing-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: killing\nVersion: 1\n")
    points = "[judge.backends]\ndeadly = killing:Deadly\ndoomed = killing:Doomed\n"
    (about / "entry_points.txt").write_text(points)
    return folder


@pytest.fixture(scope="module")
def nodes(local: Local, plugin: Path) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(plugin))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        for name in [name for name in os.environ if name.startswith("JUDGE_")]:
            patch.delenv(name)
        started = Nodes()
        try:
            yield started
        finally:
            started.shutdown()


@pytest.fixture
def on_ray(nodes: Nodes, judge: Shell) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the command on the two nodes."""
    judge.env["PYTHONPATH"] = os.environ["PYTHONPATH"]

    def start(*words: str) -> subprocess.Popen[bytes]:
        engine = ("--engine", "ray", "--address", nodes.address)
        return judge.start(*words, *engine, stdin=subprocess.DEVNULL)

    return start


def until(holds: Callable[[], Any], why: str) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, why
        time.sleep(0.05)


def wait_for_lines(judge: Shell, name: str, count: int) -> None:
    path = judge.folder / name
    until(lambda: path.exists() and path.read_bytes().count(b"\n") >= count, "nothing is written")


def slow_records(judge: Shell) -> tuple[str, ...]:
    """Uneven records, one of them with an id that came before, one line that is none; the words."""
    count = 44
    judge.script(
        "slow.yaml",
        [
            {"when": {"contains": "number 3"}, "p_yes": 0.2, "delay": 0.5},
            {"p_yes": 0.9, "delay": 0.25},
        ],
    )
    records = jsonl([*map(norm, range(count)), norm(5)])
    (judge.folder / "n.jsonl").write_bytes(records + b'{"torn": \n' + jsonl([norm(count)]))
    check = ("--check", "relevance", "--concurrency", "4", "--rounds", "0", "-q")
    return ("validate", "n.jsonl", "-m", "doomed:slow.yaml", *check)


class Local:
    """The local engine at work on `slow_records`, while the nodes start."""

    def __init__(self, folder: Path, plugin: Path) -> None:
        self._judge = Shell(folder)
        self._judge.env["PYTHONPATH"] = str(plugin)
        words = (*slow_records(self._judge), "--no-cache", "-o", "out")
        with (folder / "told").open("wb") as told:
            self._process = self._judge.start(*words, stdin=subprocess.DEVNULL, stderr=told)

    def out(self) -> bytes:
        assert self._process.wait(LIMIT) == 3, self._judge.read("told")
        return self._judge.read("out")

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def local(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    started = Local(tmp_path_factory.mktemp("local"), plugin)
    try:
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def expected(local: Local, nodes: Nodes) -> bytes:
    """What the local engine makes of `slow_records`."""
    return local.out()


def test_a_node_is_killed_midway_and_nothing_is_lost(
    nodes: Nodes,
    judge: Shell,
    on_ray: Callable[..., subprocess.Popen[bytes]],
    expected: bytes,
) -> None:
    run = slow_records(judge)
    (judge.folder / "doomed").write_text(nodes.second)
    # As many workers as nodes, also where Ray does not yet say that the second has room.
    run += ("--workers", "2")
    process = on_ray(*run, "-o", "out", "--no-cache", "--summary", "sums")
    until((judge.folder / "stuck").exists, "the second node has no work")
    nodes.kill_second()
    try:
        out, told = process.communicate(timeout=LIMIT)
    finally:
        nodes.start_second()
    assert process.returncode == 3 and out == b"", told
    assert b"Traceback" not in told
    assert judge.read("out") == expected
    sums = json.loads(judge.read("sums"))
    assert sums["records"] == 47 and sums["errors"] == {"bad-input": 1, "duplicate-id": 1}
    assert sums["models"]["doomed:slow.yaml"]["calls"] >= 40, "what all workers did is summed"


def test_processes_are_killed_and_a_record_that_kills_is_told(
    judge: Shell, on_ray: Callable[..., subprocess.Popen[bytes]]
) -> None:
    judge.script("yes.yaml", [{"p_yes": 0.9, "delay": 0.1}])
    judge.write("n.jsonl", map(norm, range(60)))
    run = ("validate", "n.jsonl", "-m", "deadly:yes.yaml", "--check", "relevance", "-q")
    run += ("--concurrency", "4")
    local = judge(
        *run,
        "-o",
        "local",
        "--no-cache",
        env={"JUDGE_TEST_HARMLESS": "1", "PYTHONPATH": os.environ["PYTHONPATH"]},
    )
    assert local.returncode == 0, local.stderr
    process = on_ray(*run, "-o", "out")
    _, told = process.communicate(timeout=LIMIT)
    assert process.returncode == 3, told
    # Three of the one record and one of the other, unless one worker had both.
    died = judge.read("died").split()
    assert set(died) == {b"n7", b"n55"} and len(died) >= 4
    found, wanted = judge.read("out").splitlines(), judge.read("local").splitlines()
    assert len(found) == 60
    assert [a for n, a in enumerate(found) if n != 7] == [b for n, b in enumerate(wanted) if n != 7]
    lost = json.loads(found[7])
    assert lost["id"] == "n7" and lost["judge"]["error"] == {
        "type": "worker-died",
        "line": 8,
        "message": "the worker died each of the 3 times it judged this record",
    }


def test_the_driver_is_killed_and_the_run_goes_on(
    judge: Shell, on_ray: Callable[..., subprocess.Popen[bytes]], expected: bytes
) -> None:
    run = slow_records(judge)
    first = on_ray(*run, "-o", "out")
    wait_for_lines(judge, "out", 8)
    first.kill()
    first.communicate()
    kept = judge.read("out").count(b"\n")
    again = on_ray(*run, "-o", "out", "--resume", "--summary", "sums")
    _, told = again.communicate(timeout=LIMIT)
    assert again.returncode == 3, told
    assert judge.read("out") == expected
    sums = json.loads(judge.read("sums"))
    assert sums["kept"] >= kept - 2, "what stood was not judged again"
    assert sums["models"]["doomed:slow.yaml"]["calls"] <= 45 - kept + 2


def test_errors_end_the_run_as_they_do_here(
    judge: Shell, on_ray: Callable[..., subprocess.Popen[bytes]]
) -> None:
    judge.write("n.jsonl", map(norm, range(30)))
    judge.script("denied.yaml", [{"error": "denied"}])
    run = ("validate", "n.jsonl", "-q", "--check", "relevance", "--no-cache")
    # A cheap model is tried before the first record; a judge's trouble may come with a record.
    cheap = ("-m", "scripted:yes.yaml", "--cheap-model", "scripted:denied.yaml")
    here = judge(*run, *cheap, "-o", "here")
    process = on_ray(*run, *cheap, "-o", "there")
    _, told = process.communicate(timeout=LIMIT)
    assert process.returncode == 4 and here.stderr.splitlines()[0] in told
    assert b"the model cannot be used: scripted denied" in told
    assert not (judge.folder / "there").exists() or judge.read("there") == b""

    capped = ("-m", "scripted:yes.yaml", "--max-calls", "11", "--summary", "sums")
    process = on_ray(*run, *capped, "-o", "capped")
    _, told = process.communicate(timeout=LIMIT)
    assert process.returncode == 4 and b"--max-calls 11 is reached" in told
    assert json.loads(judge.read("sums"))["models"]["scripted:yes.yaml"]["calls"] <= 11
    ends = [line["judge"]["verdict"] for line in lines(judge.read("capped"))]
    assert set(ends) <= {"pass"} and len(ends) <= 11


def test_workers_are_as_many_as_the_cluster_holds() -> None:
    from judge.run.ray_cluster import workers_for

    assert workers_for(None, 0, {"CPU": 8.0}) == 8
    assert workers_for(None, 2, {"CPU": 8.0, "GPU": 5.0}) == 2
    assert workers_for(3, 1, {"CPU": 8.0, "GPU": 3.0}) == 3
    with pytest.raises(UsageError, match=r"has 8 CPU, 3 GPU and .* holds 3 workers, not 4"):
        workers_for(4, 1, {"CPU": 8.0, "GPU": 3.0})


def test_a_ray_of_our_own_is_gone_after_the_second_interrupt(judge: Shell) -> None:
    stuck = {"when": {"id": "n60"}, "p_yes": 0.9, "delay": 10 * LIMIT}
    judge.script("stuck.yaml", [stuck, {"p_yes": 0.9, "delay": 0.2}])
    judge.write("n.jsonl", map(norm, range(400)))
    run = ("validate", "n.jsonl", "-m", "scripted:stuck.yaml", "--check", "relevance", "-o", "o")
    process = judge.start(*run, "--engine", "ray", "--workers", "2", "--concurrency", "4")
    wait_for_lines(judge, "o", 8)
    ours = descendants(process.pid)
    assert len(ours) > 3, "raylet, store and workers"
    process.send_signal(signal.SIGINT)
    # Two signals before the first is heard are one.
    told = wait_until_told(process, b"finishing what is under way")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=LIMIT)
    told += rest
    assert process.returncode == 130 and out == b"", told
    assert b"the same command with --resume goes on" in told and b"Traceback" not in told
    judged = [line["id"] for line in lines(judge.read("o"))]
    assert judged[:8] == [f"n{n}" for n in range(8)] and "n60" not in judged
    until(lambda: not any(map(alive, ours)), "processes of Ray are left behind")


def descendants(pid: int) -> list[int]:
    found = []
    # Processes and threads may end while they are looked at.
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                for child in (task / "children").read_text().split():
                    found += [int(child), *descendants(int(child))]
    return found


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False

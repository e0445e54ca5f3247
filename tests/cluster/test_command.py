"""`judge validate --engine ray` on a real Ray of two nodes, whose processes are killed. The judge
is scripted, and kills a worker if a test wants it. Its providers are in a folder on the path of Ray
and the command. Errors, budgets: tests/cluster/test_driver.py."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell, jsonl, lines, norm, wait_until_told
from tests.cli.typed import Typed
from tests.cluster.test_driver import written
from tests.waiting import wait_for, wait_for_lines

pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

LIMIT = 600
"""Seconds that a run may take on a machine that does much else."""

PLUGIN = '''
"""A scripted judge that kills its process, or sticks, where a file in the folder says so."""
import asyncio, os, signal
from pathlib import Path
from judge.backends.scripted import ScriptedBackend

class Killing(ScriptedBackend):
    """`asked` has a line for each call. `deadly` names a record that kills, and has a dot more for
    each death. On the node that `doomed` names it answers twice and then sticks, until it is
    killed; on others it waits at its ninth question for that to have happened."""

    asked = 0

    async def complete(self, call, mode):
        self.asked += 1
        with Path("asked").open("a") as file:
            print(call.origin.record, file=file)
        deadly, doomed = Path("deadly"), Path("doomed")
        if deadly.exists() and deadly.read_text().rstrip(".") == call.origin.record:
            with deadly.open("a") as file:
                file.write(".")
            os.kill(os.getpid(), signal.SIGKILL)
        while Path("hold").exists() and call.origin.record == "n43":
            await asyncio.sleep(0.05)
        if doomed.exists():
            import ray
            here = ray.get_runtime_context().get_node_id() == doomed.read_text()
            while here and self.asked > 2:
                Path("stuck").touch()
                await asyncio.sleep(0.05)
            while self.asked > 8 and not Path("stuck").exists():
                await asyncio.sleep(0.05)
        return await super().complete(call, mode)
'''
RUN = (
    *("validate", "n.jsonl", "-m", "killing:slow.yaml", "--check", "relevance", "-q"),
    *("--concurrency", "4"),
)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the provider `killing`, as an installation leaves it."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "killing.py").write_text(PLUGIN)
    about = folder / "killing-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: killing\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[judge.backends]\nkilling = killing:Killing\n")
    return folder


def prepared(judge: Shell, plugin: Path) -> Shell:
    """A folder with uneven records, one with an id that came before, and a line that is none."""
    judge.env["PYTHONPATH"] = str(plugin)
    uneven = {"when": {"contains": "number 3"}, "p_yes": 0.2, "delay": 0.3}
    judge.script("slow.yaml", [uneven, {"p_yes": 0.9, "delay": 0.15}])
    records = jsonl([*map(norm, range(44)), norm(5)])
    (judge.folder / "n.jsonl").write_bytes(records + b'{"torn": \n' + jsonl([norm(44)]))
    return judge


@pytest.fixture(scope="module")
def local(plugin: Path, tmp_path_factory: pytest.TempPathFactory, judge_path: str) -> bytes:
    """The output of a run without Ray."""
    judge = prepared(Shell(tmp_path_factory.mktemp("local"), judge_path), plugin)
    assert judge(*RUN, "-o", "out").returncode == 3
    return judge.read("out")


@pytest.fixture(scope="module")
def nodes(plugin: Path) -> Iterator[Any]:
    """A Ray of two nodes with one core each."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(plugin))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        size = {"num_cpus": 1, "include_dashboard": False}
        # A node that is gone is noticed within two seconds instead of twenty.
        checks = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 500}
        cluster = Cluster(head_node_args=size | {"_system_config": checks}, initialize_head=True)
        cluster.add_node(**size)
        try:
            yield cluster
        finally:
            cluster.shutdown()


@pytest.fixture
def on_ray(nodes: Any, plugin: Path, judge: Shell) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the command on the two nodes."""
    prepared(judge, plugin)

    def start(*words: str) -> subprocess.Popen[bytes]:
        engine = () if "--engine" in words else ("--engine", "ray")
        at = ("--address", nodes.address)
        return judge.start(*words, *engine, *at, stdin=subprocess.DEVNULL)

    return start


def test_more_workers_than_there_is_room_for_are_refused(
    judge: Shell, on_ray: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = on_ray(*RUN, "-o", "out", "--workers", "9")
    told = process.communicate(timeout=LIMIT)[1]
    assert process.returncode == 2 and b"it holds 2 workers, not 9" in told, told
    assert not (judge.folder / "out").exists()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "cluster"])
def test_an_address_at_which_nothing_answers_is_told_at_once(typed: Typed, address: str) -> None:
    typed.write("n.jsonl", [norm(0)])
    run = ("validate", "n.jsonl", "-m", "scripted:yes.yaml", "--check", "relevance")
    code, _, told = typed.text(*run, "--engine", "ray", "--address", address)
    assert code == 2 and f"--address {address}: nothing answers there" in told, told


def test_a_node_is_killed_midway_and_nothing_is_lost(
    nodes: Any, judge: Shell, on_ray: Callable[..., subprocess.Popen[bytes]], local: bytes
) -> None:
    (second,) = nodes.worker_nodes
    (judge.folder / "doomed").write_text(second.node_id)
    process = on_ray(*RUN, "--no-cache", "-o", "out", "--workers", "2", "--summary", "sums")
    wait_for((judge.folder / "stuck").exists, "the second node has no work", LIMIT)
    nodes.remove_node(second, allow_graceful=False)
    try:
        out, told = process.communicate(timeout=LIMIT)
    finally:
        nodes.add_node(num_cpus=1, include_dashboard=False)
    assert process.returncode == 3 and out == b"", told
    assert b"Traceback" not in told and judge.read("out") == local
    calls = json.loads(judge.read("sums"))["models"]["killing:slow.yaml"]["calls"]
    assert calls >= 40, "what all workers did is summed"


def test_the_driver_is_killed_and_the_next_run_tells_of_a_record_that_kills_its_workers(
    judge: Shell, on_ray: Callable[..., subprocess.Popen[bytes]], local: bytes
) -> None:
    (judge.folder / "hold").touch()
    asked, run = judge.folder / "asked", (*RUN, "--cache-dir", "replies", "-o", "out")
    first = on_ray(*run, "--workers", "2")
    wait_for_lines(judge.folder / "out", 8, LIMIT)
    first.kill()
    first.communicate()
    count = -1  # Its workers outlive it for a while.
    while count != (count := len(asked.read_text())):
        time.sleep(1)
    before = Counter(asked.read_text().split())
    asked.write_text("")
    (judge.folder / "hold").unlink()
    kept = judge.read("out").count(b"\n")
    (judge.folder / "deadly").write_text("n43")
    again = on_ray(*run, "--resume", "--summary", "sums")
    _, told = again.communicate(timeout=LIMIT)
    assert again.returncode == 3, told
    assert judge.read("deadly") == b"n43..."
    found, wanted = judge.read("out").splitlines(), local.splitlines()
    lost = json.loads(found.pop(43))
    del wanted[43]
    assert found == wanted
    assert lost["id"] == "n43" and lost["judge"]["error"] == {
        "type": "worker-died",
        "line": 44,
        "message": "the worker died each of the 3 times it judged this record",
    }
    sums = json.loads(judge.read("sums"))
    assert sums["resumed"] >= kept - 2, "what stood was not judged again"
    assert sums["models"]["killing:slow.yaml"]["calls"] <= 45 - kept + 2
    # Answers of a worker are in the cache that the run named; a kill loses the calls in flight.
    again = before & Counter(asked.read_text().split())
    assert (again - Counter(n43=1)).total() <= 2 * 4, again
    # n5 stands there twice, and two workers may ask about it at once.
    assert max((before - Counter(n5=1)).values()) == 1, before
    told = judge("cache", "stats", "--cache-dir", "replies").stdout
    assert int(re.search(rb"entries +(\d+)", told)[1]) >= 44, told


def test_a_ray_writes_the_drafts_that_a_run_here_writes(
    judge: Shell, on_ray: Callable[..., subprocess.Popen[bytes]]
) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        process = on_ray(*words)
        out, told = process.communicate(timeout=LIMIT)
        return subprocess.CompletedProcess(words, process.returncode, out, told)

    assert written(judge, "ray", run) == written(judge, "local", judge)


def test_a_ray_of_our_own_is_open_to_no_one_else_and_gone_after_the_second_interrupt(
    judge: Shell,
) -> None:
    stuck = {"when": {"id": "n20"}, "p_yes": 0.9, "delay": 10 * LIMIT}
    judge.script("stuck.yaml", [stuck, {"p_yes": 0.9, "delay": 0.2}])
    judge.write("n.jsonl", map(norm, range(100)))
    run = ("validate", "n.jsonl", "-m", "scripted:stuck.yaml", "--check", "relevance", "-o", "o")
    process = judge.start(*run, "--engine", "ray", "--workers", "2", "--concurrency", "4")
    wait_for_lines(judge.folder / "o", 8, LIMIT)
    ours = descendants(process.pid)
    assert len(ours) > 3, "raylet, store and workers"
    closed_to_others([process.pid, *ours], judge.folder)
    process.send_signal(signal.SIGINT)
    # Two signals before the first is heard are one.
    told = wait_until_told(process, b"finishing the records under way")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=LIMIT)
    told += rest
    assert process.returncode == 130 and out == b"", told
    assert b"the same command with --resume continues" in told and b"Traceback" not in told
    judged = [line["id"] for line in lines(judge.read("o"))]
    assert judged[:8] == [f"n{n}" for n in range(8)] and "n20" not in judged
    wait_for(lambda: not any(map(alive, ours)), "processes of Ray are left behind", LIMIT)


STRANGER = """
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address="127.0.0.1:PORT").internal_kv_keys(b"", namespace=None, timeout=20)
except AuthenticationError:
    print("refused")
except Exception as error:
    print("no Ray there", error)
else:
    print("let in")
"""


def closed_to_others(running: list[int], home: Path) -> None:
    """Ray listens on loopback alone, refuses who has no token, and its folder is its user's."""
    sockets = {address for pid in running for address in listening(pid)}
    assert sockets and {host for host, _ in sockets} == {"127.0.0.1"}
    stranger = {"PATH": os.environ["PATH"], "HOME": str(home)}
    replies = [
        subprocess.run(
            [sys.executable, "-c", STRANGER.replace("PORT", str(port))],
            env=stranger,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        ).stdout.strip()
        for pid in running
        if "gcs_server" in Path(f"/proc/{pid}/cmdline").read_text()
        for _, port in listening(pid)
    ]
    assert "refused" in replies and "let in" not in replies
    (folder,) = {part for pid in running for part in ray_folders(pid)}
    assert folder.stat().st_mode & 0o777 == 0o700


def ray_folders(pid: int) -> list[Path]:
    """The folders that judge made for Ray, as a process's command line has them."""
    words = Path(f"/proc/{pid}/cmdline").read_text()
    return [Path(found) for found in re.findall(r"/tmp/judge-ray-\w+", words)]


def listening(pid: int) -> list[tuple[str, int]]:
    """The addresses (IPv4, or IPv4 within IPv6) and ports on which a process listens."""
    inodes = set()
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes |= set(re.findall(r"socket:\[(\d+)\]", str(descriptor.readlink())))
    found = []
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = row.split()[:10]
            if state == "0A" and inode in inodes:
                address, port = local.split(":")
                # IPv4 within IPv6 as IPv4; all addresses are 0.0.0.0 in both.
                short = address.removeprefix("0000000000000000FFFF0000")[-8:]
                found.append((socket.inet_ntoa(bytes.fromhex(short)[::-1]), int(port, 16)))
    return found


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

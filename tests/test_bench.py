"""What the benchmarks' figures rest on: canned replies that hold, costs that are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(autouse=True)
def _bench_on_the_path() -> Iterator[None]:
    sys.path[:0] = [str(BENCH), str(BENCH / "peers")]
    yield
    del sys.path[:2]


def test_the_whole_path_runs_against_canned_replies(tmp_path: Path) -> None:
    from canned_server import serving
    from material import INSERTED, judge_route, write_stories

    write_stories(tmp_path / "in.jsonl", 20)
    command = [sys.executable, "-m", "judge", "validate", "in.jsonl", "-m", "openai:canned", "-q"]
    with serving({"judge": judge_route()}, latency=0.01) as server:
        done = subprocess.run(
            [*command, "--summary", "sums.json"],
            cwd=tmp_path,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("JUDGE_")},
                "OPENAI_BASE_URL": f"{server.url}/judge/v1",
                "JUDGE_CACHE_DIR": str(tmp_path / "cache"),
            },
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    sums = json.loads((tmp_path / "sums.json").read_text())
    assert sums["verdicts"] == {"pass": 20}
    assert (sums["accepted_at_once"], sums["accepted_after_edits"]) == (18, 2)
    # Three steering asks and twice two accepting votes; with an insertion, that and another ask.
    assert sums["usage"]["replies"] == 18 * 7 + 2 * 9
    assert sums["models"]["openai:canned"]["reasks"] == 0, "every canned reply holds at once"
    repaired = [line for line in done.stdout.splitlines() if INSERTED.encode() in line]
    assert len(repaired) == 20
    assert server.cpu_seconds > 0


UNTIL_SEEN = """
import pathlib, time
pathlib.Path("there").touch()
while not pathlib.Path("seen").exists(): time.sleep(0.01)
"""


@pytest.fixture
def _seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets UNTIL_SEEN end once somebody has looked at its process, however late that comes."""
    import processes

    look = processes._Peaks._look

    def looked(self: processes._Peaks, pid: int) -> None:
        there = (tmp_path / "there").exists()
        look(self, pid)
        if there:
            (tmp_path / "seen").touch()

    monkeypatch.setattr(processes._Peaks, "_look", looked)


@pytest.mark.usefixtures("_seen")
def test_what_a_process_takes_includes_its_children(tmp_path: Path) -> None:
    from processes import measured

    work = "import time; x = bytearray(60_000_000)\nwhile time.process_time() < 0.5: pass\n"
    child = work + UNTIL_SEEN
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print(1)"
    taken, said = measured([sys.executable, "-c", parent], tmp_path, {})
    assert said == "1\n"
    assert taken.cpu > 0.45
    assert taken.peak_mb > 60
    with pytest.raises(RuntimeError, match="exit 3: gone"):
        measured(
            [sys.executable, "-c", "import sys; print('gone', file=sys.stderr); sys.exit(3)"],
            tmp_path,
            {},
        )


@pytest.mark.usefixtures("_seen")
def test_the_memory_of_this_process_is_not_counted(tmp_path: Path) -> None:
    from processes import measured

    ballast = bytearray(b"x") * 200_000_000
    taken, _ = measured([sys.executable, "-c", UNTIL_SEEN], tmp_path, {})
    assert len(ballast) and 1 < taken.peak_mb < 100


PEERS = sorted(path.stem for path in (BENCH / "peers").glob("*.py") if path.stem != "common")


@pytest.mark.parametrize("name", PEERS)
def test_contenders_can_be_read_without_their_libraries(name: str) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(BENCH / 'peers')!r})\nimport {name} as peer\n"
        "assert all('==' in one for one in peer.REQUIREMENTS) and peer.ROUTE and peer.main"
    )
    # Without site-packages, so that an import at the top of a contender fails.
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)

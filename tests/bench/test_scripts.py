"""The benchmarks at small size: each script runs, and prints what the documents quote."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from shutil import copy, copytree

import pytest

CHECKOUT = Path(__file__).parents[2]
BENCH = CHECKOUT / "bench"


def printed(script: str, *words: str) -> str:
    command = [sys.executable, str(BENCH / script), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_code_is_in_one_room_of_the_mutants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(BENCH)
    mutants = importlib.import_module("mutants")
    files = Counter(path for room in mutants.ROOMS for path in mutants.files_of(room, CHECKOUT))
    code = {path for room in ("judge", "graphs") for path in (CHECKOUT / room).rglob("*.py")}
    assert files == dict.fromkeys(code, 1)


@pytest.mark.parametrize("folder", ["bench", "docs"])
def test_what_scripts_import_of_judge_is_there(folder: str) -> None:
    """Also in those that no test runs."""
    imports = [
        (path.name, node.module, alias.name)
        for path in (CHECKOUT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "judge"
        for alias in node.names
    ]
    assert imports
    for script, module, name in imports:
        there = hasattr(importlib.import_module(str(module)), name)
        assert there or importlib.util.find_spec(f"{module}.{name}"), (script, module, name)


FAULTS = """
def sound(x, y):
    if x > 1 and y:
        raise ValueError
    return x + y


def nothing():
    return None


def empty(x):
    return False
"""


def test_each_mutant_is_one_small_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(BENCH)
    mutants = importlib.import_module("mutations")
    (file := tmp_path / "sound.py").write_text(FAULTS)
    made = [mutants.mutant(file, number) for number in range(mutants.places(file))]
    assert sorted(one.change for one in made) == [
        "1 -> 2",
        "Add -> Sub",
        "And -> Or",
        "Gt -> GtE",
        "condition negated",
        "operand dropped: x > 1",
        "operand dropped: y",
        "raise deleted",
        "returns None",
        "returns True",
    ]
    assert len({one.source for one in made}) == len(made)


PARTS = """
def larger(x: int, y: int) -> int:
    return x if x > y else y


def truth(x: int) -> bool:
    return bool(x)


def once(x: int) -> int:
    return x + 1
"""
PARTS_TESTS = """
import os, subprocess, sys
import pytest
from judge.parts import truth

def test_larger_in_another_process():
    words = [sys.executable, "-c", "from judge.parts import larger; print(larger(1, 3))"]
    assert subprocess.run(words, capture_output=True).stdout == b"3\\n"

@pytest.fixture(scope="module")
def worker():
    code = "from judge.parts import once; input(); print(once(3))"
    words = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        yield process

def test_what_starts_a_worker(worker):
    assert worker.poll() is None

def test_asks_the_worker_that_another_started(worker):
    assert worker.communicate("\\n")[0] == "4\\n"

def test_nothing():
    truth(2)

def test_that_fails_now_and_then():
    assert truth(2) and not os.path.exists("chosen.json")
"""


@pytest.mark.slow
def test_the_tests_that_call_a_function_are_the_ones_to_notice_its_mutant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also through another process, be it one that another test started; a test that fails on its
    own notices nothing."""
    monkeypatch.syspath_prepend(BENCH)
    mutants = importlib.import_module("mutants")
    copytree(BENCH, tmp_path / "bench")
    copy(CHECKOUT / "pyproject.toml", tmp_path)
    for folder in ("judge", "graphs", "rubrics", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "judge/parts.py").write_text(PARTS)
    (tmp_path / "tests/test_parts.py").write_text(PARTS_TESTS)
    monkeypatch.setattr(mutants, "CHECKOUT", tmp_path)
    monkeypatch.setattr("sys.argv", ["mutants.py", "--rooms=top", "--each=99", "--show"])
    mutants.main()
    head, _, row, *survivors, _ = capsys.readouterr().out.splitlines()
    assert head == "5 tests pass; they call 3 functions"
    assert row.split() == ["top", "7", "2"]
    assert sorted(line.split(": ", 1)[1] for line in survivors) == [
        "Gt -> GtE (1 of 1 tests)",
        "returns None (2 of 2 tests)",
    ]


@pytest.mark.slow
def test_calls_prints_its_tables() -> None:
    told = printed("calls.py", "--stories=1", "--norms=1", "--fixtures=1")
    assert "SIMULATED" in told and "at most 60%" in told
    rows = [line.split() for line in told.splitlines() if line.startswith("CQ-Bench's")]
    assert len(rows) == 2
    for row in rows:
        assert row[2] == row[5] == row[7] == "100%" and row[-2] == "2/2"


@pytest.mark.slow
def test_coverage_finds_intervals_that_hold() -> None:
    told = printed("coverage.py", "--quick")
    worst = [float(one) / 100 for one in re.findall(r"worst cell ([\d.]+)%", told)]
    # 100 simulations a cell: 95 % less three standard errors.
    assert len(worst) == 1 and min(worst) > 0.95 - 3 * (0.95 * 0.05 / 100) ** 0.5
    assert max(worst) < 1
    # Labels, promised, most; given out, decided, broken: in the last row all that is given out.
    table = told[told.index("labels promised") :].splitlines()[1:4]
    rows = [[part.rstrip("%") for part in line.split()] for line in table]
    within = re.search(r"stays within ([\d.]+)%", told)
    assert within and all(float(row[5]) <= float(within[1]) for row in rows), rows
    assert float(rows[0][3]) >= 50 <= float(rows[0][4]), "the promise is worth something"


@pytest.mark.slow
def test_faults_change_no_verdict() -> None:
    """The order of calls decides which call gets which fault. Rarely all tries of one call fail: it
    ends as an error until the run is resumed. Calls that time out on a busy machine are repeated,
    too."""
    told = printed("soak.py", "--records", "20", "--share", "0.01", "--timeout", "5")
    assert re.search("exit: [03] with faults, 0 without", told), told
    *_, last = re.findall(r"(?:records|after --resume \(exit 0\)): (.*)", told)
    assert last == "0 of 20 have another verdict, 0 differ in anything but usage", told
    calls = re.search(r"calls: (\d+) with faults, (\d+) without", told)
    assert calls is not None
    assert int(calls[1]) > int(calls[2]) == 61, "faults were met"


@pytest.mark.slow
def test_the_whole_path_runs_against_canned_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.syspath_prepend(str(BENCH / "peers"))
    from canned_server import serving
    from material import INSERTED, judge_route, write_stories

    write_stories(tmp_path / "in.jsonl", 20)
    command = [sys.executable, "-m", "judge", "validate", "in.jsonl", "-m", "openai:canned", "-q"]
    command.append("--repair")
    with serving({"judge": judge_route()}, latency=0.01) as server:
        done = subprocess.run(
            [*command, "--summary", "sums.json"],
            cwd=tmp_path,
            env={
                **os.environ,
                "OPENAI_BASE_URL": f"{server.url}/judge/v1",
                "JUDGE_CACHE_DIR": str(tmp_path / "cache"),
            },
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    sums = json.loads((tmp_path / "sums.json").read_text())
    assert sums["verdicts"] == {"pass": 20}
    assert (sums["pass_rate"]["passed"], sums["repaired_pass_rate"]["passed"]) == (18, 20)
    # Implicitness and twice two final votes; with an insertion, those, the loop's ask and the
    # rewriting, and of the new text three loop asks and twice two final votes.
    assert sums["usage"]["replies"] == 18 * 5 + 2 * (5 + 1 + 1 + 7)
    assert sums["models"]["openai:canned"]["reasks"] == 0, "every canned reply holds at once"
    repaired = [line for line in done.stdout.splitlines() if INSERTED.encode() in line]
    assert len(repaired) == 20
    assert server.cpu_seconds > 0


@pytest.mark.slow
def test_side_by_side_runs_the_jobs_as_a_user_types_them() -> None:
    told = printed("side_by_side.py", "--tools=judge", "--jobs=05-gate")
    (gate,) = ([c.strip() for c in row.split("|")] for row in told.splitlines())
    assert gate[2:6] == ["judge", "1", "1", "100"]
    assert gate[6].startswith("exit 1;")

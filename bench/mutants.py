"""How many small faults in the code the tests miss.

    python bench/mutants.py [--rooms judging,run,...] [--each 6] [--seed 0] [--jobs 2] [--show]

Each mutant changes one thing in one function (bench/mutations.py), drawn at random with the seed.
The suite without the tests marked `model` runs once, in a copy of the checkout that records which
tests call which function, in any process (bench/called.py). Then the tests that call a mutant's
function run against it in another copy until one fails: those of its own file first, and the
quicker before the slower. A test that also fails without the mutant does not count. A mutant that
no test kills has survived. Prints a row for each room, and with --show each survivor, and how many
of the tests that call its function ran: the slowest are left out after MOST_SECONDS.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from called import CHOSEN, FAILED, Place, instrument, read_calls
from mutations import Mutant, mutant, places

CHECKOUT = Path(__file__).parents[1]

_FOLDERS = (
    *("judging", "run", "records", "stats", "calibration", "backends", "report", "cli", "papers"),
    *("web", "generate", "local", "cluster", "questions", "workflows"),
)
ROOMS = {
    **{folder: f"judge/{folder}/**/*.py" for folder in _FOLDERS},
    "graphs": "graphs/**/*.py",
    "top": "judge/*.py",
}
"""The files of each room. Every file is in one room."""

MOST_SECONDS = 300
"""Most seconds, in total, of the tests that run against a mutant."""

HUNG_SECONDS = 120
"""A mutant whose tests take three times their usual time plus this counts as killed."""

NEAR = 20
"""A test of the mutant's own file runs before others that are up to this many times quicker."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no test kills; `ran` of the `calling` tests ran against it."""

    mutant: Mutant
    ran: int
    calling: int

    def __str__(self) -> str:
        where = f"{self.mutant.path.relative_to(CHECKOUT)}:{self.mutant.line}"
        return f"    {where}: {self.mutant.change} ({self.ran} of {self.calling} tests)"


def files_of(room: str, root: Path) -> list[Path]:
    """The files of a room."""
    return sorted(root.glob(ROOMS[room]))


class Copy:
    """A copy of the checkout, with an environment that imports the copy's packages, and all others
    from this interpreter's."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        left_out = shutil.ignore_patterns(".git", ".venv*", "*_cache", "__pycache__", "build")
        shutil.copytree(CHECKOUT, self.root, ignore=left_out)
        for name in ("graphs", "rubrics"):
            (self.root / "judge" / name).symlink_to(self.root / name)
        venv.create(folder / "venv", symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        (site,) = (folder / "venv").glob("lib/python*/site-packages")
        ours = [self.root, self.root / "bench"]
        paths = [*map(str, ours), *(path for path in sys.path if path.endswith("-packages"))]
        (site / "copy.pth").write_text("\n".join(paths), "utf-8")
        script = self.python.with_name("judge")
        script.write_text(f"#!{self.python}\nfrom judge.__main__ import main\nmain()\n", "utf-8")
        script.chmod(0o755)
        self._writes = 0

    def write(self, path: Path, text: str) -> None:
        """Write a file of the checkout, with a new modification time, so that Python recompiles
        it."""
        target = self.root / path.relative_to(CHECKOUT)
        target.write_text(text, "utf-8")
        self._writes += 1
        os.utime(target, (self._writes, self._writes))

    def run(self, words: list[str], seconds: float | None = None) -> int | None:
        """pytest's exit code; None if it does not end within the seconds."""
        words = [str(self.python), "-m", "pytest", "-p", "called", "-p", "no:cacheprovider", *words]
        # Bytecode is written, so that not every start compiles every library.
        unwanted = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        environment = {k: v for k, v in os.environ.items() if k not in unwanted}
        with subprocess.Popen(
            words,
            cwd=self.root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def failing(self, tests: list[str], seconds: float | None = None) -> str | None:
        """The first test that fails; None if all pass, "" if pytest itself fails or hangs."""
        (self.root / CHOSEN.name).write_text(json.dumps(tests), "utf-8")
        (failed := self.root / FAILED.name).unlink(missing_ok=True)
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        code = self.run(["-x", "-q", "-n0", "-m", "", *files], seconds)
        if code == 0:
            return None
        # If no test failed, pytest itself ended early, with our plugin.
        return failed.read_text("utf-8") if code == 1 and failed.exists() else ""


def called_by(copy: Copy, jobs: int) -> tuple[dict[Place, set[str]], dict[str, float]]:
    """Run the suite once in a copy that records calls; returns them as `read_calls`."""
    files = [path for room in ROOMS for path in files_of(room, copy.root)]
    instrument(files, copy.root)
    code = copy.run(["-q", f"-n{jobs}", "--dist=loadfile", "-m", "not model"])
    if code not in (0, 1):
        raise SystemExit(f"the suite does not run in {copy.root}: pytest ended with {code}")
    return read_calls(copy.root)


def survivor(
    copy: Copy, one: Mutant, calls: dict[Place, set[str]], seconds: dict[str, float]
) -> Survivor | None:
    """The mutant, if no test that calls its function kills it."""
    path = one.path.relative_to(CHECKOUT)

    def cost(test: str) -> float:
        near = path.stem.strip("_") in Path(test.partition("::")[0]).stem
        return seconds[test] / (NEAR if near else 1)

    calling = sorted(calls.get((path.as_posix(), one.function), ()), key=lambda t: (cost(t), t))
    tests, budget = [], float(MOST_SECONDS)
    for test in calling:
        if (budget := budget - seconds[test]) > 0:
            tests.append(test)
    ran, before = len(tests), one.path.read_text("utf-8")
    while tests:
        copy.write(one.path, one.source)
        try:
            failing = copy.failing(tests, HUNG_SECONDS + 3 * sum(map(seconds.get, tests)))
        finally:
            copy.write(one.path, before)
        if failing is None:
            break
        if not failing or copy.failing([failing]) is None:
            return None
        tests = [test for test in tests if test != failing]
    return Survivor(one, ran, len(calling))


def drawn(room: str, each: int, seed: int) -> list[Mutant]:
    """At most `each` mutants of a room, drawn by the seed."""
    every = [(path, number) for path in files_of(room, CHECKOUT) for number in range(places(path))]
    chosen = random.Random(seed).sample(every, min(each, len(every)))
    return [mutant(path, number) for path, number in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        calls, seconds = called_by(Copy(folder / "called"), given.jobs)
        print(f"{len(seconds)} tests pass; they call {len(calls)} functions", flush=True)
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(given.jobs):
            copies.put(Copy(folder / str(number)))

        def tried(one: Mutant) -> Survivor | None:
            copy = copies.get()
            try:
                return survivor(copy, one, calls, seconds)
            finally:
                copies.put(copy)

        print(f"{'room':12} {'mutants':>8} {'survived':>9}")
        total = missed = 0
        with ThreadPoolExecutor(given.jobs) as pool:
            for room in given.rooms.split(","):
                mutants = drawn(room, given.each, given.seed)
                survivors = [one for one in pool.map(tried, mutants) if one is not None]
                total, missed = total + len(mutants), missed + len(survivors)
                print(f"{room:12} {len(mutants):8} {len(survivors):9}", flush=True)
                for one in survivors if given.show else []:
                    print(one, flush=True)
    print(f"{'all':12} {total:8} {missed:9}" + (f"  1 in {total / missed:.1f}" if missed else ""))


if __name__ == "__main__":
    main()

"""How many small faults in the code the tests of its own room miss.

    python bench/mutants.py [--rooms judging,run,...] [--each 20] [--seed 0] [--show]

Each mutant changes one thing in one file (a comparison, an operator, an operand, a number, a
condition, a returned value, a raise), drawn at random with the seed from the lines that a function
runs. The room's own tests run against it in a copy of the checkout, in one process, until the first
failure, those of the mutant's file first. A mutant that no test notices has survived. Prints a row
for each room, and with --show each survivor.

The tests of a room run once without a mutant: a room whose tests fail then is not measured, and the
row says so; tests that were skipped are counted, for no mutant can be noticed by them.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]

ROOMS = {
    "judging": (
        "judge/judging/**/*.py",
        "tests/judging tests/graphs tests/test_cache.py tests/cli/test_own_answers.py "
        "tests/cli/test_field_tests.py tests/backends/test_vllm.py",
    ),
    "graphs": ("graphs/**/*.py", "tests/graphs tests/cli/test_neutral.py"),
    "run": (
        "judge/run/**/*.py",
        "tests/run tests/cli/test_validate.py tests/cli/test_first_tokens.py "
        "tests/cli/test_decisions.py",
    ),
    "records": (
        "judge/records/**/*.py",
        "tests/records tests/cli/test_columns.py tests/cli/test_input_forms.py "
        "tests/cli/test_label_forms.py",
    ),
    "stats": ("judge/stats/**/*.py", "tests/stats"),
    "calibration": (
        "judge/calibration/**/*.py",
        "tests/calibration tests/cli/test_calibrate.py tests/local/test_teach.py",
    ),
    "backends": (
        "judge/backends/**/*.py",
        "tests/backends tests/cli/test_servers.py tests/cli/test_batch.py",
    ),
    "report": (
        "judge/report/**/*.py",
        "tests/report tests/cli/test_report.py tests/cli/test_export.py",
    ),
    "cli": ("judge/cli/**/*.py", "tests/cli"),
    "papers": (
        "judge/papers/**/*.py",
        "tests/papers tests/records/test_label_sets.py tests/cli/test_agreement.py",
    ),
    "web": ("judge/web/**/*.py", "tests/web tests/cli/test_serve.py"),
    "generate": ("judge/generate/**/*.py", "tests/generate"),
    "local": ("judge/local/**/*.py", "tests/local"),
    "cluster": ("judge/cluster/**/*.py", "tests/cluster"),
    "questions": (
        "judge/questions/**/*.py",
        "tests/questions tests/cli/test_shown.py tests/cli/test_profiles.py",
    ),
    "workflows": ("judge/workflows/**/*.py", "tests/workflows tests/graphs tests/test_examples.py"),
    "top": (
        "judge/*.py",
        "tests/test_api.py tests/test_cache.py tests/test_profile.py tests/test_results.py "
        "tests/test_verdict.py tests/test_voting.py tests/run/test_settings.py "
        "tests/security/test_keys.py tests/security/test_langsmith.py tests/cli/test_profiles.py "
        "tests/cli/test_shown.py tests/cli/test_calibrate.py",
    ),
}
"""The files of each room, and the tests that are its own. Every file is in one room."""

SLOW = ("local", "cluster")
"""Rooms whose tests are slow, and run all the same: next to no mutant is noticed by the others."""

LEAST_SECONDS = 240
"""A mutant hangs, which counts as noticed, if its tests take longer than this and than three times
what they take without it."""

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where it is, and what it says."""

    path: Path
    line: int
    change: str
    source: str


def places(path: Path) -> int:
    """How many mutants a file has."""
    return len(_places(ast.parse(path.read_text("utf-8"))))


def mutant(path: Path, number: int) -> Mutant:
    """One mutant of a file, numbered from 0."""
    tree = ast.parse(path.read_text("utf-8"))
    node, change = _places(tree)[number]
    told = change(node)
    return Mutant(path, node.lineno, told, ast.unparse(tree))


def _places(tree: ast.Module) -> list[tuple[Any, Callable[[Any], str]]]:
    """The nodes of all functions that can be changed, each once, in the order of the file."""
    found: dict[tuple[int, int], tuple[Any, Callable[[Any], str]]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in (n for statement in function.body for n in ast.walk(statement)):
                for place, change in enumerate(_changes(node)):
                    found[id(node), place] = (node, change)
    return sorted(found.values(), key=lambda pair: (pair[0].lineno, pair[0].col_offset))


def _changes(node: ast.AST) -> list[Callable[[Any], str]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        return [_compare]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATED:
        return [_operate]
    if isinstance(node, ast.BoolOp):
        return [_connect, *(partial(_drop, place=place) for place in range(len(node.values)))]
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [_negate]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return [_number]
    if isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"):
        return [_nothing]
    return [_silence] if isinstance(node, ast.Raise) else []


def _compare(node: ast.Compare) -> str:
    before = type(node.ops[0])
    node.ops[0] = _COMPARED[before]()
    return f"{before.__name__} -> {_COMPARED[before].__name__}"


def _operate(node: ast.BinOp) -> str:
    before = type(node.op)
    node.op = _OPERATED[before]()
    return f"{before.__name__} -> {_OPERATED[before].__name__}"


def _connect(node: ast.BoolOp) -> str:
    before = type(node.op).__name__
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return f"{before} -> {type(node.op).__name__}"


def _drop(node: ast.BoolOp, place: int) -> str:
    return f"operand dropped: {ast.unparse(node.values.pop(place))}"


def _negate(node: ast.If) -> str:
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return "condition negated"


def _number(node: ast.Constant) -> str:
    before = node.value
    node.value = before + 1
    return f"{before} -> {node.value}"


def _nothing(node: ast.Return) -> str:
    node.value = ast.Constant(None)
    return "returns None"


def _silence(node: Any) -> str:
    node.__class__ = ast.Pass
    return "raise deleted"


def copied(folder: Path) -> Path:
    """A copy of the checkout in which an import finds the copy's own packages."""
    target = folder / "copy"
    left_out = shutil.ignore_patterns(".git", ".venv*", "*_cache", "__pycache__", "build")
    shutil.copytree(CHECKOUT, target, ignore=left_out)
    for name in ("graphs", "rubrics"):
        (target / "judge" / name).symlink_to(target / name)
    return target


def files_of(patterns: str, folder: Path = CHECKOUT) -> list[Path]:
    """The files of a room."""
    return sorted(folder.glob(patterns))


def tests_of(tests: str, copy: Path) -> list[Path]:
    """The files of a room's tests; raises FileNotFoundError for one that is not there."""
    found = [copy / name for name in tests.split()]
    if missing := [path for path in found if not path.exists()]:
        raise FileNotFoundError(str(missing[0]))
    return [file for path in found for file in (sorted(path.rglob("test_*.py")) or [path])]


def ran(copy: Path, tests: list[Path], seconds: float | None, marks: str) -> tuple[bool, str]:
    """Whether the tests pass in the copy, and pytest's last line; a hang does not pass."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks]
    words += map(str, tests)
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            words, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"no end after {seconds:.0f} s"
    printed = done.stdout.decode(errors="replace").split("\n")
    return done.returncode == 0, next((line for line in reversed(printed) if line.strip()), "")


def noticed(copy: Path, mutant: Mutant, tests: list[Path], seconds: float, marks: str) -> bool:
    """Whether one of the tests fails on the mutant.

    Those named as its file run first, then those that import it.
    """
    path = copy / mutant.path.relative_to(CHECKOUT)
    module = ".".join(path.relative_to(copy).with_suffix("").parts)

    def far(test: Path) -> tuple[bool, bool]:
        return path.stem not in test.stem, module not in test.read_text("utf-8")

    before = path.read_text("utf-8")
    path.write_text(mutant.source, "utf-8")
    try:
        return not ran(copy, sorted(tests, key=far), seconds, marks)[0]
    finally:
        path.write_text(before, "utf-8")


def measured(copy: Path, room: str, each: int, seed: int, *, show: bool) -> tuple[int, int]:
    """Print a room's row; how many mutants it had, and how many survived."""
    patterns, names = ROOMS[room]
    tests, began = tests_of(names, copy), time.monotonic()
    marks = "not model" if room in SLOW else "not slow and not model"
    passed, told = ran(copy, tests, None, marks)
    if not passed:
        print(f"{room:12} not measured, its tests fail without a mutant: {told}", flush=True)
        return 0, 0
    seconds = max(LEAST_SECONDS, 3 * (time.monotonic() - began))
    every = [(path, number) for path in files_of(patterns) for number in range(places(path))]
    chosen = random.Random(seed).sample(every, min(each, len(every)))
    drawn = [mutant(path, number) for path, number in chosen]
    survivors = [one for one in drawn if not noticed(copy, one, tests, seconds, marks)]
    print(f"{room:12} {len(drawn):8} {len(survivors):9}  {told}", flush=True)
    for one in survivors if show else []:
        print(f"    {one.path.relative_to(CHECKOUT)}:{one.line}: {one.change}", flush=True)
    return len(drawn), len(survivors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    print(f"{'room':12} {'mutants':>8} {'survived':>9}  its tests without a mutant")
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        rows = [
            measured(copy, room, given.each, given.seed, show=given.show)
            for room in given.rooms.split(",")
        ]
    total, missed = (sum(column) for column in zip(*rows, strict=True))
    print(f"{'all':12} {total:8} {missed:9}" + (f"  1 in {total / missed:.1f}" if missed else ""))


if __name__ == "__main__":
    main()

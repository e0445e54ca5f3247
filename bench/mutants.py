"""How many small faults in the code the tests of its own room miss.

    python bench/mutants.py [--rooms judging,run,...] [--each 20] [--seed 0] [--show]

Each mutant changes one thing in one file (a comparison, an operator, a number, a condition, a
returned value), drawn at random with the seed from the lines that a function runs. The room's own
tests run against it in a copy of the checkout, in one process, until the first failure. A mutant
that no test notices has survived. Prints a row for each room, and with --show each survivor.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]

ROOMS = {
    "judging": (
        "judge/judging",
        "tests/judging tests/graphs tests/test_cache.py tests/cli/test_own_answers.py",
    ),
    "graphs": ("graphs", "tests/graphs"),
    "run": ("judge/run", "tests/run tests/cli/test_validate.py"),
    "records": ("judge/records", "tests/records"),
    "stats": ("judge/stats", "tests/stats"),
    "calibration": ("judge/calibration", "tests/calibration tests/cli/test_calibrate.py"),
}
"""Each room's folder, and the tests that are its own."""

SECONDS = 240
"""A mutant whose tests take longer hangs, which counts as noticed."""

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
    found: dict[int, tuple[Any, Callable[[Any], str]]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in (n for statement in function.body for n in ast.walk(statement)):
                if (change := _change_of(node)) is not None:
                    found[id(node)] = (node, change)
    return sorted(found.values(), key=lambda pair: (pair[0].lineno, pair[0].col_offset))


def _change_of(node: ast.AST) -> Callable[[Any], str] | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        return _compare
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATED:
        return _operate
    if isinstance(node, ast.BoolOp):
        return _connect
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return _negate
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _number
    if isinstance(node, ast.Return) and node.value is not None:
        return _nothing
    return None


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


def copied(folder: Path) -> Path:
    """A copy of the checkout in which an import finds the copy's own packages."""
    target = folder / "copy"
    left_out = shutil.ignore_patterns(".git", ".venv*", "*_cache", "__pycache__", "build")
    shutil.copytree(CHECKOUT, target, ignore=left_out)
    for name in ("graphs", "rubrics"):
        (target / "judge" / name).symlink_to(target / name)
    return target


def noticed(copy: Path, mutant: Mutant, tests: str) -> bool:
    """Whether one of the tests fails on the mutant."""
    path = copy / mutant.path.relative_to(CHECKOUT)
    before = path.read_text("utf-8")
    path.write_text(mutant.source, "utf-8")
    there = [name for name in tests.split() if (copy / name).exists()]
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *there]
    try:
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            words, cwd=copy, env=environment, capture_output=True, timeout=SECONDS, check=False
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(before, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    print(f"{'room':12} {'mutants':>8} {'survived':>9}")
    total, missed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for room in given.rooms.split(","):
            place, tests = ROOMS[room]
            files = sorted((CHECKOUT / place).rglob("*.py"))
            every = [(path, number) for path in files for number in range(places(path))]
            chosen = random.Random(given.seed).sample(every, min(given.each, len(every)))
            drawn = [mutant(path, number) for path, number in chosen]
            survivors = [mutant for mutant in drawn if not noticed(copy, mutant, tests)]
            total, missed = total + len(drawn), missed + len(survivors)
            print(f"{room:12} {len(drawn):8} {len(survivors):9}", flush=True)
            for one in survivors if given.show else []:
                print(f"    {one.path.relative_to(CHECKOUT)}:{one.line}: {one.change}", flush=True)
    print(f"{'all':12} {total:8} {missed:9}  (1 in {total / missed:.1f})" if missed else "none")


if __name__ == "__main__":
    main()

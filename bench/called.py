"""Record which tests call which functions, in a copy of the checkout, for bench/mutants.py.

`instrument` puts a call of `called` at the start of each function. In every process the environment
names the pytest process that it descends from, whose page of memory names the test that runs now: a
Ray worker outlives the test that started it. As a plugin of pytest, this module writes that page,
records how long each test took, and runs the tests listed in a file, in that order.
"""

from __future__ import annotations

import ast
import json
import mmap
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

COPY = Path(__file__).parents[1]
CALLS = COPY / "calls"
PAGES = COPY / "pages"
SECONDS = COPY / "seconds.json"
CHOSEN = COPY / "chosen.json"
FAILED = COPY / "failed.txt"

Place = tuple[str, int]
"""A file, from the root of the checkout, and the line where a function begins."""

RUNNER = "CALLED_BY"
"""The environment variable with the pytest process's id."""

_NUMBER, _SIZE = slice(0, 8), 1 << 20
_known: set[tuple[bytes, str, int]] = set()
_page: mmap.mmap | None = None


def called(path: str, line: int) -> None:
    """Record that the current test calls this function."""
    global _page
    if _page is None:
        if RUNNER not in os.environ:
            return
        _page = _opened(os.environ[RUNNER])
    # Tests are told apart by number: comparing names takes longer in functions called often.
    number = _page[_NUMBER]
    if (number, path, line) not in _known:
        _known.add((number, path, line))
        test = _page[_NUMBER.stop : _page.find(b"\0", _NUMBER.stop)].decode()
        # A file for each process: tests limit the size of files, and kill their processes midway.
        CALLS.mkdir(exist_ok=True)
        note = os.open(CALLS / str(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(note, f"{path}\t{line}\t{json.dumps(test)}\n".encode())
        os.close(note)


def _opened(runner: str) -> mmap.mmap:
    """The page of a pytest process: the number of its current test, then the name."""
    page = os.open(PAGES / runner, os.O_RDWR)
    try:
        return mmap.mmap(page, _SIZE)
    finally:
        os.close(page)


def instrument(files: Iterable[Path], root: Path) -> None:
    """Put the call into each function of the files."""
    for path in files:
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                place = f"{path.relative_to(root).as_posix()!r}, {node.lineno}"
                (call,) = ast.parse(f"__import__('called').called({place})").body
                node.body.insert(int(ast.get_docstring(node) is not None), call)
        path.write_text(ast.unparse(tree), "utf-8")


def read_calls(copy: Path) -> tuple[dict[Place, set[str]], dict[str, float]]:
    """The tests that call each function, and the seconds of each test that passed."""
    seconds: dict[str, float] = json.loads((copy / SECONDS.name).read_text("utf-8"))
    tests: dict[Place, set[str]] = defaultdict(set)
    for file in (copy / CALLS.name).iterdir():
        for noted in file.read_text("utf-8").splitlines(keepends=True):
            if noted.endswith("\n"):
                path, line, test = noted.split("\t")
                if (name := json.loads(test)) in seconds:
                    tests[path, int(line)].add(name)
    return tests, seconds


class Naming:
    """Writes the current test, in each process that runs tests."""

    def __init__(self) -> None:
        PAGES.mkdir(exist_ok=True)
        os.environ[RUNNER] = str(os.getpid())
        (PAGES / os.environ[RUNNER]).write_bytes(bytes(_SIZE))
        self._page = _opened(os.environ[RUNNER])
        self._number = 0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        name = nodeid.encode() + b"\0"
        self._page[_NUMBER.stop : _NUMBER.stop + len(name)] = name
        self._number += 1
        self._page[_NUMBER] = self._number.to_bytes(_NUMBER.stop)


class Noting:
    """Records each test's duration, and a failed test, in the process that collects results."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)
        if report.failed:
            FAILED.write_text(report.nodeid, "utf-8")

    def pytest_sessionfinish(self) -> None:
        times = {test: self.seconds[test] for test in self.passed}
        SECONDS.write_text(json.dumps(times), "utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if CHOSEN.exists():
            names = json.loads(CHOSEN.read_text("utf-8"))
            order = {name: place for place, name in enumerate(names)}
            chosen = [item for item in items if item.nodeid in order]
            items[:] = sorted(chosen, key=lambda item: order[item.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Naming(), "naming")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Noting(), "noting")

"""What bench/house.py counts in the sources, by hand on a small tree."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"

FIRST = '''"""A story."""
from judge import second
from typing import TypeVar

T = TypeVar("T")
Pair = tuple[int, int]


class Line:
    def read(self, found, record):
        return found.get("judge")
'''
SECOND = """T = 1


class Pair: ...


def told():
    from judge import first
"""


def test_what_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    sources = importlib.import_module("house_sources")
    for name, text in (("judge/first.py", FIRST), ("judge/second.py", SECOND), ("graphs/g.py", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    tree = sources.Tree(tmp_path)
    assert (tree.lines("core"), tree.lines("graphs")) == ((19, 2), (0, 1))
    assert tree.type_names() == ["Pair: judge/first.py, judge/second.py"]
    # T, Pair, found, record; T. Functions and classes are no variables.
    assert tree.variables() == (1 / 5, {"found": 1})
    assert tree.line_readers() == ["judge/first.py:Line.read"]
    assert tree.papers() == {"judge/first.py": 1}
    assert tree.circles() == ["judge.first judge.second"]

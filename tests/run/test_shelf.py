"""Lines that wait on disk come back as they were, and take next to no memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import Exit, JudgeError
from judge.run.lines import Line
from judge.run.shelf import LineShelf


def line(number: int, *, kept: bool = False, size: int = 0) -> Line:
    judgement = {"verdict": "pass", "reason": "é\u2028" + "x" * size}
    fields = {"id": str(number), "judge": judgement}
    return Line(json.dumps(fields, ensure_ascii=False).encode() + b"\n", judgement, kept)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(30)), st.permutations(range(30)), st.booleans())
def test_every_line_comes_back_once_from_its_place(
    put: list[int], taken: list[int], kept: bool
) -> None:
    shelf = LineShelf(None)
    lines = {n * 1000: line(n, kept=kept and n % 2 == 0, size=n * 700) for n in put}
    for place, one in lines.items():
        shelf.put(place, one)
    for number in taken:
        assert shelf.take(number * 1000) == lines[number * 1000]
        assert shelf.take(number * 1000) is None
    shelf.close()


def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    shelf = LineShelf(tmp_path / "aside")
    assert shelf.take(0) is None
    shelf.close()
    assert not (tmp_path / "aside").exists()


def test_its_file_is_no_program(tmp_path: Path) -> None:
    shelf = LineShelf(tmp_path / "aside")
    shelf.put(0, line(0))
    shelf.close()
    assert not (tmp_path / "aside").stat().st_mode & 0o111


def test_lines_are_added_to_those_that_lie_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "aside"
    path.write_bytes(line(1).text)
    shelf = LineShelf(path)
    shelf.put(7, line(2))
    assert path.read_bytes() == line(1).text + line(2).text, "at once, without a buffer between"
    assert shelf.take(7) == line(2)
    shelf.close()


def test_a_waiting_line_takes_a_few_bytes() -> None:
    shelf = LineShelf(None)
    shelf.put(0, line(0, size=2000))
    tracemalloc.start()
    for number in range(1, 40_000):
        shelf.put(number, line(number, size=50))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 40_000 * 16
    shelf.close()


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no device that is always full")
    shelf = LineShelf(full)
    with pytest.raises(JudgeError, match="/dev/full: No space left") as caught:
        shelf.put(0, line(0))
    assert caught.value.exit_code is Exit.UNAVAILABLE

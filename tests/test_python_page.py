"""docs/python.md: every block runs as it stands, and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text("utf-8")
FILES = re.findall(r"(?ms)^`([\w.]+)`:\n\n```\w+\n(.*?)^```", PAGE)
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", PAGE)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_prints_what_the_page_says(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, told = BLOCKS[number]
    assert told, "a block without its output shows nothing"
    assert len(FILES) == 3
    for name, content in FILES:
        (tmp_path / name).write_text(content, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_CACHE_DIR", str(tmp_path / "cache"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/python.md, block {number}", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == told

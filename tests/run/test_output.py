"""Where output lines go when OUT and the disk give out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from judge.run.shelf import LineShelf

from judge.errors import JudgeError
from judge.run import output
from judge.run.lines import reread
from judge.run.output import FileSink

LINE = b'{"id": %d, "judge": {"verdict": "pass"}}\n'


def test_a_line_that_finds_no_room_takes_none_from_the_side_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OUT is deleted, and then the disk is full: what the shelf has put beside it stays."""
    out, aside = tmp_path / "out", tmp_path / "out.resume"
    sink, shelf = FileSink(out, aside), LineShelf(aside)
    sink.write(LINE % 1)
    out.unlink()
    sink.look()
    sink.write(LINE % 2)
    shelf.put(3, reread(LINE % 4, kept=False))
    write = os.write

    def full(descriptor: int, text: bytes) -> int:
        if len(text) < len(LINE % 3):
            raise OSError(28, "No space left on device")
        return write(descriptor, text[:9])

    monkeypatch.setattr(output.os, "write", full)
    with pytest.raises(JudgeError, match="No space left"):
        sink.write(LINE % 3)
    monkeypatch.undo()
    sink.close()
    shelf.close()
    assert aside.read_bytes() == LINE % 1 + LINE % 2 + LINE % 4

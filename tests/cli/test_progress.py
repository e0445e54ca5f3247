"""The progress of a run on a terminal: a bar, but not where output lines go to the same screen."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from judge import api
from judge.cli.progress import watcher


@pytest.mark.parametrize(
    ("out", "stdout_is_terminal", "bar"),
    [(None, True, False), ("judged.jsonl", True, True), (None, False, True)],
)
def test_a_bar_stands_beside_no_output_lines(
    out: str | None, stdout_is_terminal: bool, bar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, data = io.StringIO(), io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(data, "isatty", lambda: stdout_is_terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("sys.stdout", data)
    monkeypatch.setenv("TERM", "xterm")
    job = api.Job(inputs=["records.jsonl"], out=Path(out) if out else None)
    with watcher(job, quiet=False) as watching:
        watching.say("a message")
    assert ("\x1b[" in screen.getvalue()) == bar
    assert "a message" in screen.getvalue()

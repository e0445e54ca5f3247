"""A run's progress: no bar if output lines go to the same screen; plain lines in a log."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from judge import api
from judge.cli import progress
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


def test_a_log_has_a_line_every_few_seconds_and_seldom_the_same_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    show = progress._PlainSteps("records")
    for later, count, detail in (
        (0.0, 10, ""),
        (progress._LOG_SECONDS - 0.1, 20, ""),  # too soon
        (progress._LOG_SECONDS, 30, ""),
        (2 * progress._LOG_SECONDS, 30, ""),  # nothing new
        (progress._SAME_SECONDS, 40, "1 failed"),
        (2 * progress._SAME_SECONDS, 40, "1 failed"),
    ):
        now = 100.0 + later
        show("judged", count, 1000, detail)
    few, many = progress._LOG_SECONDS, progress._SAME_SECONDS
    assert capsys.readouterr().err.splitlines() == [
        f"judge: judged: 30/1,000 records, {20 / few:.2f}/s",
        f"judge: judged: 40/1,000 records, {30 / many:.2f}/s | 1 failed",
        f"judge: judged: 40/1,000 records, {15 / many:.2f}/s | 1 failed",
    ]

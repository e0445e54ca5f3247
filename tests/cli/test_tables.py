"""The folder of `--tables` as a user finds it, whatever becomes of what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .typed import Typed

ROW = {"country": "Egypt", "value": "Respect", "rule_of_thumb": "Greet everyone."}
EVALUATE = ("evaluate", "normad", "rows.jsonl", "-m", "scripted:model.yaml", "-o", "answers.jsonl")
TYPED = (
    (*EVALUATE, "--overwrite"),
    ("score", "normad", "answers.jsonl"),
    ("audit", "-m", "scripted:judge.yaml", "--limit", "2"),
)
"""Commands that print the tables that they write."""


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("rows.jsonl", [{"id": "1", **ROW, "story": "Ann greeted Bo.", "label": "yes"}])
    made.script("model.yaml", [{"reply": {"answer": "yes"}}])
    (tmp_path / "judge.yaml").write_text("reading: probability\nreplies: [{p_yes: 0.9}]\n")
    assert made(*EVALUATE, "-q").returncode == 0
    return made


@pytest.mark.parametrize("words", TYPED, ids=lambda words: words[0])
def test_tables_are_written_though_nobody_reads_them(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("judge.cli.result_tables.print_results", gone)
    # Figures take seconds, and say nothing here.
    monkeypatch.setattr("judge.report.results.draw", lambda *_: None)
    done = typed(*words, "--tables", "tables")
    assert done.returncode == 141, done.stderr
    assert (typed.folder / "tables" / "tables.json").exists()

"""What bench/hostile.py counts is what docs/explain/hostile-text.md says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import hostile  # noqa: E402

from judge.judging.injection import injections  # noqa: E402
from judge.papers.hostile_suite import cases, families  # noqa: E402
from judge.questions.ready_made import builtin  # noqa: E402

RUBRICS = {name: rubric for name, rubric in builtin().items() if rubric.role == "judge"}


def seen(attacks: dict[str, hostile.Family]) -> dict[str, tuple[int, int]]:
    """(found, looked at) by family."""
    counts: dict[str, tuple[int, int]] = {}
    for family, rubric, record in hostile.injected(cases(RUBRICS, attacks), RUBRICS):
        found, looked = counts.get(family, (0, 0))
        counts[family] = (found + bool(injections(rubric, record)), looked + 1)
    return counts


def test_the_page_gives_what_is_counted() -> None:
    page = (ROOT / "docs" / "explain" / "hostile-text.md").read_text("utf-8")
    known, unknown = seen(dict(families())), seen(hostile.held_out())
    for name in families():
        shown = "harmless insertions" if name == "control" else name
        (found, of), (other, out_of) = known[name], unknown[name]
        assert f"| {shown} | {found} of {of} | {other} of {out_of} |" in page
    del known["control"], unknown["control"]
    sums = [[sum(counts) for counts in zip(*one.values(), strict=True)] for one in (known, unknown)]
    told = [f"{found:,} of {of:,} ({found / of:.2f})" for found, of in sums]
    assert f"| all | {told[0]} | {told[1]} |" in page


def test_nothing_in_the_labelled_fixtures_is_taken_for_an_attack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = looked_at = 0
    for file in sorted(hostile.LABELLED.glob("*.jsonl")):
        for _, rubric, record in hostile.labelled(str(file), RUBRICS):
            looked_at += 1
            found += bool(injections(rubric, record))
    assert found == 0
    page = (ROOT / "docs" / "explain" / "hostile-text.md").read_text("utf-8")
    assert f"none in the {looked_at} of `fixtures/labelled/`" in page


def test_it_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    hostile.main([str(hostile.LABELLED / "pairs.jsonl")])
    told = capsys.readouterr().out
    assert "held out" in told and "pairs.jsonl" in told and "false" not in told.lower()

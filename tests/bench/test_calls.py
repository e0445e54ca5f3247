"""bench/calls.py counts what is asked: small runs whose figures can be worked out by hand."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.verdict import Verdict

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def calls() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("calls")
        for name in ("calls", "planted", "simulated"):
            sys.modules.pop(name, None)


@pytest.fixture
def clean(calls: Any) -> list[Any]:
    """One sound story."""
    return [p for p in calls.fixture_stories() if p.fields["id"] == "story-01"]


async def test_asking_less_keeps_the_verdicts(calls: Any) -> None:
    records = calls.stories(6, 1)[8:]
    noise = calls.Noise()
    papers, sequential, fast = [
        await calls.count(protocol, records, noise=noise) for protocol in calls.STORY_PROTOCOLS[:3]
    ]
    assert papers.verdicts == sequential.verdicts == fast.verdicts
    assert {Verdict.PASS, Verdict.FAIL} <= set(papers.verdicts.values())
    assert papers.strong.calls > sequential.strong.calls > fast.strong.calls
    assert papers.rewrites == sequential.rewrites == fast.rewrites > 0
    for counted in (papers, sequential, fast):
        assert 0 < counted.strong.evaluated < counted.strong.prompt
        assert counted.cheap.calls == 0


async def test_without_noise_every_verdict_suits_the_planted_truth(calls: Any) -> None:
    noise = calls.Noise(flip=0.0, auc=1 - 1e-9)
    for protocol in calls.STORY_PROTOCOLS:
        records = calls.stories(8, 3)[8:]
        assert (await calls.count(protocol, records, noise=noise)).right == len(records)
    for protocol in calls.NORM_PROTOCOLS:
        records = calls.norms(8, 3)
        counted = await calls.count(protocol, records, noise=noise, check=calls.NORM_CHECKS)
        assert counted.right == len(records)


def test_the_engine_evaluates_what_no_block_holds(calls: Any) -> None:
    engine = calls.Engine()
    words = [f"w{n}" for n in range(48)]
    assert engine.take(" ".join(words), "a b.") == (48, 0)
    # All is known, but the last token is always evaluated, and with it its block.
    assert engine.take(" ".join(words), "") == (48, 32)
    # One word changed in the second block: only the first is found.
    assert engine.take(" ".join([*words[:20], "new", *words[21:]]), "") == (48, 16)
    # Words before the record spoil every block.
    assert engine.take(" ".join(["new", *words]), "") == (49, 0)
    assert (engine.calls, engine.prompt, engine.output) == (4, 193, 3)
    assert engine.evaluated == 48 + 16 + 32 + 49


TEXTS = (("story", "S."), ("values", "1. v"))


def test_the_script_prints_its_tables() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH / "calls.py"), "--stories=1", "--norms=1", "--fixtures=1"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "SIMULATED" in done.stdout and "at most 60%" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("CQ-Bench's")]
    assert len(rows) == 2
    for row in rows:
        assert row[2] == row[5] == row[7] == "100%" and row[-2] == "2/2"

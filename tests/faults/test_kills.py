"""Killed at random points and resumed: the bytes of an undisturbed run, and few calls again.

Each run of the tests makes some of the kills that docs/evidence/reliability.md tells of
(bench/kills.py); all of them with a FRESH_SEED, as `.ci/nightly` has it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cli.conftest import COMMAND

from .forks import Forks
from .kills import MODES, SCRIPTED, UNCACHED, Scenario, fill, killed_and_resumed, lost

EVERY = "FRESH_SEED" in os.environ


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [*MODES, *UNCACHED], ids=lambda scenario: scenario.what)
def test_kills_in_every_mode(forks: Forks, scenario: Scenario, tmp_path: Path) -> None:
    outcome = killed_and_resumed(forks, scenario, scenario.kills // (1 if EVERY else 10), tmp_path)
    assert outcome.kills >= scenario.kills // 10
    assert outcome.calls > 10 or scenario in UNCACHED, outcome


def test_calls_made_again_count_for_the_run_that_lost_them() -> None:
    assert lost([["a", "b"], ["b", "c"], ["c", "a", "d"]]) == [2, 1, 0]


@pytest.mark.slow
def test_the_forked_command_is_the_real_one(forks: Forks, tmp_path: Path) -> None:
    fill(tmp_path)
    scenario = Scenario("norms, no cache", 0, SCRIPTED, "script")
    forks.run(tmp_path, scenario.words(), seed=1)
    there = (tmp_path / "out").read_bytes()
    words = [*COMMAND, *scenario.words("--overwrite")]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "out").read_bytes() == there

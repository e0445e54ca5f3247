"""Killed at random points and resumed: the bytes are those of an undisturbed run.

A quarter of the kills that docs/reliability.md tells of; all of them with a FRESH_SEED (as
`.ci/nightly` has it), and where the page is written anew.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import COMMAND, norm

from .conftest import Outcome
from .forks import FIXTURES, Ended, Forks, calls, finished, paid_twice

SEED = int(os.environ.get("FRESH_SEED", 20261))
TAKING_OVER = 24
"""Points that a resumed run passes, or somewhat more, until it asks about its first record."""

MOST_KILLS = 4
"""Of one run, before it is let come to its end."""


@dataclass(frozen=True)
class Scenario:
    """What is run and killed: its input, its flags, and how often."""

    what: str
    source: str
    kills: int
    flags: Sequence[str] = ()
    model: str = "judge.yaml"

    @property
    def fault(self) -> str:
        return f"SIGKILL at random points, then `--resume`: {self.what}"

    @property
    def cached(self) -> bool:
        return "--no-cache" not in self.flags

    def words(self, *more: str) -> list[str]:
        words = ["validate", self.source, "-m", f"scripted:{self.model}", "-q", "-o", "out"]
        return [*words, "--concurrency", "6", *self.flags, *more]


REVIEW = ("--no-cache", "--check", "relevance", "--margin", "0.2", "--review", "review")
SCENARIOS = [
    Scenario("norms", "norms.jsonl", 50),
    Scenario("norms, no cache", "norms.jsonl", 40, ("--no-cache",)),
    Scenario(
        "norms in .gz, some twice, bad lines, `--review`, no cache",
        "m.gz",
        40,
        REVIEW,
        "mixed.yaml",
    ),
    Scenario("stories with edits", "stories.jsonl", 40, ("--repair",)),
    Scenario("stories with edits, no cache", "stories.jsonl", 30, ("--repair", "--no-cache")),
]


def fill(folder: Path) -> None:
    """Inputs and scripts: half of the fixtures, and records that a resume finds hard."""
    for name, count in (("norms.jsonl", 14), ("stories.jsonl", 7)):
        lines = (FIXTURES / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(lines[:count]))
    (folder / "judge.yaml").write_bytes((FIXTURES / "judge.yaml").read_bytes())
    mixed = [json.dumps({**norm(number % 8), "id": f"m{number}"}) for number in range(20)]
    mixed[5:5], mixed[11:11] = ['{"story": "torn'], [json.dumps({"id": "no norm"})]
    (folder / "m.gz").write_bytes(gzip.compress("\n".join(mixed).encode()))
    replies = [{"when": {"contains": f"number {n}"}, "p_yes": 0.55} for n in (1, 4)]
    script = {"method": "logprobs", "replies": [*replies, {"p_yes": 0.9}]}
    (folder / "mixed.yaml").write_text(json.dumps(script))


def killed(forks: Forks, scenario: Scenario, folder: Path, kills: int, points: int) -> int:
    """Kill a run, and what goes on with it, up to `kills` times, and let it end; how often it was.

    Three of four die at a point, at a write also half-way through; the others whenever their time
    has come.
    """
    # Not the whole path, which is another in each run and on each machine.
    chance = random.Random(f"{SEED} {scenario.what} {folder.name}")
    for kill in range(kills):
        # What goes on with a run has less to do, and is most in danger while it takes over.
        most = points if kill == 0 else chance.choice((TAKING_OVER, points // 2))
        die_at = chance.randint(1, most) if chance.random() < 0.75 else None
        kill_after = None if die_at else chance.uniform(0.0, 0.4)
        ended = resumed(forks, scenario, folder, chance, die_at=die_at, kill_after=kill_after)
        if ended.code != -9:
            return kill
    resumed(forks, scenario, folder, chance)
    return kills


def resumed(
    forks: Forks, scenario: Scenario, folder: Path, chance: random.Random, **death: Any
) -> Ended:
    """Go on with a run; a finished line that was there stays, and is not asked about again."""
    done, before = finished(folder), len(calls(folder))
    seed = chance.randrange(1000)
    ended = forks.run(folder, scenario.words("--resume"), seed=seed, **death)
    asked = {record for word, record in calls(folder)[before:] if word == "asked"}
    assert not asked & done, folder
    assert done <= finished(folder), folder
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.what)
def test_killed_and_resumed(
    forks: Forks,
    scenario: Scenario,
    tmp_path: Path,
    outcome: Outcome,
    request: pytest.FixtureRequest,
) -> None:
    every = "FRESH_SEED" in os.environ or request.config.getoption("--update-reliability")
    wanted = scenario.kills if every else scenario.kills // 4
    whole = tmp_path / "whole"
    whole.mkdir()
    fill(whole)
    ended = forks.run(whole, scenario.words(), seed=1)
    assert ended.points is not None, (whole / "stderr.log").read_text()
    kept = {
        name: (whole / name).read_bytes() for name in ("out", "review") if (whole / name).exists()
    }
    kills = runs = same = 0
    while kills < wanted:
        folder = tmp_path / f"run{runs}"
        folder.mkdir()
        fill(folder)
        most = min(1 + runs % MOST_KILLS, wanted - kills)
        came = killed(forks, scenario, folder, most, ended.points)
        kills, runs = kills + came, runs + 1
        found = {name: (folder / name).read_bytes() for name in kept if (folder / name).exists()}
        assert found == kept, folder
        same += came
        assert [path.name for path in folder.glob("out.*")] == ["out.run.json"], folder
        assert b"Traceback" not in (folder / "stderr.log").read_bytes(), folder
        if scenario.cached:
            assert paid_twice(folder) == [], folder
    told = f"{same} of {kills} kills, {len(kept['out'].splitlines())} records: the same bytes"
    kind = "reply in the cache" if scenario.cached else "record with a finished line on disk"
    if every:
        outcome("kills", scenario.fault, f"{told}; no {kind} was asked for again")


@pytest.mark.slow
def test_the_forked_command_is_the_real_one(forks: Forks, tmp_path: Path) -> None:
    fill(tmp_path)
    scenario = SCENARIOS[0]
    forks.run(tmp_path, scenario.words(), seed=1)
    there = (tmp_path / "out").read_bytes()
    words = [*COMMAND, *scenario.words("--overwrite", "--no-cache")]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "out").read_bytes() == there

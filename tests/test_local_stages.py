"""The two stages of a cascade with the real llama.cpp engine as the cheap one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judge.weights import store

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SMALL = "smollm2-135m"
# A model at chance must seldom count as sure, so the margin is wide.
SETTINGS = ("--cheap-model", f"local:{SMALL}", "-m", f"scripted:{FIXTURES / 'judge.yaml'}")
SETTINGS += ("--cheap-margin", "0.45", "--check", "relevance", "--check", "abstraction")
SETTINGS += ("--rounds", "0", "--limit", "1", "--no-cache", "--summary", "sums.json")


@pytest.mark.slow
@pytest.mark.skipif(store.path(SMALL) is None, reason=f"judge models pull {SMALL} has not been run")
def test_the_strong_stage_needs_no_weights_where_nothing_is_edited(tmp_path: Path) -> None:
    def run(source: str | Path, out: str, *more: str, weights: Path | None = None) -> Any:
        """How often the small model was asked."""
        # Threads that spin while they wait take the cores from whatever else runs here.
        env = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        env |= {"JUDGE_MODELS_DIR": str(weights)} if weights else {}
        words = [
            sys.executable,
            "-m",
            "judge",
            "validate",
            str(source),
            *SETTINGS,
            "-o",
            out,
            *more,
        ]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        sums = json.loads((tmp_path / "sums.json").read_text())
        return sums["models"][f"local:{SMALL}"]["calls"]

    in_one_go = run(FIXTURES / "norms.jsonl", "one.jsonl")
    assert run(FIXTURES / "norms.jsonl", "cheap.jsonl", "--stage", "cheap") == in_one_go == 2
    nothing = tmp_path / "nothing"
    assert run("cheap.jsonl", "two.jsonl", "--stage", "strong", weights=nothing) == 0

    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    text = (tmp_path / "cheap.jsonl").read_text("utf-8")
    told = [json.loads(line)["judge"] for line in text.splitlines()]
    assert any(line["verdict"] == "open" for line in told)
    assert all(line["models"]["cheap_identity"]["sha256"] for line in told)

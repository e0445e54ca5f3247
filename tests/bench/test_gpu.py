"""bench/gpu.py on the processor: both loops run and agree, and it says what was not measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "gpu.py"


@pytest.mark.slow
def test_both_loops_run_on_the_processor() -> None:
    words = ["--small", "--records", "2", "--alone-records", "2", "--story", "120"]
    done = subprocess.run(
        [sys.executable, str(BENCH), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=300,
        check=True,
    )
    rows = {line[:18].strip(): line.split() for line in done.stdout.splitlines()}
    # Tokens for each question: a fifth of the story and less of the rest, and all of it.
    assert float(rows["prefix reuse"][-3]) < float(rows["every prompt whole"][-3]) / 2.5
    assert float(rows["every prompt whole"][-3]) == 90 + 120 + 64
    assert float(done.stdout.partition("difference of a probability: ")[2].split()[0]) < 1e-4
    assert "NOT MEASURED ON A GPU" in done.stdout

"""The benchmark of pairwise distances: its quick form runs, and both ways give the same values."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_quick() -> None:
    """The script ends with an error where plain Python finds other values."""
    command = [sys.executable, str(BENCH / "variance.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line for line in done.stdout.splitlines() if re.search("compiled|plain Python", line)]
    assert len(rows) == 4
    per_cpu_second = [float(row.split()[-3].replace(",", "")) for row in rows]
    for compiled, plain in (per_cpu_second[:2], per_cpu_second[2:]):
        assert compiled > 5 * plain

"""The coverage benchmark: its quick corner runs, and says the same every time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_quick_corner() -> None:
    command = [sys.executable, str(BENCH / "coverage.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    worst = [float(one) / 100 for one in re.findall(r"worst cell ([\d.]+)%", done.stdout)]
    # 300 simulations a cell: 95 % less three standard errors.
    assert len(worst) == 2 and min(worst) > 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5
    assert max(worst) < 1
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == done.stdout

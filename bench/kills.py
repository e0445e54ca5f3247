"""Kill `judge` 200 times, in every mode, and check what is written and what is asked again.

    python bench/kills.py [--share 1.0] [--mode NAME]        FRESH_SEED=N draws other points

The scenarios and the kills are those of the tests (tests/faults/kills.py). Prints the table of
docs/evidence/reliability.md; ends with an error if bytes differ, or a kill lost more calls than
were in flight.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from tests.faults.forks import Forks  # noqa: E402
from tests.faults.kills import MODES, UNCACHED, killed_and_resumed  # noqa: E402

HEAD = (
    "| mode | kills | calls of a run | calls in flight | lost by a kill, most | on average |",
    "|---|---:|---:|---:|---:|---:|",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the kills, 1.0 for all")
    parser.add_argument("--mode", default="", help="only modes whose names have this in them")
    chosen = parser.parse_args()
    print(*HEAD, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder, Forks(Path(folder)) as forks:
        wanted = [one for one in (*MODES, *UNCACHED) if chosen.mode in one.what]
        for number, scenario in enumerate(wanted):
            place = Path(folder, f"mode{number}")
            place.mkdir()
            kills = max(1, round(scenario.kills * chosen.share))
            seen = killed_and_resumed(forks, scenario, kills, place)
            cells = [scenario.what, seen.kills, "–", "–", "–", "–"]
            if scenario.calls != "script":
                mean = sum(seen.lost) / max(1, len(seen.lost))
                most = max(seen.lost, default=0)
                cells[2:] = [seen.calls, scenario.in_flight, most, f"{mean:.1f}"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()

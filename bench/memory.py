"""Peak memory of `judge validate` over many records, each run in a process of its own.

    python bench/memory.py [--records 10000,100000,1000000] [--kind norm|story] [--no-slow]

The judge is scripted and answers at once, so the figures are those of the program itself: reading,
workflow, cache, writing. Norm records are asked one question each, story records a few for each of
their values. Prints a table; checks no limit. The aim: under 300 MB for any number of records.

A second table has a judge that takes 20 ms for a record, and 20 s for one of the first: the output
keeps its order, and neither the other records nor the memory should be affected.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

YES = 'words: {"yes": 0.45, "for": 0.45}'
SCRIPT = f"method: logprobs\nreplies:\n- {{{YES}}}\n"
SLOW_SCRIPT = f"""method: logprobs
replies:
- {{when: {{contains: "as number 7 and"}}, {YES}, delay: 20}}
- {{{YES}, delay: 0.02}}
"""
EVEN_SCRIPT = f"method: logprobs\nreplies:\n- {{{YES}, delay: 0.02}}\n"
CHECK = {"norm": "relevance", "story": "incorporation"}
# The peak reported to a parent may be the parent's own, inherited at the fork; so the process reads
# Linux's VmHWM, which exec resets.
DRIVER = """
import sys
from pathlib import Path
from judge.cli import main
try:
    main()
finally:
    status = Path("/proc/self/status").read_text()
    Path("peak").write_text(status.split("VmHWM:")[1].split()[0])
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: records, whether with the cache, peak in MB (of 1,000,000 bytes), seconds."""

    records: int
    cached: bool
    peak_mb: float
    seconds: float


def record(kind: str, number: int) -> dict[str, Any]:
    """A record of about 2 kB (norm) or 5 kB (story)."""
    speech = f'"I came in as number {number} and greeted everybody," said Ann. '
    if kind == "norm":
        rule = {"rule_of_thumb": "It is polite to greet on entering.", "label": "yes"}
        return {"id": f"n{number}", "country": "Nowhere", **rule, "story": speech * 30}
    values = [f"How important is value {place}--Important" for place in range(5)]
    return {"id": f"s{number}", "values": values, "story": speech * 80}


def measure(records: int, *, cached: bool, kind: str = "norm", script: str = SCRIPT) -> Measured:
    """Run `judge validate` over this many generated records in a new folder.

    Raises:
        RuntimeError: the run failed, or lines are missing or out of place.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "yes.yaml").write_text(script)
        with (folder / "in.jsonl").open("w") as file:
            for number in range(records):
                file.write(json.dumps(record(kind, number)) + "\n")
        flags = ["-m", "scripted:yes.yaml", "--check", CHECK[kind], "-o", "out.jsonl", "-q"]
        cache = ["--cache-dir", "cache"] if cached else ["--no-cache"]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, "validate", "in.jsonl", *flags, *cache],
            cwd=folder,
            env={k: v for k, v in os.environ.items() if not k.startswith("JUDGE_")},
            capture_output=True,
            check=False,
        )
        seconds = time.monotonic() - began
        written = 0
        with (folder / "out.jsonl").open("rb") as lines:
            for number, line in enumerate(lines):
                written += json.loads(line)["id"].endswith(str(number))
        if done.returncode or written != records:
            raise RuntimeError(
                done.stderr.decode() or f"{written} of {records} lines in their place"
            )
        peak = int((folder / "peak").read_text()) * 1024 / 1e6
    return Measured(records, cached, peak, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", default="10000,100000,1000000")
    parser.add_argument("--no-slow", action="store_true")
    parser.add_argument("--kind", choices=tuple(CHECK), default="norm")
    chosen = parser.parse_args()
    print(f"{'records':>9}  {'cache':>5}  {'peak MB':>7}  {'seconds':>8}  {'records/s':>9}")
    for records in map(int, chosen.records.split(",")):
        for cached in (False, True):
            found = measure(records, cached=cached, kind=chosen.kind)
            pace = found.records / found.seconds
            print(
                f"{found.records:>9}  {'on' if cached else 'off':>5}  {found.peak_mb:>7.0f}  "
                f"{found.seconds:>8.1f}  {pace:>9.0f}",
                flush=True,
            )
    if not chosen.no_slow:
        slow_record()


def slow_record() -> None:
    """Print the second table."""
    print(f"\n{'20,000 records, one of them':28}  {'peak MB':>7}  {'seconds':>8}")
    for title, script in (
        ("as fast as the others", EVEN_SCRIPT),
        ("1,000 times slower", SLOW_SCRIPT),
    ):
        found = measure(20_000, cached=False, script=script)
        print(f"{title:28}  {found.peak_mb:>7.0f}  {found.seconds:>8.1f}", flush=True)


if __name__ == "__main__":
    main()

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
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

YES = 'words: {"yes": 0.45, "for": 0.45}'
SLOW = f'- {{when: {{contains: "as number 7 and"}}, {YES}, delay: 20}}\n'
"""A reply that takes 20 s for one of the first records."""
CHECK = {"norm": "relevance", "story": "incorporation"}
# The process reports its own CPU time and peak, without those of Ray's processes. The peak that a
# parent sees may be its own, inherited at the fork; so it reads Linux's VmHWM, which exec resets.
DRIVER = """
import json, resource
from pathlib import Path
from judge.cli import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    told = {"peak_mb": peak * 1024 / 1e6, "cpu": used.ru_utime + used.ru_stime}
    Path("driver.json").write_text(json.dumps(told))
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: wall seconds, the process's own CPU seconds and peak MB (of 1,000,000 bytes).

    `start` is the seconds until the first line, `pace` records a second from the first quarter on;
    `digest` is over the output, `out_bytes` its size, `cache_bytes` that of the cache folder.
    """

    wall: float
    start: float
    pace: float
    cpu: float
    peak_mb: float
    digest: str
    out_bytes: int
    cache_bytes: int


def record(kind: str, number: int) -> dict[str, Any]:
    """A record of about 2 kB (norm) or 5 kB (story)."""
    speech = f'"I came in as number {number} and greeted everybody," said Ann. '
    if kind == "norm":
        rule = {"rule_of_thumb": "It is polite to greet on entering.", "label": "yes"}
        return {"id": f"n{number}", "country": "Nowhere", **rule, "story": speech * 30}
    values = [f"How important is value {place}--Important" for place in range(5)]
    return {"id": f"s{number}", "values": values, "story": speech * 80}


def measure(
    records: int,
    *,
    cached: bool = False,
    kind: str = "norm",
    latency: float = 0,
    slow: str = "",
    engine: Sequence[str] = (),
) -> Ran:
    """Run `judge validate` over this many generated records in a new folder, with a judge that
    answers after `latency` seconds; `slow` is a scripted reply before the usual one.

    Raises:
        RuntimeError: the run failed, or lines are missing or out of place.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        replies = f"{slow}- {{{YES}, delay: {latency}}}\n"
        (folder / "yes.yaml").write_text(f"method: logprobs\nreplies:\n{replies}")
        with (folder / "in.jsonl").open("w") as file:
            for number in range(records):
                file.write(json.dumps(record(kind, number)) + "\n")
        flags = ["-m", "scripted:yes.yaml", "--check", CHECK[kind], "-o", "out.jsonl", "-q"]
        cache = ["--cache-dir", "cache"] if cached else ["--no-cache"]
        out, began = folder / "out.jsonl", time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, "validate", "in.jsonl", *flags, *cache, *engine],
            cwd=folder,
            env={k: v for k, v in os.environ.items() if not k.startswith("JUDGE_")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        grown = _watched(process, out)
        wall = time.monotonic() - began
        if process.returncode:
            raise RuntimeError(process.stderr.read().decode() if process.stderr else "")
        driver = json.loads((folder / "driver.json").read_text())
        kept = sum(path.stat().st_size for path in folder.glob("cache/**/*") if path.is_file())
        start, pace = _pace(grown, began, records)
        digest = _digest(out, records)
        return Ran(
            wall,
            start,
            pace,
            **driver,
            digest=digest,
            out_bytes=out.stat().st_size,
            cache_bytes=kept,
        )


def _watched(process: subprocess.Popen[bytes], out: Path) -> list[tuple[float, int]]:
    """(Time, bytes of the output) whenever it has grown, until the process ends."""
    grown: list[tuple[float, int]] = []
    while process.poll() is None:
        size = out.stat().st_size if out.exists() else 0
        if size > (grown[-1][1] if grown else 0):
            grown.append((time.monotonic(), size))
        time.sleep(0.02)
    return grown


def _pace(grown: Sequence[tuple[float, int]], began: float, records: int) -> tuple[float, float]:
    """Seconds to the first line, and records a second from the first quarter to the end."""
    if not grown:
        return 0.0, 0.0
    whole, ended = grown[-1][1], grown[-1][0]
    since, had = next(point for point in grown if point[1] * 4 >= whole)
    if had == whole:
        # So few records that all lines came at once.
        since, had = began, 0
    spent = max(ended - since, 1e-9)
    return grown[0][0] - began, (whole - had) / whole * records / spent


def _digest(out: Path, records: int) -> str:
    """The digest of the output, after a check that each record is in its place."""
    whole, written = hashlib.blake2b(digest_size=8), 0
    with out.open("rb") as lines:
        for number, line in enumerate(lines):
            whole.update(line)
            written += json.loads(line)["id"].endswith(str(number))
    if written != records:
        raise RuntimeError(f"{written} of {records} lines in their place")
    return whole.hexdigest()


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
            print(
                f"{records:>9}  {'on' if cached else 'off':>5}  {found.peak_mb:>7.0f}  "
                f"{found.wall:>8.1f}  {records / found.wall:>9.0f}",
                flush=True,
            )
    if not chosen.no_slow:
        slow_record()


def slow_record() -> None:
    """Print the second table."""
    print(f"\n{'20,000 records, one of them':28}  {'peak MB':>7}  {'seconds':>8}")
    for title, slow in (("as fast as the others", ""), ("1,000 times slower", SLOW)):
        found = measure(20_000, latency=0.02, slow=slow)
        print(f"{title:28}  {found.peak_mb:>7.0f}  {found.wall:>8.1f}", flush=True)


if __name__ == "__main__":
    main()

"""`judge validate --engine ray`: throughput from one worker to two, and the driver's memory.

    python bench/scale.py [--throughput 4000] [--latency 0,50] [--records 100000] [--rounds 1]

Three tables. The first runs the same generated norm records (bench/memory.py) through the local
engine, one Ray worker and two, in turn, with a scripted judge that answers at once or after a
latency. The pace is that of the output from its first quarter to its end, when all workers are up;
the time to the first line is a column of its own. A judge that answers at once shows the limit of
the CPU: two workers and a driver need three cores. One with a latency shows the gain from
concurrency, 16 records at once for each worker. The outputs of all engines must be the same bytes.

The second table has the driver's peak memory by number of records, with two workers, and the
driver's CPU time for a record, which limits a large cluster. The third has the use of the disk:
bytes of an output line and of a record's cache entries.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from memory import record

ENGINES = {
    "local": (),
    "1 Ray worker": ("--engine", "ray", "--workers", "1"),
    "2 Ray workers": ("--engine", "ray", "--workers", "2"),
}
FEW = 10
"""Records of the run that measures the CPU time of the start."""

# The process reports its own peak and CPU time, without those of Ray's processes.
DRIVER = """
import json, resource, sys
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
    """One run: wall seconds, the driver's CPU seconds and peak MB (of 1,000,000 bytes).

    `start` is the seconds until the first line, `pace` records a second from the first quarter on;
    `digest` is over the output, `out_bytes` its size, `cache_bytes` that of the cache folder.
    """

    records: int
    wall: float
    start: float
    pace: float
    cpu: float
    peak_mb: float
    digest: str
    out_bytes: int
    cache_bytes: int


def run(records: int, engine: Sequence[str], latency_ms: int = 0, *, cached: bool = False) -> Ran:
    """Run `judge validate` over this many generated records in a new folder.

    Raises:
        RuntimeError: the run failed, or lines are missing or out of place.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reply = {"p_yes": 0.9, "delay": latency_ms / 1000}
        script = {"method": "logprobs", "replies": [reply]}
        (folder / "yes.yaml").write_text(json.dumps(script))
        with (folder / "in.jsonl").open("w") as file:
            for number in range(records):
                file.write(json.dumps(record("norm", number)) + "\n")
        flags = ["in.jsonl", "-m", "scripted:yes.yaml", "--check", "relevance", "-o", "out.jsonl"]
        cache = ["--cache-dir", "cache"] if cached else ["--no-cache"]
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, "validate", *flags, "-q", *cache, *engine],
            cwd=folder,
            env={k: v for k, v in os.environ.items() if not k.startswith("JUDGE_")},
            stderr=subprocess.PIPE,
        )
        grown = _watched(process, folder / "out.jsonl")
        wall = time.monotonic() - began
        if process.returncode:
            told = process.stderr.read() if process.stderr else b""
            raise RuntimeError(told.decode())
        told = json.loads((folder / "driver.json").read_text())
        out, kept = folder / "out.jsonl", sorted((folder / "cache").glob("**/*"))
        return Ran(
            records,
            wall,
            *_pace(grown, began, records),
            told["cpu"],
            told["peak_mb"],
            _digest(out, records),
            out.stat().st_size,
            sum(path.stat().st_size for path in kept if path.is_file()),
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
            written += json.loads(line)["id"] == f"n{number}"
    if written != records:
        raise RuntimeError(f"{written} of {records} lines in their place")
    return whole.hexdigest()


def throughput(records: int, latency_ms: int, rounds: int) -> None:
    """Print records per second by engine; engines take turns."""
    paces: dict[str, list[float]] = {name: [] for name in ENGINES}
    starts: dict[str, list[float]] = {name: [] for name in ENGINES}
    digests = set()
    for _ in range(rounds):
        for name, engine in ENGINES.items():
            ran = run(records, engine, latency_ms)
            starts[name].append(ran.start)
            paces[name].append(ran.pace)
            digests.add(ran.digest)
    if len(digests) != 1:
        raise RuntimeError("the engines' outputs differ")
    one = statistics.median(paces["1 Ray worker"])
    print(f"\n{records} records, a judge that takes {latency_ms} ms, {rounds} round(s)\n")
    print(f"{'':15}  {'records/s':>22}  {'to one worker':>13}  {'first line s':>12}")
    for name, found in paces.items():
        middle = statistics.median(found)
        spread = f"{middle:.0f} ({min(found):.0f} to {max(found):.0f})"
        start = statistics.median(starts[name])
        print(f"{name:15}  {spread:>22}  {middle / one:>13.2f}  {start:>12.1f}")
    print("the three outputs are the same bytes", flush=True)


def memory(counts: Sequence[int]) -> None:
    """Print the driver's peak memory and CPU time with two workers."""
    few = run(FEW, ENGINES["2 Ray workers"])
    print("\nthe driver of two Ray workers, a judge that answers at once\n")
    print(f"{'records':>9}  {'peak MB':>7}  {'seconds':>8}  {'records/s':>9}  {'CPU ms each':>11}")
    for count in counts:
        ran = run(count, ENGINES["2 Ray workers"])
        each = (ran.cpu - few.cpu) / (count - FEW) * 1000
        print(
            f"{count:>9}  {ran.peak_mb:>7.0f}  {ran.wall:>8.1f}  {ran.pace:>9.0f}  {each:>11.2f}",
            flush=True,
        )


def disk(records: int) -> None:
    """Print the bytes on disk for a record."""
    ran, empty = run(records, (), cached=True), run(0, (), cached=True)
    kept = (ran.cache_bytes - empty.cache_bytes) / records
    print(f"\nbytes on disk for each of {records} records of one check, one vote\n")
    print(f"{'output line':24}  {ran.out_bytes / records:>8.0f}")
    print(f"{'reply and record, cached':24}  {kept:>8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--throughput", type=int, default=4000, help="records; 0 leaves it out")
    parser.add_argument("--latency", default="0,50", help="milliseconds")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--records", default="100000", help="of the memory table; 0 leaves it out")
    parser.add_argument("--disk", type=int, default=5000, help="records; 0 leaves it out")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores")
    if chosen.throughput:
        for latency in map(int, chosen.latency.split(",")):
            throughput(chosen.throughput, latency, chosen.rounds)
    counts = [int(count) for count in chosen.records.split(",") if int(count)]
    if counts:
        memory(counts)
    if chosen.disk:
        disk(chosen.disk)


if __name__ == "__main__":
    main()

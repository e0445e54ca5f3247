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
import os
import platform
import statistics
from collections.abc import Sequence

from memory import measure

ENGINES = {
    "local": (),
    "1 Ray worker": ("--engine", "ray", "--workers", "1"),
    "2 Ray workers": ("--engine", "ray", "--workers", "2"),
}
FEW = 10
"""Records of the run that measures the CPU time of the start."""


def throughput(records: int, latency_ms: int, rounds: int) -> None:
    """Print records per second by engine; engines take turns."""
    paces: dict[str, list[float]] = {name: [] for name in ENGINES}
    starts: dict[str, list[float]] = {name: [] for name in ENGINES}
    digests = set()
    for _ in range(rounds):
        for name, engine in ENGINES.items():
            ran = measure(records, latency=latency_ms / 1000, engine=engine)
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
    few = measure(FEW, engine=ENGINES["2 Ray workers"])
    print("\nthe driver of two Ray workers, a judge that answers at once\n")
    print(f"{'records':>9}  {'peak MB':>7}  {'seconds':>8}  {'records/s':>9}  {'CPU ms each':>11}")
    for count in counts:
        ran = measure(count, engine=ENGINES["2 Ray workers"])
        each = (ran.cpu - few.cpu) / (count - FEW) * 1000
        print(
            f"{count:>9}  {ran.peak_mb:>7.0f}  {ran.wall:>8.1f}  {ran.pace:>9.0f}  {each:>11.2f}",
            flush=True,
        )


def disk(records: int) -> None:
    """Print the bytes on disk for a record."""
    ran, empty = measure(records, cached=True), measure(0, cached=True)
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

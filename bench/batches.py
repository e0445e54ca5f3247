"""`judge validate --engine batch` over many records: batches, requests, time, peak memory.

    python bench/batches.py [--records 5000] [--quiet 5]

The batch server is the tests' own (tests/batchserver.py), on a thread of this program, which
answers a batch as soon as it is looked at. So the seconds are those of the program, of the server's
work and of waiting for quiet; a provider's batches take hours. Each norm record of 2 kB is put
three questions one after another. Peak and CPU time are those of judge alone. Beside it, in the
same run, the same records through the server's online API with 16 calls at once, which is what
holds fewer records in memory. Prints a table; fails nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

from batchserver import KEY, BatchServer  # noqa: E402
from memory import DRIVER  # noqa: E402

CHECKS = ("relevance", "derivation", "value_derivation")
SENTENCE = "A guest stopped there, slipped off both shoes, and greeted everybody. "


def norm(number: int) -> dict[str, str]:
    """A norm record of about 2 kB that the tests' server finds nothing wrong with."""
    return {
        "id": f"n{number}",
        "country": "japan",
        "background": "- Guests take off their shoes at the door.",
        "value": "Respect for the home",
        "rule_of_thumb": "Take off your shoes before you enter a home.",
        "story": f"This is guest number {number}. {SENTENCE * 28}Was it fine?",
        "label": "yes",
    }


def measure(engine: str, records: int, quiet: float) -> str:
    """One row of the table.

    Raises:
        RuntimeError: the run did not end as it should.
    """
    with tempfile.TemporaryDirectory() as name, BatchServer() as server:
        folder = Path(name)
        lines = (json.dumps(norm(number)) + "\n" for number in range(records))
        (folder / "in.jsonl").write_text("".join(lines))
        checks = [word for check in CHECKS for word in ("--check", check)]
        flags = ["-m", "openai:m", *checks, "--engine", engine, "-o", "out.jsonl", "-q"]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGE_", "OPENAI_"))}
        own = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": KEY,
            "JUDGE_BATCH_QUIET": str(quiet),
            "JUDGE_BATCH_POLL": "0.5",
            "JUDGE_CACHE_DIR": str(folder / "cache"),
        }
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, "validate", "in.jsonl", *flags],
            cwd=folder,
            env={**kept, **own},
            capture_output=True,
            check=False,
        )
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        with (folder / "out.jsonl").open("rb") as out:
            passed = sum(json.loads(line)["judge"]["verdict"] == "pass" for line in out)
        if done.returncode or passed != records:
            raise RuntimeError(done.stderr.decode() or f"{passed} of {records} records pass")
        peak = int((folder / "peak").read_text()) * 1024 / 1e6
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        sizes = [batch["request_counts"]["total"] for batch in server.batches]
        calls = sum(sizes) if engine == "batch" else server.requests("online")
    return (
        f"{engine:>7}  {records:>7}  {calls:>7}  {len(sizes):>7}  {seconds:>7.1f}  {cpu:>6.1f}  "
        f"{peak:>7.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--quiet", type=float, default=5.0)
    chosen = parser.parse_args()
    print(
        f"{'engine':>7}  {'records':>7}  {'calls':>7}  {'batches':>7}  {'seconds':>7}  "
        f"{'CPU s':>6}  {'peak MB':>7}"
    )
    for engine in ("batch", "local"):
        print(measure(engine, chosen.records, chosen.quiet), flush=True)


if __name__ == "__main__":
    main()

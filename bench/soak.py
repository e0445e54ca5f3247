"""Hours of `judge validate` on a server that fails now and then, in minutes: does anything grow?

    python bench/soak.py [--hours 2] [--share 0.01] [--records N] [--timeout 1]

The server is that of the tests (tests/faults/server.py). It answers after 20 ms where a hosted
model takes 2 s, so an hour is 28,800 calls with 16 at a time; `--records` sets the number of
records instead. Each kind of fault hits `--share` of the calls, drawn by the number of the call.
Every fifth norm is about another deed than its rule, and fails.

Sampled from outside, each second: resident memory, open files, threads of judge; from inside, every
five seconds: unfinished asyncio tasks. Before that the same records go to the same server without
faults, and the outputs are compared. A record whose tries all failed ends as `error`, as it should:
a second run with `--resume` asks about those again. Prints its tables; checks no limit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / place) for place in ("tests", "")]

from batchserver import agreeable, guest  # noqa: E402
from loopback import Answer, Asked, says  # noqa: E402

from tests.faults.server import (  # noqa: E402
    Deed,
    Misbehaving,
    Schedule,
    always,
    body,
    completes,
    good,
    now_and_then,
    reset,
    reset_in_body,
    stall,
    status,
    told,
    truncated_body,
)

LATENCY, NOMINAL, AT_ONCE = 0.02, 2.0, 16
"""Seconds a call takes here, seconds it stands for, calls under way."""

CHECKS = ("relevance", "derivation", "value_derivation")
SENTENCE = "A guest stopped there, slipped off both shoes, and greeted everybody. "


DRIVER = """
import asyncio, gc, threading, time
from judge.cli import main

def look():
    with open("tasks", "w", buffering=1) as file:
        while True:
            tasks = (o for o in gc.get_objects() if issubclass(type(o), asyncio.Task))
            found = sum(not task.done() for task in tasks)
            file.write(f"{found}\\n")
            time.sleep(5)

threading.Thread(target=look, daemon=True).start()
main()
"""


def answer(asked: Asked) -> Answer:
    """A faultless judge's answer, after the server's latency."""
    given = agreeable(asked)
    return Answer(given.text, logprobs=given.logprobs, delay=LATENCY)


def _lost(made: dict[str, object]) -> None:
    made["choices"] = []


FAULTS: Mapping[str, Deed] = {
    "429": status(429),
    "429, Retry-After: 1": status(429, Retry_After="1"),
    "500": status(500),
    "503": status(503),
    "reset before a byte": reset,
    "reset in the body": reset_in_body,
    "silence in the body": stall,
    "body cut short": truncated_body(answer),
    "a web page": body(b"<html>Bad gateway</html>", content_type="text/html"),
    "gzip rubbish": body(b"rubbish", Content_Encoding="gzip"),
    "other JSON": told({"detail": "none"}),
    "no choices": completes(says("{}"), _lost),
    "a reply that is no JSON": completes(says("Certainly! The answer is yes.")),
    "a reply of another shape": completes(says({"verdict": "pass"})),
}


@dataclass(frozen=True, slots=True)
class Look:
    """One sample of the process: seconds since its start, MB of 1,000,000 bytes."""

    seconds: float
    resident_mb: float
    files: int
    threads: int


@dataclass(frozen=True, slots=True)
class Soaked:
    """A run: its exit code, calls at the server, seconds, samples, error output."""

    code: int
    calls: int
    seconds: float
    looks: Sequence[Look]
    tasks: Sequence[int]
    said: str


def record(number: int) -> dict[str, str]:
    """A norm of about 2 kB; by the replies of the tests' server every fifth one fails."""
    odd = "An odd guest. " if number % 5 == 0 else ""
    story = f"{odd}This is guest number {number}. {SENTENCE * 28}Was it fine?"
    norm = guest(number)
    # Each question is about texts of the record's own: equal questions are asked once.
    return norm | {"story": story, "background": f"{norm['background']} Rule {number}."}


def run(folder: Path, out: str, server: Misbehaving, schedule: Schedule, *flags: str) -> Soaked:
    """Judge in.jsonl into `out`, and sample the process."""
    server.schedule, before = schedule, server.count
    checks = [word for check in CHECKS for word in ("--check", check)]
    words = ["validate", "in.jsonl", "-m", "openai:m", *checks, "-o", out]
    words += ["-q", "--no-cache", "--concurrency", str(AT_ONCE), *flags]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGE_", "OPENAI_"))}
    began = time.monotonic()
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *words],
            cwd=folder,
            env={**kept, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "key"},
            stderr=said,
        )
        looks = []
        while (one := look(process.pid, time.monotonic() - began)) is not None:
            looks.append(one)
            time.sleep(1)
        process.wait()
    calls = server.count - before
    tasks = [int(line) for line in (folder / "tasks").read_text().split()]
    told = (folder / "said").read_text("utf-8").strip()
    taken = time.monotonic() - began
    return Soaked(process.returncode, calls, taken, looks, tasks, told)


def look(pid: int, seconds: float) -> Look | None:
    """A sample of the process; None once it has ended."""
    place = Path(f"/proc/{pid}")
    try:
        text, files = (place / "status").read_text(), len(list((place / "fd").iterdir()))
    except OSError:
        return None
    found = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", text, re.MULTILINE))
    if "VmRSS" not in found:
        return None
    return Look(seconds, int(found["VmRSS"]) * 1024 / 1e6, files, int(found["Threads"]))


def show(soaked: Soaked) -> None:
    """Print a row for each tenth of the run, without the last sample, of an ending process.

    A run shorter than a second has only one sample.
    """
    print(f"{'seconds':>8}  {'memory MB':>9}  {'files':>5}  {'threads':>7}  {'tasks':>5}")
    looks, tasks = soaked.looks[:-1] or soaked.looks, soaked.tasks
    for tenth in range(1, 11):
        one = looks[tenth * len(looks) // 10 - 1]
        there = tasks[min(len(tasks) - 1, int(one.seconds // 5))]
        print(
            f"{one.seconds:>8.0f}  {one.resident_mb:>9.1f}  {one.files:>5}  {one.threads:>7}  "
            f"{there:>5}"
        )


def judgements(path: Path) -> list[dict[str, Any]]:
    """The contents of "judge" without the usage, which also counts useless replies."""
    with path.open("rb") as lines:
        found = [json.loads(line)["judge"] for line in lines]
    return [{name: value for name, value in one.items() if name != "usage"} for one in found]


def compared(found: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> str:
    pairs = list(zip(found, expected, strict=True))
    verdicts = sum(one["verdict"] != other["verdict"] for one, other in pairs)
    whole = sum(one != other for one, other in pairs)
    return f"{verdicts} of {len(pairs)} have another verdict, {whole} differ in anything but usage"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--records", type=int)
    parser.add_argument("--timeout", default="1", help="seconds until a silent server is given up")
    chosen = parser.parse_args()
    records = chosen.records or int(chosen.hours * 3600 * AT_ONCE / NOMINAL / len(CHECKS))
    with (
        tempfile.TemporaryDirectory() as name,
        Misbehaving(always(good(answer)), keep=False) as server,
    ):
        folder = Path(name)
        with (folder / "in.jsonl").open("w") as file:
            file.writelines(json.dumps(record(number)) + "\n" for number in range(records))
        # Without faults a busy machine must not look like a stalling server: the timeout is long.
        calm = run(folder, "calm", server, server.schedule, "--timeout", "60")
        faulty = now_and_then(list(FAULTS.values()), chosen.share, good(answer))
        patience = ("--timeout", chosen.timeout)
        soaked = run(folder, "faulty", server, faulty, *patience)
        show(soaked)
        found = judgements(folder / "faulty")
        again = None
        if soaked.code == 3:
            again = run(folder, "faulty", server, faulty, *patience, "--resume")
        expected, after = judgements(folder / "calm"), judgements(folder / "faulty")
    hours = calm.calls * NOMINAL / AT_ONCE / 3600
    print(
        f"\n{records} records, {hours:.1f} hours of {AT_ONCE} calls of {NOMINAL:g} s; "
        f"{len(FAULTS)} kinds of fault, each on {chosen.share:.1%} of the calls"
    )
    print(f"calls: {soaked.calls} with faults, {calm.calls} without")
    print(f"seconds: {soaked.seconds:.0f} with faults, {calm.seconds:.0f} without")
    print(f"exit: {soaked.code} with faults, {calm.code} without")
    left = Counter(one["verdict"] for one in found)
    print(f"verdicts: {', '.join(f'{count} {kind}' for kind, count in sorted(left.items()))}")
    print(f"records: {compared(found, expected)}")
    if again is not None:
        print(f"after --resume (exit {again.code}): {compared(after, expected)}")
    if soaked.said:
        print(f"\nwhat the run with faults said:\n{soaked.said}")


if __name__ == "__main__":
    main()

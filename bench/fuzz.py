"""Coverage-guided fuzzing of all code that reads outside input.

    pip install atheris==3.0.0     # the last one for Python 3.11
    python bench/fuzz.py [--seconds 30] [--runs N] [--seed 1] [--keep FOLDER] [TARGET...]

Each target (bench/fuzz_targets.py) runs in a process of its own, under libFuzzer with judge's own
code instrumented, for the given seconds or cases; 2 GB of memory or 20 seconds for one case count
as a crash. Prints a table: target, cases, seconds, crashes. Exits with 1 if there was a crash, and
keeps its input in FOLDER.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEMORY_MB = 2048
CASE_SECONDS = 20
_LONGEST_INPUT = 4096
_CASES = re.compile(r"#(\d+)\s")


def main() -> int:
    """Fuzz the targets that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="by default all")
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--runs", type=int, help="cases for each target, in place of --seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-crashes"))
    parser.add_argument("--one", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return _one(given.one[0], given.one[1:])
    # Imported here: in the process of a target judge is imported under instrumentation.
    from fuzz_targets import TARGETS

    crashed = 0
    print(f"{'target':<12} {'cases':>9} {'seconds':>8} {'crashes':>8}", flush=True)
    for name in given.targets or TARGETS:
        if name not in TARGETS:
            parser.error(f"no target {name!r}: there are {', '.join(TARGETS)}")
        cases, seconds, crashes = _run(name, given)
        crashed += crashes
        print(f"{name:<12} {cases:>9,} {seconds:>8.0f} {crashes:>8}", flush=True)
    return 1 if crashed else 0


def _run(name: str, given: argparse.Namespace) -> tuple[int, float, int]:
    """(cases, seconds, crashes) of one target in a process of its own."""
    limit = f"-runs={given.runs}" if given.runs else f"-max_total_time={given.seconds}"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as corpus:
        given.keep.mkdir(exist_ok=True)
        flags = [
            limit,
            f"-seed={given.seed}",
            f"-max_len={_LONGEST_INPUT}",
            f"-timeout={CASE_SECONDS}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-artifact_prefix={given.keep.resolve()}/{name.replace(' ', '-')}-",
        ]
        command = [sys.executable, __file__, "--one", name, corpus, *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = [int(number) for number in _CASES.findall(done.stderr)]
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return max(counts, default=0), time.monotonic() - began, int(done.returncode != 0)


def _one(name: str, flags: list[str]) -> int:
    try:
        import atheris
    except ImportError:
        print("pip install atheris==3.0.0", file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=["judge"]):
        from fuzz_targets import SEEDS, TARGETS
    for number, seed in enumerate(SEEDS.get(name, ())):
        (Path(flags[0]) / f"seed-{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], *flags], TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Where the CPU time of `judge validate` goes: own time by library and by room, in thousandths.

    python bench/hot_path.py [--stories 400] [--concurrency 64]

The same path as in bench/throughput.py, in this process and under cProfile, after a first run that
imports everything. cProfile slows down only calls of Python functions, so code in Python has a
larger share here than in a normal run.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import re
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from canned_server import raise_file_limit, serving
from material import judge_route, write_stories

from judge.cli import app

HERE = Path(__file__).parent
ROOMS = re.compile(r"/(judge/[a-z]+|graphs)(?:/|\.py$|$)")
LIBRARY = re.compile(r"site-packages/([A-Za-z0-9_]+)")


def place(file: str, function: str) -> str:
    """Our room, the library, or the module of the standard library that a function is from."""
    if found := LIBRARY.search(file):
        return found.group(1)
    if found := ROOMS.search(file.replace(str(HERE.parent), "")):
        return found.group(1)
    if file == "~":
        return "sqlite3" if "sqlite3" in function else "built in"
    if file.startswith("<"):
        return "built in"
    return Path(file).parent.name if Path(file).parent.name == "asyncio" else "standard library"


def run(records: str, out: str, concurrency: int) -> None:
    """`judge validate` over records in the working folder."""
    words = ["validate", records, "-o", out, "-q", "-m", "openai:canned", "--cache-dir", "cache"]
    with suppress(SystemExit):
        app([*words, "--repair", "--concurrency", str(concurrency)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stories", type=int, default=400)
    parser.add_argument("--concurrency", type=int, default=64)
    chosen = parser.parse_args()
    raise_file_limit()
    with tempfile.TemporaryDirectory() as folder, serving({"judge": judge_route()}) as server:
        os.chdir(folder)
        os.environ["OPENAI_BASE_URL"] = f"{server.url}/judge/v1"
        write_stories(Path("few.jsonl"), 10)
        write_stories(Path("many.jsonl"), chosen.stories)
        run("few.jsonl", "few-out.jsonl", chosen.concurrency)
        profile = cProfile.Profile()
        profile.runcall(run, "many.jsonl", "many-out.jsonl", chosen.concurrency)
        os.chdir(HERE)
    own: Counter[str] = Counter()
    for (file, _, function), (_, _, seconds, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        own[place(file, function)] += seconds
    whole = sum(own.values())
    print(f"{chosen.stories} stories, thousandths of the time\n")
    for name, seconds in own.most_common():
        if seconds / whole >= 0.005:
            print(f"{name:32}  {1000 * seconds / whole:>5.0f}")


if __name__ == "__main__":
    main()

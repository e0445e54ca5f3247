"""The cost of a decision: `judge validate -m systemone:...`, the bare SDK and bare aiohttp.

    python bench/decisions.py [--few 500] [--many 3000] [--rounds 3] [--concurrency 64]

A canned server (bench/canned_server.py) gives the same answer to every question at once. Each
contender is a process of its own, run in turn over few and over many records; the difference is the
cost of the decisions, without imports and start-up. judge's cost is for everything: reading
records, making questions, checking answers against the choices, cache, ordered output. The SDK
(typesafe-sdk, left out if it is not installed) has no cache: compare it with judge, --no-cache.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from canned_server import raise_file_limit, serving
from processes import measured
from throughput import Cost, Spent

ANSWER = {"answers": {"question": {"type": "noul", "noul": 0.75}}, "model": "made-1.0"}
REPLY = {**ANSWER, "usage": {"input_tokens": 100, "output_tokens": 0}}
QUESTION = "Is the mail polite?"


async def _at_once(count: int, concurrency: int, decide: Callable[[str], Awaitable[Any]]) -> None:
    """Decide `count` mails, `concurrency` at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await decide(mail(number))

    await asyncio.gather(*(worker() for _ in range(concurrency)))


def mail(number: int) -> str:
    return f"Dear Ann, thank you for your letter of last week. Invoice {number} is enclosed. " * 5


async def bare_aiohttp(url: str, count: int, concurrency: int) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:

        async def decide(text: str) -> None:
            asked = {"question": {"type": "noul", "instructions": QUESTION}}
            body = {"model": "made-1", "state": {"mail": text}, "questions": asked}
            async with session.post(f"{url}/v1/systemone", json=body) as reply:
                assert 0 <= (await reply.json())["answers"]["question"]["noul"] <= 1

        await _at_once(count, concurrency, decide)


async def bare_sdk(url: str, count: int, concurrency: int) -> None:
    from typesafe_sdk import AsyncTypeSafeClient, Noul

    async with AsyncTypeSafeClient(api_key="k", base_url=url) as client:

        async def decide(text: str) -> None:
            questions = {"question": Noul(instructions=QUESTION)}
            await client.system_one(model="made-1", state={"mail": text}, questions=questions)

        await _at_once(count, concurrency, decide)


OURS = {"judge": (), "judge, --no-cache": ("--no-cache",)}
BARE = {"aiohttp, bare": bare_aiohttp, "typesafe-sdk, bare": bare_sdk}


def spent(name: str, url: str, folder: Path, count: int, concurrency: int) -> Spent:
    """Run a contender's process for `count` decisions; return what it took."""
    command = [sys.executable, __file__, "--contender", name, "--url", url, "--many", str(count)]
    command += ["--concurrency", str(concurrency)]
    if name in OURS:
        records = folder / f"{count}.jsonl"
        lines = (json.dumps({"id": str(n), "mail": mail(n)}) + "\n" for n in range(count))
        records.write_text("".join(lines), "utf-8")
        command = [sys.executable, "-m", "judge", "validate", str(records), "--ask", QUESTION]
        command += ["--on", "mail", "-m", "systemone:made-1", "-o", str(folder / "out.jsonl")]
        command += ["--overwrite", "-q", "--concurrency", str(concurrency), *OURS[name]]
    with tempfile.TemporaryDirectory() as cache:
        env = {"SYSTEMONE_BASE_URL": url, "JUDGE_CACHE_DIR": cache, "PATH": os.environ["PATH"]}
        return Spent.on(count, measured(command, folder, env)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=500)
    parser.add_argument("--many", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--contender", choices=BARE)
    parser.add_argument("--url", default="")
    chosen = parser.parse_args()
    if chosen.contender:
        run = BARE[chosen.contender]
        asyncio.run(run(chosen.url, chosen.many, chosen.concurrency))
        return
    raise_file_limit()
    names = [*OURS, *(n for n in BARE if "sdk" not in n or find_spec("typesafe_sdk"))]
    costs = {name: Cost() for name in names}
    with serving({"v1": [("", {"body": REPLY})]}) as server, tempfile.TemporaryDirectory() as place:
        for _ in range(chosen.rounds):
            for name in names:
                few, many = (
                    spent(name, server.url, Path(place), count, chosen.concurrency)
                    for count in (chosen.few, chosen.many)
                )
                costs[name].add(few, many)
    print(f"{'':22}{'CPU ms a decision':>24}{'decisions/s':>14}")
    for name, cost in costs.items():
        print(f"{name:22}{cost.spread():>24}{statistics.median(cost.pace):>14.0f}")


if __name__ == "__main__":
    main()

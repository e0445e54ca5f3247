"""`judge validate` against a server on 127.0.0.1, as people type it.

Faults of servers are in tests/faults/.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli.typed import Typed
from loopback import Answer, Asked, Loopback, chances, says

from judge.judging.client import Client

pytestmark = pytest.mark.slow

KEY = "sk-loopback-0123456789abcdef"
LINES = 4

NORMS: list[dict[str, Any]] = [
    {
        "id": f"n{number}",
        "country": "japan",
        "background": "- Guests take off their shoes at the door.\n- Gifts go from both hands.",
        "value": "Respect for the home",
        "rule_of_thumb": "Take off your shoes before you enter a home.",
        "story": f"Guest number {number} stopped there and slipped off both shoes. Was it fine?",
        "label": "yes",
        "source": {"row": number},
    }
    for number in range(LINES)
]
STORY = {
    "id": "s1",
    "values": ["Thrift is worth teaching--Agree", "Neighbours can be trusted--Agree"],
    "characters": ["Ann", "Ben"],
    "story": 'Ann said, "I mend my own coats." Ben laughed: "And I leave my door open all night."',
}


def agreeable(asked: Asked) -> Answer:
    """What a judge says to whom all the records above are fine."""
    if asked.body.get("logprobs"):
        return chances(Yes=-0.05, No=-3.1)
    if asked.schema_name == "ValuesReflected":
        quotes = {1: ("Ann", "I mend my own coats"), 2: ("Ben", "I leave my door open all night")}
        values = [
            {"value": n, "quote": q, "character": c, "reason": "shown", "reflected": "yes"}
            for n, (c, q) in quotes.items()
        ]
        return says({"values": values})
    if asked.schema_name == "SpeechesFound":
        return says({"values": [{"value": n, "reason": "", "speeches": []} for n in (1, 2)]})
    if asked.schema_name == "LeaksFound":
        return says({"leaks": []})
    quote = "slipped off both shoes" if "slipped off" in asked.prompt else "take off their shoes"
    return says({"quote": quote, "reason": "it does", "answer": "yes"})


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output, which must be JSON lines and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def verdicts(self) -> list[str]:
        return [line["judge"]["verdict"] for line in self.lines]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(agreeable, key=KEY) as running:
        yield running


class Runner:
    """Runs the command in its folder, on the server at an address; tries follow at once."""

    def __init__(self, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
        self.typed, self._patch = typed, monkeypatch
        for name in [n for n in os.environ if n.startswith("JUDGE_") and n != "JUDGE_CACHE_DIR"]:
            monkeypatch.delenv(name)
        monkeypatch.setattr("judge.run.models.Client", partial(Client, backoff=0.02))

    def __call__(
        self,
        url: str,
        *flags: str,
        records: list[dict[str, Any]] = NORMS,
        key: str = KEY,
        models: tuple[str, ...] = ("openai:m",),
    ) -> Ran:
        self._patch.setenv("OPENAI_BASE_URL", url)
        self._patch.setenv("OPENAI_API_KEY", key)
        self.typed.write("in.jsonl", records)
        chosen = [part for model in models for part in ("-m", model)]
        return Ran(*self.typed.text("validate", "in.jsonl", *chosen, *flags, "--min-words", "5"))


@pytest.fixture
def judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Runner:
    return Runner(Typed(tmp_path, monkeypatch, capfd), monkeypatch)


RELEVANCE = ("--check", "relevance")


# ---------------------------------------------------------------- the normal case


def test_norms_and_a_story_pass(server: Loopback, judge: Runner) -> None:
    ran = judge(server.url, "--summary", "s.json", records=[*NORMS, STORY])
    assert ran.code == 0, ran.err
    assert ran.verdicts == ["pass"] * (LINES + 1)
    for record, line in zip([*NORMS, STORY], ran.lines, strict=True):
        own = {key: value for key, value in line.items() if key != "judge"}
        assert own == record and list(own) == list(record)
    usage = [line["judge"]["usage"]["replies"] for line in ran.lines]
    assert sum(usage) > 0 and sum(usage) >= len(server.asked)
    assert all(call.mode == "json_schema" for call in server.calls)
    assert server.count == len(server.asked) + 1, "one probe"
    summary = json.loads(judge.typed.read("s.json"))
    assert summary["verdicts"] == {"pass": LINES + 1}
    assert summary["models"]["openai:m"]["calls"] == server.count


def test_a_second_run_makes_no_call_and_writes_the_same_bytes(
    server: Loopback, judge: Runner
) -> None:
    first = judge(server.url, records=[*NORMS, STORY])
    made = server.count
    second = judge(server.url, records=[*NORMS, STORY])
    assert (second.code, second.out) == (first.code, first.out)
    assert server.count == made
    third = judge(server.url, "--no-cache", "--concurrency", "2", records=[*NORMS, STORY])
    assert third.out == first.out and server.count == 2 * made


def test_no_more_calls_at_once_than_wanted(judge: Runner) -> None:
    def slow(asked: Asked) -> Answer:
        return says(agreeable(asked).text, delay=0.3)

    many = [NORMS[0] | {"id": f"m{n}", "story": f"{NORMS[0]['story']} ({n})"} for n in range(12)]
    with Loopback(slow, key=KEY) as server:
        ran = judge(server.url, *RELEVANCE, "--concurrency", "3", records=many)
        assert ran.code == 0, ran.err
        assert server.most_at_once == 3


# ---------------------------------------------------------------- named servers, models of steps

GROQ_KEY = "gsk-named-server-0123456789"
WRITTEN = 'Ann said, "And a coat I mend is worth two."'


def lacking(asked: Asked) -> Answer:
    """A judge to whom both values are missing until what a rewriter adds is there."""
    if asked.schema_name != "ValuesReflected" or WRITTEN in asked.prompt:
        return agreeable(asked)
    part = {"quote": None, "character": None, "reason": "not there", "reflected": "no"}
    return says({"values": [{"value": n, **part} for n in (1, 2)]})


def writing(asked: Asked) -> Answer:
    place = {"after": "I mend my own coats", "character": "Ann", "dialogue": WRITTEN}
    return says({"insertions": [{"value": n, **place} for n in (1, 2)]})


@pytest.fixture
def groq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """The server `groq` of the user's own judge.toml, with a key of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GROQ_API_KEY", GROQ_KEY)
    (tmp_path / "config" / "judge").mkdir(parents=True)
    with Loopback(writing, key=GROQ_KEY) as running:
        toml = f'[servers.groq]\nurl = "{running.url}"\nkey_env = "GROQ_API_KEY"\n'
        (tmp_path / "config" / "judge" / "judge.toml").write_text(toml)
        yield running


def test_a_rewriter_and_a_check_have_their_own_model_and_temperature(
    server: Loopback, groq: Loopback, judge: Runner, tmp_path: Path
) -> None:
    server.script = lacking
    with (tmp_path / "config" / "judge" / "judge.toml").open("a") as more:
        more.write('[model_for]\ninsertion = {model = "groq:writer", temperature = 0.25}\n')
        more.write('consistency = "openai:third"\nincorporation = {temperature = 0.5}\n')
    ran = judge(server.url, "--repair", records=[STORY])
    assert ran.code == 0, ran.err
    assert [(c.model, c.body["temperature"]) for c in groq.asked] == [("writer", 0.25)]
    checks = {check["check"]: check["votes"] for check in ran.lines[0]["judge"]["checks"]}
    assert {vote["model"] for vote in checks["consistency"]} == {"openai:third"}
    assert {vote["model"] for vote in checks["implicitness"]} == {"openai:m"}
    asked = {(vote["model"], vote["temperature"]) for vote in checks["incorporation"]}
    assert asked == {("openai:m", 0.5)}


def test_the_model_of_a_step_is_part_of_the_fingerprint_where_the_step_is_made(
    server: Loopback, groq: Loopback, judge: Runner
) -> None:
    groq.script = agreeable
    marks = []
    for flags in ((), ("relevance=groq:a",), ("relevance=groq:b",), ("leakage=groq:b",)):
        given = [word for flag in flags for word in ("--model-for", flag)]
        marks.append(judge(server.url, *RELEVANCE, *given).lines[0]["judge"]["fingerprint"])
    assert len(set(marks[:3])) == 3 and marks[3] == marks[0]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--model-for", "insertoin=openai:m"), "no such step; did you mean insertion?"),
        (("--model-for", "insertion"), "'insertion' is not STEP=PROVIDER:MODEL"),
        (("-m", "gpt-4o"), "did you mean openai:gpt-4o?"),
        (("-m", "grok:llama-3"), "did you mean groq:llama-3?"),
    ],
)
def test_a_wrong_name_brings_the_right_one(
    flags: tuple[str, str], told: str, groq: Loopback, judge: Runner
) -> None:
    ran = judge(groq.url, *flags)
    assert ran.code == 2 and told in ran.err and not groq.calls


def test_a_folder_may_not_say_which_host_gets_a_key(
    server: Loopback, groq: Loopback, judge: Runner, tmp_path: Path
) -> None:
    toml = f'[servers.groq]\nurl = "{server.url}"\nkey_env = "GROQ_API_KEY"\n'
    (tmp_path / "judge.toml").write_text(toml)
    ran = judge(server.url, *RELEVANCE, models=("groq:llama-3",))
    assert ran.code == 2 and "sets servers, which can" in ran.err
    assert not server.calls and not groq.calls

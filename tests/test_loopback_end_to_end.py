"""`judge validate` against a server on 127.0.0.1, as people type it.

Faults of servers are in tests/faults/.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from batchserver import agreeable as fine
from batchserver import guest
from cli.typed import Typed
from loopback import Answer, Asked, Loopback, says

from judge.judging.client import Client

pytestmark = pytest.mark.slow

KEY = "sk-loopback-0123456789abcdef"
NORMS: list[dict[str, Any]] = [guest(0)]
STORY = {
    "id": "s1",
    "values": ["Thrift is worth teaching--Agree", "Neighbours can be trusted--Agree"],
    "characters": ["Ann", "Ben"],
    "story": 'Ann said, "I mend my own coats." Ben laughed: "And I leave my door open all night."',
}


def agreeable(asked: Asked) -> Answer:
    """The replies of a judge that passes all records here."""
    if asked.schema_name == "ValuesReflected":
        quotes = {1: ("Ann", "I mend my own coats"), 2: ("Ben", "I leave my door open all night")}
        values = [
            {"value": n, "quote": q, "character": c, "reason": "shown", "reflected": "yes"}
            for n, (c, q) in quotes.items()
        ]
        return says({"values": values})
    if asked.schema_name == "SpeechesFound":
        return says({"values": [{"value": n, "reason": "", "speeches": []} for n in (1, 2)]})
    return fine(asked)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output, which must be JSON lines and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(agreeable, key=KEY) as running:
        yield running


class Runner:
    """Runs the command in its folder, on the server at an address; tries follow at once."""

    def __init__(self, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
        self.typed, self._patch = typed, monkeypatch
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


def test_no_more_calls_at_once_than_wanted(judge: Runner) -> None:
    def slow(asked: Asked) -> Answer:
        return says(agreeable(asked).text, delay=0.3)

    with Loopback(slow, key=KEY) as server:
        ran = judge(server.url, *RELEVANCE, "--concurrency", "3", records=[*map(guest, range(12))])
        assert ran.code == 0, ran.err
        assert 1 < server.most_at_once <= 3, "and more than one"


# ---------------------------------------------------------------- named servers, models of steps

GROQ_KEY = "gsk-named-server-0123456789"
WRITTEN = 'Ann said, "And a coat I mend is worth two."'


def lacking(asked: Asked) -> Answer:
    """The replies of a judge that misses both values until the rewriter's text is there."""
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

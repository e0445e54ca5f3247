"""`judge validate` against a server on 127.0.0.1, as people type it.

What depends on a process (its streams, its exit code, the keys in its environment, connections that
break) is a process; the rest runs in this one, without the second that a new one takes to start.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli.typed import Typed
from loopback import Answer, Asked, Loopback, chances, drops, fails, page, refuses, says, truncated

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
    summary: dict[str, Any] | None

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output, which must be JSON lines and nothing else."""
        read = [json.loads(line) for line in self.out.splitlines()]
        assert all(isinstance(line, dict) for line in read)
        return read

    @property
    def verdicts(self) -> list[str]:
        return [line["judge"]["verdict"] for line in self.lines]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(agreeable, key=KEY) as running:
        yield running


class Runner:
    """Runs the command in its folder, as a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"

    def __call__(
        self,
        url: str,
        *flags: str,
        records: list[dict[str, Any]] | str = NORMS,
        key: str = KEY,
        models: tuple[str, ...] = ("openai:m",),
    ) -> Ran:
        text = (
            records if isinstance(records, str) else "".join(json.dumps(r) + "\n" for r in records)
        )
        (self.folder / "in.jsonl").write_text(text, "utf-8")
        summary = self.folder / "summary.json"
        summary.unlink(missing_ok=True)
        own = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": key, "NO_COLOR": "1"}
        chosen = [part for model in models for part in ("-m", model)]
        places = ["--cache-dir", str(self.cache), "--summary", str(summary)]
        words = ["validate", "in.jsonl", *chosen, *flags, "--min-words", "5", *places]
        code, out, err = self.run(words, own)
        told = json.loads(summary.read_text("utf-8")) if summary.exists() else None
        return Ran(code, out, err, told)

    def run(self, words: list[str], own: dict[str, str]) -> tuple[int, str, str]:
        """The exit code and what was written, of a process with `own` in its environment."""
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("JUDGE_", "OPENAI_"))}
        done = subprocess.run(
            [sys.executable, "-m", "judge", *words],
            cwd=self.folder,
            env=kept | own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def everything(self) -> bytes:
        """All bytes of all files that the run left behind."""
        files = (file for file in self.folder.rglob("*") if file.is_file())
        return b"\n".join(file.read_bytes() for file in files)


class Here(Runner):
    """Runs the command in this process; tries follow each other at once."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
    ) -> None:
        super().__init__(folder)
        self._patch = monkeypatch
        for name in [n for n in os.environ if n.startswith(("JUDGE_", "OPENAI_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setattr("judge.run.clients.Client", partial(Client, backoff=0.02))
        self._typed = Typed(folder, monkeypatch, captured)

    def run(self, words: list[str], own: dict[str, str]) -> tuple[int, str, str]:
        for name, value in own.items():
            self._patch.setenv(name, value)
        ran = self._typed(*words)
        return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


@pytest.fixture
def process(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Runner:
    return Here(tmp_path, monkeypatch, capfd)


RELEVANCE = ("--check", "relevance")


# ---------------------------------------------------------------- the normal case


def test_norms_and_a_story_pass(server: Loopback, process: Runner) -> None:
    ran = process(server.url, records=[*NORMS, STORY])
    assert ran.code == 0, ran.err
    assert ran.verdicts == ["pass"] * (LINES + 1)
    for record, line in zip([*NORMS, STORY], ran.lines, strict=True):
        own = {key: value for key, value in line.items() if key != "judge"}
        assert own == record and list(own) == list(record)
    usage = [line["judge"]["usage"]["replies"] for line in ran.lines]
    assert sum(usage) > 0 and sum(usage) >= len(server.asked)
    assert all(call.mode == "json_schema" for call in server.calls)
    assert server.count == len(server.asked) + 1, "one probe"
    assert ran.summary is not None and ran.summary["verdicts"] == {"pass": LINES + 1}
    assert ran.summary["models"]["openai:m"]["calls"] == server.count


def test_a_second_run_makes_no_call_and_writes_the_same_bytes(
    server: Loopback, process: Runner, judge: Runner
) -> None:
    first = process(server.url, records=[*NORMS, STORY])
    made = server.count
    second = judge(server.url, records=[*NORMS, STORY])
    assert (second.code, second.out) == (first.code, first.out)
    assert server.count == made
    third = process(server.url, "--no-cache", "--concurrency", "2", records=[*NORMS, STORY])
    assert third.out == first.out and server.count == 2 * made


@pytest.mark.parametrize("known", ["tools", "json"])
def test_a_server_without_json_schemas(judge: Runner, known: str) -> None:
    with Loopback(agreeable, key=KEY, modes=frozenset({known})) as server:
        ran = judge(server.url, *RELEVANCE)
        assert (ran.code, ran.verdicts) == (0, ["pass"] * LINES), ran.err
        assert {call.mode for call in server.asked} == {known}


def test_probabilities(server: Loopback, judge: Runner) -> None:
    ran = judge(server.url, *RELEVANCE, "--reading", "probability")
    assert ran.code == 0, ran.err
    shown = [line["judge"]["checks"][0]["probability"] for line in ran.lines]
    assert shown == [pytest.approx(0.9548, abs=1e-3)] * LINES
    assert all(call.body["max_tokens"] == 1 for call in server.asked)


def test_a_panel_of_models(judge: Runner) -> None:
    def split(asked: Asked) -> Answer:
        no = says({"quote": None, "reason": "another deed", "answer": "no"})
        return no if asked.model == "sour" else agreeable(asked)

    with Loopback(split, key=KEY) as server:
        specs = ("openai:one", "openai:sour", "openai:three")
        ran = judge(server.url, *RELEVANCE, "--rounds", "0", "--all-votes", models=specs)
        assert (ran.code, ran.verdicts) == (0, ["pass"] * LINES), ran.err
        votes = ran.lines[0]["judge"]["checks"][0]["votes"]
        assert [(v["model"], v["verdict"]) for v in votes] == [
            ("openai:one", "pass"),
            ("openai:sour", "fail"),
            ("openai:three", "pass"),
        ]
        even = judge(server.url, *RELEVANCE, "--rounds", "0", "--all-votes", models=specs[:2])
        assert even.verdicts == ["abstain"] * LINES


def test_templates_and_orders_in_a_record_are_data(server: Loopback, judge: Runner) -> None:
    odd = "{{ 7*7 }} {% raw %} {0} ${x}"
    ran = judge(server.url, *RELEVANCE, records=[NORMS[0] | {"story": NORMS[0]["story"] + odd}])
    assert ran.code == 0, ran.err
    assert odd in server.asked[0].prompt and "49" not in server.asked[0].prompt


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize(("least", "code"), [("1.0", 1), ("0.5", 0)])
def test_the_gate(judge: Runner, least: str, code: int) -> None:
    def mostly(asked: Asked) -> Answer:
        if "Guest number 0" in asked.prompt:
            return says({"quote": None, "reason": "another deed", "answer": "no"})
        return agreeable(asked)

    with Loopback(mostly, key=KEY) as server:
        ran = judge(server.url, *RELEVANCE, "--rounds", "0", "--fail-under", least)
    assert (ran.code, ran.verdicts) == (code, ["fail", "pass", "pass", "pass"]), ran.err


@pytest.mark.parametrize(
    ("flags", "key", "models"),
    [
        (("--check", "nonsense"), KEY, ("openai:m",)),
        ((), KEY, ("nobody:m",)),
        ((), KEY, ("openai",)),
        (("--votes", "0"), KEY, ("openai:m",)),
        ((), "bad…key", ("openai:m",)),
        (("--max-cost", "1"), KEY, ("openai:m",)),
    ],
)
def test_bad_usage(
    server: Loopback, judge: Runner, flags: tuple[str, ...], key: str, models: tuple[str, ...]
) -> None:
    ran = judge(server.url, *flags, key=key, models=models)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err and "Traceback" not in ran.err
    assert not server.asked


def test_a_server_that_gives_no_json_is_bad_usage(judge: Runner) -> None:
    with Loopback(lambda asked: says("Sure!"), key=KEY, scripted_probe=True) as server:
        ran = judge(server.url)
        assert (ran.code, ran.out, server.count) == (2, "", 3)
    assert "openai:m gave no valid JSON in any mode" in ran.err
    assert 'replied \'Sure!\', not {"ready": "yes"}' in ran.err


@pytest.mark.parametrize(
    ("answer", "verdict", "told", "calls"),
    [
        (truncated(), "unreadable", "truncated", 1),
        (refuses("I will not."), "unreadable", "refused: I will not.", 1),
        (Answer("x", finish_reason="content_filter"), "unreadable", "refused", 1),
        (says("not json"), "unreadable", "invalid", 3),
        (says({"quote": "made up", "reason": "", "answer": "yes"}), "unreadable", "invalid", 3),
        (fails(400, "no such parameter"), "error", "bad-request: HTTP 400", 1),
        (fails(400, "maximum context length is 9"), "error", "context-exceeded", 1),
    ],
    ids=["length", "refusal", "filter", "no json", "false quote", "400", "context"],
)
def test_records_without_a_verdict(
    judge: Runner, answer: Answer, verdict: str, told: str, calls: int
) -> None:
    def script(asked: Asked) -> Answer:
        return answer if "Guest number 1" in asked.prompt else agreeable(asked)

    with Loopback(script, key=KEY) as server:
        ran = judge(server.url, *RELEVANCE)
        assert ran.code == 3, ran.err
        assert ran.verdicts == ["pass", verdict, "pass", "pass"]
        shown = json.dumps(ran.lines[1]["judge"])
        assert told in shown
        spent = ran.lines[1]["judge"]["usage"]["replies"]
        assert spent == (0 if verdict == "error" else calls)
        assert len(server.asked) == LINES - 1 + calls


def test_a_bad_line_is_an_error_line(server: Loopback, judge: Runner) -> None:
    text = json.dumps(NORMS[0]) + "\n{broken\n" + json.dumps(NORMS[1]) + "\n"
    ran = judge(server.url, *RELEVANCE, records=text)
    assert (ran.code, ran.verdicts) == (3, ["pass", "error", "pass"])
    assert ran.lines[1]["judge"]["error"]["line"] == 2


def test_a_wrong_key_ends_the_run_before_the_first_record(
    server: Loopback, process: Runner
) -> None:
    wrong = "sk-wrong-0123456789abcdef"
    ran = process(server.url, key=wrong)
    assert (ran.code, ran.out) == (4, "")
    assert "refuses the key" in ran.err and server.count == 1
    assert wrong not in ran.err and wrong.encode() not in process.everything()


def test_a_model_that_is_not_there(judge: Runner) -> None:
    with Loopback(agreeable, models=frozenset({"other"})) as server:
        ran = judge(server.url)
        assert (ran.code, ran.out, server.count) == (4, "", 1)
    assert "no such model" in ran.err


def test_nobody_listens(process: Runner) -> None:
    with socket.socket() as free:
        # Bound until the end, or somebody else could listen there by then.
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        ran = process(f"http://127.0.0.1:{port}/v1")
    assert (ran.code, ran.out) == (4, "")
    assert str(port) in ran.err and "Traceback" not in ran.err


def test_a_web_page_where_the_server_should_be(judge: Runner) -> None:
    with Loopback(lambda asked: page(), scripted_probe=True) as server:
        ran = judge(server.url)
    assert (ran.code, ran.out) == (4, "")
    assert "no chat completion" in ran.err


def test_a_key_that_is_withdrawn_in_the_middle(process: Runner) -> None:
    def script(asked: Asked) -> Answer:
        return fails(401) if "Guest number 2" in asked.prompt else agreeable(asked)

    with Loopback(script) as server:
        ran = process(server.url, *RELEVANCE, "--concurrency", "1", "-o", "out.jsonl")
        assert ran.code == 4
        kept = (process.folder / "out.jsonl").read_text("utf-8").splitlines()
        assert [json.loads(line)["id"] for line in kept][:2] == ["n0", "n1"]
        assert "--resume" in ran.err
        server.script = agreeable
        again = process(server.url, *RELEVANCE, "-o", "out.jsonl", "--resume")
        assert again.code == 0, again.err
    done = (process.folder / "out.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in done] == ["n0", "n1", "n2", "n3"]


# ---------------------------------------------------------------- faults that pass


@pytest.mark.parametrize(
    "fault",
    [fails(429, retry_after="0"), fails(429), fails(503), drops()],
    ids=["429", "429 in ms", "503", "dropped"],
)
def test_passing_faults_are_retried(judge: Runner, fault: Answer) -> None:
    failed: list[Asked] = []

    def script(asked: Asked) -> Answer:
        if len(failed) < 2:
            failed.append(asked)
            return fault
        return agreeable(asked)

    with Loopback(script, key=KEY) as server:
        ran = judge(server.url, *RELEVANCE)
        assert (ran.code, ran.verdicts) == (0, ["pass"] * LINES), ran.err
        assert len(server.asked) == LINES + 2
    assert ran.summary is not None and ran.summary["models"]["openai:m"]["retries"] == 2
    assert ran.lines[0]["judge"]["usage"]["replies"] == 1


def test_a_call_that_hangs_is_given_up_and_made_again(judge: Runner) -> None:
    seen: list[str] = []

    def script(asked: Asked) -> Answer:
        seen.append(asked.prompt)
        slow = "Guest number 0" in asked.prompt and seen.count(asked.prompt) == 1
        return says("{}", delay=30) if slow else agreeable(asked)

    with Loopback(script, key=KEY) as server:
        ran = judge(server.url, *RELEVANCE, "--timeout", "1")
    assert (ran.code, ran.verdicts) == (0, ["pass"] * LINES), ran.err


def test_no_more_calls_at_once_than_wanted(judge: Runner) -> None:
    def slow(asked: Asked) -> Answer:
        return says(agreeable(asked).text, delay=0.3)

    many = [NORMS[0] | {"id": f"m{n}", "story": f"{NORMS[0]['story']} ({n})"} for n in range(12)]
    with Loopback(slow, key=KEY) as server:
        ran = judge(server.url, *RELEVANCE, "--concurrency", "3", records=many)
        assert ran.code == 0, ran.err
        assert server.most_at_once == 3


@pytest.mark.parametrize("most", [0, 3])
def test_a_budget_of_calls(server: Loopback, judge: Runner, most: int) -> None:
    ran = judge(server.url, *RELEVANCE, "--max-calls", str(most))
    assert server.count == most
    assert "--max-calls" in ran.err
    assert ran.code == 4 and ran.verdicts == ["pass"] * max(0, most - 1), "the probe is a call"
    full = judge(server.url, *RELEVANCE)
    assert (full.code, server.count) == (0, 1 + LINES), "what was paid for is kept"


# ---------------------------------------------------------------- secrets


def test_no_secret_is_left_anywhere(judge: Runner) -> None:
    def loud(asked: Asked) -> Answer:
        """Repeats the key in every error, as debugging proxies do."""
        said = f"debug: {asked.headers['Authorization']} {KEY}"
        faults = [fails(400, said), fails(500, said), fails(422, KEY), fails(413, f"?key={KEY}")]
        turn = next((n for n in range(LINES) if f"Guest number {n}" in asked.prompt), 0)
        return agreeable(asked) if asked.probe else faults[turn]

    with Loopback(loud) as server:
        address = server.url.replace("//", "//ann:hunter2pass@")
        ran = judge(address, *RELEVANCE, "-o", "out.jsonl")
    assert ran.code == 3, ran.err
    left = judge.everything() + (ran.out + ran.err).encode()
    assert b"HTTP 400" in left and b"HTTP 500" in left
    for secret in (KEY, "hunter2pass", b64encode(b"ann:hunter2pass").decode()):
        assert secret.encode() not in left
    assert b"Basic [secret]" in left, "the server did repeat what it was sent"

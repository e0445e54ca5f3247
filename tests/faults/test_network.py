"""`judge validate` against servers that misbehave: the outcome of each fault."""

from __future__ import annotations

import functools
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.typed import Typed
from loopback import Answer, Asked, refuses, says, truncated

from judge.judging import limits
from judge.judging.client import Client

from . import server as does
from .conftest import Outcome
from .server import Deed, Misbehaving, about, after, always, for_seconds, good

TABLE = "network"
_PORT = re.compile(r"https?://[\w.]+:\d+")
KEY = "sk-faults-0123456789"
_LIBRARIES = re.compile(
    r"(the connection was lost|not a chat completion(?!: it lacks)|Invalid JSON): .*"
)
ASKED = ("-m", "openai:m", "--check", "relevance")
BAD, PASSING = "Guest number 1 ", "Guest number 2 "
PATIENCE = limits.MAX_OUTAGE
SHORT = 0.5
"""Seconds until a call is given up, where a fault is one of time."""


def agreeable(asked: Asked) -> Answer:
    """The verdict that all records here should get."""
    return says({"quote": "slipped off both shoes", "reason": "it does", "answer": "yes"})


def usage_in_words(made: dict[str, Any]) -> None:
    made["usage"] = "many"


GOOD = good(agreeable)
TIMED: dict[str, Deed] = {
    "a call that is never answered": does.silent,
    "stall in mid-body": does.stall,
}
FROM_START: dict[str, Deed] = {
    "connection closed without an answer": does.sends(b""),
    "connection reset in the body": does.reset_in_body,
    "a body without end": does.endless,
    "a body shorter than its length": does.truncated_body(agreeable),
    "HTTP 503": does.status(503),
    "HTTP 429": does.status(429),
    "HTTP 429, Retry-After 1e9": does.status(429, Retry_After="1e9"),
    "HTTP 429, Retry-After 3600": does.status(429, Retry_After="3600"),
    "HTTP 400": does.status(400),
    "HTTP 401": does.status(401),
    "HTTP 404": does.status(404),
    "HTTP 301 to another host": does.status(301, Location="https://elsewhere.invalid/v1?key=abc"),
}
FAULTS: dict[str, Deed] = {
    **TIMED,
    **FROM_START,
    "a web page": does.body(b"<html>It works!</html>", content_type="text/html"),
    "1 GB in 1 MB of gzip": does.bomb(),
    "an error under HTTP 200": does.told({"error": {"message": "no room", "code": 502}}),
    "a model that never stops (length)": does.completes(truncated()),
    "refusal": does.completes(refuses("I will not.")),
    "text without JSON": does.completes(says("Sure!")),
    "a reply 100,000 deep": does.completes(says("[" * 100_000)),
    "token counts that are text": does.completes(agreeable(Asked(0, {}, {})), usage_in_words),
}


def norms(count: int) -> list[dict[str, str]]:
    return [
        {
            "id": f"n{number}",
            "rule_of_thumb": "Take off your shoes before you enter a home.",
            "story": f"Guest number {number} stopped there and slipped off both shoes.",
            "label": "yes",
        }
        for number in range(count)
    ]


@dataclass(frozen=True)
class Ran:
    """The results of a run: its exit code, OUT's lines and its messages."""

    code: int
    lines: list[dict[str, Any]]
    told: str

    def judgement(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = next(line["judge"] for line in self.lines if line["id"] == id)
        return found

    @property
    def verdicts(self) -> list[str]:
        return [line["judge"]["verdict"] for line in self.lines]

    @property
    def complaint(self) -> str:
        """The line that says why the run ended."""
        return next(line for line in self.told.splitlines() if line.startswith("judge: "))[7:]


class Command:
    """`judge validate` in this process, with waits between tries shortened a hundredfold."""

    def __init__(self, typed: Typed, patch: pytest.MonkeyPatch) -> None:
        self._typed, self._patch = typed, patch
        self.folder = typed.folder
        self.quick(60)
        patch.setenv("OPENAI_API_KEY", KEY)
        typed.write("in.jsonl", norms(4))

    def quick(self, longest_outage: float) -> None:
        self._patch.setattr("judge.run.models.Client", functools.partial(Client, backoff=0.005))
        self._patch.setattr(limits, "MAX_OUTAGE", longest_outage)

    def records(self, count: int) -> None:
        self._typed.write("in.jsonl", norms(count))

    def __call__(self, url: str, *flags: str, out: str = "out.jsonl") -> Ran:
        self._patch.setenv("OPENAI_BASE_URL", url)
        done = self._typed("validate", "in.jsonl", *ASKED, "-o", out, *flags)
        told = done.stderr.decode().replace(url.removesuffix("/v1"), "SERVER")
        assert not done.stdout and "Traceback" not in told and KEY not in told
        path = self.folder / out
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return Ran(done.returncode, [json.loads(line) for line in lines], told)


@pytest.fixture
def judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    return Command(Typed(tmp_path, monkeypatch, capfd), monkeypatch)


@pytest.fixture
def server() -> Iterator[Misbehaving]:
    with Misbehaving(always(GOOD)) as running:
        yield running


# ---------------------------------------------------------------- every fault


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, judge: Command, server: Misbehaving, outcome: Outcome) -> None:
    """Of four records, one has the fault for good, one twice."""
    deed, timeout = FAULTS[fault], str(SHORT if fault in TIMED else 60)
    twice = about({PASSING: deed}, GOOD, times=2)
    lasting = about({BAD: deed}, GOOD)
    server.schedule = lambda asked: (lasting if BAD in asked.prompt else twice)(asked)
    first = judge(server.url, "--timeout", timeout)
    seen = _of_one(first)
    assert server.count <= 30
    server.schedule = always(GOOD)
    again = judge(server.url, "--resume")
    assert [line["id"] for line in again.lines] == ["n0", "n1", "n2", "n3"]
    assert set(again.verdicts) <= {"pass", "unreadable"}
    assert all(line in again.lines for line in first.lines if _stands(line))
    if fault in FROM_START:
        server.schedule = always(deed)
        whole = judge(server.url, "--no-cache", "--timeout", timeout, out="b.jsonl")
        assert (whole.code in (2, 4)) and not whole.lines
        seen += f". From the start: exit {whole.code}: {_shown(whole.complaint)}"
    outcome(TABLE, fault, seen)


def _stands(line: dict[str, Any]) -> bool:
    return line["judge"]["verdict"] in ("pass", "fail", "abstain")


def _of_one(ran: Ran) -> str:
    """What came of a fault about one record, and about another only twice."""
    if ran.code == 4:
        assert "--resume" in ran.told and set(ran.verdicts) <= {"pass"}
        return f"exit 4, all others resumed: {_shown(ran.complaint)}"
    assert [line["id"] for line in ran.lines] == ["n0", "n1", "n2", "n3"]
    bad, passing = ran.judgement("n1")["verdict"], ran.judgement("n2")["verdict"]
    assert (ran.verdicts[0], ran.verdicts[3]) == ("pass", "pass"), "a neighbour of bad records"
    if bad == "pass":
        assert ran.code == 0 and passing == "pass"
        return "pass"
    assert ran.code == 3
    reason = ran.judgement("n1")["checks"][0]["votes"][0]["reason"]
    kind, _, message = _PORT.sub("SERVER", reason).partition(": ")
    # Long lines of the summary are wrapped.
    told, summary = f"{kind}: {message[:60].rstrip()}", " ".join(ran.told.split())
    assert f"n1 relevance: {' '.join(told.split())}" in summary, "the summary says what happened"
    advised = "the same command with --resume asks once more" in ran.told
    unread = bad == "unreadable" and kind != "refused"
    assert advised == (unread or kind in ("server-fault", "rate-limited"))
    return f"lasting: `{bad}` ({_shown(reason)}), exit 3; twice: `{passing}`"


def _shown(message: str) -> str:
    """A message without what libraries say in it, which changes with their versions."""
    told = _PORT.sub("SERVER", message.removeprefix("the model cannot be used: "))
    told = _LIBRARIES.sub(r"\1", told.replace("|", "/"))
    return told if len(told) <= 160 else told[:160].rstrip() + " ..."


# ---------------------------------------------------------------- no way to the server


def test_nobody_listens(judge: Command, outcome: Outcome) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ran = judge(f"http://127.0.0.1:{free.getsockname()[1]}/v1")
    assert (ran.code, ran.lines) == (4, [])
    outcome(TABLE, "connection refused", f"exit 4 at once: {_shown(ran.complaint)}")


# ---------------------------------------------------------------- in the middle of a run


def test_a_server_that_comes_back(judge: Command, server: Misbehaving, outcome: Outcome) -> None:
    judge.records(12)
    away = server.goes_away(0.5)
    server.schedule = lambda asked: away if asked.number == 7 else GOOD
    ran = judge(server.url, "--concurrency", "4")
    assert (ran.code, ran.verdicts) == (0, ["pass"] * 12), ran.told
    outcome(TABLE, "server away for a while, in the middle", "waited for; all pass")


def test_a_server_that_does_not_come_back(
    judge: Command, server: Misbehaving, outcome: Outcome
) -> None:
    judge.quick(0.5)
    judge.records(40)
    server.schedule = after(10, server.goes_away(), GOOD)
    ran = judge(server.url, "--concurrency", "4")
    assert ran.code == 4 and set(ran.verdicts) == {"pass"} and len(ran.lines) >= 5
    assert "no call was answered for" in ran.told and "--resume continues" in ran.told
    told = f"exit 4 after {PATIENCE:g} s without an answer; what was judged is kept"
    outcome(TABLE, "server away for good, in the middle", told)


# ---------------------------------------------------------------- storms


@pytest.mark.slow
def test_a_storm_that_outlasts_all_tries(
    judge: Command, server: Misbehaving, outcome: Outcome
) -> None:
    """Six tries take 0.2 s here, the storm 1.5 s."""
    judge.records(40)
    server.schedule = for_seconds(1.5, does.status(429), GOOD, after=9)
    ran = judge(server.url, "--concurrency", "8")
    assert (ran.code, ran.verdicts) == (0, ["pass"] * 40), ran.told
    outcome(TABLE, "a storm of HTTP 429 without Retry-After, longer than six tries", "all pass")

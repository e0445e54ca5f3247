"""`judge validate` against servers that misbehave: what comes of each fault."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.typed import Typed

from judge.judging import limits
from judge.judging.client import Client
from judge.judging.limits import pause

from . import page
from . import server as does
from .declared import FAULTS, Fault, agreeable
from .server import Exchange, Misbehaving, about, after, always, for_seconds, good
from .test_input import MEASURED

TABLE = "network"
_PORT = re.compile(r"https?://[\w.]+:\d+")
GOOD = good(agreeable)
KEY = "sk-faults-0123456789"
_LIBRARIES = re.compile(
    r"(the connection was lost|no chat completion(?!: it lacks)|Invalid JSON): .*"
)
ASKED = ("-m", "openai:m", "--check", "relevance", "--rounds", "0")
BAD, PASSING = "Guest number 1 ", "Guest number 2 "
PATIENCE = limits.LONGEST_OUTAGE
LASTING = "server away for good, in the middle"
SPECIAL = (
    "connection refused",
    "a host name that does not exist",
    "a certificate that nobody signed",
    "a certificate for another host",
    "a certificate that has expired",
    "server away for a while, in the middle",
    LASTING,
    "HTTP 503 for good, in the middle",
    "a key that expires in the middle",
    "a storm of HTTP 429 without Retry-After, longer than six tries",
    "a storm of HTTP 429, 3 s long, 32 calls at once",
    "1 GB in 1 MB of gzip and endless bodies, 16 calls at once",
)


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
    """What a run left: its exit code, OUT's lines, what it told."""

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
    """`judge validate` in this process, which waits between tries a hundredth of what it should."""

    def __init__(self, typed: Typed, patch: pytest.MonkeyPatch) -> None:
        self._typed, self._patch = typed, patch
        self.folder = typed.folder
        self.quick(60)
        patch.setenv("OPENAI_API_KEY", KEY)
        typed.write("in.jsonl", norms(4))

    def quick(self, longest_outage: float) -> None:
        self._patch.setattr("judge.run.clients.Client", functools.partial(Client, backoff=0.005))
        self._patch.setattr(limits, "LONGEST_OUTAGE", longest_outage)

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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault(fault: Fault, judge: Command, server: Misbehaving, outcome: page.Outcome) -> None:
    """Of four records, one has the fault for good, one twice."""
    twice = about({PASSING: fault.deed}, GOOD, times=2)
    lasting = about({BAD: fault.deed}, GOOD)
    server.schedule = lambda asked: (lasting if BAD in asked.prompt else twice)(asked)
    first = judge(server.url, "--timeout", str(fault.timeout))
    seen = _of_one(first)
    assert server.count <= 30
    server.schedule = always(GOOD)
    again = judge(server.url, "--resume")
    assert [line["id"] for line in again.lines] == ["n0", "n1", "n2", "n3"]
    assert set(again.verdicts) <= {"pass", "unreadable"}
    assert all(line in again.lines for line in first.lines if _stands(line))
    if fault.from_start:
        server.schedule = always(fault.deed)
        whole = judge(server.url, "--no-cache", "--timeout", str(fault.timeout), out="b.jsonl")
        assert (whole.code in (2, 4)) and not whole.lines
        seen += f". From the start: exit {whole.code}: {_shown(whole.complaint)}"
    outcome(TABLE, fault.name, seen)


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
    told, summary = f" x {kind}: {message[:60].rstrip()}", " ".join(ran.told.split())
    assert " ".join(told.split()) in summary, "the summary says what happened"
    advised = "the same command with --resume asks once more" in ran.told
    assert advised == (kind in ("server-fault", "rate-limited"))
    return f"lasting: `{bad}` ({_shown(reason)}), exit 3; twice: `{passing}`"


def _shown(message: str) -> str:
    """A message without what libraries say in it, which changes with their versions."""
    told = _PORT.sub("SERVER", message.removeprefix("the model cannot be used: "))
    told = _LIBRARIES.sub(r"\1", told.replace("|", "/"))
    return told if len(told) <= 160 else told[:160].rstrip() + " ..."


# ---------------------------------------------------------------- no way to the server


def test_nobody_listens(judge: Command, outcome: page.Outcome) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ran = judge(f"http://127.0.0.1:{free.getsockname()[1]}/v1")
    assert (ran.code, ran.lines) == (4, [])
    outcome(TABLE, "connection refused", f"exit 4 at once: {_shown(ran.complaint)}")


def test_a_host_without_an_address(judge: Command, outcome: page.Outcome) -> None:
    ran = judge("http://models.invalid/v1")
    assert (ran.code, ran.lines) == (4, [])
    assert "http://models.invalid/v1: " in ran.complaint or "SERVER" in ran.complaint
    outcome(TABLE, "a host name that does not exist", "exit 4 at once, and the host is named")


CERTIFICATES = {
    "a certificate that nobody signed": ("127.0.0.1", 1, False),
    "a certificate for another host": ("192.0.2.1", 1, True),
    "a certificate that has expired": ("127.0.0.1", -1, True),
}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_that_fails(
    name: str, judge: Command, monkeypatch: pytest.MonkeyPatch, outcome: page.Outcome
) -> None:
    address, days, trusted = CERTIFICATES[name]
    tls = certificate(judge.folder, address, days)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(judge.folder / "cert.pem"))
    with Misbehaving(always(GOOD), tls=tls) as server:
        ran = judge(server.url)
        assert (ran.code, ran.lines, server.count) == (4, [], 0), "nothing is sent"
    assert "certificate" in ran.complaint.lower()
    outcome(TABLE, name, "exit 4 at once, nothing sent; the certificate is named")


def certificate(folder: Path, address: str, days: int) -> ssl.SSLContext:
    """A server's certificate that signs itself, in cert.pem; it runs out in so many days."""
    key, made = str(folder / "key.pem"), str(folder / "cert.pem")
    name = ["-subj", f"/CN={address}", "-addext", f"subjectAltName=IP:{address}"]
    ask = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", made]
    dated = ["openssl", "x509", "-in", made, "-signkey", key, "-days", str(days), "-out", made]
    for command in ([*ask, *name], dated):
        subprocess.run(command, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made, key)
    return tls


# ---------------------------------------------------------------- in the middle of a run


def test_a_server_that_comes_back(
    judge: Command, server: Misbehaving, outcome: page.Outcome
) -> None:
    judge.records(12)
    server.schedule = does.nth({7: server.goes_away(0.5)}, GOOD)
    ran = judge(server.url, "--concurrency", "4")
    assert (ran.code, ran.verdicts) == (0, ["pass"] * 12), ran.told
    outcome(TABLE, "server away for a while, in the middle", "waited for; all pass")


@pytest.mark.parametrize("name", [LASTING, "HTTP 503 for good, in the middle"])
def test_a_server_that_does_not_come_back(name: str, judge: Command, outcome: page.Outcome) -> None:
    judge.quick(0.5)
    judge.records(40)
    with Misbehaving(always(GOOD)) as server:
        gone = server.goes_away() if name == LASTING else does.status(503)
        server.schedule = after(10, gone, GOOD)
        ran = judge(server.url, "--concurrency", "4")
    assert ran.code == 4 and set(ran.verdicts) == {"pass"} and len(ran.lines) >= 5
    assert "no call was answered for" in ran.told and "--resume goes on" in ran.told
    outcome(TABLE, name, f"exit 4 after {PATIENCE:g} s without an answer; what was judged is kept")


def test_a_key_that_expires(judge: Command, server: Misbehaving, outcome: page.Outcome) -> None:
    judge.records(20)
    server.schedule = after(8, does.status(401, "expired"), GOOD)
    ran = judge(server.url, "--concurrency", "2")
    done = len(ran.lines)
    assert ran.code == 4 and set(ran.verdicts) == {"pass"} and done >= 5
    assert "refuses the key" in ran.complaint and server.count <= 12, "it is not asked in vain"
    server.schedule = always(GOOD)
    before = server.count
    again = judge(server.url, "--resume")
    assert (again.code, again.verdicts) == (0, ["pass"] * 20)
    assert server.count - before <= 20 - done
    told = f"exit 4: {_shown(ran.complaint)}; --resume asks for the others alone"
    outcome(TABLE, "a key that expires in the middle", told)


# ---------------------------------------------------------------- storms


def test_a_storm_that_outlasts_all_tries(
    judge: Command, server: Misbehaving, outcome: page.Outcome
) -> None:
    """Six tries take 0.2 s here, the storm 1.5 s."""
    judge.records(40)
    server.schedule = for_seconds(1.5, does.status(429), GOOD, after=9)
    ran = judge(server.url, "--concurrency", "8")
    assert (ran.code, ran.verdicts) == (0, ["pass"] * 40), ran.told
    outcome(TABLE, "a storm of HTTP 429 without Retry-After, longer than six tries", "all pass")


@pytest.mark.slow
def test_a_storm_is_left_soon(
    judge: Command, server: Misbehaving, monkeypatch: pytest.MonkeyPatch, outcome: page.Outcome
) -> None:
    """With the pauses between tries as they are. What makes it soon is counted, not timed."""
    monkeypatch.setattr("judge.run.clients.Client", Client)
    pauses: list[float] = []

    def noted(backoff: float, before: int) -> float:
        pauses.append(pause(backoff, before))
        return pauses[-1]

    for place in ("judge.judging.calls.pause", "judge.judging.limits.pause"):
        monkeypatch.setattr(place, noted)
    judge.records(300)
    # So long that a client which is slow itself has made all the calls that it may by then.
    slow = good(lambda asked: does.delayed(agreeable(asked), 0.3))
    at_once: list[int] = []
    under_way = 0

    async def counted(exchange: Exchange) -> None:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        try:
            await (slow if len(at_once) <= 80 else GOOD)(exchange)
        finally:
            under_way -= 1

    server.schedule = for_seconds(3.0, does.status(429), counted)
    ran = judge(server.url, "--concurrency", "32")
    assert (ran.code, ran.verdicts) == (0, ["pass"] * 300), ran.told
    assert pauses and max(pauses) <= limits.LONGEST_PAUSE
    # One more for each success: 16 after 15 of them. At one more a round it would be 12 after 80.
    assert max(at_once[:80]) >= 16
    outcome(
        TABLE, "a storm of HTTP 429, 3 s long, 32 calls at once", "all pass, soon after its end"
    )


# ---------------------------------------------------------------- memory


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's peak memory in KB")
def test_long_answers_take_bounded_memory(
    judge: Command, server: Misbehaving, outcome: page.Outcome
) -> None:
    """In a process of its own; answers of 1 GB and without end, 16 at once."""
    judge.records(16)
    turns = [does.bomb(), does.endless()]
    server.schedule = lambda asked: GOOD if asked.probe else turns[asked.number % 2]
    env = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
    driver = f"import judge.judging.calls as c; c.MAX_TRIES = 1\n{MEASURED}"
    ended = subprocess.run(
        [sys.executable, "-c", driver, "validate", "in.jsonl", *ASKED, "-o", "out.jsonl", "-q"],
        cwd=judge.folder,
        env={**env, "JUDGE_CACHE_DIR": str(judge.folder / "cache")},
        stderr=subprocess.PIPE,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 3 and b"Traceback" not in ended.stderr, ended.stderr
    peak = int((judge.folder / "peak").read_text())
    lines = (judge.folder / "out.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["judge"]["verdict"] for line in lines] == ["error"] * 16
    assert peak < 16 * 2 * 16 * 1024 + 400 * 1024
    name = "1 GB in 1 MB of gzip and endless bodies, 16 calls at once"
    outcome(TABLE, name, "each `error` after 16 MB; memory stays under 0.9 GB, exit 3")


def test_the_page_holds_just_the_faults_that_are_tried(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-reliability"):
        pytest.skip("the page is being written")
    tried = [fault.name for fault in FAULTS]
    assert len(set(tried)) == len(tried)
    assert set(page.rows(TABLE)) == {*tried, *SPECIAL}

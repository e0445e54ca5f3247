"""Decision models as people type them: alone, in panels and cascades, with labels and profiles."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from decisionserver import DecisionServer, spoilt
from loopback import Loopback, says

from .typed import Typed

MAILS = [
    {"id": f"m{n}", "mail": f"{'Thank you' if n % 2 else 'Send it'}, number {n}."} for n in range(6)
]
ASK = ("--ask", "Is the mail polite?", "--on", "mail")
RUN = ("validate", "in.jsonl", "-m", "systemone:made-1", *ASK)
RELEVANCE = {
    "mail": "M",
    "rule_of_thumb": "Greet guests.",
    "story": "A guest came. Ann greeted him.",
}


def polite(state: Mapping[str, Any], question: Mapping[str, Any]) -> Any:
    return 0.9 if "Thank you" in json.dumps(state) else 0.2


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("in.jsonl", MAILS)
    return made


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[DecisionServer]:
    with DecisionServer(polite, model="made-1.0") as running:
        monkeypatch.setenv("SYSTEMONE_BASE_URL", running.url)
        yield running


def votes(out: str | bytes) -> list[list[dict[str, Any]]]:
    found = [json.loads(line)["judge"]["checks"] for line in out.splitlines()]
    return [vote for checks in found for vote in [checks[0]["votes"]]]


def verdicts(out: str) -> list[str]:
    return [json.loads(line)["judge"]["verdict"] for line in out.splitlines()]


# ---------------------------------------------------------------- runs


def test_a_run_notes_who_answered_resumes_and_repeats_itself(
    judge: Typed, server: DecisionServer
) -> None:
    code, _, told = judge.text(*RUN, "-o", "o.jsonl")
    assert code == 0 and "this kind of model gives no reason" in told
    whole = judge.read("o.jsonl")
    assert verdicts(whole.decode()) == ["fail", "pass"] * 3
    assert {tuple(vote[0]["answered_by"]) for vote in votes(whole)} == {("made-1.0",)}
    assert server.asked[0].body["questions"] == {
        "question": {"type": "noul", "instructions": "Is the mail polite?"}
    }, "no record text"
    count = len(server.asked)
    (judge.folder / "o.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    assert judge.text(*RUN, "-o", "o.jsonl", "--resume")[0] == 0
    assert (judge.read("o.jsonl"), len(server.asked)) == (whole, count), "by the cache"
    assert judge.text(*RUN, "-o", "p.jsonl", "--no-cache")[0] == 0
    assert judge.read("p.jsonl") == whole, "the same bytes"


def test_another_model_says_why_and_decides_nothing(
    judge: Typed, server: DecisionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked about fails alone; where it does not find them, there is no reason."""
    rude = {"answer": "no", "quote": "Send it", "reason": "It commands."}
    replies = [
        {"when": {"id": "m2"}, "reply": {"answer": "yes", "quote": "Send it", "reason": "Fine."}},
        {"when": {"id": "m4"}, "reply": {**rude, "quote": "Away with you"}},
        {"reply": rude},
    ]
    judge.write("why.yaml", [], json.dumps({"replies": replies}))
    explain = ("--explain-with", "scripted:why.yaml")
    code, out, told = judge.text(*RUN, *explain, "--summary", "sums.json")
    assert code == 0, told
    lines = [json.loads(line)["judge"] for line in out.splitlines()]
    assert [line["verdict"] for line in lines] == ["fail", "pass"] * 3
    assert lines[0]["reason"] == 'question: fail: "Send it" (It commands.)'
    assert all("gives no reason" in lines[place]["reason"] for place in (2, 4))
    parts = [[vote.get("part") for vote in of_record] for of_record in votes(out)]
    assert parts == [[None, "explanation"], [None]] * 3
    assert "the judge's quote is not in the text" in votes(out)[4][1]["reason"]
    assert lines[0]["usage"]["replies"] == 2 and lines[1]["usage"]["replies"] == 1
    assert "panels" not in json.loads(judge.read("sums.json")), "no second judge"
    judge.write("why.yaml", [], json.dumps({"replies": [{"reply": {**rude, "quote": None}}]}))
    _, unquoted, _ = judge.text(*RUN, *explain)
    reasons = [json.loads(line)["judge"].get("reason") for line in unquoted.splitlines()]
    assert reasons == ["question: fail: It commands.", None] * 3
    with Loopback(lambda asked: says(json.dumps(rude))) as writer:  # It gives no log-probabilities.
        monkeypatch.setenv("OPENAI_BASE_URL", writer.url)
        words = ("--method", "logprobs", "--explain-with", "openai:w")
        code, again, told = judge.text(*RUN, *words)
    assert code == 0 and verdicts(again) == verdicts(out), told
    code, _, told = judge.text(*RUN, "--explain-with", "systemone:other")
    assert code == 2 and "--explain-with" in told and "writes" in told
    _, plan, _ = judge.text("plan", *RUN[1:], *explain)
    plan = " ".join(plan.split())
    assert "least: 6 calls" in plan and "most: 12 calls" in plan, plan


@pytest.mark.parametrize("answers", [0, 1])
def test_a_model_that_explains_nothing_is_named_once(
    judge: Typed, server: DecisionServer, answers: int
) -> None:
    """As a cheap model that never answers is: the verdicts do not show it."""
    rude = {"when": {"id": "m2"}, "reply": {"answer": "no", "quote": None, "reason": "Commands."}}
    why = judge.script("why.yaml", [*[rude] * answers, {"error": "bad-request"}])
    code, _, told = judge.text(*RUN, "--explain-with", why, "-o", "o.jsonl")
    lost = f"judge: --explain-with {why}: bad-request: scripted bad-request (3 of 3 votes lost; "
    assert (code, told.count(lost), told.count("votes lost")) == (0, 1 - answers, 1 - answers), told


def test_a_named_server_speaks_what_its_table_says(judge: Typed, server: DecisionServer) -> None:
    url = f"[servers.own]\nurl = {json.dumps(server.url)}\n"
    for protocol in ("systemone", "decisions"):
        (judge.folder / "judge.toml").write_text(f'{url}protocol = "{protocol}"\n')
        words = ("validate", "in.jsonl", "-m", "own:m", *ASK, "--trust-config")
        code, out, told = judge.text(*words)
        assert code == 0 and verdicts(out) == ["fail", "pass"] * 3, told
    assert isinstance(server.asked[-1].body["questions"], list)
    for line in ('omit = ["seed"]', 'mode = "json"'):  # Parts of a chat request.
        text = f'{url}protocol = "systemone"\n{line}\n'
        (judge.folder / "judge.toml").write_text(text)
        code, _, told = judge.text(*words)
        assert code == 2 and f"{line.split()[0]}: only for protocol openai" in told, told


@pytest.mark.parametrize("protocol", ["systemone", "decisions"])
def test_the_cost_is_of_the_tokens_that_the_server_counts(
    judge: Typed, server: DecisionServer, protocol: str
) -> None:
    """The question is sent without the prompt for a language model, which is longer."""
    failed: set[str] = set()

    def counts(reply: dict[str, Any]) -> dict[str, Any]:
        billed = {"usage": {"input_tokens": 20, "output_tokens": 0}}
        asked = json.dumps(server.asked[-1].body)
        if asked not in failed:
            failed.add(asked)
            return {"error": {"message": "overloaded", "code": 529}, **billed}
        return {**reply, **billed}

    server.fault = counts
    (judge.folder / "judge.toml").write_text(
        f'[servers.own]\nurl = {json.dumps(server.url)}\nprotocol = "{protocol}"\n'
        '[prices."own:m"]\ninput = 1000.0\noutput = 0.0\n'
    )
    words = ("in.jsonl", "-m", "own:m", *ASK, "--trust-config")
    # The first small question counts 100 tokens; each of six records 20, twice.
    code, out, told = judge.text("validate", *words, "--max-cost", "0.36")
    assert code == 0 and "340 tokens read, 0 written, 0.3400 USD" in told, told
    usages = [json.loads(line)["judge"]["usage"] for line in out.splitlines()]
    assert [usage["cost_usd"] for usage in usages] == [0.02] * 6
    _, planned, _ = judge.text("plan", *words)
    (least,) = re.findall(r"least: .*, (\d+) tokens read", planned)
    assert 0 < int(least) <= 120


@pytest.mark.parametrize("protocol", ["systemone", "decisions"])
def test_servers_with_other_headers_or_another_query_share_no_replies(
    judge: Typed, server: DecisionServer, protocol: str
) -> None:
    fingerprints, asked = set(), []
    table = f"[servers.own]\nurl = {json.dumps(server.url)}\nprotocol = '{protocol}'\n"
    for own in ("", "headers = {X-Deployment = 'a'}", "headers = {X-Deployment = 'b'}",
                "query = {route = 'a'}", "query = {route = 'b'}", ""):  # fmt: skip
        (judge.folder / "judge.toml").write_text(table + own)
        words = ("validate", "in.jsonl", "-m", "own:m", *ASK, "--trust-config")
        code, out, told = judge.text(*words)
        assert code == 0, told
        fingerprints.add(json.loads(out.splitlines()[0])["judge"]["fingerprint"])
        asked.append(len(server.asked))
    assert len(fingerprints) == 5
    assert asked == [6, 12, 18, 24, 30, 30], "the last run's replies are in the cache"


def test_a_bad_reply_is_unreadable_with_its_reason_and_is_asked_again(
    judge: Typed, server: DecisionServer
) -> None:
    server.fault = spoilt(noul=1.2)
    code, out, _ = judge.text(*RUN)
    assert code == 3 and verdicts(out) == ["unreadable"] * 6
    assert votes(out)[0][0]["reason"] == "invalid: 1.2 is no probability"
    server.fault = spoilt(type="refusal")
    assert votes(judge.text(*RUN)[1])[0][0]["reason"].startswith("refused: ")
    server.fault = None
    assert judge.text(*RUN)[0] == 0


def test_labels_none_and_orders(judge: Typed, server: DecisionServer) -> None:
    shares: dict[str, Callable[[list[str]], list[float]]] = {
        "0": lambda names: [0.6 if n == "form" else 0.4 / (len(names) - 1) for n in names],
        "1": lambda names: [0.7, *[0.3 / (len(names) - 1)] * (len(names) - 1)],
        "2": lambda names: [0.7 if n == "none of these" else 0.1 for n in names],
    }

    def chances(state: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, float]:
        names = list(question["criteria"])
        return dict(zip(names, shares[state["mail"][-2]](names), strict=True))

    server.chances = chances
    judge.write("in.jsonl", MAILS[:3])
    (judge.folder / "topic.yaml").write_text(
        "{name: topic, question: What is it about?, fields: [mail], answers: [form, money, trip],\n"
        "pass: form, none: true, rotations: 4, criteria: {form: a form to send in}}"
    )
    code, out, told = judge.text(*RUN[:4], "--rubric", "topic.yaml", "--check", "topic")
    assert (code, verdicts(out)) == (0, ["pass", "abstain", "abstain"]), told
    reasons = [vote[0].get("reason") for vote in votes(out)]
    assert reasons[:2] == [None, "the orders disagree"] and "none of these fits" in reasons[2]
    assert votes(out)[1][0]["evidence"][0]["probability"] == pytest.approx(0.25)
    first = [call.body for call in server.asked if call.body["state"] == {"mail": MAILS[0]["mail"]}]
    asked = [[*body["questions"]["question"]["criteria"]] for body in first]
    assert [names[0] for names in asked] == ["form", "money", "trip", "none of these"]


def test_a_passage_is_the_quote_and_nothing_else_is(judge: Typed, server: DecisionServer) -> None:
    mail = [f"{first} {'More of it. ' * 20}" for first in ("Send it.", "Thank you, Ann.", "Now.")]
    judge.write("in.jsonl", [{"mail": "\n\n".join(mail)}])
    (judge.folder / "thanks.yaml").write_text(
        "{name: thanks, question: Does it thank?, fields: [mail], first_token: [{question: Does "
        "`mail` thank? Answer Yes or No., passages: ['yes']}]}"
    )
    code, out, told = judge.text(*RUN[:4], "--rubric", "thanks.yaml", "--check", "thanks")
    (answer,) = votes(out)[0][0]["evidence"]
    assert code == 0 and "Thank you, Ann." in answer["quote"] and "Now" not in answer["quote"], told


# ---------------------------------------------------------------- what such models cannot


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*ASK, "--method", "structured"), "--method structured: systemone:made-1 is a decision"),
        ((*ASK, "--method", "probe"), "--method probe: systemone:made-1 is a decision model"),
        (("--check", "relevance", "--repair"), "--repair: systemone:made-1 is a decision model"),
        ((*ASK, "--votes", "3"), "--votes 3: systemone:made-1 is a decision model"),
    ],
)
def test_what_a_decision_model_cannot_is_said_before_anything_is_asked(
    judge: Typed, server: DecisionServer, words: tuple[str, ...], message: str
) -> None:
    judge.write("in.jsonl", [RELEVANCE])
    code, _, told = judge.text("validate", "in.jsonl", "-m", "systemone:made-1", *words)
    assert (code, server.asked) == (2, []) and message in " ".join(told.split()), told


def test_a_server_that_refuses_is_exit_4_and_one_without_such_a_model_exit_2(
    judge: Typed, server: DecisionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for status, code in ((401, 4), (404, 4), (422, 2), (501, 2)):
        monkeypatch.setattr(server, "reply", lambda body, status=status: (status, {"error": "E"}))
        ended, _, told = judge.text(*RUN)
        assert (ended, "systemone:made-1" in told or "made-1 at" in told) == (code, True), told


# ---------------------------------------------------------------- beside language models

REPLY = {"quote": "number", "reason": "It says so.", "answer": "yes"}


def test_a_panel_with_a_language_model(judge: Typed, server: DecisionServer) -> None:
    judge.script("llm.yaml", [{"reply": REPLY}])
    code, out, _ = judge.text(*RUN, "-m", "scripted:llm.yaml", "--all-votes")
    assert code == 0 and verdicts(out) == ["abstain", "pass"] * 3
    first, second = votes(out)[0]
    assert (first["method"], second["method"]) == ("logprobs", "structured")
    assert "answered_by" not in second and second["evidence"][0]["quote"] == "number"


def labelled(count: int) -> list[dict[str, Any]]:
    """Mails whose thanks are polite; every sixth says neither clearly."""
    rows = []
    for n in range(count):
        polite = n % 2
        words = "Well" if n % 6 == 5 or n % 6 == 4 else ("Send it", "Thank you")[polite]
        mail = f"{words}, {'please' if polite else 'now'}, number {n}."
        rows.append({"id": f"m{n}", "mail": mail, "labels": {"question": ("no", "yes")[polite]}})
    return rows


def unsure(state: Mapping[str, Any], question: Mapping[str, Any]) -> float:
    text = json.dumps(state)
    return 0.95 if "Thank you" in text else 0.05 if "Send it" in text else 0.5


@pytest.mark.slow
def test_a_cascade_under_a_guarantee_holds_for_the_version_that_was_calibrated(
    judge: Typed, server: DecisionServer
) -> None:
    server.chances = unsure
    judge.write("labels.jsonl", labelled(400))
    judge.script(
        "strong.yaml",
        [{"when": {"contains": "please"}, "reply": REPLY}, {"reply": {**REPLY, "answer": "no"}}],
    )
    models = ("-m", "systemone:made-1", "-m", "scripted:strong.yaml")
    words = ("calibrate", "labels.jsonl", *ASK, *models, "--guarantee", "0.85", "-o", "done")
    code, out, told = judge.text(*words, "--no-controls")
    assert code == 0, out + told
    profile = json.loads(judge.read("done/profile.json"))
    assert profile["judges"][0]["answered_by"] == ["made-1.0"]
    cascade = ("--cheap-model", "systemone:made-1", "-m", "scripted:strong.yaml")
    judge.write("fresh.jsonl", labelled(12))
    run = ("validate", "fresh.jsonl", *cascade, "--profile", "done/profile.json")
    code, out, told = judge.text(*run)
    assert code == 0 and verdicts(out) == ["fail", "pass"] * 6, told
    asked = [[vote["model"] for vote in cast] for cast in votes(out)]
    assert asked[0] == ["systemone:made-1"] and asked[4] == ["systemone:made-1", models[3]]
    server.model = "made-1.1"
    code, _, told = judge.text(*run)
    assert code == 2 and "calibrated on made-1.0, and made-1.1 answers now" in " ".join(
        told.split()
    ), told


def test_an_alias_that_moves_is_not_calibrated_and_a_run_on_one_warns(
    judge: Typed, server: DecisionServer, caplog: pytest.LogCaptureFixture
) -> None:
    judge.write("labels.jsonl", labelled(12))
    for alias in ("made-latest", "~made"):
        code, _, told = judge.text("calibrate", "labels.jsonl", *ASK, "-m", f"systemone:{alias}")
        assert (code, server.count) == (2, 0) and "means the newest version" in told
    code, out, told = judge.text("validate", "in.jsonl", *ASK, "-m", "systemone:made-latest")
    assert code == 0 and "each line notes the version that answered" in caplog.text, told
    assert votes(out)[0][0]["answered_by"] == ["made-1.0"]


@pytest.mark.slow
def test_controls_expose_a_model_that_follows_label_words(
    judge: Typed, server: DecisionServer
) -> None:
    """It goes by a word of the story, and never reads the rule that decides."""
    server.chances = lambda state, question: 0.9 if "acceptable" in state["story"] else 0.1
    (judge.folder / "kept.yaml").write_text(
        "{name: kept, question: Does the story keep the rule?, fields: [rule, story],\n"
        "control: {field: rule, swapped: 'no'}}"
    )
    rows = [
        {
            "id": f"n{n}",
            "rule": f"Rule {n}: bring a gift.",
            "story": f"Ann came, number {n}. It was {('wrong', 'acceptable')[n % 2]}.",
            "labels": {"kept": ("no", "yes")[n % 2]},
        }
        for n in range(80)
    ]
    judge.write("labels.jsonl", rows)
    words = ("calibrate", "labels.jsonl", "--rubric", "kept.yaml", "--check", "kept")
    _, out, _ = judge.text(*words, "-m", "systemone:made-1", "-o", "done")
    (found,) = json.loads(judge.read("done/profile.json"))["judges"]
    assert found["measures"]["accuracy"]["value"] == 1.0
    assert found["controls"]["looks"] is False, out

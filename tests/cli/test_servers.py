"""`judge validate` at servers that refuse parts of a request, or do not heed them, as people type
it: each ends in verdicts, and the same bytes come from the cache without a call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, Asked, Loopback, chances, completion, fails, says

from cli.typed import Typed

READY = '{"ready": "yes"}'
YES = {"quote": None, "reason": "it thanks the reader", "answer": "yes"}
MAILS = [{"id": f"m{n}", "email": f"Thank you for the {n} parcels."} for n in range(3)]
ASK = ("--ask", "Is this e-mail polite?", "--on", "email")

Refusal = Callable[[Asked], Answer | None]


@dataclass(frozen=True)
class Server:
    """A server that refuses or changes parts of requests, and the requests that judge sends
    next."""

    model: str
    refusal: Refusal
    adaptations: dict[str, Any]
    extra: int
    heeded: frozenset[str] = frozenset({"json_schema", "tools", "json", "text"})
    thought: int = 0
    flags: tuple[str, ...] = ASK
    vote: dict[str, Any] = field(default_factory=dict)

    def script(self, asked: Asked) -> Answer:
        if (refused := self.refusal(asked)) is not None:
            return refused
        if asked.body.get("logprobs"):
            return chances(Yes=-0.1, No=-2.4)
        limit = asked.body.get("max_tokens") or asked.body.get("max_completion_tokens") or 9999
        if self.thought and not asked.probe and limit < self.thought:
            usage = {"completion_tokens_details": {"reasoning_tokens": limit}}
            whole = completion(asked, Answer(finish_reason="length"))
            return Answer(body=json.dumps(whole | {"usage": whole["usage"] | usage}).encode())
        if asked.probe:
            return says(READY)
        # Without a schema that is heeded, the model goes by the words of the prompt.
        heeds = asked.mode in self.heeded and (asked.mode != "text" or '"quote"' in asked.prompt)
        if heeds:
            return says(YES)
        words = says("It thanks the reader: yes." if asked.number % 2 else {"polite": True})
        return Answer(body=json.dumps(completion_in_words(asked, words)).encode())


def completion_in_words(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The completion of a server that knows nothing of tools: content alone."""
    whole = completion(asked, answer)
    whole["choices"][0]["message"] = {"role": "assistant", "content": answer.text}
    return whole


def o3(asked: Asked) -> Answer | None:
    if "max_tokens" in asked.body:
        return fails(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    if asked.body.get("temperature", 1) != 1:
        return fails(400, "Unsupported value: 'temperature' does not support this value. Only 1.")
    return None


def mistral(asked: Asked) -> Answer | None:
    if "seed" not in asked.body:
        return None
    told = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs", "input": 0}]
    return Answer(status=422, body=json.dumps({"detail": told}).encode())


def gemma(asked: Asked) -> Answer | None:
    """vLLM with a template that knows no system role."""
    if asked.body["messages"][0]["role"] != "system":
        return None
    return Answer(status=400, body=b'{"object": "error", "message": "System role not supported"}')


def llama_server(asked: Asked) -> Answer | None:
    """The same, as llama.cpp's server says it."""
    if asked.body["messages"][0]["role"] != "system":
        return None
    told = {"error": {"code": 500, "message": "Jinja Exception: System role not supported"}}
    return Answer(status=500, body=json.dumps(told).encode())


def openrouter(asked: Asked) -> Answer | None:
    if asked.mode == "tools":
        return fails(404, "No endpoints found that support tool use.")
    if asked.mode == "json_schema":
        return fails(404, "No endpoints found that can handle the requested parameters.")
    return None


def lm_studio(asked: Asked) -> Answer | None:
    kind = (asked.body.get("response_format") or {}).get("type")
    if kind == "json_object":
        return fails(400, "'response_format.type' must be 'json_schema' or 'text'")
    unknown = {"json_schema": 501, "tools": 405}.get(asked.mode)
    return fails(unknown, "not implemented") if unknown else None


def gemini(asked: Asked) -> Answer | None:
    sent = json.dumps([asked.body.get("response_format"), asked.body.get("tools")])
    if re.search("anyOf|additionalProperties", sent):
        return fails(400, "Invalid JSON payload received. Unknown name \"anyOf\" at 'schema'")
    return None


def five_tokens(asked: Asked) -> Answer | None:
    if asked.body.get("top_logprobs", 0) > 5:
        return fails(400, "top_logprobs must be between 0 and 5")
    return None


def gpt_5(asked: Asked) -> Answer | None:
    """As OpenAI's o3, and it takes no seed: one complaint at a time, in `param`."""
    if (refused := o3(asked)) is not None or "seed" not in asked.body:
        return refused
    error = {"message": "Unsupported parameter.", "param": "seed", "code": "unsupported_parameter"}
    return Answer(status=400, body=json.dumps({"error": error}).encode())


def by_grammar(asked: Asked) -> Answer | None:
    """llama-server, whose grammars lack a word of JSON schema."""
    if asked.mode == "json_schema" and "anyOf" in json.dumps(asked.body):
        return fails(400, "Failed to parse grammar: unsupported schema keyword anyOf")
    return None


def nothing(asked: Asked) -> Answer | None:
    return None


PORTABLE = {"schema": "type, properties, required, items and enum alone"}
LEFT_OUT, WORDS = "left out", frozenset({"text"})
NEWER = {"max_tokens": "max_completion_tokens", "temperature": LEFT_OUT}
SERVERS = {
    "o3": Server("o3", o3, NEWER, 2, vote={"temperature": None}),
    "gpt-5": Server("gpt-5", gpt_5, NEWER | {"seed": LEFT_OUT}, 3, vote={"seed": None}),
    "o4-mini": Server("o4-mini", o3, NEWER, 2, thought=4000),
    "mistral": Server("m", mistral, {"seed": LEFT_OUT}, 1, vote={"seed": None}),
    "gemma": Server("m", gemma, {"system": "in the user's message"}, 1),
    "llama-server": Server("m", llama_server, {"system": "in the user's message"}, 1),
    "openrouter": Server("m", openrouter, {"mode": "json"}, 2),
    "lm-studio": Server("m", lm_studio, {"mode": "words"}, 3),
    "ollama": Server("m", nothing, {"mode": "json"}, 2, heeded=frozenset({"json"})),
    "ignores all": Server("m", nothing, {"mode": "words"}, 3, heeded=WORDS),
    "gemini": Server("m", gemini, PORTABLE, 1),
    "grammar": Server("m", by_grammar, PORTABLE, 1),
    "thinks": Server("m", nothing, {"thinking_tokens": 8000}, 1, thought=4000),
    "five": Server("m", five_tokens, {"top_logprobs": 5}, 1, flags=(*ASK, "--method", "logprobs")),
}


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = Typed(tmp_path, monkeypatch, capfd)
    made.write("in.jsonl", MAILS)
    return made


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_ends_in_verdicts(
    name: str, judge: Typed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kind = SERVERS[name]
    with Loopback(kind.script, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("validate", "in.jsonl", "-m", f"openai:{kind.model}", *kind.flags)
        code, _, told = judge.text(*words, "-o", "out.jsonl")
        assert code == 0, told
        lines = [json.loads(line) for line in judge.read("out.jsonl").splitlines()]
        assert [line["judge"]["verdict"] for line in lines] == ["pass"] * 3, lines
        assert server.count == 1 + len(MAILS) + kind.extra, "one question, and one for each refusal"
        assert all(line["judge"]["usage"]["replies"] == 1 for line in lines)
        vote = lines[0]["judge"]["checks"][0]["votes"][0]
        assert all(vote.get(part) == value for part, value in kind.vote.items())
        (described,) = json.loads(judge.read("out.jsonl.run.json")).values()
        assert described["adaptations"] == {f"openai:{kind.model}": kind.adaptations}
        assert caplog.text.count(f"judge: openai:{kind.model}: requests adapted") == 1
        asked = server.count
        code, _, told = judge.text(*words, "-o", "again.jsonl")
        assert (code, server.count) == (0, asked), told
        assert judge.read("again.jsonl") == judge.read("out.jsonl")
        code, _, told = judge.text(*words, "-o", "out.jsonl", "--resume")
        assert (code, server.count) == (0, asked), told


def test_the_users_limit_holds_after_a_run_that_made_room_for_thoughts(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the other way round: a model that thinks by its name has room after a run with a
    limit, which learnt something else about the server."""
    for kind, room in (SERVERS["thinks"], [9024, 300]), (SERVERS["o3"], [300, 9024]):
        limits: list[int] = []
        with Loopback(kind.script, scripted_probe=True) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            for number, limit in enumerate(room):
                flags = ("--max-tokens", "300") if limit == 300 else ()
                words = ("validate", "in.jsonl", "-m", f"openai:{kind.model}", *ASK, *flags)
                judge.text(*words, "-o", f"{kind.model}{number}.jsonl")
                sent = server.calls[-1].body
                limits.append(sent.get("max_tokens") or sent["max_completion_tokens"])
        assert limits == room, kind.model


def test_a_refusal_of_one_record_is_that_record_s(
    judge: Typed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It names a part of the request by chance; the others are asked as before."""
    judge.write(
        "in.jsonl", [{"id": n, "email": f"Thank you for the {n} parcels."} for n in range(9)]
    )

    def script(asked: Asked) -> Answer:
        if "the 1 parcels" in asked.prompt:
            return fails(400, "Invalid input: no seed phrases or system prompts, please")
        return says(READY if asked.probe else YES)

    with Loopback(script, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("validate", "in.jsonl", "-m", "openai:m", *ASK)
        code, out, told = judge.text(*words)
        verdicts = [json.loads(line)["judge"]["verdict"] for line in out.splitlines()]
        assert (code, verdicts) == (3, ["pass", "error", *["pass"] * 7]), told
        assert server.count == 1 + 9 + 2, "two remedies that did not help"
        code, again, told = judge.text(*words)
    assert again == out and "adapted" not in caplog.text, told
    assert {"seed", "temperature"} <= server.calls[-1].body.keys()


# ---------------------------------------------------------------- failures, and who answers


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
BEHIND = {"code": 502, "message": "Provider returned error", "metadata": {"raw": "no GPU left"}}
IN_2_S = "Rate limit reached for tokens per minute. Please try again in 0.02s."
FILTERED = "The response was filtered due to the prompt triggering content management policy."


@pytest.mark.parametrize(
    ("failure", "times", "calls", "verdict", "words"),
    [
        (Answer(status=529, body=json.dumps(OVERLOADED).encode()), 2, 3, "pass", ""),
        (fails(429, IN_2_S), 2, 3, "pass", ""),
        (Answer(body=json.dumps({"error": BEHIND}).encode()), 1, 2, "pass", ""),
        # Each try of a provider that takes the call may be paid.
        (Answer(body=json.dumps({"error": BEHIND}).encode()), 99, 3, "error", "no GPU left"),
        (Answer("It th", finish_reason="error"), 99, 3, "error", "the reply broke off"),
        (fails(400, FILTERED, code="content_filter"), 99, 1, "unreadable", "refused: HTTP 400"),
        (says(""), 99, 3, "unreadable", "the reply holds no text"),
    ],
    ids=["overloaded", "groq", "stumbles", "provider", "breaks off", "filtered", "empty"],
)
def test_a_failing_record_costs_no_more_than_it_must(
    failure: Answer,
    times: int,
    calls: int,
    verdict: str,
    words: str,
    judge: Typed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = 0

    def script(asked: Asked) -> Answer:
        nonlocal made
        if "the 1 parcels" not in asked.prompt:
            return says(YES)
        made += 1
        return failure if made <= times else says(YES)

    with Loopback(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        line = ("validate", "in.jsonl", "-m", "openai:m", *ASK, "--concurrency", "1")
        code, out, told = judge.text(*line)
    verdicts = [json.loads(line)["judge"]["verdict"] for line in out.splitlines()]
    assert (made, verdicts) == (calls, ["pass", verdict, "pass"]), told
    assert words in " ".join(told.split()) and code == (0 if verdict == "pass" else 3)


def test_a_server_whose_replies_are_all_empty_ends_the_run(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first record tries every mode; two more are asked once."""
    judge.write("in.jsonl", [{"id": n, "email": f"Mail {n}"} for n in range(6)])
    with Loopback(lambda asked: says("")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        code, _, told = judge.text("validate", "in.jsonl", "-m", "openai:m", *ASK)
    assert code == 4 and "the replies to the first 3 questions hold no text" in told, told
    assert server.count == 1 + 4 + 2


def test_a_server_without_log_probabilities_names_the_method_that_it_has(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Loopback(lambda asked: says(YES)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("validate", "in.jsonl", "-m", "openai:m", *ASK)
        code, _, told = judge.text(*words, "--method", "logprobs")
        assert code == 2 and "--model openai:m: this model gives no log-prob" in told, told
        assert "use --method structured" in " ".join(told.split()), told
        code, _, told = judge.text(*words, "--cheap-model", "openai:n")
        assert code == 2 and "leave it out" in told and "--method" not in told, told


def test_what_a_gateway_says_of_an_unknown_model_is_told_once(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiteLLM's: HTTP 400 for a name that it has no route for, whatever is asked for."""
    said = "Invalid model name passed in model=m. Call `/v1/models` to view available models"
    with Loopback(lambda asked: fails(400, said, code="400"), scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for method in (("--method", "logprobs"), ()):
            words = ("validate", "in.jsonl", "-m", "openai:m", *ASK)
            code, _, told = judge.text(*words, *method)
            assert code == 2 and told.count("Invalid model name passed in model=m") == 1, told
    assert "json_schema, tools, json, words: HTTP 400" in told


@pytest.mark.parametrize("listed", [None, ["loopback"]])
@pytest.mark.parametrize("cached", [True, False])
def test_a_profile_of_another_model_s_answers_is_told(
    listed: list[str] | None,
    cached: bool,
    judge: Typed,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    labelled = [
        {**mail, "id": n, "email": f"Mail {n}", "labels": {"question": "yes"}}
        for n, mail in enumerate(MAILS * 8)
    ]
    judge.write("labels.jsonl", labelled)
    model = "qwen-0.5b"

    def script(asked: Asked) -> Answer:
        said = says(READY if asked.probe else YES)
        return Answer(body=json.dumps(completion(asked, said) | {"model": model}).encode())

    cache = () if cached else ("--no-cache",)
    with Loopback(script, scripted_probe=True) as server:
        server.listed = listed
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        line = ("calibrate", "labels.jsonl", "-m", "openai:m", *ASK, "--no-controls", *cache)
        code, _, told = judge.text(*line, "-o", "c")
        assert code == 0, told
        words = ("validate", "in.jsonl", "--profile", "c/profile.json", "-m", "openai:m", "-o", "o")
        code, _, told = judge.text(*words)
        assert code == 0 and "calibrate again" not in caplog.text, told
        model = "llama-70b"
        if listed:
            server.listed = ["another"]
        code, _, told = judge.text(*words, "--overwrite")
    assert code == 0 and caplog.text.count("calibrate again") == 1, told
    assert "--profile c/profile.json was fitted to the answers of" in caplog.text
    assert "qwen-0.5b; " in caplog.text and "qwen-0.5b" in judge.read("c/profile.json").decode()


# ---------------------------------------------------------------- settings


def test_a_reply_lost_to_thoughts_is_counted(judge: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was paid; the reply that comes in its place is counted, too."""
    tokens = 0

    def script(asked: Asked) -> Answer:
        nonlocal tokens
        answer = SERVERS["thinks"].script(asked)
        body = json.loads(answer.body) if answer.body else completion(asked, answer)
        tokens += body["usage"]["prompt_tokens"]
        return answer

    with Loopback(script, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("validate", "in.jsonl", "-m", "openai:m", *ASK, "--summary", "sums.json")
        assert judge.text(*words)[0] == 0
        assert server.count == 1 + len(MAILS) + 1
    counts = json.loads(judge.read("sums.json"))["models"]["openai:m"]
    assert counts["input_tokens"] == tokens


AZURE = "/openai/deployments/gpt4o"
TOML = """
[servers.azure]
url = "{url}"
key_env = "AZURE_OPENAI_KEY"
key_header = "api-key"
query = {{api-version = "2024-10-21"}}
headers = {{X-Team = "red"}}
omit = ["seed"]
mode = "tools"
"""


def by_key(asked: Asked) -> Answer:
    if asked.headers.get("Api-Key") != "secret-of-azure" or "Authorization" in asked.headers:
        return fails(401, "Access denied due to invalid subscription key")
    return says(READY if asked.probe else YES)


def test_a_server_of_judge_toml_is_asked_as_it_wants(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_KEY", "secret-of-azure")
    with Loopback(by_key, scripted_probe=True) as server:
        mine = judge.folder / "config" / "judge" / "judge.toml"
        mine.parent.mkdir(parents=True)
        mine.write_text(TOML.format(url=server.url.removesuffix("/v1") + AZURE))
        words = ("validate", "in.jsonl", "-m", "azure:gpt4o", *ASK, "-o", "out.jsonl")
        code, _, told = judge.text(*words, "--reasoning-effort", "low", "--max-tokens", "77")
        assert code == 0, told
        for asked in server.calls:
            assert asked.headers["X-Team"] == "red" and asked.mode == "tools"
            assert "seed" not in asked.body and asked.body["reasoning_effort"] == "low"
            assert asked.body["max_tokens"] == 77
        assert b"secret-of-azure" not in judge.read("out.jsonl")
        # Another header is another question, which the cached replies do not answer.
        mine.write_text(mine.read_text().replace("red", "blue"))
        code, _, told = judge.text(*words, "--overwrite")
        assert (code, server.count) == (0, 2 * len(MAILS)), told
        mine.write_text(mine.read_text().replace("X-Team", "X-Auth-Token"))
        code, _, told = judge.text(*words, "--overwrite")
        assert code == 2 and "X-Auth-Token" in told and "key_header" in told


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/v1/chat/completions", f"{AZURE}?api-version=1"])
def test_addresses_as_people_write_them(
    end: str, judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = "Api-Key" if "deployments" in end else "Authorization"

    def script(asked: Asked) -> Answer:
        assert asked.headers[header].removeprefix("Bearer ") == "k"
        return says(READY if asked.probe else YES)

    with Loopback(script, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url.removesuffix("/v1") + end)
        code, _, told = judge.text("validate", "in.jsonl", "-m", "openai:m", *ASK, "-o", "o.jsonl")
    assert code == 0, told


def test_what_a_setting_asks_for_is_not_left_out(
    judge: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(asked: Asked) -> Answer:
        if "reasoning_effort" in asked.body:
            return fails(400, "Unsupported parameter: 'reasoning_effort'")
        return fails(404, "Not Found")

    with Loopback(script, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url.removesuffix("/v1"))
        words = ("validate", "in.jsonl", "-m", "openai:m", *ASK)
        code, _, told = judge.text(*words, "--reasoning-effort", "high")
        assert code == 4 and "--reasoning-effort high: " in told and server.count == 1
        code, _, told = judge.text(*words)
        assert code == 4 and f"/v1: {server.url}" in told.replace("\n", " ")
    code, _, told = judge.text(
        "validate", "in.jsonl", "-m", "scripted:x", "--reasoning-effort", "low"
    )
    assert code == 2, told


def test_a_text_too_long_for_one_model_goes_to_another(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(asked: Asked) -> Answer:
        long = asked.model == "short" and "parcels" in asked.prompt
        return fails(400, "too long", code="context_length_exceeded") if long else says(YES)

    typed.write("in.jsonl", [*MAILS, {"id": "m3", "email": "Thank you."}])
    run = ("validate", "in.jsonl", *ASK, "-o", "out.jsonl")
    with Loopback(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        code, _, told = typed.text(*run, "-m", "openai:short")
        more = "to ask a model with a longer context: --resume --rejudge error -m MODEL"
        assert code == 3 and "3 x context-exceeded" in told and more in " ".join(told.split())
        code, _, told = typed.text(*run, *["--resume", "--rejudge", "error", "-m", "openai:long"])
    assert code == 0 and "1 kept" in told and "4 of 4 records pass" in told


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("validate", "bad.jsonl", *ASK), 3),
        (("evaluate", "normad", "missing.csv"), 2),
        (("evaluate", "cali", "bad.jsonl"), 3),
        (("generate", "norms", "missing.jsonl"), 2),
        (("calibrate", "bad.jsonl", *ASK), 2),
    ],
)
def test_a_source_without_a_record_costs_nothing(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    """Not even the small question that finds out how a server is asked for JSON."""
    typed.write("bad.jsonl", [], "{torn\n" * 2)
    with Loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        done = typed(*words, "-m", "openai:m")
        assert (done.returncode, server.count) == (code, 0), done.stderr

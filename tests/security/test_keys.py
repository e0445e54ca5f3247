"""No key is left anywhere: files, cache, temporary files, output, command lines."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cli.conftest import norm
from cli.typed import Typed
from hypothesis import given
from hypothesis import strategies as st
from loopback import Answer, Asked, Loopback, fails, says

from judge.redact import Redactor, printable, redacted, reply_redactor

from .trail import KEY, assert_clean, left

PASSWORD = "hunter2-Zq8wLm40"
JUDGE = ("validate", "n.jsonl", "-m", "openai:m", "--check", "polite", "--rubric", "polite.yaml")
POLITE = """
name: polite
title: Is it polite?
source: "made up"
kinds: [norm]
fields: [rule_of_thumb, story]
question: "Is it polite?"
max_tokens: 60
"""


def echoing(asked: Asked) -> Answer:
    """A reply that repeats the key, as a debugging proxy makes a model do."""
    seen = asked.headers.get("Authorization", "")
    if asked.schema_name != "YesNo":
        return says({"answer": "yes"})
    return says({"quote": None, "reason": f"sent with {seen} ({KEY})", "answer": "yes"})


def escaping(asked: Asked) -> Answer:
    """The key in JSON's escapes, in the answer and in the reply inside it."""
    spelled = "".join(f"\\u{ord(char):04x}" for char in KEY)
    if "number 1" in asked.prompt:
        return Answer(status=400, body=f'{{"error": {{"message": "no {spelled}"}}}}'.encode())
    reply = f'{{"quote": null, "reason": "{spelled}, {KEY}", "answer": "yes"}}'
    text = json.dumps(reply).replace("/", "\\/")
    message = f'{{"role": "assistant", "content": {text}}}'
    choice = f'{{"index": 0, "finish_reason": "stop", "message": {message}}}'
    return Answer(body=f'{{"choices": [{choice}]}}'.encode())


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Typed:
    """The command, in a folder that holds temporary files, too, with the key in the environment."""
    made = Typed(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    made.write("n.jsonl", [norm(number) for number in range(5)])
    (tmp_path / "polite.yaml").write_text(POLITE)
    return made


@pytest.fixture
def echo() -> Iterator[Loopback]:
    with Loopback(echoing) as server:
        yield server


def sent(server: Loopback) -> set[str]:
    return {call.headers.get("Authorization", "") for call in server.calls}


def test_a_reply_that_repeats_the_key_is_kept_without_it(
    typed: Typed, echo: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", echo.url)
    kept = ("-o", "out.jsonl", "--summary", "sum.json", "--review", "review.jsonl")
    done = typed(*JUDGE, *kept)
    assert done.returncode == 0, done.stderr
    again = typed(*JUDGE, "--overwrite", *kept)
    trail = left(typed.folder, done.stdout, done.stderr, again.stdout, again.stderr)
    assert sent(echo) == {f"Bearer {KEY}"}
    assert b"sent with Bearer [secret] ([secret])" in trail, "or there was nothing to mask"
    assert_clean(trail)


def test_a_key_in_escapes_is_redacted_too(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(escaping) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = typed(*JUDGE, "-o", "out.jsonl", "--summary", "sum.json")
    assert done.returncode == 3, done.stderr
    trail = left(typed.folder, done.stdout, done.stderr)
    assert b"[secret], [secret]" in trail and b"no [secret]" in trail
    assert_clean(trail)


@pytest.mark.parametrize("model", ["openai:m", "langchain:openai:m"])
def test_a_server_that_refuses_the_key_and_repeats_it(
    typed: Typed, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(asked: Asked) -> Answer:
        return fails(401, f"Incorrect API key provided: {KEY}. {asked.headers}")

    with Loopback(refusing, scripted_probe=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = typed(*JUDGE[:2], "-m", model, *JUDGE[4:], "-o", "out.jsonl", "--summary", "s.json")
        assert server.count
    assert done.returncode == 4 and b"refuses the key" in done.stderr
    assert_clean(left(typed.folder, done.stdout, done.stderr))


@pytest.mark.parametrize(
    "written",
    ["http://ann:{password}@{place}", "http://{place}?api_key={password}&v=1"],
    ids=["login", "query"],
)
@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "VLLM_BASE_URL", "judge.toml"])
def test_secrets_in_the_address(
    typed: Typed, written: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    basic = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()

    def loud(asked: Asked) -> Answer:
        """Repeats the password, alone and in base64."""
        said = f"{PASSWORD} {asked.headers.get('Authorization')} http://ann:{PASSWORD}@h/"
        if "number 1" in asked.prompt:
            return fails(400, f"no: {said}")
        if "number 2" in asked.prompt:
            body = json.dumps({"error": {"code": 400, "message": f"within: {said}"}})
            return Answer(body=body.encode())
        seen = f"{asked.headers.get('Authorization')} {PASSWORD}"
        return says({"quote": None, "reason": seen, "answer": "yes"})

    with Loopback(loud) as server:
        place = server.url.removeprefix("http://")
        address = written.format(password=PASSWORD, place=place)
        if variable == "judge.toml":
            typed.folder.joinpath("tmp.toml").write_text(f'[servers.mine]\nurl = "{address}"\n')
            model, config = "mine:m", ("--config", "tmp.toml")
        else:
            monkeypatch.setenv(variable, address)
            model, config = f"{variable.partition('_')[0].lower()}:m", ()
        words = ("-m", model, *JUDGE[4:], "--method", "structured", *config)
        done = typed(*JUDGE[:2], *words, "-o", "out.jsonl", "--summary", "s.json")
    assert done.returncode == 3, done.stderr
    typed.folder.joinpath("tmp.toml").unlink(missing_ok=True)
    trail = left(typed.folder, done.stdout, done.stderr)
    assert b"no: [secret]" in trail and b"within: [secret]" in trail
    assert_clean(trail, (KEY, PASSWORD, basic))


# ---------------------------------------------------------------- other hosts


def test_neither_key_nor_records_follow_a_redirection_to_another_server(
    typed: Typed, echo: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    for status in (301, 302, 303, 307, 308):
        place = f"{echo.url}/chat/completions?api_key={quote(KEY, safe='')}"
        moved = Answer(status=status, headers={"Location": place}, body=b"")
        with Loopback(lambda asked, moved=moved: moved, scripted_probe=True) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            done = typed(*JUDGE, "--no-cache")
            assert server.count == 1
        assert done.returncode == 4
        assert f"redirects to {echo.url} (HTTP {status})".encode() in done.stderr
        assert_clean(done.stdout + done.stderr)
    assert echo.count == 0


@pytest.mark.parametrize(
    ("url", "key", "warned"),
    [
        ("http://models.test/v1", KEY, True),
        ("http://models.test/v1", "", False),
        ("http://127.0.0.1:8000/v1", KEY, False),
        ("https://models.test/v1", KEY, False),
    ],
)
def test_a_key_without_encryption_is_warned_of_once(
    url: str, key: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    from judge.backends import openai

    openai._warn_of_plain_http.cache_clear()
    for _ in range(2):
        openai.named_server(url, key, "OPENAI_BASE_URL", "OPENAI_API_KEY")
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == warned
    assert not warned or "OPENAI_BASE_URL: key and records go to http://" in told[0]
    assert_clean("".join(told).encode())


# ---------------------------------------------------------------- files of settings


@pytest.mark.parametrize(
    "line",
    [
        f'openai_api_key = "{KEY}"',
        f'token = "{KEY}"',
        f'[prices."openai:m"]\ninput = 1.0\noutput = 1.0\napi_key = "{KEY}"',
    ],
)
def test_a_key_in_judge_toml_is_refused(typed: Typed, line: str) -> None:
    (typed.folder / "judge.toml").write_text(line + "\n")
    done = typed(*JUDGE)
    assert done.returncode == 2
    assert b"from the environment alone (OPENAI_API_KEY" in done.stderr
    assert re.search(rb"judge.toml:[14] \(", done.stderr)
    assert_clean(done.stdout + done.stderr)


@pytest.mark.parametrize(
    "option", [f"--api-key={KEY}", "--api-key", "--api_key", "--api-k", "--hf-token"]
)
def test_a_key_among_a_servers_options_is_refused(
    typed: Typed, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", f"--seed 3 {option} {KEY}")
    done = typed("validate", "n.jsonl", "-m", "vllm:m")
    assert done.returncode == 2 and b"VLLM_API_KEY" in done.stderr
    assert_clean(left(typed.folder, done.stdout, done.stderr))


# ---------------------------------------------------------------- whole processes

CRASHING = """
import os, sys
from judge.backends.openai import OpenAIBackend
from judge.cli import main, summary
whole = OpenAIBackend.complete

async def complete(self, call, mode):
    if "number 2" in str(call.messages):
        raise RuntimeError("sent Authorization: Bearer " + os.environ["OPENAI_API_KEY"])
    return await whole(self, call, mode)

def broken(*_, **__):
    raise RuntimeError("closing with " + os.environ["OPENAI_API_KEY"])

OpenAIBackend.complete = complete
for name in [n for n in vars(summary) if callable(getattr(summary, n)) and n.startswith("print")]:
    setattr(summary, name, broken)
main()
"""


def started(folder: Path, *words: str, **env: str) -> subprocess.Popen[bytes]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("JUDGE_", "OPENAI_", "VLLM_"))}
    (folder / "tmp").mkdir(exist_ok=True)
    own = {"JUDGE_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**kept, **own, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_a_crash_in_the_middle(typed: Typed, echo: Loopback) -> None:
    words = (sys.executable, "-c", CRASHING, *JUDGE, "-o", "out.jsonl", "--summary", "s.json")
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": echo.url}
    process = started(typed.folder, *words, **env, PYTHONDEVMODE="1", OPENAI_LOG="debug")
    out, told = process.communicate(timeout=100)
    trail = left(typed.folder, out, told)
    assert b"Bearer [secret]" in told and b"Traceback" in told, told
    assert_clean(trail)


# ---------------------------------------------------------------- the mask itself


def test_what_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PASSWD", "correct horse battery")
    monkeypatch.setenv("HTTPS_PROXY", f"http://ann:{PASSWORD}/x@proxy.test:3128")
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.test:8443/@mirror/models")
    told = f"correct horse battery; {PASSWORD}; {PASSWORD}/x; hub.test:8443/@mirror/models"
    assert redacted(told) == "[secret]; [secret]; [secret]; hub.test:8443/@mirror/models"
    assert redacted("at http://ann:pw@h.test/v1 and https://bob@h.test") == (
        "at http://h.test/v1 and https://h.test"
    )


def test_nothing_that_steers_a_terminal_is_printed() -> None:
    loop_panels = [*range(0x20), 0x7F, *range(0x80, 0xA0), 0x2028, 0x2029]
    loop_panels += [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    for code in set(loop_panels) - {0x09, 0x0A}:
        assert printable(f"a{chr(code)}b") == f"a\\u{code:04x}b"
    fine = "tab\t line\n \u05e9\u05dc \u0645\u06cc\u200c\u062e \U0001f600"
    assert printable(fine) == fine


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=16, max_size=30),
    data=st.data(),
)
def test_a_secret_spelled_in_escapes_is_redacted(secret: str, data: st.DataObject) -> None:
    def spelled(char: str) -> str:
        units = char.encode("utf-16-be").hex()
        escaped = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        plain = [char] if char.isprintable() and char not in '"\\/' else []
        return data.draw(st.sampled_from([escaped, *plain, *(["/", "\\/"] if char == "/" else [])]))

    reply = f'{{"reason": "{"".join(map(spelled, secret))}"}}'
    assert json.loads(reply)["reason"] == secret
    assert json.loads(Redactor([secret], 16)(reply))["reason"] == "[secret]"


def test_short_keys_leave_replies_alone() -> None:
    assert reply_redactor(["not-needed"])("help was not-needed") == "help was not-needed"


ESCAPED = {
    "the backslash escaped": r"\u005cu0073\u005cu006b-test/0123456789abcdef",
    "every sign escaped": "".join(
        rf"\u{ord(c):04x}" for c in r"\u0073\u006b-test\/0123456789abcdef"
    ),
    "a part escaped deeper": r"s\u005cu006b-test\\\/0123456789abcde\u0066",
    "capital digits": r"\u0073\u006B\u002Dtest\/0123456789abcdef",
}


@pytest.mark.parametrize("spelled", ESCAPED.values(), ids=ESCAPED)
def test_a_key_with_its_escapes_escaped_is_redacted(spelled: str) -> None:
    redact = Redactor(["sk-test/0123456789abcdef"], 16)
    assert redact(f"a \\u0061 {spelled}, b {spelled}!") == "a \\u0061 [secret], b [secret]!"
    assert redact(f"a \\u0061 {spelled[:-6]}") == f"a \\u0061 {spelled[:-6]}"


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_key_under_layers_of_escapes_is_redacted(
    layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-test/0123456789abcdef"
    monkeypatch.setenv("SOME_API_KEY", key)
    spelled = "".join(f"\\u{ord(char):04x}" for char in key)
    for _ in range(layers - 1):
        spelled = json.dumps(spelled)[1:-1]
    said = f"the key is {spelled}!"
    assert reply_redactor()(said) == redacted(said) == "the key is [secret]!"

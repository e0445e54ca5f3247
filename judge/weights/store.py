"""Where weights lie on this machine, and which of them are there."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from judge.errors import UsageError
from judge.weights.catalog import CATALOG, DEFAULT, Weights, entry

_MODEL_FILES = (".safetensors", ".json", ".jinja", ".model", ".txt")


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

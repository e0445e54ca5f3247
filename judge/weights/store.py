"""Where weights lie on this machine, and which of them are there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from judge.errors import UsageError
from judge.weights.catalog import CATALOG, DEFAULT, Entry, WeightsFile, entry

_HASHES = ".hashes.json"
_MODEL_FILES = (".safetensors", ".json", ".jinja", ".model", ".txt")


def weights_dir() -> Path:
    """The folder for weights: $JUDGE_MODELS_DIR, else `models` in the user's data folder."""
    chosen = os.environ.get("JUDGE_MODELS_DIR")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_data_path("judge") / "models"


def file_path(owner: Entry, file: WeightsFile) -> Path:
    """Where a file of the catalog lies, or would lie."""
    return weights_dir() / owner.name / file.name


def path(name: str) -> Path | None:
    """The weights of that name: the file, or the folder where they are several; None if incomplete.

    Only sizes are compared: the SHA-256 was checked before the file got its name. Whoever is going
    to use them asks `resolve`.

    Raises:
        UsageError: no weights have that name.
    """
    owner = entry(name)
    places = [file_path(owner, file) for file in owner.files]
    for place, file in zip(places, owner.files, strict=True):
        if not place.is_file() or place.stat().st_size != file.size:
            return None
    return places[0] if len(places) == 1 else places[0].parent


def resolve(name_or_path: str) -> Path:
    """A catalog's name, or the path of a .gguf file that exists, to the path of its weights.

    Raises:
        UsageError: a name whose weights are not here, or were changed since they were fetched (the
            message says how to get them), or neither a name nor such a file.
    """
    if name_or_path in CATALOG:
        found = path(name_or_path)
        if found is None:
            raise UsageError(
                f"the weights {name_or_path} are not in {weights_dir()}: "
                f"run `judge models pull {name_or_path}`"
            )
        owner = CATALOG[name_or_path]
        for file in owner.files:
            if not proved(owner, file):
                raise UsageError(
                    f"{file_path(owner, file)} was changed since it was fetched: its SHA-256 is "
                    f"not {file.sha256}. `judge models pull {owner.name}` fetches it anew"
                )
        return found
    given = Path(name_or_path).expanduser()
    if given.suffix == ".gguf" and given.is_file():
        return given
    raise UsageError(
        f"{name_or_path!r} is neither a .gguf file nor one of {', '.join(CATALOG)}; "
        f"`judge models pull {DEFAULT}` fetches the default"
    )


def proved(owner: Entry, file: WeightsFile, *, again: bool = False) -> bool:
    """Whether a file that is here has the bytes that the catalog pins; see `sha256_of`."""
    place = file_path(owner, file)
    return place.stat().st_size == file.size and sha256_of(place, again=again) == file.sha256


def sha256_of(file: Path, *, again: bool = False) -> str:
    """The file's SHA-256 in hexadecimal.

    The whole file is read where size, times or inode are others than when it was last read, or
    with `again`. That finds what damage, a sync or another program did; it does not hold against
    somebody who may write to the folder of weights and means to deceive, for whom `again` is.
    """
    place, known = str(file.resolve()), _known_hashes()
    found = file.stat()
    seen = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
    match known.get(place):
        case [*mark, str(sha256)] if mark == seen and not again:
            return sha256
    sha256 = hashed(file)
    _remember({**known, place: [*seen, sha256]})
    return sha256


def _known_hashes() -> dict[str, Any]:
    """By path, size, times and inode of each file when it was read, and its hash."""
    try:
        told = json.loads((weights_dir() / _HASHES).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _remember(hashes: Mapping[str, Any]) -> None:
    """Write the hashes of files that still exist; a folder that cannot be written is no fault."""
    here = {place: known for place, known in hashes.items() if Path(place).exists()}
    beside = weights_dir() / f"{_HASHES}.{os.getpid()}"
    with suppress(OSError):
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(here), "utf-8")
        beside.replace(weights_dir() / _HASHES)


def hugging_face(name: str) -> tuple[Path, str]:
    """The folder of a Hugging Face model, and its title: the hub's name, or the folder's own.

    `name` is a folder, or a hub's name that the local Hugging Face cache holds.

    Raises:
        UsageError: it is not here (says how to get it), or is no model that can be used.
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

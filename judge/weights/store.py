"""Where weights lie on this machine, and which of them are there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs

from judge.errors import UsageError
from judge.weights.catalog import CATALOG, DEFAULT, Entry, WeightsFile, entry

_CHUNK = 1 << 20


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

    Only sizes are compared: the SHA-256 was checked before the file got its name.

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
        UsageError: a name whose weights are not here (the message says how to get them), or
            neither a name nor such a file.
    """
    if name_or_path in CATALOG:
        found = path(name_or_path)
        if found is None:
            raise UsageError(
                f"the weights {name_or_path} are not in {weights_dir()}: "
                f"run `judge models pull {name_or_path}`"
            )
        return found
    given = Path(name_or_path).expanduser()
    if given.suffix == ".gguf" and given.is_file():
        return given
    raise UsageError(
        f"{name_or_path!r} is neither a .gguf file nor one of {', '.join(CATALOG)}; "
        f"`judge models pull {DEFAULT}` fetches the default"
    )


def sha256_of(file: Path) -> str:
    """The file's SHA-256 in hexadecimal; a catalog's file is not read again, its hash is pinned."""
    for owner in CATALOG.values():
        for known in owner.files:
            if file == file_path(owner, known) and file.stat().st_size == known.size:
                return known.sha256
    return hashed(file)


def hashed(file: Path) -> str:
    """The SHA-256 of the file's bytes in hexadecimal; 1 GB takes about a second."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()

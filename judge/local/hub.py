"""GGUF files of a Hugging Face hub: which it has, and the size and SHA-256 of each."""

from __future__ import annotations

import logging
import os
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit

from judge.backends.proxies import direct_to_loopback, is_loopback
from judge.errors import Exit, JudgeError, UsageError, missing_extra, nearest
from judge.local import store
from judge.local.store import HUB, Weights
from judge.redact import redacted, without_secrets

_log = logging.getLogger(__name__)

PREFIX = "hf:"
NO_TOKEN = "; for a private one set HF_TOKEN to the key of an account that may read it"
_REPOSITORY = re.compile(r"(?!\.)[\w.-]+/(?!\.)[\w.-]+")
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
"""One file of a model in several files, all of which llama.cpp needs."""


class FetchError(JudgeError):
    """Weights could not be fetched (exit 4)."""

    exit_code = Exit.UNAVAILABLE


class SourceUnreachable(FetchError):
    """A source cannot be reached or does not have the file; another source may."""


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

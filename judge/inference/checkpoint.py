"""A Hugging Face model on disk: where it lies, what it is, and its hash."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

from judge.errors import UsageError

DOWNLOAD = "JUDGE_HF_DOWNLOAD"
"""Set to 1, a model that is not on this machine is fetched when the run is set up."""

_WANTED = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.txt")
_HASHED = (".safetensors", ".json", ".jinja", ".model", ".txt")
_CHUNK = 1 << 22
_FLOATS = {"F64", "F32", "F16", "BF16"}
_BYTES = {"I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2}


@dataclass(frozen=True)
class Checkpoint:
    """A folder with config.json, safetensors and a tokenizer with a chat template."""

    name: str
    folder: Path

    @property
    def title(self) -> str:
        """The hub's name, or the folder's own: where it lies makes no other model of it."""
        given = Path(self.name).expanduser() == self.folder
        return self.folder.absolute().name if given else self.name

    @cached_property
    def config(self) -> Any:
        """The model's configuration, as the library reads it.

        Raises:
            UsageError: it is none that the library knows.
        """
        from transformers import AutoConfig

        try:
            return AutoConfig.from_pretrained(
                self.folder, local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"transformers:{self.name}: {_first_line(error)}") from error

    @property
    def shape(self) -> Any:
        """The configuration of the part that reads and writes text."""
        return self.config.get_text_config()

    @property
    def context(self) -> int:
        """Tokens of prompt and reply together that the model was made for."""
        return int(self.shape.max_position_embeddings)

    @cached_property
    def weight_files(self) -> tuple[Path, ...]:
        return tuple(sorted(self.folder.glob("*.safetensors")))

    def weight_bytes(self, bytes_each: int) -> int:
        """Bytes of all weights when numbers with a fraction take `bytes_each`."""
        total = 0
        for file in self.weight_files:
            for name, entry in _header(file).items():
                if name != "__metadata__":
                    kind = entry["dtype"]
                    each = bytes_each if kind in _FLOATS else _BYTES.get(kind, 1)
                    total += prod(entry["shape"]) * each
        return total

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the names and bytes of weights, configuration and tokenizer files."""
        whole = hashlib.sha256()
        for file in sorted(self.folder.iterdir()):
            if file.suffix in _HASHED and file.is_file():
                whole.update(f"{file.name}\0{_hashed(file)}\n".encode())
        return whole.hexdigest()


def find(name: str) -> Checkpoint:
    """The model in a folder, or under a hub's name in the local Hugging Face cache.

    Nothing is downloaded unless $JUDGE_HF_DOWNLOAD is 1, and then here, before any call.

    Raises:
        UsageError: it is not here, or is no model that can be used; says how to get it.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _cached(name)
    found = Checkpoint(name, folder)
    if not (folder / "config.json").is_file():
        raise UsageError(f"transformers:{name}: {folder} holds no config.json, so it is no model")
    if not found.weight_files:
        raise UsageError(
            f"transformers:{name}: {folder} holds no *.safetensors; other formats can run code "
            "when they are read, and are not loaded"
        )
    return found


def engine_version() -> str:
    """The libraries whose arithmetic an answer rests on."""
    names = ("torch", "transformers", "llguidance")
    return " ".join(f"{name}/{version(name)}" for name in names)


def _cached(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    fetch = os.environ.get(DOWNLOAD, "").strip()
    if fetch not in ("", "0", "1"):
        raise UsageError(f"{DOWNLOAD} is {fetch!r}; 1 allows downloads, 0 or nothing does not")
    allowed = fetch == "1"
    try:
        return Path(
            snapshot_download(name, local_files_only=not allowed, allow_patterns=list(_WANTED))
        )
    except HFValidationError as error:
        raise UsageError(
            f"transformers:{name}: there is no such folder, and it is no name of the hub"
        ) from error
    except LocalEntryNotFoundError as error:
        how = (
            "and the hub cannot be reached"
            if allowed
            else f"fetch it with `hf download {name}`, or set {DOWNLOAD}=1"
        )
        raise UsageError(
            f"transformers:{name}: there is no such folder, and the local Hugging Face cache does "
            f"not hold it; {how}"
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise UsageError(f"transformers:{name} cannot be fetched: {_first_line(error)}") from error


def _header(file: Path) -> Mapping[str, Any]:
    """A safetensors file's table of contents."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > file.stat().st_size:
                raise UsageError(f"{file} is cut off or no safetensors file")
            found: Mapping[str, Any] = json.loads(stream.read(length))
    except ValueError as error:
        raise UsageError(f"{file} is no safetensors file: {error}") from error
    return found


def _hashed(file: Path) -> str:
    with file.open("rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]

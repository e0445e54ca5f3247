"""Where weights are looked for, and what the catalog promises."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.weights import store
from judge.weights.catalog import CATALOG, DEFAULT, EMBEDDING, entry

from .conftest import NAME, PAYLOAD


@pytest.fixture
def present(models: Path) -> Path:
    file = models / NAME / "tiny.bin"
    file.parent.mkdir(parents=True)
    file.write_bytes(PAYLOAD)
    return file


def test_pieces_add_up_to_their_file() -> None:
    for owner in CATALOG.values():
        for file in owner.files:
            assert sum(piece.size for piece in file.mirror) == file.size
            assert len(file.sha256) == 64
            assert file.url is None or file.url.startswith("https://huggingface.co/")
    assert CATALOG[DEFAULT].kind == "chat"
    assert CATALOG[EMBEDDING].kind == "embedding"


def test_default_is_the_pinned_file_in_22_pieces() -> None:
    (file,) = entry(DEFAULT).files
    assert (file.size, len(file.mirror)) == (1_117_320_768, 22)
    assert file.mirror[-1].size == 16_315_968


def test_weights_dir_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JUDGE_MODELS_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert store.weights_dir().name == "models"
    assert store.weights_dir().parent.name == "judge"


def test_path_of_present_weights(present: Path) -> None:
    assert store.path(NAME) == present
    assert store.resolve(NAME) == present
    assert store.sha256_of(present) == hashlib.sha256(PAYLOAD).hexdigest()


def test_weights_of_another_size_are_not_there(present: Path) -> None:
    present.write_bytes(PAYLOAD[:-1])
    assert store.path(NAME) is None


def test_folder_for_several_files(models: Path) -> None:
    folder = models / EMBEDDING
    folder.mkdir(parents=True)
    for file in entry(EMBEDDING).files:
        with (folder / file.name).open("wb") as stream:
            stream.truncate(file.size)
    assert store.path(EMBEDDING) == folder


def test_missing_weights_say_how_to_get_them(models: Path) -> None:
    with pytest.raises(UsageError, match=f"judge models pull {DEFAULT}"):
        store.resolve(DEFAULT)


def test_own_gguf_file(tmp_path: Path) -> None:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF")
    assert store.resolve(str(file)) == file
    assert store.sha256_of(file) == hashlib.sha256(b"GGUF").hexdigest()


@pytest.mark.parametrize("name", ["qwen", "there/is/no.gguf"])
def test_neither_name_nor_file(name: str) -> None:
    with pytest.raises(UsageError, match=DEFAULT):
        store.resolve(name)

"""Where weights lie, which are there, and what is known of their bytes."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judge.cli.models import app
from judge.errors import UsageError
from judge.weights import store
from judge.weights.catalog import CATALOG, DEFAULT, EMBEDDING, entry
from judge.weights.fetch import pull

from .conftest import NAME, PAYLOAD, Publisher


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


# ---------------------------------------------------------------- bytes that change

FLIPPED = bytes([PAYLOAD[0] ^ 1]) + PAYLOAD[1:]


@pytest.fixture
def there(models: Path, publisher: Publisher) -> Path:
    return pull(NAME, progress=lambda done, total, what: None)


def test_a_changed_file_is_refused_before_use_and_fetched_anew(
    there: Path, publisher: Publisher
) -> None:
    assert store.resolve(NAME) == there
    there.write_bytes(FLIPPED)
    with pytest.raises(UsageError, match=f"was changed .*judge models pull {NAME}"):
        store.resolve(NAME)
    assert store.sha256_of(there) == hashlib.sha256(FLIPPED).hexdigest(), "the output is honest"
    assert pull(NAME, progress=lambda done, total, what: None).read_bytes() == PAYLOAD
    assert store.resolve(NAME) == there


def test_a_file_that_looks_the_same_is_not_read_again(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.resolve(NAME)
    monkeypatch.setattr(store, "hashed", lambda file: pytest.fail("read again"))
    assert store.resolve(NAME) == there
    assert store.sha256_of(there) == CATALOG[NAME].files[0].sha256


def test_weights_of_ones_own_are_read_once_until_they_change(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, read, hashed = tmp_path / "own.gguf", list[Path](), store.hashed
    monkeypatch.setattr(store, "hashed", lambda file: [read.append(file), hashed(file)][1])
    for body in (PAYLOAD, FLIPPED):
        file.write_bytes(body)
        assert {store.sha256_of(file) for _ in range(3)} == {hashlib.sha256(body).hexdigest()}
    assert read == [file, file]


def test_a_copy_with_the_old_times_is_read_again(there: Path) -> None:
    store.resolve(NAME)
    seen = there.stat()
    there.write_bytes(FLIPPED)
    os.utime(there, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    with pytest.raises(UsageError, match="was changed"):
        store.resolve(NAME)


def test_notes_that_cannot_be_read_do_not_count(there: Path) -> None:
    store.resolve(NAME)
    notes = store.weights_dir() / ".hashes.json"
    for text in ("", "[]", "{", json.dumps({str(there): 5}), json.dumps({str(there): [1, "0"]})):
        notes.write_text(text)
        assert store.resolve(NAME) == there


def test_verify_reads_all_of_it(there: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["verify"])
    assert done.exit_code == 0 and done.stdout.startswith("right")
    store.resolve(NAME)
    there.write_bytes(FLIPPED)
    # A forged note, as somebody with a hand in the folder would leave.
    found = there.stat()
    mark = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
    forged = {str(there): [*mark, CATALOG[NAME].files[0].sha256]}
    (store.weights_dir() / ".hashes.json").write_text(json.dumps(forged))
    assert store.resolve(NAME) == there
    wrong = runner.invoke(app, ["verify", NAME])
    assert wrong.stdout.startswith("WRONG") and isinstance(wrong.exception, UsageError)

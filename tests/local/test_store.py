"""Weights on disk: their folder, which are there, what is known of their bytes; `judge models`."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import gguf
import pytest
from typer.testing import CliRunner

from judge.errors import UsageError
from judge.local import DEFAULT_NAME, store
from judge.local.commands.models import app
from judge.local.fetch import pull
from judge.local.store import CATALOG, entry

from .conftest import NAME, PAYLOAD, Publisher

runner = CliRunner()
FLIPPED = bytes([PAYLOAD[0] ^ 1]) + PAYLOAD[1:]


@pytest.fixture
def there(models: Path, publisher: Publisher) -> Path:
    return pull(NAME, progress=lambda done, total, what: None)


def test_pieces_add_up_to_their_file() -> None:
    for weights in CATALOG.values():
        assert sum(piece.size for piece in weights.pieces) == weights.size
        assert len(weights.sha256) == 64
        assert weights.url.startswith("https://huggingface.co/")
    assert (entry(DEFAULT_NAME).size, len(entry(DEFAULT_NAME).pieces)) == (1_117_320_768, 22)


def test_missing_weights_say_how_to_get_them(models: Path) -> None:
    with pytest.raises(UsageError, match=f"judge models pull {DEFAULT_NAME}"):
        store.resolve(DEFAULT_NAME)
    for neither in ("qwen", "there/is/no.gguf"):
        with pytest.raises(UsageError, match=DEFAULT_NAME):
            store.resolve(neither)


def test_a_changed_file_is_refused_before_use_and_fetched_anew(there: Path) -> None:
    assert store.resolve(NAME) == there
    seen = there.stat()
    there.write_bytes(FLIPPED)
    os.utime(there, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    with pytest.raises(UsageError, match=f"was changed .*judge models pull {NAME}"):
        store.resolve(NAME)
    assert store.sha256_of(there) == hashlib.sha256(FLIPPED).hexdigest(), "the output is honest"
    assert pull(NAME, progress=lambda done, total, what: None).read_bytes() == PAYLOAD
    assert store.resolve(NAME) == there
    there.write_bytes(PAYLOAD[:-1])
    assert store.entry(NAME).here is None


def test_an_adapter_stands_behind_the_weights(tmp_path: Path) -> None:
    """A + in a folder's name does not begin an adapter."""
    folder = tmp_path / "a+b"
    folder.mkdir()
    weights, adapter = folder / "w.gguf", tmp_path / "mine.gguf"
    weights.touch()
    adapter.touch()
    assert store.with_adapter(str(weights)) == (weights, None)
    assert store.with_adapter(f"{weights}+{adapter}") == (weights, adapter)
    beside = folder / "mine.gguf"
    beside.touch()
    assert store.with_adapter(f"{weights}+{beside}") == (weights, beside)
    with pytest.raises(UsageError, match=r"'other\.gguf' is not a \.gguf file"):
        store.with_adapter(f"{weights}+other.gguf")


def test_a_model_of_the_other_engine_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=f"not a GGUF file: transformers:{tmp_path}"):
        store.resolve(str(tmp_path))
    with pytest.raises(UsageError, match=r"a GGUF file is local:q\.gguf"):
        store.hugging_face("q.gguf")
    with pytest.raises(UsageError) as missing:
        store.hugging_face("/nowhere/at/all")
    assert "hf download" not in str(missing.value)


def test_an_adapter_for_other_weights_is_refused(tmp_path: Path) -> None:
    """Its shape may fit, as from Qwen2.5 to Qwen2.5-Coder; its answers would mean nothing."""
    weights, adapter = tmp_path / "w.gguf", tmp_path / "mine.gguf"
    weights.write_bytes(b"GGUF, these")
    writer = gguf.GGUFWriter(adapter, "llama")
    writer.add_string("judge.base", hashlib.sha256(weights.read_bytes()).hexdigest())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert store.with_adapter(f"{weights}+{adapter}") == (weights, adapter)
    weights.write_bytes(b"GGUF, others")
    with pytest.raises(
        UsageError, match=r"mine\.gguf was trained for other weights than .*w\.gguf"
    ):
        store.with_adapter(f"{weights}+{adapter}")


def test_an_adapter_of_the_package_is_named_without_a_folder() -> None:
    assert store.shipped_adapter("adherence") is not None
    assert store.shipped_adapter("../profiles/adherence") is None
    assert store.shipped_adapter("nothing") is None


def test_a_models_hash_is_over_its_weights_configuration_and_tokenizer(tmp_path: Path) -> None:
    def written(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return store.sha256_of_folder(tmp_path)

    first = written("model.safetensors", "weights")
    assert written("README.md", "words") == first
    configured = written("config.json", "{}")
    assert len({first, configured, written("model.safetensors", "others")}) == 3


def test_notes_that_cannot_be_read_do_not_count(there: Path) -> None:
    notes = store.weights_dir() / ".hashes.json"
    for text in ("", "[]", "{", json.dumps({str(there): 5}), json.dumps({str(there): ["0"]})):
        notes.write_text(text)
        assert store.resolve(NAME) == there


def test_list_pull_and_path(models: Path, publisher: Publisher) -> None:
    listed = runner.invoke(app, ["list"]).stdout
    assert NAME in listed and "smollm2-135m" in listed
    missing = runner.invoke(app, ["path", NAME])
    assert f"judge models pull {NAME}" in str(missing.exception)
    pulled = runner.invoke(app, ["pull", NAME])
    assert pulled.stdout == f"{models / NAME / 'tiny.bin'}\n", "the path alone"
    assert runner.invoke(app, ["path", NAME]).stdout == pulled.stdout
    for command in ("pull", "path"):
        assert isinstance(runner.invoke(app, [command, "nope"]).exception, UsageError)

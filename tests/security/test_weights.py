"""Weights that change on disk after they were fetched."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner
from weights.conftest import NAME, PAYLOAD, Publisher, models, no_hub, publisher

from judge.cli.models import app
from judge.errors import UsageError
from judge.weights import store
from judge.weights.catalog import CATALOG
from judge.weights.fetch import pull

__all__ = ["models", "no_hub", "publisher"]
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

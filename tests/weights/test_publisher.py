"""Weights from the publisher."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.errors import Exit, UsageError
from judge.weights import store
from judge.weights.fetch import pull
from judge.weights.source import FetchError, SourceUnreachable, WrongBytes

from .conftest import NAME, PAYLOAD, Publisher


def silent(done: int, total: int, what: str) -> None:
    pass


def test_full_pull(models: Path, publisher: Publisher) -> None:
    told: list[tuple[int, int]] = []
    path = pull(NAME, progress=lambda done, total, what: told.append((done, total)))
    assert path == models / NAME / "tiny.bin" == store.path(NAME)
    assert path.read_bytes() == PAYLOAD
    assert publisher.ranges == [None]
    assert told == sorted(told)
    assert told[-1] == (len(PAYLOAD), len(PAYLOAD))
    assert sorted(file.name for file in path.parent.iterdir()) == [".lock", "tiny.bin"]


def test_present_weights_are_not_fetched_again(models: Path, publisher: Publisher) -> None:
    pull(NAME, progress=silent)
    pull(NAME, progress=silent)
    assert len(publisher.ranges) == 1


def test_cut_connection_is_taken_up_where_it_broke(models: Path, publisher: Publisher) -> None:
    publisher.cut_after = 200_000
    assert pull(NAME, progress=silent, source="publisher").read_bytes() == PAYLOAD
    assert publisher.ranges == [None, "bytes=200000-"]


def test_earlier_part_is_gone_on_with(models: Path, publisher: Publisher) -> None:
    (models / NAME).mkdir(parents=True)
    (models / NAME / "tiny.bin.part").write_bytes(PAYLOAD[:123_456])
    assert pull(NAME, progress=silent).read_bytes() == PAYLOAD
    assert publisher.ranges == ["bytes=123456-"]


def test_server_without_ranges_starts_over(models: Path, publisher: Publisher) -> None:
    publisher.ranges_work = False
    publisher.cut_after = 200_000
    assert pull(NAME, progress=silent).read_bytes() == PAYLOAD
    assert publisher.ranges == [None, "bytes=200000-"]


@pytest.mark.parametrize("change", ["flip", "longer"])
def test_wrong_bytes_are_refused_and_deleted(
    models: Path, publisher: Publisher, wheels: Path, change: str
) -> None:
    flipped = bytes([PAYLOAD[0] ^ 1]) + PAYLOAD[1:]
    publisher.body = flipped if change == "flip" else PAYLOAD + b"x" * 10
    with pytest.raises(WrongBytes) as caught:
        pull(NAME, progress=silent)
    assert caught.value.exit_code is Exit.UNAVAILABLE
    assert "600000 bytes" in str(caught.value)
    assert store.path(NAME) is None
    assert [file.name for file in (models / NAME).iterdir()] == [".lock"]


def test_wrong_bytes_names_both_hashes(models: Path, publisher: Publisher) -> None:
    publisher.body = b"\0" * len(PAYLOAD)
    with pytest.raises(WrongBytes, match=r"expected .* SHA-256 [0-9a-f]{64}, got .*[0-9a-f]{64}"):
        pull(NAME, progress=silent)


def test_refusal_without_mirror(models: Path, publisher: Publisher) -> None:
    publisher.status = 403
    with pytest.raises(SourceUnreachable, match="HTTP 403"):
        pull(NAME, progress=silent, source="publisher")


def test_short_page_instead_of_the_file(
    models: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    publisher.body, publisher.ranges_work = b"<html>please log in</html>", False
    with pytest.raises(SourceUnreachable, match="keeps breaking off"):
        pull(NAME, progress=silent, source="publisher")


def test_no_space(models: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 100_000_000

    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage)
    with pytest.raises(FetchError, match="needs 201 MB free"):
        pull(NAME, progress=silent)
    assert publisher.ranges == []


def test_folder_that_cannot_be_made(models: Path, publisher: Publisher) -> None:
    models.write_text("a file in the way")
    with pytest.raises(FetchError, match="cannot write"):
        pull(NAME, progress=silent)


def test_unknown_name(models: Path) -> None:
    with pytest.raises(UsageError, match="no weights are named 'nope'"):
        pull("nope", progress=silent)
